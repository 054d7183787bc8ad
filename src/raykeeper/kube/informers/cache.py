"""The objects an informer knows, found by key or through an index."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from raykeeper.api.meta import Object, ObjectKey

O = TypeVar("O", bound=Object)  # noqa: E741 - reads as "object" beside T for "anything"

IndexFunction = Callable[[O], Iterable[str]]
"""The values under which an object is found in one index: none, one or several."""


def by_controller(item: Object) -> Iterable[str]:
    """Index value: the uid of the owner that controls the object."""
    uid = item.controller_uid
    return () if uid is None else (uid,)


def by_label(label: str) -> IndexFunction[Object]:
    """Index value: namespace and value of one label, joined by a slash (label values have none)."""

    def values(item: Object) -> Iterable[str]:
        value = item.metadata.labels.get(label)
        return () if value is None else (f"{item.metadata.namespace}/{value}",)

    return values


class Cache(Generic[O]):
    """A dictionary of objects with indexes that are always in step with it."""

    def __init__(self, indexes: Mapping[str, IndexFunction[O]] | None = None) -> None:
        self._objects: dict[ObjectKey, O] = {}
        self._functions = dict(indexes or {})
        # Inner dictionaries stand for ordered sets: what is found comes in the order it was first seen.
        self._indexes: dict[str, dict[str, dict[ObjectKey, None]]] = {name: {} for name in self._functions}

    def get(self, key: ObjectKey) -> O | None:
        return self._objects.get(key)

    def find(self, index: str, value: str) -> list[O]:
        """The objects that the named index files under `value`."""
        return [self._objects[key] for key in self._indexes[index].get(value, ())]

    def keys(self, namespace: str | None = None) -> list[ObjectKey]:
        """The keys of one namespace, or of all."""
        return [key for key in self._objects if namespace is None or key.namespace == namespace]

    def put(self, item: O) -> O | None:
        """Add or replace an object; gives back what stood there."""
        key = item.key
        previous = self._objects.get(key)
        if previous is not None:
            self._unindex(key, previous)
        self._objects[key] = item
        for name, function in self._functions.items():
            for value in function(item):
                self._indexes[name].setdefault(value, {})[key] = None
        return previous

    def remove(self, key: ObjectKey) -> O | None:
        """Take an object out; gives back its last known state, or None if it was not there."""
        previous = self._objects.pop(key, None)
        if previous is not None:
            self._unindex(key, previous)
        return previous

    def _unindex(self, key: ObjectKey, item: O) -> None:
        for name, function in self._functions.items():
            index = self._indexes[name]
            for value in function(item):
                filed = index.get(value)
                if filed is not None:
                    filed.pop(key, None)
                    if not filed:
                        del index[value]

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[O]:
        return iter(self._objects.values())

    def __contains__(self, key: ObjectKey) -> bool:
        return key in self._objects
