"""When a session began, whatever the zone of the head's container."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from raykeeper.collector.start_time import observe_first_file, session_started_at

NAME = "session_2026-11-15_20-09-58_472817_9"
LOCAL = datetime(2026, 11, 15, 20, 9, 58, 472817, tzinfo=UTC)


@pytest.mark.parametrize("minutes", [0, 60, -300, 330, 345, 720, 840, -720, -210])
@pytest.mark.parametrize("delay", [0.0, 0.7, 45.0, 250.0])
def test_the_zone_is_found_by_the_first_file(minutes: int, delay: float) -> None:
    began = LOCAL - timedelta(minutes=minutes)
    assert session_started_at(NAME, began + timedelta(seconds=delay)) == began


def test_what_the_head_says_about_its_zone_counts_more_than_files() -> None:
    offset = timedelta(hours=8)
    assert session_started_at(NAME, LOCAL + timedelta(hours=3), offset) == LOCAL - offset
    assert session_started_at(NAME, None, offset) == LOCAL - offset


def test_a_first_file_that_fits_no_zone_is_the_start() -> None:
    late = LOCAL + timedelta(minutes=7)
    assert session_started_at(NAME, late) == late
    days_later = LOCAL + timedelta(days=3)
    assert session_started_at(NAME, days_later) == days_later


@pytest.mark.parametrize("name", ["mine", "session_2026-13-45_99-99-99_000000_1", "session_latest"])
def test_a_name_that_ray_did_not_make_says_nothing(name: str) -> None:
    assert session_started_at(name, LOCAL, timedelta(0)) == LOCAL
    assert session_started_at(name, None) is None


def test_the_first_file_is_the_oldest_of_folder_and_logs(tmp_path: Path) -> None:
    assert observe_first_file(tmp_path / "missing") is None
    (tmp_path / "logs").mkdir()
    for name, at in (("port", 2000), ("logs/monitor.err", 1000), ("logs/raylet.out", 3000)):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (at, at))
    assert observe_first_file(tmp_path) == datetime.fromtimestamp(1000, UTC)
