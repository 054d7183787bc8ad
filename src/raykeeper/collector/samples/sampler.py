"""Samples the node beside the collector, and sends the rows by the hour.

A row goes three ways: into the journal on disk, for a collector that is killed; into the next heartbeat, for a pod that
is lost with its disk; and, once its hour is over, into a block of its own in the bucket.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from raykeeper.clock import Clock
from raykeeper.collector.events.budget import DiskBudget
from raykeeper.collector.events.sealed import SealedFiles
from raykeeper.collector.events.sealing import Segment
from raykeeper.collector.events.uploads import EventBucket, Uploads
from raykeeper.collector.metrics import CollectorMetrics
from raykeeper.collector.ray_metrics import RayMetrics, observe_metrics
from raykeeper.collector.raylet_socket import raylet_listens
from raykeeper.collector.records import NodePlace
from raykeeper.collector.samples.journal import SampleJournal
from raykeeper.collector.samples.machine import Machine, MachineFigures
from raykeeper.collector.samples.rows import to_sample
from raykeeper.collector.sessions import SessionOnDisk
from raykeeper.layout.keys import SamplesKey, SessionId, cluster_prefix
from raykeeper.layout.samples import STEP_SECONDS, TAIL_LEVEL, Sample, encode_block, hour_start, slot_of, to_block
from raykeeper.logs import Log
from raykeeper.times import NS

TAIL_BYTES = 4096
"""Of unsealed rows, compressed: what a heartbeat may carry. Beyond it they are sealed before their hour is over; an
hour of eight busy GPUs takes twice as much."""
MAX_TAIL_BYTES = 8192
"""Of those rows in any case, together with a block that waits for the bucket: a heartbeat that is too large is read by
nobody, and GPUs may have any names."""
SPOOL_BYTES = 16 << 20
"""Blocks that wait for the bucket: three months of a busy node. What comes beyond that is given up, and counted."""
MAX_ROWS = 720
"""Kept in memory while the disk takes no block; older ones are given up, and counted."""
LIGHT_BYTES = 2 << 20
"""Metrics larger than this are read proportionally less often: rendering them costs Ray's agent more than us."""
LIGHT_SECONDS = 0.5
"""Metrics that take longer than this likewise."""
MAX_PAUSE_SECONDS = 120.0
"""Between two looks at Ray's metrics, whatever they cost and however often they failed."""
MACHINE_SECONDS = 5.0
"""For the disk to tell how full it is."""

log = Log("raykeeper.collector.samples")

ObserveMetrics = Callable[[Path, str], Awaitable[RayMetrics | None]]


class Sessions(Protocol):
    """The part of what is known from the disk that is needed here."""

    @property
    def raylet_listens(self) -> bool | None: ...

    def current_session(self) -> str | None: ...

    def sessions(self) -> tuple[SessionOnDisk, ...]: ...


@dataclass(frozen=True)
class SamplerSettings:
    """Whose rows they are, and where they wait."""

    namespace: str
    """Of the cluster: part of every key."""
    cluster: str
    """Its name, likewise."""
    folder: Path
    """On the collector's own disk."""
    ray_root: Path
    """Ray's folder: how full its disk is, is sampled too."""
    phase_seconds: float = 0.0
    """How long after the beginning of ten seconds this node is looked at."""


@dataclass(frozen=True)
class _Sealed:
    """The block that was sealed last."""

    place: NodePlace
    key: str
    rows: tuple[Sample, ...]


