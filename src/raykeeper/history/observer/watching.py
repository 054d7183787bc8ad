"""The observer's work while it leads: watch, record, write, close. Made and run once for each time it leads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from raykeeper.api import labels
from raykeeper.api.meta import Object, Resource
from raykeeper.api.raycluster import RAY_CLUSTERS
from raykeeper.clock import Clock
from raykeeper.errors import RaykeeperError
from raykeeper.history.observer.closing import Closer, ClosingPace
from raykeeper.history.observer.eventfacts import KUBE_EVENTS
from raykeeper.history.observer.metrics import ObserverMetrics
from raykeeper.history.observer.notes import Notes
from raykeeper.history.observer.outbox import Outbox, OutboxLimits
from raykeeper.history.observer.recording import Recorder
from raykeeper.history.observer.roster import Roster
from raykeeper.history.observer.sessionends import SessionEnds
from raykeeper.history.observer.sinks import ClusterSink, EventSink, PodSink
from raykeeper.history.observer.writing import Writer
from raykeeper.history.storeclock import StoreClock
from raykeeper.kube.client import Kube
from raykeeper.kube.informers.reflector import Reflector, Sink, WatchSettings
from raykeeper.kube.informers.watch import Selection
from raykeeper.kube.metrics import KubeMetrics
from raykeeper.kube.resources import PODS
from raykeeper.logs import Log
from raykeeper.storage.store import ObjectStore

O = TypeVar("O", bound=Object)  # noqa: E741 - reads as "object" beside T for "anything"

FLUSH_SECONDS = 4.0  # the election gives the work five to end

log = Log("raykeeper.history.observer")


@dataclass(frozen=True)
class Surroundings:
    """What the observer is given."""

    kube: Kube
    store: ObjectStore
    clock: Clock
    kube_metrics: KubeMetrics
    metrics: ObserverMetrics
    namespaces: Sequence[str] = ()
    """Those that are watched; none stands for all."""
    limits: OutboxLimits = field(default_factory=OutboxLimits)
    """How much may wait, and how often a segment is made."""
    pace: ClosingPace = field(default_factory=ClosingPace)
    """How soon ends are written down."""


class Observer:
    """Everything between the API server's watches and the store."""

    def __init__(self, around: Surroundings, observer: str, may_write: Callable[[], bool]) -> None:
        store, clock, metrics = around.store, around.clock, around.metrics
        self._around = around
        roster, outbox = Roster(), Outbox(around.limits)
        self._roster = roster
        notes = Notes(store, observer, around.namespaces)
        ends = SessionEnds(store, StoreClock(store, clock))
        self._closer = Closer(roster, notes, ends, clock, metrics, may_write, around.pace)
        self._writer = Writer(outbox, store, clock, metrics)
        recorder = Recorder(roster, outbox, clock, self._closer.look_at)
        # A selector keeps other people's pods from being sent to us; Events cannot be selected that way.
        self._living = [
            *self._reflectors(RAY_CLUSTERS, ClusterSink(recorder)),
            *self._reflectors(PODS, PodSink(recorder), labels.CLUSTER),
        ]
        self._events = self._reflectors(KUBE_EVENTS, EventSink(recorder))

    async def run(self) -> None:
        """Observe until cancelled; then write what still waits."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._writer.run(), name="writer of kubernetes facts")
                for reflector in self._living:
                    group.create_task(reflector.run(), name=f"watch of {reflector.selection}")
                for reflector in self._living:
                    await reflector.synced.wait()
                log.info("observing", clusters=len(self._roster.present()), namespaces=self._around.namespaces or "all")
                # Only now, so that each Event finds its cluster, and nothing is taken for gone that was not listed yet.
                for events in self._events:
                    group.create_task(events.run(), name=f"watch of {events.selection}")
                group.create_task(self._closer.run(), name="closer of sessions")
        finally:
            await self._flush()

    async def _flush(self) -> None:
        try:
            async with asyncio.timeout(FLUSH_SECONDS):
                await self._writer.flush()
        except (RaykeeperError, TimeoutError) as exc:
            log.warning("last kubernetes facts are not written", cause=str(exc) or "no answer in time")

    def _reflectors(self, resource: Resource[O], sink: Sink[O], selector: str | None = None) -> list[Reflector[O]]:
        around = self._around
        places: list[str | None] = [*around.namespaces] or [None]
        return [
            Reflector(
                around.kube,
                Selection(resource, place, selector),
                sink,
                around.kube_metrics,
                WatchSettings(),
                around.clock,
            )
            for place in places
        ]
