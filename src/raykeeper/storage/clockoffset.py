"""How far a store's clock is from ours, seen from the time it gave to an object that we just wrote."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

_HTTP_DATE_RESOLUTION = timedelta(seconds=1)


@dataclass(frozen=True)
class ClockOffset:
    """The store's clock reads `seconds` more than ours, give or take `error_seconds`."""

    seconds: float
    error_seconds: float

    def at_store(self, ours: datetime) -> datetime:
        """What the store's clock reads when ours reads `ours`."""
        return ours + timedelta(seconds=self.seconds)


def clock_offset(modified: datetime, sent: datetime, answered: datetime) -> ClockOffset:
    """The offset by an object that was written between `sent` and `answered`, both by our clock.

    A time without a fraction was cut to whole seconds (the Last-Modified header), so it may be up to a second later.
    """
    resolution = timedelta(0) if modified.microsecond else _HTTP_DATE_RESOLUTION
    least = (modified - answered).total_seconds()
    most = (modified + resolution - sent).total_seconds()
    return ClockOffset(seconds=(least + most) / 2, error_seconds=(most - least) / 2)
