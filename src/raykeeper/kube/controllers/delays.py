"""Keys that wait for their time: at most one deadline each, the earliest one asked for."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

# A heap cannot drop an entry from its middle, so an entry whose key got an earlier deadline stays until its time comes.
# Rebuilding once such entries are the majority costs O(1) per `put` on average; small heaps are left alone.
_REBUILD_ABOVE = 64


class Delays(Generic[K]):
    """Deadlines on any steady clock; equal ones come out in the order they were put in."""

    def __init__(self) -> None:
        self._deadlines: dict[K, float] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._puts = 0

    def __len__(self) -> int:
        return len(self._deadlines)

    def __contains__(self, key: object) -> bool:
        return key in self._deadlines

    def put(self, key: K, at: float) -> None:
        """Wait for `at`, or go on waiting for the deadline the key has if that is no later."""
        if key in self._deadlines and self._deadlines[key] <= at:
            return
        self._deadlines[key] = at
        self._puts += 1
        heapq.heappush(self._heap, (at, self._puts, key))
        if len(self._heap) > _REBUILD_ABOVE and len(self._heap) > 2 * len(self._deadlines):
            self._heap = [entry for entry in self._heap if self._is_current(entry)]
            heapq.heapify(self._heap)

    def next_deadline(self) -> float | None:
        """The earliest deadline, or None if no key waits."""
        while self._heap and not self._is_current(self._heap[0]):
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def pop_due(self, now: float) -> Iterator[tuple[K, float]]:
        """Take out each key whose time has come, with its deadline, earliest first."""
        while (deadline := self.next_deadline()) is not None and deadline <= now:
            _, _, key = heapq.heappop(self._heap)
            del self._deadlines[key]
            yield key, deadline

    def clear(self) -> None:
        """Forget every key."""
        self._deadlines.clear()
        self._heap.clear()

    def _is_current(self, entry: tuple[float, int, K]) -> bool:
        at, _, key = entry
        return self._deadlines.get(key) == at
