"""From which hour on a listing of sealed objects finds all that is new.

Collectors file what they send under the hour of their own clock. So most listings begin with the last hour, by our
clock and by that of each node that sent something lately; all hours are listed again now and then, for a node whose
clock is wrong and that nobody heard of before.
"""

from __future__ import annotations

from datetime import timedelta

from raykeeper.clock import Clock
from raykeeper.layout.keys import hour_of
from raykeeper.times import NS, to_ns

_LATE = timedelta(hours=1)
"""So late an object may come, by the clock of who files it."""


class HoursToList:
    """Of one session's objects of one kind."""

    def __init__(self, clock: Clock, relist_seconds: float) -> None:
        self._clock = clock
        self._relist_seconds = relist_seconds
        self._all_listed_at: float | None = None
        self._began_at = 0.0
        self._is_of_all = True
        self._active: dict[str, tuple[float, str]] = {}
        """When a node last sent something, and the hour before that by its own clock."""

    def first(self) -> str:
        """The hour with which the next listing begins; empty: with the first there is."""
        now = self._began_at = self._clock.steady()
        self._is_of_all = self._all_listed_at is None or now - self._all_listed_at >= self._relist_seconds
        if self._is_of_all:
            return ""
        lately = [hour for seen, hour in self._active.values() if now - seen < self._relist_seconds]
        return min([hour_of(to_ns(self._clock.now() - _LATE)), *lately])

    def saw(self, node_id: str, sealed_ns: int) -> None:
        """A listing found something new of this node."""
        self._active[node_id] = (self._clock.steady(), hour_of(max(0, sealed_ns - int(_LATE.total_seconds()) * NS)))

    def listed(self) -> None:
        """The listing came to its end: one that breaks off is begun again."""
        if self._is_of_all:
            self._all_listed_at = self._began_at
