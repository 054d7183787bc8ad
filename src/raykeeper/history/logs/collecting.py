"""Collects indexes of log packs in the background: of packs that were just read, or of a session that is final."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping

from raykeeper.errors import RaykeeperError
from raykeeper.history.logs.collected import COLLECTED_FROM, CollectedIndexes, NodeCollections
from raykeeper.history.logs.packends import PackEnds
from raykeeper.layout.keys import SessionId
from raykeeper.layout.logindexes import CopiedIndex, copied_index
from raykeeper.layout.packs import DamagedPack, PackIndex
from raykeeper.logs import Log
from raykeeper.storage.errors import ObjectMissing, StoreRefused
from raykeeper.storage.store import ObjectStore

_READ_AT_ONCE = 8  # nobody waits for these
_READ_AHEAD = 64  # packs whose indexes are in memory at a time
MAX_WAITING = 300_000
"""Frames that wait to be written, unless one node has more; what comes beyond that is left to whoever reads it next."""

Packs = Mapping[str, Mapping[str, int]]
"""Node id to pack keys with their sizes."""

log = Log("raykeeper.history.logs")


class Collecting:
    """What is being collected now. It may be ended at any time: all that is lost is time."""

    def __init__(self, store: ObjectStore, collected: CollectedIndexes, max_waiting: int = MAX_WAITING) -> None:
        self.may_write = True
        self._collected = collected
        self._ends = PackEnds(store, _READ_AT_ONCE)
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
