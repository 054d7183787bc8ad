"""In which time zone a schedule is read that names none."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path

import pytest

from raykeeper.operator.raycronjob.schedule import parse_schedule
from raykeeper.operator.raycronjob.zones import operators_zone, parse_zone

NOVEMBER = datetime(2026, 11, 18, tzinfo=UTC)
IN_SUMMER = datetime(2027, 7, 1, 7, tzinfo=UTC)
"""Nine o'clock in Berlin."""


@pytest.mark.parametrize("name", ["Europe/Berlin", ":Europe/Berlin"])
def test_clocks_of_the_operators_zone_change_with_the_season(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", name)
    time.tzset()
    assert parse_schedule("0 9 1 7 *", parse_zone(None)).after(NOVEMBER) == IN_SUMMER
    monkeypatch.undo()
    time.tzset()


def test_the_zone_may_be_a_file(tmp_path: Path) -> None:
    localtime = tmp_path / "localtime"
    localtime.write_bytes(files("tzdata").joinpath("zoneinfo/Europe/Berlin").read_bytes())
    for zone in (operators_zone(None, localtime), operators_zone(str(localtime))):
        assert parse_schedule("0 9 1 7 *", zone).after(NOVEMBER) == IN_SUMMER


def test_without_any_zone_it_is_utc(tmp_path: Path) -> None:
    assert operators_zone(None, tmp_path / "none") is UTC
    assert operators_zone("") is UTC


@pytest.mark.parametrize("variable", ["Europe/Atlantis", "CET-1CEST,M3.5.0,M10.5.0/3", "/etc/hostname", "/none"])
def test_a_zone_of_the_operator_that_cannot_be_read_is_no_zone(variable: str) -> None:
    with pytest.raises(ValueError, match="name one here, such as Europe/Berlin"):
        operators_zone(variable)
