"""When a schedule fires: the rules of robfig/cron v3, which Kubernetes' CronJob and KubeRay use. Pure.

No Python library agrees with them. What they say about the days on which clocks change:
a time that a clock skips is skipped, and a time that a clock shows twice fires twice.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from raykeeper.operator.raycronjob.wall_clock import WallClock

MAX_SCHEDULE_LENGTH: Final = 1000
"""Characters; a list of all minutes has 170."""
YEARS_AHEAD: Final = 5
"""A schedule that does not fire within so many years never fires, by robfig's rule."""

MONTHS: Final = {
    "jan": 1, "feb": 2, "mar": 3, "apr": 4, "may": 5, "jun": 6,
    "jul": 7, "aug": 8, "sep": 9, "oct": 10, "nov": 11, "dec": 12,
}  # fmt: skip
WEEKDAYS: Final = {"sun": 0, "mon": 1, "tue": 2, "wed": 3, "thu": 4, "fri": 5, "sat": 6}
DESCRIPTORS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
EVERY: Final = "@every "


class InvalidSchedule(ValueError):
    """The text is no schedule; the message says which part of it."""


class Schedule(ABC):
    """A set of moments."""

    @abstractmethod
    def after(self, moment: datetime) -> datetime | None:
        """The first moment later than `moment`, to the second and in UTC; None if there is none."""

    @abstractmethod
    def latest(self, since: datetime, now: datetime) -> datetime | None:
        """The last moment after `since` that is not after `now`, at a cost that does not grow with the time between."""


@dataclass(frozen=True)
class Interval(Schedule):
    """`@every 1h30m`: counted from the moment before, whole seconds, at least one."""

    every: timedelta

    def after(self, moment: datetime) -> datetime | None:
        return moment.astimezone(UTC).replace(microsecond=0) + self.every

    def latest(self, since: datetime, now: datetime) -> datetime | None:
        start = since.astimezone(UTC).replace(microsecond=0)
        times = (now - start) // self.every
        return start + times * self.every if times > 0 else None


