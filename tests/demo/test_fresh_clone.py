"""The first commands of whoever has a new machine with Python, git and make, or nothing but the wheel."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools.wheel import build_wheel

ROOT = Path(__file__).parent.parent.parent
INSTALL_SECONDS = 1800  # some 200 MB from the registries

pytestmark = pytest.mark.soak


def test_make_demo_works_in_a_fresh_clone(tmp_path: Path) -> None:
    clone, home = tmp_path / "clone", tmp_path / "home"
    home.mkdir()
    subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("VIRTUAL_ENV", "XDG_"))}
    done = subprocess.run(
        ["make", "demo", "DEMO_ARGS=--exit"],
        cwd=clone,
        env={**environment, "HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "installing Ray" in done.stdout
    assert (home / ".local" / "share" / "raykeeper" / "demo" / "v1").is_dir()


def bare(home: Path) -> dict[str, str]:
    """The variables of somebody who has a Python and uv, and never heard of a checkout."""
    home.mkdir()
    kept = {name: value for name, value in os.environ.items() if name.startswith(("UV_", "PIP_", "SSL_"))}
    programs = {Path(sys.base_prefix, "bin"), Path(shutil.which("uv") or Path(sys.executable).with_name("uv")).parent}
    return {**kept, "HOME": str(home), "PATH": ":".join([*map(str, programs), "/usr/bin", "/bin"]), "LANG": "C.UTF-8"}


def test_uvx_runs_the_demo_from_the_wheel_alone(tmp_path: Path) -> None:
    wheel, home = build_wheel(tmp_path / "dist"), tmp_path / "home"
    done = subprocess.run(
        ["uvx", "--from", wheel, "raykeeper", "demo", "--exit"],
        cwd="/",
        env=bare(home),
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "installing Ray" in done.stdout
    assert "Ray is gone. What the history says of it:" in done.stdout
    assert "2 x divide: ZeroDivisionError: division by zero" in done.stdout


def test_pip_installs_the_wheel_with_all_that_it_needs(tmp_path: Path) -> None:
    wheel, environment = build_wheel(tmp_path / "dist"), bare(tmp_path / "home")
    python = Path(sys.base_prefix, "bin", "python3")
    subprocess.run([python, "-m", "venv", tmp_path / "venv"], check=True, env=environment)
    programs = tmp_path / "venv" / "bin"
    subprocess.run([programs / "pip", "install", "--quiet", wheel], check=True, env=environment, cwd="/")
    charts = tmp_path / "charts"
    for words in (["version"], ["crds"], ["charts", "--out", charts], ["history", "--help"]):
        subprocess.run([programs / "raykeeper", *words], check=True, env=environment, cwd="/", capture_output=True)
    assert (charts / "kuberay-operator" / "crds" / "ray.io_rayclusters.yaml").exists()