class Sampler:
    """Takes a row every ten seconds while a raylet lives. Whatever answers it costs no more than a missing row."""

    def __init__(
        self,
        settings: SamplerSettings,
        sessions: Sessions,
        bucket: EventBucket,
        clock: Clock,
        metrics: CollectorMetrics,
        observe: ObserveMetrics = observe_metrics,
    ) -> None:
        self._settings = settings
        self._sessions = sessions
        self._clock = clock
        self._metrics = metrics
        self._observe = observe
        self._machine = Machine(settings.ray_root, clock)
        self._looking: asyncio.Future[MachineFigures] | None = None
        self._journal = SampleJournal(settings.folder / "open.ndjson")
        self._budget = DiskBudget(SPOOL_BYTES)
        prefix = cluster_prefix(settings.namespace, settings.cluster)
        self._sealed = SealedFiles(settings.folder / "sealed", self._budget, prefix)
        self._uploads = Uploads(self._sealed, bucket, parallel=1)
        self._place: NodePlace | None = None
        self._rows: list[Sample] = []
        self._last_sealed: _Sealed | None = None
        self._next_metrics = 0.0
        self._failures = 0
        self._dropped: dict[NodePlace, int] = {}
        self._sealing = asyncio.Lock()
        self._is_loaded = False
        self._is_disk_full = False

    async def run(self) -> None:
        """Sample and send until cancelled, beginning with what earlier lives left."""
        await self._load()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._uploads.run())
            group.create_task(self._sample_for_ever())

    async def dropped_events(self, session: Path, node_id: str) -> int | None:
        """What Ray dropped by the last look at its metrics, so that they are not read once more for that."""
        return self._dropped.get((session.name, node_id))

    def tail(self, session: str, node_id: str) -> bytes:
        """The rows of a node that the bucket does not have yet, for its heartbeat; empty where there are none."""
        place, last = (session, node_id), self._last_sealed
        rows = self._rows if self._place == place else []
        if last is not None and last.place == place and last.key in self._sealed.waiting:
            rows = list(_first_hour([*last.rows, *rows]))  # a whole hour is worth more than the new rows
        while len(block := _encoded(rows)) > MAX_TAIL_BYTES:
            rows = rows[len(rows) // 2 + 1 :]
        return block

    async def sample(self) -> None:
        """Take one row, if there is a node to take it of."""
        node, now = await self._node(), self._clock.now().timestamp()
        if node is None:
            await self.seal()
            return
        session, node_id = node
        await self._enter((session.name, node_id))
        if self._rows and self._rows[-1].at == slot_of(now):
            return  # the last one was late
        metrics, machine = await asyncio.gather(self._look_at_ray(session.path, node_id), self._look_at_machine())
        row = to_sample(now, session.name, metrics, machine)
        if metrics is not None:
            self._dropped = {(session.name, node_id): metrics.dropped_events}
        if self._rows and hour_start(row.at) != hour_start(self._rows[0].at):
            await self.seal()
        self._rows.append(row)
        self._metrics.samples.labels("whole" if row.cpu is not None else "partial").inc()
        await asyncio.to_thread(self._journal.append, row)
        if len(_encoded(self._rows)) > TAIL_BYTES:
            await self.seal()

    async def seal(self) -> None:
        """Make blocks of the rows there are, which wait for the bucket."""
        async with self._sealing:
            while self._rows and self._place is not None:
                place, rows = self._place, tuple(_first_hour(self._rows))
                if self._budget.is_exhausted:
                    self._metrics.samples_lost.inc(len(rows))
                elif not await self._seal_rows(place, rows):
                    self._limit_rows()
                    return
                self._rows = self._rows[len(rows) :]
                await asyncio.to_thread(self._journal.begin, place, tuple(self._rows))

    async def flush(self, deadline: float) -> None:
        """Seal and send all until the steady clock reads `deadline`. Assumes that `run` is running."""
        try:
            async with asyncio.timeout(max(0.0, deadline - self._clock.steady())):
                await self._load()
                await self.seal()
                await self._uploads.take_up_failed()
                await self._uploads.wait_empty()
        except TimeoutError:
            log.warning("samples left on disk at the end", blocks=len(self._sealed.waiting))

    async def _sample_for_ever(self) -> None:
        while True:
            await asyncio.sleep(self._seconds_until_next())
            try:
                await self.sample()
            except Exception:
                log.exception("no sample taken")

    def _seconds_until_next(self) -> float:
        """Until the next ten seconds of the clock began."""
        return STEP_SECONDS - (self._clock.now().timestamp() - self._settings.phase_seconds) % STEP_SECONDS

    async def _node(self) -> tuple[SessionOnDisk, str] | None:
        """The node that lives now."""
        sessions = {session.name: session for session in self._sessions.sessions() if session.incarnations}
        current, sampled = self._sessions.current_session(), self._place[0] if self._place else None
        session, is_alive = sessions.get(current or ""), self._sessions.raylet_listens is not False
        if sampled in sessions and sampled != current and await _listens(sessions[sampled]):
            session, is_alive = sessions[sampled], True  # any process of the pod may call another one the latest
        return (session, session.incarnations[-1].node_id) if session and is_alive else None

    async def _enter(self, place: NodePlace) -> None:
        """Begin with another node's rows, after those of the one before it were sealed."""
        await self._load()
        if place == self._place:
            return
        await self.seal()
        self._place, self._rows = place, []
        self._next_metrics, self._failures = 0.0, 0
        await asyncio.to_thread(self._journal.begin, place, ())

    async def _load(self) -> None:
        """Take over what an earlier life left, once."""
        async with self._sealing:
            if self._is_loaded:
                return
            await asyncio.to_thread(self._sealed.take_over)
            if left := await asyncio.to_thread(self._journal.load):
                self._place, self._rows = left
            self._is_loaded = True

    async def _look_at_ray(self, session: Path, node_id: str) -> RayMetrics | None:
        """Ray's metrics, unless it is too early to burden its agent again."""
        began = self._clock.steady()
        if began < self._next_metrics:
            return None
        metrics = await self._observe(session, node_id)
        took = self._clock.steady() - began
        cost = max(1.0, took / LIGHT_SECONDS, (metrics.size if metrics else 0) / LIGHT_BYTES)
        self._failures = 0 if metrics else self._failures + 1
        pause = STEP_SECONDS * max(cost, 2.0 ** min(self._failures - 1, 5))
        # A little less than a whole step: looks come by the clock on the wall, which is not exact.
        self._next_metrics = began + min(pause, MAX_PAUSE_SECONDS) - STEP_SECONDS / 2
        return metrics

    async def _look_at_machine(self) -> MachineFigures:
        """One look at a time: a disk that hangs holds one thread, and not one more with each row."""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.ensure_future(asyncio.to_thread(self._machine.look))
        done, _ = await asyncio.wait([self._looking], timeout=MACHINE_SECONDS)
        return self._looking.result() if done else MachineFigures()

    async def _seal_rows(self, place: NodePlace, rows: tuple[Sample, ...]) -> bool:
        """Whether the block of these rows is on disk."""
        segment = await asyncio.to_thread(self._segment, place, rows)
        try:
            await asyncio.to_thread(self._sealed.write, segment)
        except OSError as exc:
            if not self._is_disk_full:
                log.warning("samples cannot be sealed, they wait in memory", cause=str(exc))
            self._is_disk_full = True
            return False
        self._is_disk_full = False
        self._last_sealed = _Sealed(place, segment.key, rows)
        await self._uploads.add(segment.key, len(segment.data))
        return True

    def _segment(self, place: NodePlace, rows: tuple[Sample, ...]) -> Segment:
        block = to_block(rows)
        session = SessionId(self._settings.namespace, self._settings.cluster, place[0])
        # The same rows have the same key: what a crash has sealed twice is stored once.
        return Segment(SamplesKey(session, place[1], block.start * NS, block.rows).key, encode_block(block))

    def _limit_rows(self) -> None:
        lost = max(0, len(self._rows) - MAX_ROWS)
        self._rows = self._rows[lost:]
        self._metrics.samples_lost.inc(lost)


async def _listens(session: SessionOnDisk) -> bool:
    return await asyncio.to_thread(raylet_listens, session.path) is True


def _first_hour(rows: Sequence[Sample]) -> Sequence[Sample]:
    """The rows before the first one of another hour."""
    hour = hour_start(rows[0].at)
    end = next((place for place, row in enumerate(rows) if hour_start(row.at) != hour), len(rows))
    return rows[:end]


def _encoded(rows: Sequence[Sample]) -> bytes:
    """The block of the last hour's rows."""
    newest = _first_hour(rows[::-1])[::-1] if rows else ()
    return encode_block(to_block(newest), TAIL_LEVEL) if newest else b""
