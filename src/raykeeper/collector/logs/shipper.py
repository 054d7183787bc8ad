"""The log shipper: looks every few seconds, reads what is new into packs, puts them, remembers.

Looking goes on while a put waits for the bucket, so that files which are rotated away meanwhile are held open. All
state belongs to one thread of its own, the reader's; the event loop only puts.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, Protocol, TypeVar

from raykeeper.clock import Clock
from raykeeper.collector.bucket import ObjectRefused
from raykeeper.collector.logs.kinds import Kind
from raykeeper.collector.logs.looks import Scope
from raykeeper.collector.logs.losses import Losses
from raykeeper.collector.logs.plan import Queue, plan_flush, plan_turn
from raykeeper.collector.logs.reading import LogReader, Parcel
from raykeeper.collector.logs.settings import LogShipperSettings
from raykeeper.collector.logs.times import unix_ns
from raykeeper.collector.logs.tracked import Group
from raykeeper.collector.logs.tracker import LogTracker, Sessions
from raykeeper.collector.metrics import CollectorMetrics
from raykeeper.layout.keys import LogPackKey, SessionId
from raykeeper.layout.records import MissingLog
from raykeeper.logs import Log

COMPONENT_LOOK_SECONDS = 30.0
"""Between two looks at Ray's own logs and at sessions of the past, where their packs do not come sooner."""
FAILURE_PAUSE_SECONDS = 5.0
FLUSH_PASSES = 2
"""The second one is for what was written during the first."""

P = ParamSpec("P")
T = TypeVar("T")
log = Log("raykeeper.collector.logs")


class Bucket(Protocol):
    """Where packs go."""

    async def put(self, key: str, data: bytes) -> None:
        """Return once the bucket has it, however long that takes."""


