"""`python -m bench` reaches every benchmark and shows what it measured, whatever breaks."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

import bench
from bench import __main__ as benchmarks
from bench.figures import Figure, documented_figures


def modules_that_run() -> Iterator[str]:
    for path in Path(bench.__file__).parent.glob("[!_]*.py"):
        nodes = ast.parse(path.read_text()).body
        if any(isinstance(node, ast.FunctionDef) and node.name == "run" for node in nodes):
            yield path.stem


def test_every_benchmark_can_be_asked_for() -> None:
    assert set(modules_that_run()) == set(benchmarks.BENCHMARKS)


def test_the_help_tells_what_each_measures_and_how_long_it_takes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        benchmarks.main(["--help"])
    lines = capsys.readouterr().out.splitlines()
    for name, duration in benchmarks.BENCHMARKS.items():
        assert any(line.split()[:1] == [name] and duration in line and line.endswith(".") for line in lines)


def test_one_that_does_not_exist_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert benchmarks.main(["gets", "gest"]) == 2
    assert "no such benchmark: gest" in capsys.readouterr().err


def broken() -> Iterator[Figure]:
    yield Figure("the first half", 3.0, "s", 2.0)
    raise ValueError("disk full")


def whole() -> Iterator[Figure]:
    yield Figure("all of it", 1234.5, "s", 2000.0)


@pytest.fixture
def two_benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, run in (("startup", broken), ("gets", whole)):
        monkeypatch.setitem(sys.modules, f"bench.{name}", SimpleNamespace(run=run))
    monkeypatch.setattr(benchmarks, "BENCHMARKS", {"startup": "1 s", "gets": "1 s"})


@pytest.mark.usefixtures("two_benchmarks")
def test_a_missed_bar_and_a_benchmark_that_breaks_are_said_and_fail_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert benchmarks.main([]) == 0
    output = capsys.readouterr()
    assert "MISSED" in output.out
    assert "startup: broke off" in output.out
    assert "all of it" in output.out
    assert "disk full" in output.err


@pytest.mark.usefixtures("two_benchmarks")
def test_rows_for_the_documentation_are_read_back_from_it(capsys: pytest.CaptureFixture[str]) -> None:
    benchmarks.main(["gets", "--markdown"])
    assert documented_figures(capsys.readouterr().out) == {"all of it": 1234.0}
