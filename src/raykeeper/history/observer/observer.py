"""The observer's work while it leads: watch, record, write, close. Made and run once for each time it leads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from raykeeper.api import labels
from raykeeper.api.meta import Object, ObjectKey, Resource
from raykeeper.api.raycluster import RAY_CLUSTERS
from raykeeper.api.rayjob import RAY_JOBS
from raykeeper.clock import Clock
from raykeeper.errors import RaykeeperError
from raykeeper.history.observer.closer import Closer, ClosingPace, Notes
from raykeeper.history.observer.facts import KUBE_EVENTS, KubeEvent, cluster_id
from raykeeper.history.observer.metrics import ObserverMetrics
from raykeeper.history.observer.outbox import Outbox, OutboxLimits
from raykeeper.history.observer.rayjob_writer import RayJobPace, RayJobWriter
from raykeeper.history.observer.rayjobs import RayJobs, RayJobSink
from raykeeper.history.observer.recorder import Recorder
from raykeeper.history.observer.roster import Roster
from raykeeper.history.observer.session_ends import SessionEnds
from raykeeper.history.observer.writer import Writer
from raykeeper.history.store.heartbeats import StoreClock
from raykeeper.kube.client import Kube
from raykeeper.kube.informers.reflector import Reflector, Sink, WatchSettings
from raykeeper.kube.informers.watch import Selection
from raykeeper.kube.metrics import KubeMetrics
from raykeeper.kube.resources import PODS
from raykeeper.layout.keys import ClusterId
from raykeeper.logs import Log
from raykeeper.storage.store import ObjectStore

log = Log("raykeeper.history.observer")


class ClusterSink:
    """RayClusters."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._known: dict[ObjectKey, ClusterId] = {}

    def keys(self, namespace: str | None) -> list[ObjectKey]:
        return _of_namespace(self._known, namespace)

    def put(self, item: Object) -> None:
        id_, known = cluster_id(item), self._known.get(item.key)
        if known is not None and known != id_:
            self._recorder.cluster_gone(known)  # deleted and made again under the same name while we looked away
        self._known[item.key] = id_
        try:
            self._recorder.cluster_seen(item)
        except msgspec.ValidationError as exc:
            _tell("RayCluster", item, exc)

    def remove(self, key: ObjectKey) -> None:
        if (known := self._known.pop(key, None)) is not None:
            self._recorder.cluster_gone(known)


class PodSink:
    """Pods of Ray clusters."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._known: dict[ObjectKey, str] = {}

    def keys(self, namespace: str | None) -> list[ObjectKey]:
        return _of_namespace(self._known, namespace)

    def put(self, item: Object) -> None:
        uid, known = item.metadata.uid, self._known.get(item.key)
        if known is not None and known != uid:
            self._recorder.pod_gone(known)
        self._known[item.key] = uid
        try:
            self._recorder.pod_seen(item)
        except msgspec.ValidationError as exc:
            _tell("pod", item, exc)

    def remove(self, key: ObjectKey) -> None:
        if (known := self._known.pop(key, None)) is not None:
            self._recorder.pod_gone(known)


class EventSink:
    """Events. Their end means nothing: the API server forgets each after an hour."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def keys(self, _namespace: str | None) -> list[ObjectKey]:
        return []

    def put(self, item: KubeEvent) -> None:
        self._recorder.event_seen(item)

    def remove(self, _key: ObjectKey) -> None:
        return


def _of_namespace(known: dict[ObjectKey, ClusterId] | dict[ObjectKey, str], namespace: str | None) -> list[ObjectKey]:
    return [key for key in known if namespace is None or key.namespace == namespace]


def _tell(kind: str, item: Object, failure: msgspec.ValidationError) -> None:
    """A shape that the API server does not let pass today."""
    log.warning("object is not of the shape it should have", kind=kind, object=str(item.key), cause=str(failure))


O = TypeVar("O", bound=Object)  # noqa: E741 - reads as "object" beside T for "anything"

FLUSH_SECONDS = 4.0  # the election gives the work eight to end


@dataclass(frozen=True)
class ObserverServices:
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

    def __init__(self, services: ObserverServices, observer: str, may_write: Callable[[], bool]) -> None:
        store, clock, metrics = services.store, services.clock, services.metrics
        self._services = services
        roster, outbox = Roster(), Outbox(services.limits)
        self._roster = roster
        notes = Notes(store, observer, services.namespaces)
        ends = SessionEnds(store, StoreClock(store, clock))
        self._closer = Closer(roster, notes, ends, clock, metrics, may_write, services.pace)
        self._writer = Writer(outbox, store, clock, metrics)
        rayjobs = RayJobs(clock)
        pace = RayJobPace(services.limits.settle_seconds)
        self._rayjob_writer = RayJobWriter(
            rayjobs, store, observer, services.namespaces, clock, metrics, may_write, pace
        )
        recorder = Recorder(roster, outbox, rayjobs, clock, self._closer.look_at)
        # A selector keeps other people's pods from being sent to us; Events cannot be selected that way.
        self._living = [
            *self._reflectors(RAY_CLUSTERS, ClusterSink(recorder)),
            *self._reflectors(PODS, PodSink(recorder), labels.CLUSTER),
        ]
        self._rayjobs = self._reflectors(RAY_JOBS, RayJobSink(rayjobs))
        self._events = self._reflectors(KUBE_EVENTS, EventSink(recorder))

    async def run(self) -> None:
        """Observe until cancelled; then write what still waits."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._writer.run(), name="writer of kubernetes facts")
                for reflector in self._living:
                    group.create_task(reflector.run(), name=f"watch of {reflector.selection}")
                group.create_task(self._follow_rayjobs(group), name="records of RayJobs")
                for reflector in self._living:
                    await reflector.synced.wait()
                log.info(
                    "observing", clusters=len(self._roster.present()), namespaces=self._services.namespaces or "all"
                )
                # Only now, so that each Event finds its cluster, and nothing is taken for gone that was not listed yet.
                for events in self._events:
                    group.create_task(events.run(), name=f"watch of {events.selection}")
                group.create_task(self._closer.run(), name="closer of sessions")
        finally:
            await self._flush()

    async def _follow_rayjobs(self, group: asyncio.TaskGroup) -> None:
        """Nothing else waits for them: a role of before lacks the right to see RayJobs."""
        for reflector in self._rayjobs:
            group.create_task(reflector.run(), name=f"watch of {reflector.selection}")
        for reflector in self._rayjobs:
            await reflector.synced.wait()
        await self._rayjob_writer.run()

    async def _flush(self) -> None:
        try:
            async with asyncio.timeout(FLUSH_SECONDS):
                await asyncio.gather(self._writer.flush(), self._rayjob_writer.write_due(all_of_it=True))
        except (RaykeeperError, TimeoutError) as exc:
            log.warning("last kubernetes facts are not written", cause=str(exc) or "no answer in time")

    def _reflectors(self, resource: Resource[O], sink: Sink[O], selector: str | None = None) -> list[Reflector[O]]:
        services = self._services
        places: list[str | None] = [*services.namespaces] or [None]
        return [
            Reflector(
                services.kube,
                Selection(resource, place, selector),
                sink,
                services.kube_metrics,
                WatchSettings(),
                services.clock,
            )
            for place in places
        ]
