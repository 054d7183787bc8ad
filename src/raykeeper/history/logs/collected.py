"""Indexes of log packs, collected into few objects: read at start, and written in the background for the next
server.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field

from raykeeper.errors import RaykeeperError
from raykeeper.layout.keys import LogIndexKey, SessionId, parse_log_index_key
from raykeeper.layout.logindexes import (
    OBJECT_LIMIT_BYTES,
    CopiedIndex,
    DamagedLogIndexes,
    LogIndexes,
    copied_index,
    decode_log_indexes,
    pack_key,
)
from raykeeper.layout.packs import DamagedPack, PackIndex, index_size, parse_index
from raykeeper.logs import Log
from raykeeper.storage.errors import ObjectMissing, ObjectTooLarge, StoreRefused
from raykeeper.storage.store import ObjectStore

log = Log("raykeeper.history.logs")

_TAIL_BYTES = 64 * 1024  # the index of nearly every pack


class PackEnds:
    """The indexes of packs, so many of them on their way at once."""

    def __init__(self, store: ObjectStore, at_once: int) -> None:
        self._store = store
        self._reads = asyncio.Semaphore(at_once)
        self._large = asyncio.Semaphore(1)  # one may take a hundred megabytes while it is read

    async def read(self, key: str, size: int) -> PackIndex:
        """Raises DamagedPack and ObjectMissing."""
        async with self._reads:
            # No more than there is: some stores refuse that, and have to be asked again.
            expected = min(size, _TAIL_BYTES)
            tail = await self._store.read_range(key, size - expected, expected) if size else b""
            needed = index_size(tail)
            if len(tail) < needed <= size:
                async with self._large:
                    return await asyncio.to_thread(
                        parse_index, await self._store.read_range(key, size - needed, needed)
                    )
            return parse_index(tail)


COLLECTED_FROM = 16
"""Packs that had to be read one by one; fewer are not worth an object."""
_READ_AT_ONCE = 4  # 4 MB each when unpacked, in some 25,000 entries
MAX_ENTRIES = 1_000_000
"""Of one node in memory, 300 bytes each. A day of fifty files that are written all the time has 900,000; of more, the
older ones are left out, which whoever asks is told."""


@dataclass
class NodeCollections:
    """The objects of one node that hold indexes, as far as they were looked at."""

    session: SessionId
    node_id: str
    known: set[str] = field(default_factory=set)
    """Those that tell nothing new."""
    damaged: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class FoundIndexes:
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

    async def find(
        self, node: NodeCollections, packs: Mapping[str, int], limit_entries: int = MAX_ENTRIES
    ) -> FoundIndexes:
        """What objects that are not known yet tell of these packs, which are given by keys and sizes.

        Stops behind so many entries: what is left unread is not known afterwards.
        """
        new = [facts.key for facts in await self.listed(node) if facts.key not in node.known]
        found: dict[str, PackIndex] = {}
        entries = 0
        for start in range(0, len(new), _READ_AT_ONCE):
            if entries >= limit_entries:
                return FoundIndexes(found, frozenset(new[:start]))
            some = new[start : start + _READ_AT_ONCE]
            for copies in await asyncio.gather(*(self._read(key, node) for key in some)):
                for copied in copies:
                    key = pack_key(node.session, copied)
                    if packs.get(key) == copied.size:
                        found[key] = copied.index
                        entries += copied.index.entries
        return FoundIndexes(found, frozenset(new))

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
            try:
                data = await self._store.find(key, OBJECT_LIMIT_BYTES)
                return await asyncio.to_thread(decode_log_indexes, data) if data is not None else []
            except (ObjectTooLarge, DamagedLogIndexes) as exc:
                if key not in node.damaged:
                    log.warning("collected log indexes cannot be read", key=key, cause=str(exc))
                node.damaged.add(key)
                return []


_ENDS_READ_AT_ONCE = 8  # nobody waits for these
_READ_AHEAD = 64  # packs whose indexes are in memory at a time
MAX_WAITING = 300_000
"""Frames that wait to be written, unless one node has more; what comes beyond that is left to whoever reads it next."""

Packs = Mapping[str, Mapping[str, int]]
"""Node id to pack keys with their sizes."""


class Collecting:
    """What is being collected now. It may be ended at any time: all that is lost is time."""

    def __init__(self, store: ObjectStore, collected: CollectedIndexes, max_waiting: int = MAX_WAITING) -> None:
        self.may_write = True
        self._collected = collected
        self._ends = PackEnds(store, _ENDS_READ_AT_ONCE)
        self._max_waiting = max_waiting
        self._waiting = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._one_node = asyncio.Semaphore(1)
        self._one_session = asyncio.Semaphore(1)

    def collect_read(self, node: NodeCollections, copies: Mapping[str, CopiedIndex]) -> None:
        """Have these indexes, given by their packs' keys, in the store after a while."""
        frames = sum(len(copied.index.frames) for copied in copies.values())
        has_room = not self._waiting or self._waiting + frames <= self._max_waiting
        if self.may_write and has_room:
            self._waiting += frames
            self._start(lambda: self._write_read(node, copies, frames))

    def collect_session(self, session: SessionId, packs: Callable[[], Awaitable[Packs]]) -> None:
        """Have the indexes of all packs of the session in the store after a while."""
        if self.may_write:
            self._start(lambda: self._write_session(session, packs))

    async def close(self) -> None:
        """Stop what is under way."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start(self, work: Callable[[], Awaitable[None]]) -> None:
        task = asyncio.create_task(self._if_allowed(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _if_allowed(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except StoreRefused as exc:
            if self.may_write:
                log.info("log indexes are not collected: the store may only be read", cause=str(exc))
            self.may_write = False
        except RaykeeperError as exc:  # whoever reads these packs next may try again
            log.warning("log indexes could not be collected", cause=str(exc))

    async def _write_read(self, node: NodeCollections, copies: Mapping[str, CopiedIndex], frames: int) -> None:
        try:
            async with self._one_node:
                sizes = {key: copied.size for key, copied in copies.items()}
                if not self.may_write or not await self._collected.are_of_use(sizes):
                    return
                others = await self._collected.find(node, sizes)  # another replica may have been faster
                left = sorted(copies.keys() - others.indexes.keys())
                if len(left) >= COLLECTED_FROM:
                    await self._collected.write(node, _each(copies[key] for key in left))
        finally:
            self._waiting -= frames

    async def _write_session(self, session: SessionId, packs: Callable[[], Awaitable[Packs]]) -> None:
        async with self._one_session:
            for node_id, found in list((await packs()).items()):
                of_node = dict(found)  # more may come while these are read
                if await self._collected.are_of_use(of_node):
                    await self._write_node(NodeCollections(session, node_id), of_node)

    async def _write_node(self, node: NodeCollections, packs: Mapping[str, int]) -> None:
        there = sum(facts.packs for facts in await self._collected.listed(node))
        if len(packs) - there < COLLECTED_FROM:
            return
        known = (await self._collected.find(node, packs)).indexes.keys()
        unknown = {key: packs[key] for key in sorted(packs.keys() - known)}
        if len(unknown) >= COLLECTED_FROM:
            await self._collected.write(node, self._read_all(node.session, unknown))

    async def _read_all(self, session: SessionId, packs: Mapping[str, int]) -> AsyncIterator[CopiedIndex]:
        in_order = list(packs.items())
        for start in range(0, len(in_order), _READ_AHEAD):
            some = in_order[start : start + _READ_AHEAD]
            read = await asyncio.gather(*(self._read(key, size) for key, size in some))
            for (key, size), index in zip(some, read, strict=True):
                if index is not None:
                    yield copied_index(session, key, size, index)

    async def _read(self, key: str, size: int) -> PackIndex | None:
        """None for a pack that is damaged or gone: who asks for its files is told."""
        try:
            return await self._ends.read(key, size)
        except (DamagedPack, ObjectMissing):
            return None


async def _each(copies: Iterable[CopiedIndex]) -> AsyncIterator[CopiedIndex]:
    for copied in copies:
        yield copied
