"""A map of bounded size: what was not used for the longest time goes first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Bounded(Generic[K, V]):
    """Holds values up to `limit`: so many, or so much of whatever their weights are. A heavier one is not held."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._items: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._weight = 0

    def get(self, key: K) -> V | None:
        """The value, which counts as used."""
        found = self._items.get(key)
        if found is None:
            return None
        self._items.move_to_end(key)
        return found[0]

    def put(self, key: K, value: V, weight: int = 1) -> None:
        """Hold the value instead of the one that is there."""
        before = self._items.pop(key, None)
        self._weight -= before[1] if before else 0
        if weight > self._limit:
            return
        self._items[key] = (value, weight)
        self._weight += weight
        while self._weight > self._limit:
            _, (_, oldest) = self._items.popitem(last=False)
            self._weight -= oldest

    def drop(self, key: K) -> None:
        """Hold it no longer."""
        found = self._items.pop(key, None)
        self._weight -= found[1] if found else 0

    def __contains__(self, key: object) -> bool:
        return key in self._items

    def __len__(self) -> int:
        return len(self._items)
