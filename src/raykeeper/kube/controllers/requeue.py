"""What a reconcile answers: when its object is to be looked at again even if nothing happens to it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Requeue:
    """Made by `never`, `now`, `after`, `at` or `routine`. A change of the object brings it back sooner in any case."""

    seconds: float | None = None
    moment: datetime | None = None
    is_now: bool = False
    is_routine: bool = False

    @staticmethod
    def never() -> Requeue:
        """Not before something changes."""
        return Requeue()

    @staticmethod
    def now() -> Requeue:
        """Soon, and later each time in a row: for work that is not finished and that no event will announce."""
        return Requeue(is_now=True)

    @staticmethod
    def after(seconds: float) -> Requeue:
        """In `seconds`."""
        return Requeue(seconds=seconds)

    @staticmethod
    def at(moment: datetime | None) -> Requeue:
        """At a moment of the wall clock; None is never."""
        return Requeue(moment=moment)

    @staticmethod
    def routine(seconds: float) -> Requeue:
        """In `seconds`, behind all objects to which something happened: for a look though nothing did."""
        return Requeue(seconds=seconds, is_routine=True)

    def delay(self, now: datetime) -> float | None:
        """Seconds to wait: None is for ever, 0 is as soon as the back-off allows.

        A moment that has passed counts as 0, so that a reconcile which does not move its own deadline cannot spin.
        """
        if self.is_now:
            return 0.0
        seconds = self.seconds if self.moment is None else (self.moment - now).total_seconds()
        return None if seconds is None else max(seconds, 0.0)
