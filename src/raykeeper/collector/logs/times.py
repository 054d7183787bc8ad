"""Wall-clock time as packs and keys carry it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from raykeeper.clock import Clock

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def unix_ns(clock: Clock) -> int:
    """Nanoseconds since 1970, exact to the microsecond."""
    return (clock.now() - _EPOCH) // _MICROSECOND * 1000
