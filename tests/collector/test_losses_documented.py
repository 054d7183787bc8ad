"""Every way in which KubeRay loses, doubles or hoards data is decided in the manual, with the tests that show it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

MANUAL = Path(__file__).parents[2] / "docs" / "compatibility.md"
WAYS = [*(f"L{n}" for n in range(1, 26)), *(f"D{n}" for n in range(1, 5)), *(f"M{n}" for n in range(1, 7))]
"""M7 is about the history server."""
ROWS = {cells[0]: cells for line in MANUAL.read_text().splitlines() if (cells := line.strip("| ").split(" | "))[1:]}


@pytest.mark.parametrize("way", WAYS)
def test_the_manual_says_what_becomes_of_it_and_names_tests_that_are_there(way: str) -> None:
    _, _, decision, shown_by = ROWS[way]
    assert decision.startswith(("fixed", "kept"))
    tests = re.findall(r"`([\w/.]+)`", shown_by)
    assert tests
    assert [name for name in tests if not (Path(__file__).parent / f"{name}.py").exists()] == []
