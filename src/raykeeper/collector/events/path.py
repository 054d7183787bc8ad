"""The way of events through the collector: sink, journal, sealed segments, bucket."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

from raykeeper.clock import Clock
from raykeeper.collector.events.budget import DiskBudget
from raykeeper.collector.events.cadence import is_due, seal_age
from raykeeper.collector.events.figures import EventFigures
from raykeeper.collector.events.limits import BACKLOG_SHARE, PACE_SECONDS, EventSettings
from raykeeper.collector.events.sink import Sink
from raykeeper.collector.events.spool import Spool
from raykeeper.errors import Misconfigured
from raykeeper.logs import Log
from raykeeper.times import NS, to_ns

if TYPE_CHECKING:
    from raykeeper.collector.events.filing import Identities
    from raykeeper.collector.events.sealed import SealedFiles
    from raykeeper.collector.events.sealer import Sealer
    from raykeeper.collector.events.uploads import EventBucket, Uploads
    from raykeeper.collector.metrics import CollectorMetrics

log = Log("raykeeper.collector.events")

LOOK_SECONDS = 1.0
"""How often journals that wait for a node id or another attempt are looked at."""

PACE_STEP_SECONDS = 0.02

SWITCH_SECONDS = 0.0005
"""For how long a thread that splits may keep the event loop waiting; with Python's 5 ms Ray would wait for that
several times a batch. Measured: a fifth more events per second."""


class EventPath:
    """Takes events from `start` on, seals and uploads them while `run` runs, all that is left in `flush`."""

    def __init__(
        self,
        settings: EventSettings,
        bucket: EventBucket,
        identities: Identities,
        clock: Clock,
        metrics: CollectorMetrics,
    ) -> None:
        self.figures = EventFigures(metrics)
        """Counts for heartbeats: events accepted and set aside, batches refused."""
        self._settings = settings
        self._bucket = bucket
        self._identities = identities
        self._clock = clock
        self._budget = DiskBudget(settings.spool_max_bytes)
        self._changed = asyncio.Event()
        journals = settings.folder / "journals"
        self._spool = Spool(journals, self._budget, clock, settings.segment_max_bytes, self._changed.set)
        self._sink = Sink(self._spool, clock, self.figures, self._pace)
        self._sealed: SealedFiles | None = None
        self._uploads: Uploads | None = None
        self._sealer: Sealer | None = None
        self._watch(metrics)

    @property
    def port(self) -> int:
        """Where the sink listens."""
        return self._sink.port

    @property
    def last_post_at(self) -> float | None:
        """Steady time of Ray's last batch; None before the first."""
        return self._sink.last_post_at

    @property
    def unsent_bytes(self) -> int:
        """On disk, or on the way there, and not yet in the bucket."""
        return self._budget.used

    def sealed_of(self, session: str, node_id: str) -> int:
        """What waits and is known to be of one node."""
        return self._sealed.bytes_of(session, node_id) if self._sealed else 0

    def unsent_of(self, session: str, node_id: str, until_ns: int) -> int:
        """What may wait of a node that was there until then. In a journal nobody knows yet whose events it holds."""
        return self.sealed_of(session, node_id) + self._spool.bytes_until(until_ns)

    @property
    def oldest_unsent_seconds(self) -> float:
        """Age of the oldest event that the bucket lacks; 0 where it lacks none."""
        closed = [journal.closed_ns for journal in self._spool.closed.values()]
        oldest_ns = min(closed + ([self._sealed.oldest_ns] if self._sealed and self._sealed.waiting else []), default=0)
        waited = (to_ns(self._clock.now()) - oldest_ns) / NS if oldest_ns else 0.0
        return max(waited, self._spool.open_seconds, 0.0)

    async def start(self) -> None:
        """Listen for Ray. Needs neither the bucket nor Ray; imports nothing heavy."""
        try:
            self._spool.take_over()
        except OSError as exc:
            raise Misconfigured("event data dir", str(self._settings.folder), f"it must be writable ({exc})") from exc
        await self._sink.listen(self._settings.hosts, self._settings.port)

    async def run(self) -> None:
        """Seal and upload until cancelled, beginning with what earlier lives left."""
        sealer, uploads = self._prepare()
        async with asyncio.TaskGroup() as group:
            group.create_task(uploads.run())
            group.create_task(self._seal_for_ever(sealer))

    async def seal_now(self) -> None:
        """Seal what is there whatever its age, for `run` to upload."""
        sealer, _ = self._prepare()
        if self._spool.open_bytes:
            await self._spool.close_journal()
        await sealer.seal_all()

    async def flush(self, deadline: float) -> int:
        """Seal all and upload until the steady clock reads `deadline`. Returns the bytes that did not make it.

        Assumes that `run` is running.
        """
        sealer, uploads = self._prepare()
        try:
            async with asyncio.timeout(max(0.0, deadline - self._clock.steady())):
                await self._spool.close_journal()
                uploads.is_newest_first = True
                await uploads.take_up_failed()
                await sealer.seal_all(may_hold=False)
                await uploads.wait_empty()
        except TimeoutError:
            log.warning("events left on disk at the end", bytes=self.unsent_bytes)
        return self.unsent_bytes

    async def stop(self) -> None:
        """Listen no more and end the threads; after `run` was cancelled."""
        await self._sink.stop()
        self._spool.stop()
        if self._sealer is not None:
            self._sealer.stop()

    async def _pace(self) -> None:
        """Wait a little while sealing is behind."""
        until = self._clock.steady() + PACE_SECONDS
        limit = self._settings.spool_max_bytes * BACKLOG_SHARE
        while self._sealer and self._sealer.backlog_bytes > limit and self._clock.steady() < until:  # noqa: ASYNC110
            await asyncio.sleep(PACE_STEP_SECONDS)  # a sum over journals, which sets no event

    async def _seal_for_ever(self, sealer: Sealer) -> None:
        while True:
            await self._wait_until_due(sealer)
            try:
                if self._spool.open_bytes:
                    await self._spool.close_journal()
                await sealer.seal_all()
            except Exception:
                log.exception("events could not be sealed, they stay in the journal")
                await asyncio.sleep(LOOK_SECONDS)

    async def _wait_until_due(self, sealer: Sealer) -> None:
        while True:
            self._changed.clear()
            if sealer.has_work or self._is_journal_due():
                return
            try:
                async with asyncio.timeout(self._seconds_until_due()):
                    await self._changed.wait()
            except TimeoutError:
                continue

    def _is_journal_due(self) -> bool:
        is_pressed = self._budget.is_pressed or self._spool.is_failing
        return is_due(self._spool.open_bytes, self._spool.open_seconds, self._settings, is_pressed=is_pressed)

    def _seconds_until_due(self) -> float | None:
        """How long to sleep where nothing changes; for ever where nothing is on disk."""
        if self._spool.closed or self._budget.is_pressed:
            return LOOK_SECONDS
        if not self._spool.open_bytes:
            return None
        return max(0.0, seal_age(self._spool.open_bytes, self._settings) - self._spool.open_seconds)

    def _prepare(self) -> tuple[Sealer, Uploads]:
        """What seals and uploads. Imported here: Ray is listened to before JSON and compression are loaded."""
        if self._sealer is None or self._uploads is None:
            from raykeeper.collector.events.sealed import SealedFiles
            from raykeeper.collector.events.sealer import Sealer
            from raykeeper.collector.events.uploads import Uploads
            from raykeeper.layout.keys import cluster_prefix

            sys.setswitchinterval(SWITCH_SECONDS)
            settings = self._settings
            self._sealed = SealedFiles(
                settings.folder / "sealed", self._budget, cluster_prefix(settings.namespace, settings.cluster)
            )
            self._sealed.take_over()
            self._uploads = Uploads(self._sealed, self._bucket, settings.parallel_uploads)
            parts = (self._spool, self._sealed, self._uploads, self._bucket, self._identities)
            self._sealer = Sealer(settings, *parts, self._clock, self.figures)
        return self._sealer, self._uploads

    def _watch(self, metrics: CollectorMetrics) -> None:
        metrics.spool_max_bytes.set(self._settings.spool_max_bytes)
        metrics.watch(metrics.spool_bytes, lambda: self._budget.used)
        metrics.watch(metrics.event_unsent_bytes, lambda: self.unsent_bytes)
        metrics.watch(metrics.event_unsent_seconds, lambda: self.oldest_unsent_seconds)
