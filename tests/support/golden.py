"""Golden files: whole objects as YAML that a reviewer can read, compared as data and remade by `pytest --regenerate`.

A regenerating run writes what the code says now and passes; `git diff` then shows what changed.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

REGENERATE = "--regenerate"

AssertGolden = Callable[[Path, object], None]
"""Fails unless the file holds exactly this value; with `--regenerate` it writes the file instead."""


class _Dumper(yaml.CSafeDumper):
    """Strings of several lines as blocks, lists inside their key's indentation, no anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _block_string(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _block_string)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(REGENERATE, action="store_true", help="write golden files from what the code says now")


@pytest.fixture
def assert_golden(request: pytest.FixtureRequest) -> AssertGolden:
    """Compares with golden files, or writes them where the run was asked to."""
    return write_golden if request.config.getoption(REGENERATE) else compare_golden


def write_golden(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(to_yaml(value))


def compare_golden(path: Path, value: object) -> None:
    """Fail with a diff unless the file holds this value; the order of keys does not matter."""
    if not path.exists():
        pytest.fail(f"{path.name} does not exist: run pytest {REGENERATE}, then read the file", pytrace=False)
    text = path.read_text()
    if yaml.load(text, yaml.CSafeLoader) != value:
        pytest.fail(f"{path.name} differs (+ is what the code says now):\n{_diff(text, value)}", pytrace=False)


def files_without_test(folder: Path, tested: Iterable[str]) -> list[str]:
    """Golden files that nothing compares any more; they would mislead a reader."""
    return sorted({file.stem for file in folder.glob("*.yaml")} - set(tested))


def to_yaml(value: object) -> str:
    """Kubernetes objects in the order that kubectl prints them, which is by name."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=True, allow_unicode=True, width=140)


def _diff(text: str, value: object) -> str:
    return "\n".join(difflib.unified_diff(text.splitlines(), to_yaml(value).splitlines(), "golden", "now", lineterm=""))
