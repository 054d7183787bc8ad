"""Builds the wheel with everything inside: the CRDs, the charts, and the files of Ray's own dashboard.

`python -m tools.wheel [FOLDER]`; the default is `dist`. A wheel that is built without this lacks the dashboard; the
history server then takes it from an installed Ray.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tools.image.tree import uv

ROOT: Final = Path(__file__).parent.parent
PINS: Final = ROOT / "src" / "raykeeper" / "demo" / "requirements-ray.txt"
DASHBOARD: Final = ROOT / "build" / "ray-dashboard"
"""Where `hatch_build.py` looks for it."""
_BUILD: Final = Path("ray", "dashboard", "client", "build")
_NOTICE: Final = """The folder `build` is the dashboard of Ray (https://github.com/ray-project/ray), as its package has
it. Apache License 2.0; the licences of what is in it are beside its scripts.
"""
_FOR_DEVELOPERS: Final = "*.map"
"""Three quarters of it; a browser asks for them when its console is open."""


def build_wheel(folder: Path) -> Path:
    """Build the whole wheel into that folder."""
    recipe = DASHBOARD / "recipe"
    if not recipe.exists() or recipe.read_text() != _recipe():
        lay_dashboard()
    return run_hatchling(folder)


def run_hatchling(folder: Path) -> Path:
    """Build the wheel into that folder, with the dashboard only if it was fetched before."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE)
    (wheel,) = folder.glob("*.whl")
    return wheel


def lay_dashboard() -> None:
    """Take the dashboard's files out of Ray's own wheel, which is fetched by its hash."""
    shutil.rmtree(DASHBOARD, ignore_errors=True)
    DASHBOARD.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=DASHBOARD.parent) as scratch:
        pin, ray = Path(scratch, "ray.txt"), Path(scratch, "ray")
        pin.write_text(_ray_pin())
        # Of any platform: these files are the same in all.
        where: list[str | Path] = [
            "--target",
            ray,
            "--python-version",
            "3.11",
            "--python-platform",
            "x86_64-manylinux_2_28",
        ]
        exactly = ["--require-hashes", "--no-deps", "--only-binary", ":all:", "--quiet"]
        command = [uv(), "pip", "install", "--python", sys.executable, *where, *exactly]
        subprocess.run([*command, "--requirement", pin], check=True)
        whole = Path(scratch, "whole")
        shutil.copytree(ray / _BUILD, whole / "build", ignore=shutil.ignore_patterns(_FOR_DEVELOPERS))
        (whole / "NOTICE").write_text(_NOTICE)
        (whole / "recipe").write_text(_recipe())
        whole.rename(DASHBOARD)


def _recipe() -> str:
    """What decides what is there."""
    return _NOTICE + _ray_pin()


def _ray_pin() -> str:
    """The lines about Ray itself."""
    found = re.search(r"^ray==.*\n(?: +--hash.*\n)+", PINS.read_text(), re.MULTILINE)
    if found is None:
        raise SystemExit(f"{PINS.name} does not pin Ray: run `make pins`")
    return found[0]


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "dist").absolute()
    print(build_wheel(target))
