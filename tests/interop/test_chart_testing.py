"""chart-testing's and helm-docs' own programs on our charts, as whoever publishes charts runs them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

import bed
from bed.binaries import binary
from bed.golang import module_folder
from bed.node.real_node import RealNode
from bed.pinned import installed
from e2e.own_image import OWN_IMAGE, own_image
from support.helm_charts import ROOT
from support.helm_releases import Helm
from tools.charts import CHARTS, NAMES, described_values

pytestmark = pytest.mark.interop

PINS: Final = Path(bed.__path__[0]) / "requirements-chart-testing.txt"
OF_NOBODY: Final = ("--check-version-increment=false", "--validate-maintainers=false")
"""There is no published chart to compare with, and maintainers are looked up on GitHub."""
INSTALLED: Final = ("kuberay-operator", "ray-history-server")
"""Charts whose pods are ready without anything else."""


def run_ct(command: str, charts: tuple[str, ...], folder: Path, *words: str, **variables: str) -> None:
    """Run `ct`; a failure shows what it says."""
    linters, programs = installed(PINS, "chart-testing"), folder / "bin"
    programs.mkdir()
    (programs / "helm").symlink_to(binary("helm-3"))
    (programs / "kubectl").symlink_to(binary("kubectl"))
    settings = module_folder("github.com/helm/chart-testing/v3", "v3.14.0") / "etc"
    files = [f"--chart-yaml-schema={settings / 'chart_schema.yaml'}", f"--lint-conf={settings / 'lintconf.yaml'}"]
    paths = f"{programs}:{linters / 'bin'}:{os.environ['PATH']}"
    environment = os.environ | variables | {"PATH": paths, "PYTHONPATH": str(linters), "HOME": str(folder)}
    listed = ",".join(f"helm-chart/{name}" for name in charts)
    wanted = [*(files if command == "lint" else ()), *words]
    done = subprocess.run(
        [binary("ct"), command, f"--charts={listed}", *wanted],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_chart_testing_finds_nothing_to_lint(tmp_path: Path) -> None:
    run_ct("lint", NAMES, tmp_path, *OF_NOBODY)


@pytest.mark.timeout(900)
def test_chart_testing_installs_what_runs_by_itself(real_node: RealNode, tmp_path: Path) -> None:
    real_node.import_image(own_image(OWN_IMAGE))
    variables = Helm(real_node.plane, tmp_path).variables
    run_ct("install", INSTALLED, tmp_path, "--helm-extra-args=--timeout=300s", KUBECONFIG=variables["KUBECONFIG"])


@pytest.mark.parametrize("name", NAMES)
def test_helm_docs_reads_the_same_table_out_of_the_comments(name: str, tmp_path: Path) -> None:
    shutil.copytree(CHARTS / name, tmp_path / name, ignore=shutil.ignore_patterns("README.md"))
    (tmp_path / name / "README.md.gotmpl").write_text('{{ template "chart.valuesTable" . }}\n')
    asked: list[str | Path] = [binary("helm-docs"), f"--chart-search-root={tmp_path}", "--log-level=error"]
    subprocess.run(asked, check=True, capture_output=True)
    table = (tmp_path / name / "README.md").read_text()
    theirs = {
        path.replace("\\", ""): _plain(text)
        for path, text in re.findall(r"^\| ([^ |]+) \| \w+ \| .* \| (.*) \|$", table, re.MULTILINE)
    }
    ours = {path: _plain(text) for path, text in described_values((CHARTS / name / "values.yaml").read_text())}
    assert {path: theirs.get(path) for path in ours} == ours


def _plain(text: str) -> str:
    return text.replace("\\", "").strip()
