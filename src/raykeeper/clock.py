"""Time as an argument: programs take a `Clock`, tests hand in one they move by hand."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol

# Unlike CLOCK_MONOTONIC it goes on while the machine is suspended, so a lease runs out in a paused VM too.
_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock(Protocol):
    """Two readings: one for durations, one for what is written down."""

    def steady(self) -> float:
        """Seconds that never jump and run through suspension; only differences mean anything."""

    def now(self) -> datetime:
        """The wall clock in UTC; may jump."""


class SystemClock:
    """The machine's own clocks."""

    def steady(self) -> float:
        return time.clock_gettime(_STEADY)

    def now(self) -> datetime:
        return datetime.now(UTC)
