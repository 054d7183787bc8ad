"""What Kubernetes said about one cluster, read back from the store: newest segments first, each segment once, up to
limits.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar

from raykeeper.history.bounded import Bounded
from raykeeper.history.store.rayjobs import RayJobReader
from raykeeper.layout.keys import DATA_PREFIX, ClusterId, KubeFactsKey, namespace_prefix, parse_kube_facts_key
from raykeeper.layout.kube_facts import (
    OBJECT_LIMIT_BYTES,
    ClusterFact,
    DecodedFacts,
    EventFact,
    KubeFact,
    LossFact,
    PodFact,
    decode_facts,
    says_the_same,
)
from raykeeper.layout.names import from_segment
from raykeeper.layout.rayjobs import RayJobRecord
from raykeeper.logs import Log
from raykeeper.storage.errors import ObjectTooLarge
from raykeeper.storage.store import ObjectStat, ObjectStore

_F = TypeVar("_F", PodFact, EventFact, ClusterFact, LossFact)


@dataclass(frozen=True)
class KubeFacts:
    """What is known of one cluster (one uid) from Kubernetes."""

    pods: tuple[PodFact, ...] = ()
    """Every state of every pod that differs from the one before, by time."""
    events: tuple[EventFact, ...] = ()
    """Each Event once, as it was last seen, by the time it last happened."""
    cluster: ClusterFact | None = None
    """The RayCluster as it was last seen."""
    rayjobs: tuple[RayJobRecord, ...] = ()
    """RayJobs that had this cluster, newest first."""
    lost_pods: int = 0
    """States of pods that the observer saw and could not keep."""
    lost_events: int = 0
    """Events that the observer saw and could not keep."""
    unread_segments: int = 0
    """Older ones that were left out because newer ones reached the limit."""
    unreadable: int = 0
    """Damaged lines and segments."""

    @property
    def is_empty(self) -> bool:
        return not (self.pods or self.events or self.cluster or self.rayjobs)

    @property
    def is_complete(self) -> bool:
        """Whether everything the observer saw is here."""
        return not (self.lost_pods or self.lost_events or self.unread_segments or self.unreadable)


def merge_facts(segments: Iterable[DecodedFacts], *, unread_segments: int = 0) -> KubeFacts:
    """One account of all segments, in whatever order they come; repeats, as after a restart, change nothing."""
    decoded = list(segments)
    facts = [fact for segment in decoded for fact in segment.facts]
    losses = set(_of(facts, LossFact))
    return KubeFacts(
        pods=_changes(_of(facts, PodFact)),
        events=_newest_events(_of(facts, EventFact)),
        cluster=max(_of(facts, ClusterFact), key=_when, default=None),
        lost_pods=sum(loss.pods for loss in losses),
        lost_events=sum(loss.events for loss in losses),
        unread_segments=unread_segments,
        unreadable=sum(segment.unreadable for segment in decoded),
    )


def newest_pods(pods: Iterable[PodFact]) -> tuple[PodFact, ...]:
    """Each pod as it was last seen, in the order in which they were first."""
    newest: dict[str, PodFact] = {}
    for pod in sorted(pods, key=_when):
        newest[pod.uid] = pod
    return tuple(newest.values())


def _of(facts: Iterable[KubeFact], kind: type[_F]) -> list[_F]:
    return [fact for fact in facts if isinstance(fact, kind)]


def _changes(pods: Iterable[PodFact]) -> tuple[PodFact, ...]:
    last: dict[str, PodFact] = {}
    changes = []
    for pod in sorted(pods, key=_when):
        if not says_the_same(last.get(pod.uid), pod):
            changes.append(pod)
            last[pod.uid] = pod
    return tuple(changes)


def _newest_events(events: Iterable[EventFact]) -> tuple[EventFact, ...]:
    newest: dict[str, EventFact] = {}
    for event in events:
        known = newest.get(event.uid)
        if known is None or (event.count, event.at) > (known.count, known.at):
            newest[event.uid] = event
    return tuple(sorted(newest.values(), key=lambda event: (event.at, event.uid)))


def _when(fact: PodFact | ClusterFact) -> tuple[datetime, bool, str]:
    """By time; an end comes after what was seen at the same moment."""
    return fact.at, fact.deleted, fact.uid


_ASKED_AT_ONCE = 16
MOST_CLUSTERS = 10_000


@dataclass(frozen=True)
class ClustersWithFacts:
    """Some clusters, in order."""

    found: tuple[ClusterId, ...]
    is_complete: bool
    """Whether these are all."""


async def clusters_with_facts(
    store: ObjectStore, namespace: str | None = None, *, limit: int = MOST_CLUSTERS
) -> ClustersWithFacts:
    """The clusters of one namespace, or of all, up to `limit`: one listing for each name of a cluster."""
    found = list[ClusterId]()
    async for names in names_of_clusters(store, namespace):
        for clusters in await asyncio.gather(*(incarnations_of(store, *name) for name in names)):
            found += clusters
        if len(found) > limit:
            return ClustersWithFacts(tuple(found[:limit]), is_complete=False)
    return ClustersWithFacts(tuple(found), is_complete=True)


async def names_of_clusters(store: ObjectStore, namespace: str | None = None) -> AsyncIterator[list[tuple[str, str]]]:
    """Namespace and name of every cluster with data, some at a time."""
    namespaces = [namespace] if namespace is not None else await names_in(store, DATA_PREFIX)
    for one in namespaces:
        clusters = await names_in(store, namespace_prefix(one))
        for start in range(0, len(clusters), _ASKED_AT_ONCE):
            yield [(one, cluster) for cluster in clusters[start : start + _ASKED_AT_ONCE]]


async def incarnations_of(store: ObjectStore, namespace: str, cluster: str) -> list[ClusterId]:
    """All clusters that had that name and that Kubernetes said something about."""
    uids = await names_in(store, KubeFactsKey.folder(namespace, cluster))
    return [ClusterId(namespace, cluster, uid) for uid in uids]


async def names_in(store: ObjectStore, prefix: str) -> list[str]:
    """Names of the folders there; what the layout does not write is passed over."""
    names = []
    for folder in await store.list_folders(prefix):
        try:
            names.append(from_segment(folder))
        except ValueError:
            continue
    return names


_READ_AT_ONCE = 8  # each may take some ten megabytes while it is read
_FACT_BYTES = 1024

log = Log("raykeeper.history.kubefacts")


@dataclass(frozen=True)
class ReadingLimits:
    """How much of a cluster is read. What is older is left out, and counted."""

    facts: int = 50_000
    """Of one cluster; about 1 KB of memory each. A busy cluster of 1,000 pods makes some 5,000 in a day."""
    segments: int = 5_000
    """Of one cluster."""
    remembered_facts: int = 200_000
    """Of all clusters together, to be read from memory the next time; a long one counts as several."""


class KubeFactsReader:
    """Accounts of clusters. Segments never change, so each is fetched once as long as it is remembered."""

    def __init__(self, store: ObjectStore, limits: ReadingLimits | None = None) -> None:
        self._store = store
        self._limits = limits or ReadingLimits()
        self._segments: Bounded[str, DecodedFacts] = Bounded(self._limits.remembered_facts)
        self._reads = asyncio.Semaphore(_READ_AT_ONCE)
        self.rayjobs = RayJobReader(store)

    async def read(self, namespace: str, cluster: str, uid: str) -> KubeFacts:
        """Everything that is known of the cluster with that uid, up to the limits; empty where nothing is."""
        newest, unread = await self._list(KubeFactsKey.prefix(namespace, cluster, uid))
        taken, facts = list[DecodedFacts](), 0
        while newest and facts < self._limits.facts:
            some = [newest.pop() for _ in range(min(_READ_AT_ONCE, len(newest)))]
            decoded = await asyncio.gather(*map(self._segment, some))
            taken += decoded
            facts += sum(map(_weight, decoded))
        rayjobs = await self.rayjobs.of_cluster(namespace, cluster)
        merged = await asyncio.to_thread(merge_facts, taken, unread_segments=unread + len(newest))
        return replace(merged, rayjobs=rayjobs)

    async def _list(self, prefix: str) -> tuple[deque[ObjectStat], int]:
        """The newest segments, oldest first, and how many there are beside them."""
        newest: deque[ObjectStat] = deque(maxlen=self._limits.segments)
        seen = 0
        async for stat in self._store.list(prefix):
            if parse_kube_facts_key(stat.key):
                newest.append(stat)
                seen += 1
        return newest, seen - len(newest)

    async def _segment(self, stat: ObjectStat) -> DecodedFacts:
        if (known := self._segments.get(stat.key)) is not None:
            return known
        try:
            async with self._reads:
                data = await self._store.find(stat.key, OBJECT_LIMIT_BYTES)
        except ObjectTooLarge as exc:
            log.warning("segment of kubernetes facts is too large to be one", key=stat.key, cause=str(exc))
            return DecodedFacts((), unreadable=1)
        if data is None:
            return DecodedFacts(())
        decoded = await asyncio.to_thread(decode_facts, data)
        self._segments.put(stat.key, decoded, _weight(decoded))
        return decoded


def _weight(decoded: DecodedFacts) -> int:
    """Of a segment in memory, in facts of the usual length."""
    return max(len(decoded.facts), decoded.text_bytes // _FACT_BYTES)


async def read_facts(store: ObjectStore, namespace: str, cluster: str, uid: str) -> KubeFacts:
    """The same, read once and not remembered."""
    return await KubeFactsReader(store, ReadingLimits(remembered_facts=0)).read(namespace, cluster, uid)
