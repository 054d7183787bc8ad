"""Helm against a control plane: releases that are really installed, upgraded, rolled back and removed."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bed.control_plane import ControlPlane
from bed.helm import helm
from support.helm_charts import ROOT

OUR_CHARTS: Final = ROOT / "helm-chart"


@dataclass(frozen=True)
class Helm:
    """One `helm` with a home of its own."""

    plane: ControlPlane
    folder: Path
    namespace: str = "default"
    program: Path = field(default_factory=helm)

    @property
    def variables(self) -> dict[str, str]:
        """The environment it needs; PATH is for plugins, of which there are none."""
        homes = ("HOME", "HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME")
        return {"KUBECONFIG": str(self.plane.admin_kubeconfig), **{name: str(self.folder) for name in homes}}

    def __call__(self, *words: str | Path) -> str:
        """What it prints. A failure shows what it said."""
        done = self.attempt(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def attempt(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        """The same where a failure may be what is wanted."""
        where = [] if "--namespace" in words else ["--namespace", self.namespace]
        command = [self.program, *words, *where]
        return subprocess.run(command, env=self.variables, capture_output=True, text=True, check=False)
