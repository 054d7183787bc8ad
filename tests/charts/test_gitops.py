"""The health checks for Argo CD say what the operator's status means. Argo CD runs Lua 5.1, and so do these tests."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any, Final

import pytest

import bed
from bed.pinned import installed
from support.gitops_health import CASES, EXPRESSIONS, Case, health_check

PINS: Final = Path(bed.__path__[0]) / "requirements-lua.txt"


@pytest.fixture(scope="module")
def lua() -> Any:
    """A runtime of Lua 5.1."""
    sys.path.insert(0, str(installed(PINS, "Lua")))
    try:
        return importlib.import_module("lupa.lua51").LuaRuntime()
    finally:
        sys.path.pop(0)


@pytest.mark.parametrize("case", CASES)
def test_health_is_what_the_status_means(case: Case, lua: Any) -> None:
    check = lua.eval(f"function(obj) {health_check(case.kind)} end")
    answer = check(lua.table_from(case.manifest, recursive=True))
    assert answer.status == case.argo
    assert isinstance(answer.message, str)


def test_flux_is_told_about_all_kinds() -> None:
    assert set(EXPRESSIONS) == {case.kind for case in CASES}
