"""The wheel in an environment of its own, and the layout of the image that is made from it."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final

import pytest

from bed.uv import run_uv
from tools.image_layout import ENTRY_POINT, PACKAGES, USER, program_names, program_paths, write_programs

ROOT: Final = Path(__file__).parents[2]
PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PROGRAMS: Final = sorted(PROJECT["scripts"])
DOCKERFILE: Final = (ROOT / "Dockerfile").read_text()


def build_wheel(folder: Path) -> Path:
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment with the runtime's pins and the wheel, from what `make setup` left in uv's cache."""
    folder = tmp_path_factory.mktemp("wheel")
    wheel, python = build_wheel(folder), folder / "venv" / "bin" / "python"
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


def test_two_wheels_are_the_same(tmp_path: Path) -> None:
    digests = {hashlib.sha256(build_wheel(tmp_path / name).read_bytes()).hexdigest() for name in ("one", "two")}
    assert len(digests) == 1


def test_the_image_has_kuberays_paths() -> None:
    paths = {str(path) for path in program_paths(PROGRAMS)}
    assert {
        "/manager",
        "/submitter",
        "/usr/local/bin/collector",
        "/usr/local/bin/historyserver",
        "/usr/local/bin/raykeeper",
    } <= paths
    assert ENTRY_POINT in paths


def test_a_program_in_the_image_knows_itself_by_its_name(environment: Path, tmp_path: Path) -> None:
    write_programs(tmp_path, program_names())
    for name, flag in (("manager", "--enable-leader-election"), ("usr/local/bin/collector", "--events-bind")):
        script = tmp_path / name
        script.write_text(script.read_text().replace("/usr/bin/python3", str(environment / "python")))
        assert flag in re.sub(r"\s+", " ", output(script, "--help")), name


def test_the_dockerfile_has_the_layout() -> None:
    last_stage = DOCKERFILE.rpartition("FROM ")[2]
    assert f'ENTRYPOINT ["{ENTRY_POINT}"]' in last_stage
    assert f"USER {USER}" in last_stage
    assert f"PYTHONPATH={PACKAGES}" in last_stage
    assert f"--target=/image{PACKAGES}" in DOCKERFILE


def test_the_dockerfile_is_given_every_file_that_it_copies() -> None:
    sources = re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE)
    allowed = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    for source in " ".join(sources).split():
        assert (ROOT / source).exists(), source
        assert any(source == path or source.startswith(f"{path}/") for path in allowed), source
