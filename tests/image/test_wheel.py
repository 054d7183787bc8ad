"""The wheel in an environment of its own: it brings everything that its programs need."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Final

import pytest

from bed.uv import run_uv
from tools.wheel import build_wheel, run_hatchling

ROOT: Final = Path(__file__).parents[2]
PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PROGRAMS: Final = sorted(PROJECT["scripts"])
ASK_FOR_THE_DASHBOARD: Final = (
    "from raykeeper.history.http.pages.dashboard import find_dashboard; print(*find_dashboard(None).files)"
)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment with the runtime's pins and the wheel, from what `make setup` left in uv's cache."""
    folder = tmp_path_factory.mktemp("wheel")
    wheel, python = run_hatchling(folder), folder / "venv" / "bin" / "python"
    run_uv(["venv", "--python", sys.executable, folder / "venv"], purpose="making an environment")
    install: list[str | Path] = ["pip", "install", "--offline", "--python", python]
    pins = ROOT / "requirements" / "runtime.txt"
    run_uv([*install, "--require-hashes", "-r", pins], purpose="installing the runtime's pins")
    run_uv([*install, "--no-deps", wheel], purpose="installing the wheel")
    return python.parent


def output(command: Path, *arguments: str) -> str:
    done = subprocess.run([command, *arguments], check=True, capture_output=True, text=True, cwd="/")
    return done.stdout


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_program_starts_from_the_wheel_alone(program: str, environment: Path) -> None:
    assert "Usage:" in output(environment / program, "--help")


def test_the_wheel_brings_the_crds_and_its_version(environment: Path) -> None:
    assert output(environment / "raykeeper", "crds").count("\nkind: CustomResourceDefinition\n") == 4
    assert output(environment / "raykeeper", "version").split()[1] == PROJECT["version"]


def test_the_wheel_brings_the_charts(environment: Path, tmp_path: Path) -> None:
    output(environment / "raykeeper", "charts", "--out", str(tmp_path))
    for source in (ROOT / "helm-chart").glob("*/*.yaml"):
        assert (tmp_path / source.relative_to(ROOT / "helm-chart")).read_bytes() == source.read_bytes()
    assert len(list(tmp_path.glob("kuberay-operator/crds/*.yaml"))) == 4


@pytest.mark.bed
def test_the_whole_wheel_brings_rays_dashboard(environment: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(build_wheel(tmp_path)) as wheel:
        wheel.extractall(tmp_path / "whole")
    code = f"import sys; sys.path.insert(0, {str(tmp_path / 'whole')!r}); {ASK_FOR_THE_DASHBOARD}"
    files = output(environment / "python", "-c", code).split()
    assert "index.html" in files
    assert any(name.startswith("static/js/main.") for name in files)


def test_two_wheels_are_the_same(tmp_path: Path) -> None:
    digests = {hashlib.sha256(run_hatchling(tmp_path / name).read_bytes()).hexdigest() for name in ("one", "two")}
    assert len(digests) == 1
