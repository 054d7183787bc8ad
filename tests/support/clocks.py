"""A clock that stands still until a test moves it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class ManualClock:
    """Both readings of a `Clock`, moved by hand."""

    def __init__(self, steady: float = 1000.0, now: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._steady = steady
        self._now = now

    def steady(self) -> float:
        return self._steady

    def now(self) -> datetime:
        return self._now

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._steady += seconds
        self._now += timedelta(seconds=seconds)

    def jump(self, seconds: float) -> None:
        """Set the wall clock forward or back while no time passes, as NTP may."""
        self._now += timedelta(seconds=seconds)
