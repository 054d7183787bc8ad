"""`raykeeper charts` writes charts that Helm takes, from a checkout and from the wheel alike."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bed.helm import helm
from raykeeper.cli.app import app
from raykeeper.errors import Misconfigured
from tools.charts import CHARTS, NAMES


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["charts", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def files_of(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files if "tests" not in path.parts}


def test_without_a_folder_the_charts_are_listed() -> None:
    assert run().split() == sorted(NAMES)


def test_the_charts_are_written_whole(tmp_path: Path) -> None:
    said = run("--out", str(tmp_path / "new"))
    assert said == f"helm install kuberay-operator {tmp_path}/new/kuberay-operator\n"
    for name in NAMES:
        source = {path: content for path, content in files_of(CHARTS / name).items() if not path.startswith("ci/")}
        assert files_of(tmp_path / "new" / name) == source, name
    subprocess.run([helm(), "lint", "--strict", *(tmp_path / "new").iterdir()], check=True, capture_output=True)


def test_a_chart_that_is_there_already_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "ray-job").mkdir()
    with pytest.raises(Misconfigured, match="ray-job is there already; name another folder or remove it"):
        run("--out", str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["ray-job"]
