"""Puts Ray's own dashboard into the wheel where `make wheel` has fetched it; see `tools/wheel.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FETCHED = Path("build", "ray-dashboard")
IN_THE_WHEEL = "raykeeper/history/http/pages/ray-dashboard"


class CustomBuildHook(BuildHookInterface[Any]):
    """The sdist carries the files along, so that a wheel made from it has them too."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        folder = Path(self.root, FETCHED)
        if version == "standard" and folder.is_dir():
            target = IN_THE_WHEEL if self.target_name == "wheel" else FETCHED.as_posix()
            for name in ("build", "NOTICE"):
                build_data["force_include"][str(folder / name)] = f"{target}/{name}"
