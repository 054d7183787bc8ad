"""The `uv` command, which installs Python packages for the bed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from bed.errors import BedError


def run_uv(arguments: Sequence[str | Path], *, purpose: str) -> None:
    """Run uv; `BedError` with the end of its output when it fails to do its `purpose`."""
    command = [_uv(), *map(str, arguments)]
    outcome = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if outcome.returncode != 0:
        cause = "\n  ".join(outcome.stdout.strip().splitlines()[-8:])
        raise BedError(f"{purpose} failed; needed is a Python package index that uv can reach\n  {cause}")


def _uv() -> str:
    """`make setup` puts it beside Python where the machine has none."""
    places = os.pathsep.join([os.environ.get("PATH", ""), str(Path(sys.executable).parent)])
    if found := shutil.which("uv", path=places):
        return found
    raise BedError("uv is not installed: run `make setup`, or install it from PyPI")