@dataclass(frozen=True)
class Calendar(Schedule):
    """Five fields of cron on the clocks of one time zone."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    needs_both_days: bool
    """Day of the month and day of the week must both match, since one of them was `*`; else either will do."""
    zone: tzinfo

    def after(self, moment: datetime) -> datetime | None:
        clock = WallClock.after(moment, self.zone)
        limit = clock.wall.year + YEARS_AHEAD
        while clock.wall.year <= limit:
            if self._settle(clock):
                return clock.moment
        return None

    def latest(self, since: datetime, now: datetime) -> datetime | None:
        # Windows that reach back twice as far each time find the last moment soon, however long ago `since` is.
        window = timedelta(hours=1)
        while True:
            start = max(since, now - window)
            found = None
            for moment in self._between(start, now):
                found = moment
            if found is not None or start == since:
                return found
            window *= 2

    def _between(self, start: datetime, end: datetime) -> Iterator[datetime]:
        moment = self.after(start)
        while moment is not None and moment <= end:
            yield moment
            moment = self.after(moment)

    def _settle(self, clock: WallClock) -> bool:
        """Move the clock on until it matches; False when it came to a new year, month, day or hour on the way.

        Then the larger units must be looked at again.
        """
        while clock.wall.month not in self.months:
            clock.to_next_month()
            if clock.wall.month == 1:
                return False
        while not self._is_day(clock.wall):
            clock.to_next_day()
            if clock.wall.day == 1:
                return False
        while clock.wall.hour not in self.hours:
            clock.to_next_hour()
            if clock.wall.hour == 0:
                return False
        while clock.wall.minute not in self.minutes:
            clock.to_next_minute()
            if clock.wall.minute == 0:
                return False
        if clock.wall.second != 0:
            clock.to_next_minute()
            return False
        return True

    def _is_day(self, wall: datetime) -> bool:
        by_month, by_week = wall.day in self.days, wall.isoweekday() % 7 in self.weekdays
        return by_month and by_week if self.needs_both_days else by_month or by_week


@dataclass(frozen=True)
class _Field:
    """One of the five fields, read."""

    values: frozenset[int]
    is_open: bool
    """Written with `*` or `?` and without a step."""


def parse_schedule(text: str, zone: tzinfo) -> Schedule:
    """What the text means on the clocks of `zone`. Raises `InvalidSchedule`, also for what never fires."""
    if len(text) > MAX_SCHEDULE_LENGTH:
        raise InvalidSchedule(f"it has more than {MAX_SCHEDULE_LENGTH} characters")
    if "TZ" in text:
        raise InvalidSchedule("it names a time zone: use timeZone for that")
    if text.startswith(EVERY):
        return Interval(_parse_interval(text.removeprefix(EVERY)))
    if text.startswith("@"):
        if text not in DESCRIPTORS:
            known = ", ".join([*DESCRIPTORS, "@every <duration>"])
            raise InvalidSchedule(f"{text} is none of {known}")
        text = DESCRIPTORS[text]
    return _parse_calendar(text, zone)


def _parse_calendar(text: str, zone: tzinfo) -> Calendar:
    parts = text.split()
    if len(parts) != 5:
        raise InvalidSchedule(f"it has {len(parts)} fields: minute, hour, day of month, month, day of week are needed")
    minutes = _parse_field("minute", parts[0], 0, 59)
    hours = _parse_field("hour", parts[1], 0, 23)
    days = _parse_field("day of month", parts[2], 1, 31)
    months = _parse_field("month", parts[3], 1, 12, MONTHS)
    weekdays = _parse_field("day of week", parts[4], 0, 6, WEEKDAYS)
    calendar = Calendar(
        minutes.values,
        hours.values,
        days.values,
        months.values,
        weekdays.values,
        days.is_open or weekdays.is_open,
        zone,
    )
    if calendar.after(datetime(2026, 1, 1, tzinfo=UTC)) is None:
        raise InvalidSchedule(f"{text} never fires: no year has such a day")
    return calendar


def _parse_field(name: str, text: str, low: int, high: int, words: Mapping[str, int] | None = None) -> _Field:
    values: set[int] = set()
    is_open = False
    for part in filter(None, text.split(",")):
        try:
            found, is_whole = _parse_range(part, low, high, words or {})
        except InvalidSchedule as error:
            raise InvalidSchedule(f"{name} {text}: {error}") from error
        values.update(found)
        is_open = is_open or is_whole
    if not values:
        raise InvalidSchedule(f"{name} {text}: it names nothing")
    return _Field(frozenset(values), is_open)


def _parse_range(text: str, low: int, high: int, words: Mapping[str, int]) -> tuple[range, bool]:
    """The values of `a`, `a-b`, `*`, each with `/step` or without, and whether that is everything."""
    span, *steps = text.split("/")
    first, *rest = span.split("-")
    if len(steps) > 1:
        raise InvalidSchedule("it has more than one slash")
    is_open = first in ("*", "?")
    if is_open:
        start, end = low, high
    else:
        if len(rest) > 1:
            raise InvalidSchedule("it has more than one dash")
        start = _parse_value(first, words)
        end = _parse_value(rest[0], words) if rest else start
    step = _parse_number(steps[0]) if steps else 1
    if steps and not rest:
        end = high
    if start < low or end > high:
        raise InvalidSchedule(f"values are from {low} to {high}")
    if start > end:
        raise InvalidSchedule("the range ends before it begins")
    if step == 0:
        raise InvalidSchedule("a step must be above 0")
    return range(start, end + 1, step), is_open and step == 1


def _parse_value(text: str, words: Mapping[str, int]) -> int:
    word = words.get(text.lower())
    return word if word is not None else _parse_number(text)


def _parse_number(text: str) -> int:
    if not re.fullmatch(r"\+?[0-9]{1,18}", text, re.ASCII):
        raise InvalidSchedule(f"{text!r} is no number")
    return int(text)


_UNIT_SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION_PART: Final = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_MAX_DURATION_SECONDS: Final = 9_223_372_036  # nanoseconds in 64 bits, as Go counts them


def _parse_interval(text: str) -> timedelta:
    """A duration as Go writes it, such as `1h30m`, cut to whole seconds; what is shorter than one second is one."""
    sign, unsigned = (text[0], text[1:]) if text[:1] in ("+", "-") else ("", text)
    parts = list(_DURATION_PART.finditer(unsigned))
    if unsigned != "0" and (not parts or "".join(part.group() for part in parts) != unsigned):
        raise InvalidSchedule(f"{text!r} is no duration: write one such as 1h30m")
    seconds = sum(float(part[1]) * _UNIT_SECONDS[part[2]] for part in parts)
    if seconds > _MAX_DURATION_SECONDS:
        raise InvalidSchedule(f"{text!r} is longer than 292 years")
    return timedelta(seconds=max(1, int(seconds + 1e-9)) if sign != "-" else 1)
