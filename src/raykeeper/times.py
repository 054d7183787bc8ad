"""Times as datetimes, as nanoseconds (events, keys) and as milliseconds (Ray's job API): one conversion. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import overload

NS = 1_000_000_000
"""Nanoseconds of a second."""
EPOCH = datetime.fromtimestamp(0, UTC)
_MICROSECOND = timedelta(microseconds=1)
_LAST_MS = 7_258_118_400_000
"""The year 2200: what is later was made up by somebody."""


@overload
def to_ns(time: datetime) -> int: ...
@overload
def to_ns(time: None) -> None: ...
@overload
def to_ns(time: datetime | None) -> int | None: ...
def to_ns(time: datetime | None) -> int | None:
    """Exact: a float has too few digits for microseconds of our century."""
    return None if time is None else (time - EPOCH) // _MICROSECOND * 1000


@overload
def from_ns(ns: int) -> datetime: ...
@overload
def from_ns(ns: None) -> None: ...
@overload
def from_ns(ns: int | None) -> datetime | None: ...
def from_ns(ns: int | None) -> datetime | None:
    """To the microsecond below."""
    return None if ns is None else EPOCH + timedelta(microseconds=ns // 1000)


def from_ms(unix_ms: object) -> datetime | None:
    """What Ray's job API says; None for no time, and for one at which no clock can be."""
    is_time = isinstance(unix_ms, int) and not isinstance(unix_ms, bool) and 0 < unix_ms < _LAST_MS
    return EPOCH + timedelta(milliseconds=unix_ms) if is_time else None  # type: ignore[arg-type]
