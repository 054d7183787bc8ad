"""Writes Kubernetes Events (events.k8s.io/v1) in the background: reporting one never blocks and never fails."""

from __future__ import annotations

import asyncio
import itertools
import math

from raykeeper.api.meta import ObjectKey
from raykeeper.backoff import Backoff
from raykeeper.clock import Clock
from raykeeper.errors import RaykeeperError, Unavailable
from raykeeper.kube.client import Kube
from raykeeper.kube.errors import AlreadyExists, ApiError, NotFound, TooManyRequests
from raykeeper.kube.events.ledger import EventLedger, EventLimits
from raykeeper.kube.events.series import EventType, ObjectRef, Occurrence, Series, desired_count, desired_event
from raykeeper.kube.metrics import KubeMetrics
from raykeeper.kube.resources import EVENTS
from raykeeper.logs import Log

log = Log("raykeeper.kube.events")

# A small part of what a two-core API server bears, and enough for ten failing clusters at once.
EVENT_QPS, EVENT_BURST = 20.0, 50
WRITERS = 8
"""Namespaces whose Events are written at the same time, one after the other in each: a webhook that is slow or down in
one of them holds up its own."""
# About two minutes in all: as long as a restart of the API server may take. Others of the namespace wait meanwhile.
RETRIES = 6
RETRY_PAUSE = Backoff(base=1.0, limit=30.0, jitter=0.2)
FLUSH_SECONDS = 1.5  # of the 10 that KubeRay's chart gives a pod to end; an Event is worth no more


