"""The log files of all sessions, as endpoints ask for them: which a node has, and a range of one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from raykeeper.clock import Clock
from raykeeper.history.ingest.session import Session
from raykeeper.history.logs.indexes import PackIndexes
from raykeeper.history.logs.lines import LineCounter
from raykeeper.history.logs.names import matching_names
from raykeeper.history.logs.reader import LogReader, hole_note, planned
from raykeeper.history.logs.stream_slots import StreamSlots
from raykeeper.layout.keys import SessionId
from raykeeper.layout.logs import Hole, StoredLog
from raykeeper.storage.store import ObjectStore

_WHOLE_READS_AT_ONCE = 8  # each holds the end of a file in memory
_SEARCHES_AT_ONCE = 4  # each holds some ten megabytes of text; more wait
_TAILS_AT_ONCE = 200  # each looks for new packs of its session once a second
_BODIES_AT_ONCE = 64  # each holds what is read ahead: 2 MB, or one frame


@dataclass(frozen=True)
class NodeFiles:
    """The files of one node under the names they have now."""

    by_path: dict[str, StoredLog]
    by_generation: dict[str, StoredLog]
    damaged: dict[str, str]
    """Packs that could not be read, and why."""


class LogStore:
    """Ready for any session at any time: what it remembers are copies of immutable objects."""

    def __init__(self, store: ObjectStore, clock: Clock) -> None:
        self.store = store
        self._indexes = PackIndexes(store, clock)
        self.reader = LogReader(store)
        self.lines = LineCounter(store)
        self.searches = asyncio.Semaphore(_SEARCHES_AT_ONCE)
        self.tails = StreamSlots(_TAILS_AT_ONCE)
        """Of our own pages: they begin close to the end of a file."""
        self.bodies = StreamSlots(_BODIES_AT_ONCE)
        """Whole logs, also those that are followed from their beginning, and archives."""
        self._whole_reads = asyncio.Semaphore(_WHOLE_READS_AT_ONCE)

    async def node_ids(self, session: SessionId) -> list[str]:
        return await self._indexes.node_ids(session)

    async def packs(self, session: SessionId) -> Mapping[str, Mapping[str, int]]:
        """Keys and sizes of all packs by node."""
        return await self._indexes.packs(session)

    def collect(self, session: SessionId) -> None:
        """Have the logs of a session that is final open quickly on any replica, after a while."""
        self._indexes.collect(session)

    async def close(self) -> None:
        """Stop what goes on in the background."""
        await self.lines.close()
        await self._indexes.close()

    async def files(self, session: SessionId, node_id: str) -> NodeFiles:
        node = await self._indexes.of_node(session, node_id)
        return NodeFiles(node.by_path, node.logs, node.damaged)

    async def read_matching(self, session: Session, pattern: str, limit_bytes: int) -> Sequence[bytes]:
        """The ends of all files under `logs/` of any node whose path matches, at most so many bytes of each."""
        nodes = [await self.files(session.id, node_id) for node_id in await self.node_ids(session.id)]
        names = [(node.by_path, name) for node in nodes for name in matching_names(node.by_path, pattern)]
        found = [by_path[name] for by_path, name in names if name in by_path]
        return await asyncio.gather(*(self._end_of(stored, limit_bytes) for stored in found))

    async def _end_of(self, stored: StoredLog, limit_bytes: int) -> bytes:
        size = stored.size
        async with self._whole_reads:
            return b"".join([piece async for piece in self.reader.stream(stored, max(0, size - limit_bytes), size)])

    async def follow(
        self, place: FilePlace, start: int, interval_seconds: float, is_over: Callable[[], Awaitable[bool]]
    ) -> AsyncIterator[bytes]:
        """What the file has from `start` on and what comes to it, until its writer is over and all was read.

        Notes stand for what is missing.
        """
        async for piece in self.follow_exactly(place, start, interval_seconds, is_over):
            yield piece if isinstance(piece, bytes) else hole_note(piece)

    async def follow_exactly(
        self, place: FilePlace, start: int, interval_seconds: float, is_over: Callable[[], Awaitable[bool]]
    ) -> AsyncIterator[bytes | Hole]:
        """The same for those who count: every byte, as itself or as a part of a hole."""
        at = start
        while True:
            was_over = await is_over()  # asked before the last look, so that nothing written before the end is missed
            node = await self.files(place.session, place.node_id)
            stored = node.by_generation.get(place.generation)
            size = stored.size if stored else at
            if stored and size > at:
                async for piece in self.reader.exact(await planned(stored, at, size)):
                    yield piece
                at = size
            elif was_over:
                return
            else:
                await asyncio.sleep(interval_seconds)


@dataclass(frozen=True)
class FilePlace:
    """One generation of one file, whatever it is called by now."""

    session: SessionId
    node_id: str
    generation: str
