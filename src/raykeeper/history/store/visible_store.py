"""A store as somebody may see it: objects of other namespaces are not there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from raykeeper.history.visibility import Visibility
from raykeeper.layout.failure_notes import NOTES_PREFIX
from raykeeper.layout.keys import CATALOG_PREFIX, DATA_PREFIX, RAYJOBS_PREFIX, VERSION, parse_catalog_key
from raykeeper.layout.names import from_segment
from raykeeper.layout.retention import USAGE_KEY
from raykeeper.storage.errors import ObjectMissing
from raykeeper.storage.store import OBJECT_LIMIT_BYTES, Names, ObjectStat, ObjectStore, ObjectTail

_BY_NAMESPACE: Final = (DATA_PREFIX, RAYJOBS_PREFIX)
"""The name of a namespace follows."""
_OF_ALL: Final = (NOTES_PREFIX, USAGE_KEY, f"{VERSION}/clock/")
"""About no namespace, or several. Whoever reads a note or the usage decides by what it says who may see it."""


class VisibleStore(ObjectStore):
    """Hides by the keys: what no rule shows is hidden."""

    def __init__(self, store: ObjectStore, visibility: Visibility) -> None:
        self._store = store
        self._visibility = visibility

    def describe(self) -> str:
        return self._store.describe()

    async def put(self, key: str, data: bytes) -> None:
        await self._store.put(self._checked(key), data)

    async def create(self, key: str, data: bytes) -> bool:
        return await self._store.create(self._checked(key), data)

    async def get(self, key: str, limit_bytes: int = OBJECT_LIMIT_BYTES) -> bytes:
        return await self._store.get(self._checked(key), limit_bytes)

    async def read_range(self, key: str, offset: int, length: int) -> bytes:
        return await self._store.read_range(self._checked(key), offset, length)

    async def stat(self, key: str) -> ObjectStat:
        return await self._store.stat(self._checked(key))

    async def list(self, prefix: str, *, after: str = "") -> AsyncIterator[ObjectStat]:
        async for stat in self._store.list(prefix, after=after):
            if self._sees(stat.key):
                yield stat

    async def list_folders(self, prefix: str) -> Names:
        folders = await self._store.list_folders(prefix)
        return [folder for folder in folders if self._sees(f"{prefix}{folder}/")]

    async def delete(self, key: str) -> None:
        await self._store.delete(self._checked(key))

    async def put_file(self, key: str, path: Path) -> None:
        await self._store.put_file(self._checked(key), path)

    async def get_file(self, key: str, path: Path, limit_bytes: int | None = None) -> None:
        await self._store.get_file(self._checked(key), path, limit_bytes)

    async def is_computed(self, key: str) -> bool:
        return await self._store.is_computed(self._checked(key))

    async def tail(self, key: str, length: int) -> ObjectTail:
        return await self._store.tail(self._checked(key), length)

    def _checked(self, key: str) -> str:
        if not self._sees(key):
            raise ObjectMissing(self.describe(), key)
        return key

    def _sees(self, key: str) -> bool:
        namespace = _namespace_of(key)
        return key.startswith(_OF_ALL) if namespace is None else self._visibility.sees(namespace)


def _namespace_of(key: str) -> str | None:
    """Whom an object, or all objects of a folder, are about; None where that is no single namespace."""
    for prefix in _BY_NAMESPACE:
        segment, slash, _ = key.removeprefix(prefix).partition("/")
        if key.startswith(prefix) and slash:
            try:
                return from_segment(segment)
            except ValueError:
                return None
    if key.startswith(CATALOG_PREFIX) and (entry := parse_catalog_key(key)) is not None:
        return entry.session.namespace
    return None
