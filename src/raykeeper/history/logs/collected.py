"""The collected indexes of a node's log packs: read instead of each pack's end, and written for whoever reads next.

Any replica may write them at any time; those who write the same packs at once write the same object.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

from raykeeper.layout.keys import LogIndexKey, SessionId, parse_log_index_key
from raykeeper.layout.logindexes import CopiedIndex, DamagedLogIndexes, LogIndexes, decode_log_indexes, pack_key
from raykeeper.layout.packs import PackIndex
from raykeeper.logs import Log
from raykeeper.storage.store import ObjectStore

COLLECTED_FROM = 16
"""Packs that had to be read one by one; fewer are not worth an object."""
_READ_AT_ONCE = 8  # 4 MB each when unpacked

log = Log("raykeeper.history.logs")


@dataclass
class NodeCollections:
    """The objects of one node that hold indexes, as far as they were looked at."""

    session: SessionId
    node_id: str
    known: set[str] = field(default_factory=set)
    """Those that tell nothing new."""
    damaged: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Found:
    """What was read out of collected indexes."""

    indexes: dict[str, PackIndex]
    """By pack."""
    objects: frozenset[str] = frozenset()
    """Known from now on, if the caller keeps what they told."""


class CollectedIndexes:
    """Collected indexes in one store."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._reads = asyncio.Semaphore(_READ_AT_ONCE)

    async def are_of_use(self, packs: Mapping[str, int]) -> bool:
        """Not for a few packs, nor for those that are worked out of KubeRay's files."""
        return len(packs) >= COLLECTED_FROM and not await self._store.is_computed(next(iter(packs)))

    async def find(self, node: NodeCollections, packs: Mapping[str, int]) -> Found:
        """What objects that are not known yet tell of these packs, which are given by keys and sizes."""
        new = [facts.key for facts in await self.listed(node) if facts.key not in node.known]
        found: dict[str, PackIndex] = {}
        for copies in await asyncio.gather(*(self._read(key, node) for key in new)):
            for copied in copies:
                key = pack_key(node.session, copied)
                if packs.get(key) == copied.size:
                    found[key] = copied.index
        return Found(found, frozenset(new))

    async def listed(self, node: NodeCollections) -> list[LogIndexKey]:
        prefix = LogIndexKey.prefix(node.session, node.node_id)
        keys = [parse_log_index_key(stat.key) async for stat in self._store.list(prefix)]
        return [facts for facts in keys if facts]

    async def write(self, node: NodeCollections, indexes: AsyncIterator[CopiedIndex]) -> None:
        """Have the indexes in the store, in as many objects as they need, and what is damaged there no longer.

        Raises StoreRefused where we may only read.
        """
        for key in [*node.damaged]:
            await self._store.delete(key)
            node.damaged.discard(key)
        piece = LogIndexes()
        async for copied in indexes:
            if not piece.add(copied):
                await self._create(node, piece)
                piece = LogIndexes()
                piece.add(copied)
        if piece:
            await self._create(node, piece)

    async def _create(self, node: NodeCollections, piece: LogIndexes) -> None:
        key = piece.key(node.session, node.node_id).key
        if await self._store.create(key, await asyncio.to_thread(piece.to_bytes)):
            log.info("log indexes collected", session=str(node.session), node=node.node_id, packs=len(piece))
        node.known.add(key)

    async def _read(self, key: str, node: NodeCollections) -> list[CopiedIndex]:
        async with self._reads:
            data = await self._store.find(key)
            try:
                return await asyncio.to_thread(decode_log_indexes, data) if data is not None else []
            except DamagedLogIndexes as exc:
                if key not in node.damaged:
                    log.warning("collected log indexes cannot be read", key=key, cause=str(exc))
                node.damaged.add(key)
                return []
