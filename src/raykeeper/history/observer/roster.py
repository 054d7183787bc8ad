"""Clusters and pods as they were last seen, and which cluster anything belongs to. No I/O."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

import msgspec

from raykeeper.history.bounded import Bounded
from raykeeper.history.observer.facts import is_living_head
from raykeeper.layout.keys import ClusterId
from raykeeper.layout.kube_facts import ClusterFact, PodFact, says_the_same

_Ended = TypeVar("_Ended", PodFact, ClusterFact)

MOST_GONE = 20_000
"""Uids of what is gone that are remembered, so that late Events about it find their cluster; some 5 MB."""


@dataclass
class _Cluster:
    id: ClusterId
    fact: ClusterFact | None = None
    """None while only pods of it were seen."""
    is_there: bool = False
    had_head: bool = False
    pods: dict[str, PodFact] = field(default_factory=dict)
    """Those that are there, by uid."""


@dataclass(frozen=True)
class Sight:
    """What is known of a cluster's life at this moment."""

    is_there: bool
    """The RayCluster is."""
    is_suspended: bool = False
    is_being_deleted: bool = False
    has_living_head: bool = False
    had_head: bool = False
    """A living head was seen, now or before."""


class Roster:
    """What is there, by uid. Facts go in and come out only if they say something new."""

    def __init__(self) -> None:
        self._clusters: dict[str, _Cluster] = {}
        self._pods: dict[str, ClusterId] = {}
        self._owned: dict[str, dict[ClusterId, None]] = {}
        self._gone: Bounded[str, tuple[ClusterId, ...]] = Bounded(MOST_GONE)

    def cluster_named(self, namespace: str, name: str) -> ClusterId | None:
        """The cluster that has this name now."""
        found = (one.id for one in self._clusters.values() if one.is_there)
        return next((id_ for id_ in found if (id_.namespace, id_.cluster) == (namespace, name)), None)

    def see_cluster(self, id_: ClusterId, fact: ClusterFact) -> bool:
        """Take over a cluster's state; whether that says anything new."""
        cluster = self._clusters.setdefault(id_.uid, _Cluster(id_))
        is_new = not says_the_same(cluster.fact, fact)
        cluster.fact, cluster.is_there = fact, True
        if fact.owner_uid:
            self._owned.setdefault(fact.owner_uid, {})[id_] = None
        return is_new

    def lose_cluster(self, uid: str) -> ClusterFact | None:
        """Take note that a cluster is not there any more; its last state."""
        cluster = self._clusters.get(uid)
        if cluster is None or not cluster.is_there or cluster.fact is None:
            return None
        cluster.is_there = False
        owner = cluster.fact.owner_uid
        if owner in self._owned:
            self._remember(owner, tuple(self._owned[owner]))
            self._owned[owner].pop(cluster.id, None)
            if not self._owned[owner]:
                del self._owned[owner]
        self._forget_if_empty(cluster)
        return cluster.fact

    def see_pod(self, id_: ClusterId, fact: PodFact) -> bool:
        """Take over a pod's state; whether that says anything new."""
        cluster = self._clusters.setdefault(id_.uid, _Cluster(id_))
        is_new = not says_the_same(cluster.pods.get(fact.uid), fact)
        cluster.pods[fact.uid], self._pods[fact.uid] = fact, id_
        cluster.had_head = cluster.had_head or is_living_head(fact)
        return is_new

    def lose_pod(self, uid: str) -> tuple[ClusterId, PodFact] | None:
        """Take note that a pod is not there any more; its cluster and its last state."""
        id_ = self._pods.pop(uid, None)
        if id_ is None:
            return None
        cluster = self._clusters[id_.uid]
        fact = cluster.pods.pop(uid)
        self._remember(uid, (id_,))
        self._forget_if_empty(cluster)
        return id_, fact

    def clusters_of(self, uid: str) -> tuple[ClusterId, ...]:
        """The clusters that something of this uid belongs to: itself, its pod, or all that it owns; else none."""
        if uid in self._pods:
            return (self._pods[uid],)
        if uid in self._clusters:
            return (self._clusters[uid].id,)
        if uid in self._owned:
            return tuple(self._owned[uid])
        return self._gone.get(uid) or ()

    def sight(self, uid: str) -> Sight:
        cluster = self._clusters.get(uid)
        if cluster is None:
            return Sight(is_there=False)
        fact = cluster.fact
        return Sight(
            is_there=cluster.is_there,
            is_suspended=fact is not None and fact.suspend,
            is_being_deleted=fact is not None and fact.deletion_requested_at is not None,
            has_living_head=any(map(is_living_head, cluster.pods.values())),
            had_head=cluster.had_head,
        )

    def present(self) -> list[ClusterId]:
        """The clusters that are there."""
        return [cluster.id for cluster in self._clusters.values() if cluster.is_there]

    def _forget_if_empty(self, cluster: _Cluster) -> None:
        if not cluster.is_there and not cluster.pods:
            del self._clusters[cluster.id.uid]
            self._remember(cluster.id.uid, (cluster.id,))

    def _remember(self, uid: str, clusters: tuple[ClusterId, ...]) -> None:
        self._gone.put(uid, clusters)


def ended(fact: _Ended, at: datetime) -> _Ended:
    """The last word about what is not there any more."""
    return msgspec.structs.replace(fact, at=at, deleted=True)
