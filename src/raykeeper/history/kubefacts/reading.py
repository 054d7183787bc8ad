"""Reads what Kubernetes said about one cluster: newest segments first, as far as the limits go, each segment once."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from dataclasses import dataclass

from raykeeper.history.kubefacts.merged import KubeFacts, merge_facts
from raykeeper.layout.keys import KubeFactsKey, parse_kube_facts_key
from raykeeper.layout.kube_facts import DecodedFacts, decode_facts
from raykeeper.logs import Log
from raykeeper.storage.store import ObjectStat, ObjectStore

_READ_AT_ONCE = 16
_OVERSIZED_BYTES = 16 << 20  # the observer's largest is below 1 MB; a larger one is nobody's of ours

log = Log("raykeeper.history.kubefacts")


@dataclass(frozen=True)
class ReadingLimits:
    """How much of a cluster is read. What is older is left out, and counted."""

    facts: int = 50_000
    """Of one cluster; about 1 KB of memory each. A busy cluster of 1,000 pods makes some 5,000 in a day."""
    segments: int = 5_000
    """Of one cluster."""
    remembered_facts: int = 200_000
    """Of all clusters together, to be read from memory the next time."""


class KubeFactsReader:
    """Accounts of clusters. Segments never change, so each is fetched once as long as it is remembered."""

    def __init__(self, store: ObjectStore, limits: ReadingLimits | None = None) -> None:
        self._store = store
        self._limits = limits or ReadingLimits()
        self._segments: OrderedDict[str, DecodedFacts] = OrderedDict()
        self._remembered = 0
        self._reads = asyncio.Semaphore(_READ_AT_ONCE)

    async def read(self, namespace: str, cluster: str, uid: str) -> KubeFacts:
        """Everything that is known of the cluster with that uid, up to the limits; empty where nothing is."""
        newest, unread = await self._list(KubeFactsKey.prefix(namespace, cluster, uid))
        taken, facts = list[DecodedFacts](), 0
        while newest and facts < self._limits.facts:
            some = [newest.pop() for _ in range(min(_READ_AT_ONCE, len(newest)))]
            decoded = await asyncio.gather(*map(self._segment, some))
            taken += decoded
            facts += sum(len(segment.facts) for segment in decoded)
        return merge_facts(taken, unread_segments=unread + len(newest))

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
            self._segments.move_to_end(stat.key)
            return known
        if stat.size > _OVERSIZED_BYTES:
            log.warning("segment of kubernetes facts is too large to be one", key=stat.key, size=stat.size)
            return DecodedFacts((), unreadable=1)
        async with self._reads:
            data = await self._store.find(stat.key)
        if data is None:
            return DecodedFacts(())
        decoded = decode_facts(data)
        self._remember(stat.key, decoded)
        return decoded

    def _remember(self, key: str, decoded: DecodedFacts) -> None:
        if key not in self._segments:
            self._segments[key] = decoded
            self._remembered += len(decoded.facts)
        while self._remembered > self._limits.remembered_facts:
            _, forgotten = self._segments.popitem(last=False)
            self._remembered -= len(forgotten.facts)


async def read_facts(store: ObjectStore, namespace: str, cluster: str, uid: str) -> KubeFacts:
    """The same, read once and not remembered."""
    return await KubeFactsReader(store, ReadingLimits(remembered_facts=0)).read(namespace, cluster, uid)
