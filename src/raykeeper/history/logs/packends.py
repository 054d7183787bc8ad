"""Reads the index at the end of a log pack, mostly with one range read."""

from __future__ import annotations

import asyncio

from raykeeper.layout.packs import PackIndex, index_size, parse_index
from raykeeper.storage.store import ObjectStore

_TAIL_BYTES = 64 * 1024  # the index of nearly every pack


class PackEnds:
    """The indexes of packs, so many of them on their way at once."""

    def __init__(self, store: ObjectStore, at_once: int) -> None:
        self._store = store
        self._reads = asyncio.Semaphore(at_once)

    async def read(self, key: str, size: int) -> PackIndex:
        """Raises DamagedPack and ObjectMissing."""
        async with self._reads:
            # No more than there is: some stores refuse that, and have to be asked again.
            expected = min(size, _TAIL_BYTES)
            tail = await self._store.read_range(key, size - expected, expected) if size else b""
            needed = index_size(tail)
            if len(tail) < needed <= size:
                tail = await self._store.read_range(key, size - needed, needed)
            return parse_index(tail)
