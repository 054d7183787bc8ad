"""Which passes are under way and who may begin one, so that slow passes leave workers to other namespaces. Pure."""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

QUICK_SECONDS = 1.0
"""A pass takes tens of milliseconds. One that lasts longer waits, mostly for an admission webhook, and takes no worker
from the others any more."""
PLACES_A_WORKER = 4
LEAST_PLACES = 64
"""Also where one object is reconciled at a time, as the chart has it: a place costs a few kilobytes."""


class Passes(Generic[K]):
    """The keys that are worked on, since when.

    Guarantees:
    - At most `workers` of them are quick: they began less than `QUICK_SECONDS` ago.
    - Where slow ones make it more than `workers` in all, only a namespace that has less than its part of the workers
      begins another. So one namespace never has more than `workers`, and whoever comes beside those whose passes all
      hang has a part, too.
    - There are never more than `places`.
    """

    def __init__(self, workers: int, namespace_of: Callable[[K], str]) -> None:
        self.workers = workers
        self.places = max(PLACES_A_WORKER * workers, LEAST_PLACES)
        self._namespace_of = namespace_of
        self._since: dict[K, float] = {}
        self._quick: OrderedDict[K, float] = OrderedDict()  # those that may still be quick, the oldest first
        self._of_namespace: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._since)

    def __contains__(self, key: object) -> bool:
        return key in self._since

    def has_room(self, now: float) -> bool:
        """Whether any pass may begin."""
        while (until := self.next_room()) is not None and until <= now:
            self._quick.popitem(last=False)
        return len(self._quick) < self.workers and len(self._since) < self.places

    def may_begin(self, namespace: str) -> bool:
        """Whether a pass of this namespace may begin where there is room for one."""
        if len(self._since) < self.workers:
            return True
        namespaces = len(self._of_namespace) + (namespace not in self._of_namespace)
        return self._of_namespace[namespace] < math.ceil(self.workers / namespaces)

    def begin(self, key: K, now: float) -> None:
        self._since[key] = self._quick[key] = now
        self._of_namespace[self._namespace_of(key)] += 1

    def end(self, key: K) -> float:
        """Since when the key was worked on."""
        since = self._since.pop(key)
        self._quick.pop(key, None)
        namespace = self._namespace_of(key)
        self._of_namespace[namespace] -= 1
        if not self._of_namespace[namespace]:
            del self._of_namespace[namespace]
        return since

    def next_room(self) -> float | None:
        """When the oldest of the quick ones stops being quick, if it does not end before."""
        oldest = next(iter(self._quick.values()), None)
        return None if oldest is None else oldest + QUICK_SECONDS

    def total_seconds(self, now: float) -> float:
        """How long all of them have lasted, summed."""
        return sum(now - since for since in self._since.values())

    def longest_seconds(self, now: float) -> float:
        """How long the oldest one has lasted; 0 if there is none."""
        return now - min(self._since.values(), default=now)
