"""Which Events to write when: repeats become series, floods are combined, and every limit says what it drops. Pure."""

from __future__ import annotations

import heapq
import itertools
from collections import OrderedDict
from collections.abc import Callable, Container
from dataclasses import dataclass, replace
from datetime import datetime

from raykeeper.backoff import Backoff
from raykeeper.kube.events.series import EventType, Occurrence, Series, event_name

COMBINED = "(combined from similar events): "
"""What client-go writes before the note of an Event that stands for several notes."""


@dataclass(frozen=True)
class EventLimits:
    """How many Events are made of how many occurrences; what is above is combined, or dropped and counted."""

    notes: int = 10
    """Different notes of one reason and object before further ones are combined, as in client-go."""
    object_burst: int = 25
    """New Events per object and type at once, as in client-go; repeats do not count."""
    object_refill_seconds: float = 60.0
    """Time after which an object may have one more. client-go's 5 min would hide a second failure of a cluster."""
    waiting: int = 1000
    """Events that wait for their first write. Above, the oldest Normal one goes, or the oldest Warning."""
    series: int = 4096
    """Series remembered, as in client-go: the least recently seen one is forgotten first."""
    idle_seconds: float = 360.0
    """After that long without a repeat a series is over and the next occurrence is a new Event; as in client-go."""


# A new count is written soon at first, then ever more rarely; well before the series is over, so the last one is too.
UPDATE_PAUSE = Backoff(base=10.0, limit=300.0)


class EventLedger:
    """Every series that is going on, and which of them is to be written next."""

    def __init__(self, dropped: Callable[[str], None], limits: EventLimits | None = None) -> None:
        self._dropped = dropped
        self._limits = limits or EventLimits()
        self._series: OrderedDict[Occurrence, Series] = OrderedDict()
        self._new: dict[EventType, dict[str, Series]] = {"Warning": {}, "Normal": {}}
        self._updates: list[tuple[float, int, Series]] = []
        self._notes: dict[Occurrence, int] = {}
        self._allowances: dict[tuple[str, EventType], tuple[float, float]] = {}
        self._numbers = itertools.count()

    def record(self, occurrence: Occurrence, steady: float, now: datetime) -> None:
        """Take note of an occurrence: one more of a series, or a new series."""
        self._forget_idle(steady)
        key = self._key(occurrence)
        series = self._series.get(key)
        if series is None:
            self._begin(key, occurrence, steady, now)
            return
        self._series.move_to_end(key)
        series.count += 1
        series.last_time, series.last_seen = now, steady
        self._schedule(series, steady)

    def next_write(self, steady: float, busy: Container[str] = frozenset()) -> Series | None:
        """The series to create or update now: Warnings, then Normal ones, then new counts that are due.

        Those of `busy` namespaces wait until the write there is over.
        """
        for waiting in self._new.values():
            name = next((name for name, series in waiting.items() if series.namespace not in busy), None)
            if name is not None:
                return waiting.pop(name)
        held = []
        found = None
        while found is None and self._updates and self._updates[0][0] <= steady:
            entry = heapq.heappop(self._updates)
            if entry[2].namespace in busy:
                held.append(entry)
            else:
                found = entry[2]
        for entry in held:
            heapq.heappush(self._updates, entry)
        return found

    def next_due(self, busy: Container[str] = frozenset()) -> float | None:
        """When `next_write` will have something if nothing happens before; None if never."""
        return min((due for due, _, series in self._updates if series.namespace not in busy), default=None)

    def written(self, series: Series, count: int, steady: float) -> None:
        """The API server knows `count` of the series now."""
        series.is_written, series.is_waiting = True, False
        if series.count > count:
            self._schedule(series, steady)

    def put_back(self, series: Series, steady: float) -> None:
        """The write did not happen: it is due at once."""
        if series.is_written:
            heapq.heappush(self._updates, (steady, next(self._numbers), series))
        else:
            self._new[series.occurrence.type][series.name] = series

    def forget(self, series: Series) -> None:
        """Give the series up; the next occurrence begins another."""
        for key in [key for key in (series.occurrence, _group(series.occurrence)) if self._series.get(key) is series]:
            self._remove(key)
        if any(waiting is series for _, _, waiting in self._updates):
            self._updates = [entry for entry in self._updates if entry[2] is not series]
            heapq.heapify(self._updates)

    def waiting(self) -> int:
        """How many series the API server does not know, or not with their last count."""
        return len(self._updates) + sum(len(waiting) for waiting in self._new.values())

    def _key(self, occurrence: Occurrence) -> Occurrence:
        """The occurrence itself, or its group once that has too many notes."""
        is_full = self._notes.get(_group(occurrence), 0) >= self._limits.notes
        return _group(occurrence) if is_full and occurrence not in self._series else occurrence

    def _begin(self, key: Occurrence, occurrence: Occurrence, steady: float, now: datetime) -> None:
        if not self._is_allowed(occurrence, steady):
            self._dropped("object limit")
            return
        shown = occurrence if key == occurrence else replace(key, note=COMBINED + occurrence.note)
        # Nanoseconds as in client-go; our clock has microseconds, so the last three digits tell apart those of one.
        stamp = int(now.timestamp() * 1_000_000) * 1000 + next(self._numbers) % 1000
        series = Series(shown, event_name(occurrence.regarding.name, stamp), now, now, steady)
        self._series[key] = series
        self._new[occurrence.type][series.name] = series
        self._notes[_group(key)] = self._notes.get(_group(key), 0) + 1
        self._keep_limits()

    def _schedule(self, series: Series, steady: float) -> None:
        if series.is_waiting:
            return
        series.is_waiting = True
        series.updates += 1
        heapq.heappush(self._updates, (steady + UPDATE_PAUSE.delay(series.updates), next(self._numbers), series))

    def _is_allowed(self, occurrence: Occurrence, steady: float) -> bool:
        """Take one from the allowance of the object, which refills with time."""
        key = (occurrence.regarding.uid or occurrence.regarding.name, occurrence.type)
        burst = float(self._limits.object_burst)
        left, at = self._allowances.get(key, (burst, steady))
        left = min(burst, left + (steady - at) / self._limits.object_refill_seconds)
        self._allowances[key] = (left - 1 if left >= 1 else left, steady)
        return left >= 1

    def _keep_limits(self) -> None:
        if len(self._series) > self._limits.series:
            self._remove(next(iter(self._series)))
        if len(self._allowances) > self._limits.series:
            del self._allowances[next(iter(self._allowances))]
        if sum(len(waiting) for waiting in self._new.values()) > self._limits.waiting:
            oldest = self._new["Normal"] or self._new["Warning"]
            self.forget(oldest.pop(next(iter(oldest))))
            self._dropped("buffer full")

    def _forget_idle(self, steady: float) -> None:
        while self._series:
            key, series = next(iter(self._series.items()))
            if series.last_seen + self._limits.idle_seconds > steady:
                return
            self._remove(key)

    def _remove(self, key: Occurrence) -> None:
        del self._series[key]
        left = self._notes[_group(key)] - 1
        if left:
            self._notes[_group(key)] = left
        else:
            del self._notes[_group(key)]


def _group(occurrence: Occurrence) -> Occurrence:
    return replace(occurrence, note="", related=None)
