"""A schedule fires exactly when robfig/cron v3 says, which Kubernetes' CronJob and KubeRay use.

`robfig/ticks.json` was printed by robfig itself: `cd robfig && TZ=UTC go run . > ticks.json`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from raykeeper.operator.raycronjob.schedule import MAX_SCHEDULE_LENGTH, InvalidSchedule, Schedule, parse_schedule

ROBFIG: dict[str, Any] = json.loads((Path(__file__).parent / "robfig" / "ticks.json").read_text())
FREQUENT = {"*/20 * * 3,4,9-11 *", "10-50/20 22-23,0-3 * * *", "* 2 * 4,9,10 *", "@hourly"}
"""Thousands of ticks a year: compared in the two zones whose clocks change most oddly."""
ODD_ZONES = {"America/New_York", "Australia/Lord_Howe"}
NEW_YORK = ZoneInfo("America/New_York")


def ticks(schedule: Schedule, start: datetime, end: datetime) -> Iterator[datetime]:
    moment = schedule.after(start)
    while moment is not None and moment <= end:
        yield moment
        moment = schedule.after(moment)


def rfc3339(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


CASES = [
    (zone, text)
    for zone, schedules in ROBFIG["year2026"].items()
    for text in schedules
    if text not in FREQUENT or zone in ODD_ZONES
]


@pytest.mark.parametrize(("zone", "text"), CASES)
def test_a_year_of_ticks_is_robfigs(zone: str, text: str) -> None:
    schedule = parse_schedule(text, ZoneInfo(zone))
    found = [
        rfc3339(tick)
        for tick in ticks(schedule, datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 12, 31, 23, 59, 59, tzinfo=UTC))
    ]
    expected = ROBFIG["year2026"][zone][text]
    assert set(expected["nearChanges"] or ()) <= set(found)
    assert len(found) == expected["count"]
    assert hashlib.sha256("".join(f"{tick}\n" for tick in found).encode()).hexdigest() == expected["sha256"]


@pytest.mark.parametrize("text", ROBFIG["parsed"])
def test_a_text_is_a_schedule_where_robfig_says_so(text: str) -> None:
    expected = ROBFIG["parsed"][text]
    start = datetime(2026, 1, 1, tzinfo=UTC)
    if not expected:
        with pytest.raises(InvalidSchedule):
            parse_schedule(text, UTC)
        return
    moment = parse_schedule(text, UTC).after(start)
    assert moment is not None
    assert rfc3339(moment) == expected


def local(text: str, day: str) -> list[str]:
    """The ticks of a day in New York, as clocks show them, with the offset to UTC."""
    start = datetime.fromisoformat(day).replace(tzinfo=NEW_YORK)
    end = start + timedelta(days=1) - timedelta(seconds=1)
    found = ticks(parse_schedule(text, NEW_YORK), start - timedelta(seconds=1), end)
    return [tick.astimezone(NEW_YORK).strftime("%H:%M%z") for tick in found]


def test_a_time_that_clocks_skip_is_skipped() -> None:
    assert local("30 2 * * *", "2026-03-08") == []
    assert local("30 * * * *", "2026-03-08")[:4] == ["00:30-0500", "01:30-0500", "03:30-0400", "04:30-0400"]


def test_a_time_that_clocks_show_twice_fires_twice() -> None:
    assert local("30 1 * * *", "2026-11-01") == ["01:30-0400", "01:30-0500"]
    assert local("0 3 * * *", "2026-11-01") == ["03:00-0500"]


def test_midnight_that_clocks_skip_is_skipped() -> None:
    zone = ZoneInfo("America/Santiago")  # clocks went from 23:59:59 on the 5th to 01:00 on the 6th of September 2026
    found = ticks(
        parse_schedule("0 0 * * *", zone), datetime(2026, 9, 5, tzinfo=UTC), datetime(2026, 9, 7, 12, tzinfo=UTC)
    )
    assert [tick.astimezone(zone).strftime("%d %H:%M") for tick in found] == ["05 00:00", "07 00:00"]


def test_either_day_matches_unless_one_is_a_star() -> None:
    either = parse_schedule("0 0 13 * 5", UTC)
    start, end = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 31, tzinfo=UTC)
    assert [tick.day for tick in ticks(either, start, end)] == [6, 13, 20, 27]
    both = parse_schedule("0 0 13 * *", UTC)
    assert [tick.day for tick in ticks(both, start, end)] == [13]


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("0 0 30 2 *", "never fires"),
        ("0 0 31 2,4,6,9,11 *", "never fires"),
        (", * * * *", "minute ,: it names nothing"),
        ("CRON_TZ=UTC * * * * *", "timeZone"),
        ("0 25 * * *", "hour 25: values are from 0 to 23"),
        ("@fortnightly", "@every <duration>"),
        ("*" * (MAX_SCHEDULE_LENGTH + 1), "characters"),
    ],
)
def test_what_is_wrong_with_a_schedule_is_said(text: str, cause: str) -> None:
    with pytest.raises(InvalidSchedule, match=cause):
        parse_schedule(text, UTC)


@pytest.mark.parametrize("text", ["*/7 * * * *", "30 2 * * *", "0 0 29 2 *", "@every 7m", "0 0 1 1 *"])
@pytest.mark.parametrize("days", [0, 1, 40, 400])
def test_the_latest_tick_is_the_last_of_all_missed(text: str, days: int) -> None:
    schedule = parse_schedule(text, NEW_YORK)
    since = datetime(2026, 1, 3, 4, 5, 6, tzinfo=UTC)
    now = since + timedelta(days=days, minutes=6)
    missed = list(ticks(schedule, since, now))
    assert schedule.latest(since, now) == (missed[-1] if missed else None)


def test_looking_for_the_latest_tick_after_ten_years_is_cheap() -> None:
    schedule = parse_schedule("* * * * *", UTC)
    now = datetime(2036, 1, 1, 0, 0, 30, tzinfo=UTC)
    assert schedule.latest(datetime(2026, 1, 1, tzinfo=UTC), now) == now.replace(second=0)