class LogShipper:
    """Ships every log file of every session below Ray's folder. `run` goes on until cancelled; `flush` is the end."""

    def __init__(
        self, settings: LogShipperSettings, sessions: Sessions, bucket: Bucket, clock: Clock, metrics: CollectorMetrics
    ) -> None:
        self._settings = settings
        self._bucket = bucket
        self._clock = clock
        self._metrics = metrics
        self._losses = Losses(settings.unknown_node, metrics)
        self._tracker = LogTracker(settings, sessions, clock, self._losses)
        self._reader = LogReader(self._tracker, self._losses, clock)
        self._thread = ThreadPoolExecutor(1, "log-reader")
        self._sequence = itertools.count()
        self.sent_bytes = 0
        """Of log files that the bucket took since the start."""
        self._has_looked = asyncio.Event()
        self._putting = asyncio.Lock()
        self._is_flushing = False
        self._next_component_look = 0.0
        self._components_sent = float("-inf")
        metrics.watch(metrics.log_unsent_bytes, lambda: self.unsent_bytes)
        metrics.watch(metrics.log_unsent_seconds, lambda: self.oldest_unsent_seconds)

    @property
    def unsent_bytes(self) -> int:
        """Bytes seen in files that the bucket does not have."""
        return sum(file.unsent for file in tuple(self._tracker.news))

    @property
    def file_count(self) -> int:
        """Log files that are followed."""
        return len(self._tracker)

    @property
    def lost_bytes(self) -> int:
        """Bytes given up since the start."""
        return self._losses.lost_bytes

    @property
    def oldest_unsent_seconds(self) -> float:
        """How long the oldest unsent bytes have waited."""
        waits = [file.unsent_since for file in tuple(self._tracker.news) if file.unsent_since is not None]
        return self._clock.steady() - min(waits) if waits else 0.0

    async def run(self) -> None:
        """Look and ship until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._look_for_ever())
            tasks.create_task(self._ship_for_ever())

    async def send_all(self) -> None:
        """Ship all that is there now in the order of `flush`, which is to follow: daily turns come no more."""
        self._is_flushing = True
        async with self._putting:
            await self._flush_once()

    async def flush(self, deadline: float) -> tuple[MissingLog, ...]:
        """Ship what is left, the most wanted first, until `deadline` by the steady clock; what did not make it."""
        self._is_flushing = True
        try:
            async with asyncio.timeout(deadline - self._clock.steady()), self._putting:
                for _ in range(FLUSH_PASSES):
                    await self._flush_once()
        except TimeoutError:
            log.warning("logs are left behind", bytes=self.unsent_bytes)
        return tuple(missing for _, missing in await self.missing_logs())

    async def missing_logs(self) -> list[tuple[Group, MissingLog]]:
        """What the bucket does not have, by session and node."""
        return await self._in_thread(self._missing)

    async def close(self) -> None:
        """Close every file. Nothing may be called afterwards."""
        await self._in_thread(self._tracker.close)
        self._thread.shutdown(wait=False)

    async def look(self) -> None:
        """See what there is and what is new."""
        scope = Scope.USER
        if self._clock.steady() >= self._next_component_look:
            scope = Scope.ALL
            seldom = min(COMPONENT_LOOK_SECONDS, self._settings.component_tick_seconds)
            self._next_component_look = self._clock.steady() + seldom
        await self._in_thread(self._tracker.scan, scope)
        self._metrics.log_files.set(self.file_count)

    async def ship(self) -> None:
        """Put all that is new and due."""
        while not self._is_flushing:
            async with self._putting:
                kinds = self._due_kinds()
                parcel = await self._in_thread(self._next_parcel, kinds)
                if parcel is not None:
                    await self._deliver(parcel)
                    continue
            if Kind.COMPONENT in kinds:
                self._components_sent = self._clock.steady()
            return

    async def _look_for_ever(self) -> None:
        while True:
            try:
                await self.look()
            except Exception:
                log.exception("looking at logs failed")
            self._has_looked.set()
            await asyncio.sleep(self._settings.user_tick_seconds)

    async def _ship_for_ever(self) -> None:
        while True:
            await self._has_looked.wait()
            self._has_looked.clear()
            try:
                await self.ship()
            except Exception:
                log.exception("shipping logs failed")
                await asyncio.sleep(FAILURE_PAUSE_SECONDS)

    def _due_kinds(self) -> frozenset[Kind]:
        waited = self._clock.steady() - self._components_sent
        news = sum(file.unsent for file in tuple(self._tracker.news) if file.kind is Kind.COMPONENT)
        is_little = news < self._settings.quiet_component_bytes
        settings = self._settings
        interval = settings.quiet_component_tick_seconds if is_little else settings.component_tick_seconds
        return frozenset(Kind) if waited >= interval else frozenset({Kind.USER})

    def _next_parcel(self, kinds: frozenset[Kind]) -> Parcel | None:
        turn = plan_turn(self._tracker.news, kinds, self._clock.steady())
        if turn is not None:
            return self._reader.build(*turn, self._settings.pack_bytes, in_turn=True)
        return self._parcel_of_gaps() if Kind.COMPONENT in kinds else None

    def _parcel_of_gaps(self) -> Parcel | None:
        """A pack for what was given up where no file has news that it could go with."""
        group = next(iter(self._losses.groups), None)
        return None if group is None else self._reader.build(group, deque(), 0, in_turn=True)

    async def _deliver(self, parcel: Parcel) -> None:
        if parcel.data:
            try:
                await self._bucket.put(self._key(parcel.group), parcel.data)
            except ObjectRefused:
                # Its bytes stay unsent, and are told as missing at the end; other nodes' packs go on.
                await self._in_thread(self._reader.postpone, parcel)
                return
            self._metrics.log_packs.inc()
            self._metrics.log_pack_bytes.inc(len(parcel.data))
            self._metrics.log_bytes.inc(parcel.text_bytes)
            self.sent_bytes += parcel.text_bytes
        await self._in_thread(self._reader.commit, parcel)

    def _key(self, group: Group) -> str:
        session = SessionId(self._settings.namespace, self._settings.cluster, group.session)
        return LogPackKey(session, group.node_id, unix_ns(self._clock), next(self._sequence)).key

    async def _flush_once(self) -> None:
        limit = self._settings.flush_pack_bytes
        for group, ranges in await self._in_thread(self._look_for_flush):
            while ranges:
                await self._deliver(await self._in_thread(self._reader.build, group, ranges, limit, in_turn=False))
        while parcel := await self._in_thread(self._parcel_of_gaps):
            await self._deliver(parcel)

    def _look_for_flush(self) -> list[Queue]:
        self._tracker.scan(Scope.LAST)
        self._tracker.settle_nodes()
        return plan_flush(self._tracker.news)

    def _missing(self) -> list[tuple[Group, MissingLog]]:
        return [
            (
                file.group or Group(file.session, self._settings.unknown_node),
                MissingLog(path=file.name, offset=start, length=end - start),
            )
            for file in self._tracker.news
            for start, end in file.unsent_ranges
        ]

    async def _in_thread(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, partial(work, *args, **kwargs))
