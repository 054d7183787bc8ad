"""Searches the log lines of a session: node after node, packs from the newest to the oldest, a batch at a time.

Lines that are cut between two batches are put together here.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from raykeeper.history.bounded import Bounded
from raykeeper.history.errors import InvalidQuery
from raykeeper.history.logs.names import InvalidPattern
from raykeeper.history.logs.reader import LogReader
from raykeeper.history.logs.store import LogStore
from raykeeper.history.search.match import LINE_BYTES, Matcher, Span
from raykeeper.history.search.model import LogPlace, SearchRequest, Skipped
from raykeeper.history.search.scan import BATCH_BYTES, Run, Scanned, Stretch, batches, from_place, node_stretches, scan
from raykeeper.layout.keys import SessionId
from raykeeper.layout.logs import StoredLog, plan_read
from raykeeper.layout.packs import Frame
from raykeeper.storage.errors import ObjectMissing
from raykeeper.storage.store import ObjectStore

_GAP_BYTES = 128 * 1024  # between two frames: reading over it takes less time than a second request
_READS_AT_ONCE = 8


@dataclass
class PackRange:
    """Frames of one pack that are read with one request."""

    pack: str
    start: int
    end: int
    frames: list[Frame] = field(default_factory=list)


def _pack_ranges(batch: Iterable[Stretch]) -> Iterator[PackRange]:
    """Requests for all frames of the batch. Pure."""
    ordered = sorted(batch, key=lambda stretch: stretch.place)
    for pack, group in groupby(ordered, key=lambda stretch: stretch.piece.pack):
        current: PackRange | None = None
        for stretch in group:
            frame = stretch.piece.frame
            if current is None or frame.position - current.end > _GAP_BYTES:
                if current:
                    yield current
                current = PackRange(pack, frame.position, frame.position)
            current.frames.append(frame)
            current.end = max(current.end, frame.position + frame.size)
        if current:
            yield current


class Fetcher:
    """Reads from one store, a few ranges at a time for all who ask."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._reads = asyncio.Semaphore(_READS_AT_ONCE)

    async def fetch(self, batch: Iterable[Stretch]) -> dict[tuple[str, int], bytes | str]:
        """The bytes of each frame by its place, or why they are not to be had."""
        found = await asyncio.gather(*map(self._range, _pack_ranges(batch)))
        return {place: data for one in found for place, data in one.items()}

    async def _range(self, wanted: PackRange) -> dict[tuple[str, int], bytes | str]:
        try:
            async with self._reads:
                data = await self._store.read_range(wanted.pack, wanted.start, wanted.end - wanted.start)
        except ObjectMissing as exc:
            return {(wanted.pack, frame.position): str(exc) for frame in wanted.frames}
        at = wanted.start
        return {
            (wanted.pack, frame.position): data[frame.position - at : frame.position - at + frame.size]
            for frame in wanted.frames
        }


_KEPT_BYTES = 16 << 20  # beginnings of files' runs; a node has some hundred files, and lines are short


class Joints:
    """Borders of one node's runs, newest first."""

    def __init__(self, reader: LogReader, matcher: Matcher) -> None:
        self._reader = reader
        self._matcher = matcher
        self._kept: Bounded[tuple[str, int], bytes | None] = Bounded(_KEPT_BYTES)

    async def hits(self, run: Run) -> list[Span]:
        """All hits that begin in the run, by their offsets in the file."""
        rest = await self._rest_behind(run)
        if run.joins_before and not run.has_line_end:
            return self._pass_on(run, run.text + (rest or b""))
        if run.joins_before:
            self._keep(run, run.head)
        elif run.goes_before:
            self._keep(run, None)
        return [*run.hits, *self._last_line(run, rest)]

    def _pass_on(self, run: Run, text: bytes) -> list[Span]:
        """A piece from the middle of a line goes to where the line begins, unless it becomes too long for one."""
        if len(text) <= LINE_BYTES:
            self._keep(run, text)
            return []
        self._keep(run, None)
        return self._found(run.start, text)

    def _last_line(self, run: Run, rest: bytes | None) -> list[Span]:
        begun = run.text[run.tail_start - run.start :]
        if not run.goes_on or (rest is None and not begun):
            return []
        return self._found(run.tail_start, begun + (rest or b""))

    def _found(self, start: int, line: bytes) -> list[Span]:
        # With its end of line, so that an empty line is one.
        return [(start + begin, start + end) for begin, end in self._matcher.find(line + b"\n")]

    async def _rest_behind(self, run: Run) -> bytes | None:
        """What goes on behind the run up to the end of its last line; None where nothing does."""
        if not run.goes_on or (run.tail_start == run.end and not run.looks_behind):
            return None
        key = (run.stored.generation, run.end)
        if key not in self._kept:
            return await _read_rest(self._reader, run.stored, run.end)
        rest = self._kept.get(key)
        self._kept.drop(key)
        return rest

    def _keep(self, run: Run, head: bytes | None) -> None:
        self._kept.put((run.stored.generation, run.start), head, len(head or b""))


async def _read_rest(reader: LogReader, stored: StoredLog, start: int) -> bytes | None:
    """From here to the end of the line or file, or to a gap; None for no bytes, or too many for a line."""
    parts, size = list[bytes](), 0
    async for piece in reader.exact(plan_read(stored, start, start + LINE_BYTES + 1)):
        if not isinstance(piece, bytes):
            break
        line, found, _ = piece.partition(b"\n")
        parts.append(line)
        size += len(line)
        if found:
            return b"".join(parts) if size <= LINE_BYTES else None
    return b"".join(parts) if 0 < size <= LINE_BYTES else None


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
    wanted: SearchRequest
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
