"""Searches the log lines of a session: node after node, packs from the newest to the oldest, a batch at a time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from raykeeper.history.answers import InvalidQuery
from raykeeper.history.logs.globs import InvalidPattern
from raykeeper.history.logs.logstore import LogStore
from raykeeper.history.search.asking import Skipped, Wanted
from raykeeper.history.search.fetching import Fetcher
from raykeeper.history.search.joining import Joints
from raykeeper.history.search.matching import Matcher, Span
from raykeeper.history.search.places import LogPlace
from raykeeper.history.search.scanning import Run, Scanned, scan
from raykeeper.history.search.stretches import BATCH_BYTES, Stretch, batches, from_place, node_stretches
from raykeeper.layout.keys import SessionId

_AHEAD = 3  # batches on their way while one is looked at: hides the store's latency and uses two cores


@dataclass(frozen=True)
class LineHit:
    """One line, in the text it was found in."""

    node_id: str
    run: Run
    span: Span


@dataclass(frozen=True)
class Step:
    """One batch that was searched."""

    place: LogPlace
    """Of the batch."""
    behind: LogPlace | None
    """Where the next batch is; None at the end of all."""
    hits: tuple[LineHit, ...]
    text_bytes: int


@dataclass
class LogSearch:
    """A search in the logs of one session."""

    logs: LogStore
    session: SessionId
    wanted: Wanted
    matcher: Matcher
    skipped: Skipped = field(default_factory=Skipped)
    batch_bytes: int = BATCH_BYTES

    async def steps(self, start: LogPlace | None = None) -> AsyncGenerator[Step, None]:
        """Batch after batch from a place on. Raises InvalidQuery for a place that is not there."""
        nodes = await self.node_ids()
        if start and start.node_id:
            nodes = _from_node(nodes, start.node_id)
        for number, node_id in enumerate(nodes):
            following = LogPlace(nodes[number + 1]) if number + 1 < len(nodes) else None
            inside = start if start and start.node_id == node_id else None
            async for step in self._of_node(node_id, inside, following):
                yield step

    async def node_ids(self) -> list[str]:
        """Those wanted, in the order in which they shipped their first pack: the head is among the first."""
        packs = await self.logs.packs(self.session)
        wanted = (node_id for node_id in packs if self.wanted.has_node(node_id))
        return sorted(wanted, key=lambda node_id: (min(packs[node_id]).rpartition("/")[2], node_id))

    async def _of_node(self, node_id: str, start: LogPlace | None, following: LogPlace | None) -> AsyncIterator[Step]:
        files = await self.logs.files(self.session, node_id)
        for pack, reason in files.damaged.items():
            self.skipped.add(pack, reason)
        try:
            # A node that ran for days has a hundred thousand pieces: putting them in order would hold up others.
            stretches, lost = await asyncio.to_thread(node_stretches, list(files.by_generation.values()), self.wanted)
        except InvalidPattern as exc:
            raise InvalidQuery(str(exc)) from exc
        if lost:
            self.skipped.add(f"logs of node {node_id}", f"{lost:,} bytes of them were never stored")
        if start and start.pack:
            stretches = from_place(stretches, start.pack, start.position)
        joints, done = Joints(self.logs.reader, self.matcher), None
        async for batch, scanned in self._scanned(stretches):
            if done is not None:
                yield await self._step(node_id, *done, joints, LogPlace(node_id, *batch[0].place))
            done = (batch, scanned)
        if done is not None:
            yield await self._step(node_id, *done, joints, following)
        else:
            yield Step(LogPlace(node_id), following, (), 0)

    async def _scanned(self, stretches: Sequence[Stretch]) -> AsyncIterator[tuple[list[Stretch], Scanned]]:
        """Every batch with what it holds; the next ones are on their way."""
        fetcher, waiting = Fetcher(self.logs.store), deque[tuple[list[Stretch], asyncio.Task[Scanned]]]()
        coming = batches(stretches, self.batch_bytes)
        try:
            while True:
                while len(waiting) < _AHEAD and (batch := next(coming, None)):
                    waiting.append((batch, asyncio.create_task(self._scan(batch, fetcher))))
                if not waiting:
                    return
                batch, task = waiting.popleft()
                yield batch, await task
        finally:
            for _, task in waiting:
                task.cancel()
            await asyncio.gather(*(task for _, task in waiting), return_exceptions=True)

    async def _scan(self, batch: list[Stretch], fetcher: Fetcher) -> Scanned:
        packed = await fetcher.fetch(batch)
        return await asyncio.to_thread(scan, batch, packed, self.matcher)

    async def _step(
        self, node_id: str, batch: list[Stretch], scanned: Scanned, joints: Joints, behind: LogPlace | None
    ) -> Step:
        for pack, reason in scanned.damaged:
            self.skipped.add(pack, reason)
        found = [(run, await joints.hits(run)) for run in reversed(scanned.runs)]
        hits = [LineHit(node_id, run, span) for run, spans in reversed(found) for span in spans]
        text_bytes = sum(len(run.text) for run in scanned.runs)
        return Step(LogPlace(node_id, *batch[0].place), behind, tuple(hits), text_bytes)


def behind_hit(hits: Iterable[LineHit], place: LogPlace) -> tuple[LineHit, ...]:
    """Those that a page before this one has not shown. Pure."""
    left = tuple(hits)
    for number, hit in enumerate(left):
        if (hit.run.stored.generation, hit.span[0]) == (place.generation, place.offset):
            return left[number + 1 :]
    return left


def passed_bytes(packs: Mapping[str, Mapping[str, int]], nodes: Sequence[str], place: LogPlace | None) -> int:
    """How much of the packs of these nodes lies before a place; all of it without one. Pure."""
    passed = 0
    for node_id in nodes:
        if place and node_id == place.node_id:
            return passed + sum(size for key, size in packs[node_id].items() if place.pack and key > place.pack)
        passed += sum(packs[node_id].values())
    return passed


def _from_node(nodes: Sequence[str], node_id: str) -> list[str]:
    if node_id not in nodes:
        raise InvalidQuery("the search cannot go on there, because what it was in is gone: begin anew")
    return list(nodes[nodes.index(node_id) :])
