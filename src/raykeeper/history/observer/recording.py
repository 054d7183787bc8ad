"""What a change of a cluster, a pod or an Event means for the history. No I/O; called by the watches."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime

from raykeeper.api import labels
from raykeeper.api.meta import Object
from raykeeper.clock import Clock
from raykeeper.history.observer.clusterfacts import RAY_GROUP, cluster_fact, cluster_id
from raykeeper.history.observer.coalescing import SeenFact
from raykeeper.history.observer.eventfacts import KubeEvent, event_fact
from raykeeper.history.observer.outbox import Outbox
from raykeeper.history.observer.podfacts import pod_fact
from raykeeper.history.observer.roster import Roster, ended
from raykeeper.history.observer.unplaced import KINDS, Unplaced
from raykeeper.layout.keys import ClusterId
from raykeeper.layout.kube_facts import EventFact

MOST_EVENTS = 50_000
"""Events whose last count is remembered, so that a list after a broken watch is not recorded again; some 10 MB."""

OnLife = Callable[[ClusterId], None]
"""Told of each cluster whose life may have begun or ended."""


class Recorder:
    """Turns what the watches show into facts, each once, under the cluster it belongs to."""

    def __init__(self, roster: Roster, outbox: Outbox, clock: Clock, on_life: OnLife) -> None:
        self._roster = roster
        self._outbox = outbox
        self._clock = clock
        self._on_life = on_life
        self._unplaced = Unplaced()
        self._events: OrderedDict[str, tuple[int, datetime]] = OrderedDict()

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
        self._events[f"{id_.uid} {fact.uid}"] = version
        self._events.move_to_end(f"{id_.uid} {fact.uid}")
        while len(self._events) > MOST_EVENTS:
            self._events.popitem(last=False)
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
