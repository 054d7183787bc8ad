"""Which browser the tests use, and what they say where there is none."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bed.chromium import ChromiumMissing, chromium_program


def test_the_browser_that_is_named_is_used() -> None:
    assert chromium_program({"CHROMIUM": sys.executable}) == Path(sys.executable)


def test_a_name_that_is_no_program_is_told() -> None:
    with pytest.raises(ChromiumMissing, match="CHROMIUM=/no/such is no program"):
        chromium_program({"CHROMIUM": "/no/such"})


def test_where_there_is_no_browser_and_no_way_to_install_one_the_cure_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bed.chromium.find_program", lambda _: None)
    with pytest.raises(ChromiumMissing, match="name it in CHROMIUM, or install one of chromium"):
        chromium_program({})