class EventWriter:
    """Takes Events from any number of recorders and writes them under its own rate budget."""

    def __init__(
        self, kube: Kube, instance: str, *, clock: Clock, metrics: KubeMetrics, limits: EventLimits | None = None
    ) -> None:
        self._kube = kube.with_budget(EVENT_QPS, EVENT_BURST, connections=WRITERS)
        self._instance = instance
        self._clock = clock
        self._written = metrics.events_written
        self._dropped = metrics.events_dropped
        self._ledger = EventLedger(self._drop, limits)
        self._wake = asyncio.Event()
        self._told: set[str] = set()
        self._writing: dict[str, asyncio.Task[None]] = {}  # by namespace

    def recorder(self, controller: str) -> EventRecorder:
        """A recorder that reports in the name of a controller, such as `raycluster-controller`."""
        return EventRecorder(self, controller)

    def record(self, occurrence: Occurrence) -> None:
        """Take an occurrence to be written later; above the limits it is dropped and counted."""
        self._ledger.record(occurrence, self._clock.steady(), self._clock.now())
        self._wake.set()

    async def run(self) -> None:
        """Write Events until cancelled; then what is left, for `FLUSH_SECONDS` at most."""
        try:
            while True:
                self._start_due(self._clock.steady(), RETRIES)
                await self._wait()
        finally:
            await self._stop()
            await self._flush()

    def _start_due(self, steady: float, retries: int) -> None:
        """Begin to write what is due, in as many namespaces as there are writers."""
        while len(self._writing) < WRITERS and (series := self._ledger.next_write(steady, self._writing)):
            name = f"event in {series.namespace}"
            self._writing[series.namespace] = asyncio.create_task(self._settle(series, retries), name=name)

    async def _settle(self, series: Series, retries: int) -> None:
        try:
            await self._write(series, retries)
        except asyncio.CancelledError:
            self._ledger.put_back(series, self._clock.steady())
            raise
        except Exception:
            # The loop's top: an Event that breaks us must not take the others with it.
            log.exception("event not written", event=series.name)
            self._give_up(series, "bug")
        finally:
            self._writing.pop(series.namespace, None)
            self._wake.set()

    async def _wait(self) -> None:
        """Return when something was recorded or written, or a new count is due."""
        due = self._ledger.next_due(self._writing) if len(self._writing) < WRITERS else None
        try:
            async with asyncio.timeout(None if due is None else max(0.0, due - self._clock.steady())):
                await self._wake.wait()
        except TimeoutError:
            return
        self._wake.clear()

    async def _stop(self) -> None:
        """End what is being written; it is put back."""
        await asyncio.sleep(0)  # a writer that never began could not put its Event back
        writers = list(self._writing.values())
        for writer in writers:
            writer.cancel()
        await asyncio.gather(*writers, return_exceptions=True)
        self._writing.clear()

    async def _flush(self) -> None:
        try:
            async with asyncio.timeout(FLUSH_SECONDS):
                self._start_due(math.inf, retries=0)
                while self._writing:
                    await asyncio.wait(list(self._writing.values()), return_when=asyncio.FIRST_COMPLETED)
                    self._start_due(math.inf, retries=0)
        except TimeoutError:
            await self._stop()
            self._dropped.labels(cause="shutdown").inc(self._ledger.waiting())
            log.warning("events not written before the end", count=self._ledger.waiting())

    async def _write(self, series: Series, retries: int) -> None:
        """Create or update the Event; whatever the API server answers, the series is settled afterwards."""
        for attempt in itertools.count(1):
            try:
                await self._send(series)
            except (Unavailable, TooManyRequests) as exc:
                if attempt > retries:
                    self._refused(series, "unavailable", exc)
                    return
                await asyncio.sleep(max(RETRY_PAUSE.delay(attempt), exc.retry_after or 0.0))
            except RaykeeperError as exc:
                self._refused(series, _cause(exc), exc)
                return
            else:
                return

    async def _send(self, series: Series) -> None:
        count = series.count
        if series.is_written:
            try:
                await self._kube.merge_patch(EVENTS, ObjectKey(series.namespace, series.name), desired_count(series))
            except NotFound:
                # It outlived its time on the server (an hour by default), or someone deleted it: the story goes on.
                series.is_written = False
        if not series.is_written:
            await self._create(series)
        self._ledger.written(series, count, self._clock.steady())
        self._written.inc()

    async def _create(self, series: Series) -> None:
        try:
            await self._kube.create(EVENTS, desired_event(series, self._instance), series.namespace)
        except AlreadyExists:
            log.debug("event was created by an earlier try", event=series.name)

    def _refused(self, series: Series, cause: str, exc: RaykeeperError) -> None:
        if cause not in self._told:
            log.warning("events are dropped", cause=str(exc), event=series.name)
        self._told.add(cause)
        self._give_up(series, cause)

    def _give_up(self, series: Series, cause: str) -> None:
        self._ledger.forget(series)
        self._drop(cause)

    def _drop(self, cause: str) -> None:
        self._dropped.labels(cause=cause).inc()


class EventRecorder:
    """Reports Events of one controller."""

    def __init__(self, writer: EventWriter, controller: str) -> None:
        self._writer = writer
        self._controller = controller

    def normal(
        self, regarding: ObjectRef, reason: str, note: str, *, action: str = "", related: ObjectRef | None = None
    ) -> None:
        """Report that something went as it should."""
        self._record("Normal", regarding, reason, note, action, related)

    def warning(
        self, regarding: ObjectRef, reason: str, note: str, *, action: str = "", related: ObjectRef | None = None
    ) -> None:
        """Report something a person may have to look at."""
        self._record("Warning", regarding, reason, note, action, related)

    def _record(
        self, kind: EventType, regarding: ObjectRef, reason: str, note: str, action: str, related: ObjectRef | None
    ) -> None:
        occurrence = Occurrence(self._controller, regarding, kind, reason, action or reason, note, related)
        self._writer.record(occurrence)


def _cause(exc: RaykeeperError) -> str:
    """The label under which a refusal is counted and logged once."""
    if isinstance(exc, NotFound):
        return "namespace gone"
    return exc.reason.lower() if isinstance(exc, ApiError) else type(exc).__name__.lower()
