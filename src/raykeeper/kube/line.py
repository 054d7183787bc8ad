"""Who waits for something that all namespaces share: a worker, a connection. Pure."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Line(Generic[K]):
    """Keys that wait, since when. Namespaces take turns; within one it is first come, first served."""

    def __init__(self, namespace_of: Callable[[K], str]) -> None:
        self._namespace_of = namespace_of
        self._keys: dict[str, OrderedDict[K, float]] = {}  # by namespace; the first has its turn

    def __len__(self) -> int:
        return sum(map(len, self._keys.values()))

    def __bool__(self) -> bool:
        return bool(self._keys)

    def __contains__(self, key: K) -> bool:
        return key in self._keys.get(self._namespace_of(key), ())

    def add(self, key: K, since: float) -> None:
        self._keys.setdefault(self._namespace_of(key), OrderedDict())[key] = since

    def first(self, may_begin: Callable[[str], bool]) -> K | None:
        """The key whose turn it is, of a namespace that may."""
        return next((next(iter(keys)) for namespace, keys in self._keys.items() if may_begin(namespace)), None)

    def take(self, key: K) -> float:
        """Hand the key out; the other namespaces come before the rest of its own. Since when it waited."""
        since, namespace = self.remove(key), self._namespace_of(key)
        if namespace in self._keys:
            self._keys[namespace] = self._keys.pop(namespace)
        return since

    def remove(self, key: K) -> float:
        """Since when the key waited, which does so no longer."""
        namespace = self._namespace_of(key)
        since = self._keys[namespace].pop(key)
        if not self._keys[namespace]:
            del self._keys[namespace]
        return since

    def clear(self) -> None:
        self._keys.clear()
