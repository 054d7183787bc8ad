"""What a change of a cluster, a pod or an Event means for the history. No I/O; called by the watches."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime
from typing import Final

from raykeeper.api import labels
from raykeeper.api.meta import Object
from raykeeper.clock import Clock
from raykeeper.history.bounded import Bounded
from raykeeper.history.observer.facts import RAY_GROUP, KubeEvent, cluster_fact, cluster_id, event_fact, pod_fact
from raykeeper.history.observer.outbox import Outbox, SeenFact
from raykeeper.history.observer.rayjobs import RayJobs
from raykeeper.history.observer.roster import Roster, ended
from raykeeper.layout.keys import ClusterId
from raykeeper.layout.kube_facts import EventFact

KINDS: Final = frozenset({"Pod", "RayCluster", "RayJob", "RayService"})
"""What a Ray cluster's Events are about."""
HOLD_SECONDS = 300.0  # a RayJob's first Events come before its cluster is made, and a quota may hold that up
MOST_UNPLACED_EVENTS = 5_000  # most are about pods that have nothing to do with Ray; some 5 MB


class Unplaced:
    """The newest of such Events, by the uid they are about. What falls out is most likely nothing of ours."""

    def __init__(self) -> None:
        self._events: OrderedDict[str, tuple[float, EventFact]] = OrderedDict()
        self._about: dict[str, dict[str, None]] = {}

    def hold(self, event: EventFact, steady: float) -> None:
        """Keep an Event that has no cluster yet."""
        self._drop(event.uid)
        self._events[event.uid] = steady, event
        self._about.setdefault(event.about_uid, {})[event.uid] = None
        while len(self._events) > MOST_UNPLACED_EVENTS or self._oldest() < steady - HOLD_SECONDS:
            self._drop(next(iter(self._events)))

    def take(self, about_uid: str) -> list[EventFact]:
        """The Events about something that is known from now on."""
        uids = list(self._about.get(about_uid, ()))
        taken = [self._events[uid][1] for uid in uids]
        for uid in uids:
            self._drop(uid)
        return taken

    def _oldest(self) -> float:
        return next(iter(self._events.values()))[0]

    def _drop(self, uid: str) -> None:
        held = self._events.pop(uid, None)
        if held is None:
            return
        about = self._about[held[1].about_uid]
        about.pop(uid)
        if not about:
            del self._about[held[1].about_uid]

    def __len__(self) -> int:
        return len(self._events)


MOST_EVENTS = 50_000
"""Events whose last count is remembered, so that a list after a broken watch is not recorded again; some 10 MB."""

OnLife = Callable[[ClusterId], None]
"""Told of each cluster whose life may have begun or ended."""


class Recorder:
    """Turns what the watches show into facts, each once, under the cluster it belongs to."""

    def __init__(self, roster: Roster, outbox: Outbox, rayjobs: RayJobs, clock: Clock, on_life: OnLife) -> None:
        self._roster = roster
        self._rayjobs = rayjobs
        self._outbox = outbox
        self._clock = clock
        self._on_life = on_life
        self._unplaced = Unplaced()
        self._events: Bounded[str, tuple[int, datetime]] = Bounded(MOST_EVENTS)

    def cluster_seen(self, cluster: Object) -> None:
        id_, fact = cluster_id(cluster), cluster_fact(cluster, self._clock.now())
        if self._roster.see_cluster(id_, fact):
            self._record(id_, fact)
            self._place(id_, id_.uid, fact.owner_uid)
            self._on_life(id_)

    def cluster_gone(self, id_: ClusterId) -> None:
        if (fact := self._roster.lose_cluster(id_.uid)) is not None:
            self._record(id_, ended(fact, self._clock.now()))
            self._on_life(id_)

    def pod_seen(self, pod: Object) -> None:
        id_ = self._cluster_of(pod)
        if id_ is None:
            return
        fact = pod_fact(pod, self._clock.now())
        if self._roster.see_pod(id_, fact):
            self._record(id_, fact)
            self._place(id_, fact.uid)
            self._on_head(id_, fact.node_type)

    def pod_gone(self, uid: str) -> None:
        if (lost := self._roster.lose_pod(uid)) is not None:
            id_, fact = lost
            self._record(id_, ended(fact, self._clock.now()))
            self._on_head(id_, fact.node_type)

    def event_seen(self, event: KubeEvent) -> None:
        if event.involved_object.kind not in KINDS:
            return
        fact = event_fact(event, self._clock.now())
        if fact.about_kind == "RayJob":
            self._rayjobs.tell(fact)
        clusters = self._roster.clusters_of(fact.about_uid)
        for id_ in clusters:
            self._record_event(id_, fact)
        if not clusters:
            self._unplaced.hold(fact, self._clock.steady())

    def _place(self, id_: ClusterId, *uids: str) -> None:
        """Record the Events that came before what they are about."""
        for uid in uids:
            for event in self._unplaced.take(uid):
                self._record_event(id_, event)

    def _record_event(self, id_: ClusterId, fact: EventFact) -> None:
        version = fact.count, fact.at
        if self._events.get(f"{id_.uid} {fact.uid}") == version:
            return
        self._events.put(f"{id_.uid} {fact.uid}", version)
        self._record(id_, fact)

    def _record(self, id_: ClusterId, fact: SeenFact) -> None:
        self._outbox.add(id_, (fact,), self._clock.steady())

    def _on_head(self, id_: ClusterId, node_type: str) -> None:
        if node_type == labels.HEAD:
            self._on_life(id_)

    def _cluster_of(self, pod: Object) -> ClusterId | None:
        """By its owner, which is there when the cluster is gone already; else by its label."""
        meta = pod.metadata
        for owner in meta.owner_references:
            if owner.kind == "RayCluster" and owner.api_version.startswith(f"{RAY_GROUP}/"):
                return ClusterId(meta.namespace, owner.name, owner.uid)
        return self._roster.cluster_named(meta.namespace, meta.labels.get(labels.CLUSTER, ""))
