"""Seals closed journals, oldest first, outside of the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from raykeeper.clock import Clock
from raykeeper.collector.events.disk import ClosedJournal
from raykeeper.collector.events.figures import EventFigures
from raykeeper.collector.events.filing import ForeignSessions, Identities
from raykeeper.collector.events.limits import EventSettings
from raykeeper.collector.events.sealed import SealedFiles
from raykeeper.collector.events.sealing import ReadJournal, Segment, read_closed, read_unread, seal
from raykeeper.collector.events.spool import Spool
from raykeeper.collector.events.uploads import EventBucket, Uploads
from raykeeper.logs import Log
from raykeeper.settings.values import MIB

log = Log("raykeeper.collector.sealer")
T = TypeVar("T")

RETRY_SECONDS = 30.0
"""Until a journal that could not be sealed is tried again; the others go on."""

MAX_TRIES = 5
"""Then a journal is set aside as it is, in `rejects/`: it must not be tried for ever."""

LARGE_JOURNAL_BYTES = 16 * MIB
"""A journal above this is sealed alone: it is in memory as a whole."""

PARALLEL_SEALS = 2
"""One waits for compressor or disk while the other splits: only splitting needs Python's lock."""


class Sealer:
    """Turns closed journals into segments. A journal is deleted once all its segments are durable elsewhere."""

    def __init__(
        self,
        settings: EventSettings,
        spool: Spool,
        sealed: SealedFiles,
        uploads: Uploads,
        bucket: EventBucket,
        identities: Identities,
        clock: Clock,
        figures: EventFigures,
    ) -> None:
        self._settings = settings
        self._spool = spool
        self._sealed = sealed
        self._uploads = uploads
        self._bucket = bucket
        self._identities = identities
        self._clock = clock
        self._figures = figures
        self._threads = ThreadPoolExecutor(PARALLEL_SEALS, thread_name_prefix="seal")
        self._one_at_a_time = asyncio.Lock()
        self._held: dict[ClosedJournal, tuple[float, set[str]]] = {}
        self._not_before: dict[ClosedJournal, float] = {}
        self._tries: dict[ClosedJournal, int] = {}
        self._foreign = ForeignSessions()

    @property
    def has_work(self) -> bool:
        """Whether a closed journal can be sealed now."""
        return any(self._is_ready(journal, may_hold=True) for journal in self._spool.closed.values())

    @property
    def backlog_bytes(self) -> int:
        """Of closed journals that can be sealed now."""
        closed = self._spool.closed.values()
        return sum(journal.size for journal in closed if self._is_ready(journal, may_hold=True))

    async def seal_all(self, *, may_hold: bool = True) -> None:
        """Seal what can be sealed; without `may_hold` also what waits for its node, as of an unknown one."""
        async with self._one_at_a_time:
            ready = sorted(j for j in self._spool.closed.values() if self._is_ready(j, may_hold=may_hold))
            small = [journal for journal in ready if journal.size <= LARGE_JOURNAL_BYTES]
            groups = [small[start : start + PARALLEL_SEALS] for start in range(0, len(small), PARALLEL_SEALS)]
            groups += [[journal] for journal in ready if journal.size > LARGE_JOURNAL_BYTES]
            for some in groups:
                await asyncio.gather(*(self._try(journal, may_hold=may_hold) for journal in some))

    def stop(self) -> None:
        self._threads.shutdown()

    def _is_ready(self, journal: ClosedJournal, *, may_hold: bool) -> bool:
        now = self._clock.steady()
        if now < self._not_before.get(journal, now) and may_hold:
            return False
        if journal not in self._held or not may_hold:
            return True
        since, sessions = self._held[journal]
        return now - since >= self._settings.node_wait_seconds or all(map(self._identities.node_of, sessions))

    async def _try(self, journal: ClosedJournal, *, may_hold: bool) -> None:
        try:
            await self._seal(journal, may_hold=may_hold)
        except Exception:
            tries = self._tries[journal] = self._tries.get(journal, 0) + 1
            log.exception("journal could not be sealed, it stays on disk", journal=journal.path.name, tries=tries)
            self._figures.seal_failed()
            self._not_before[journal] = self._clock.steady() + RETRY_SECONDS

    async def _seal(self, journal: ClosedJournal, *, may_hold: bool) -> None:
        read = await self._in_thread(partial(self._read, journal))
        if may_hold and self._must_hold(read):
            return
        if read.torn_bytes:
            log.info("a batch that was not acknowledged is left out", journal=journal.path.name, bytes=read.torn_bytes)
        try:
            for key, size in await self._in_thread(partial(self._write, read)):
                await self._uploads.add(key, size)
        except OSError as exc:
            log.warning("no room for sealed events, they go straight to the bucket", cause=str(exc))
            await self._put(read)
        self._figures.sealed(read.filing)
        self._held.pop(journal, None)
        self._not_before.pop(journal, None)
        self._tries.pop(journal, None)
        self._spool.forget(journal, lost_bytes=read.damaged_bytes)

    def _read(self, journal: ClosedJournal) -> ReadJournal:
        if self._tries.get(journal, 0) < MAX_TRIES:
            return read_closed(journal, self._identities, self._foreign)
        return read_unread(journal, f"journal not sealed in {MAX_TRIES} tries", self._identities)

    def _must_hold(self, read: ReadJournal) -> bool:
        """Whether to wait for the node id: before its raylet is up, Ray 2.52 sends events that do not name one."""
        sessions = read.filing.sessions_without_node
        now = self._clock.steady()
        since, _ = self._held.get(read.journal, (now, set()))
        if not sessions or now - since >= self._settings.node_wait_seconds:
            return False
        self._held[read.journal] = (since, sessions)
        return True

    def _write(self, read: ReadJournal) -> list[tuple[str, int]]:
        """Key and size of every segment, all on disk. Raises OSError where one has no room."""
        written = []
        for segment in seal(read, self._settings):
            self._sealed.write(segment)
            self._figures.segment_made(len(segment.data))
            written.append((segment.key, len(segment.data)))
        return written

    async def _put(self, read: ReadJournal) -> None:
        segments: Iterator[Segment | None] = seal(read, self._settings)
        while (segment := await self._in_thread(partial(next, segments, None))) is not None:
            await self._bucket.put(segment.key, segment.data)

    def _in_thread(self, work: Callable[[], T]) -> asyncio.Future[T]:
        return asyncio.get_running_loop().run_in_executor(self._threads, work)
