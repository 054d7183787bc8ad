"""Which RayJobs never had a cluster: found in the background, so that no page waits for a listing of everything."""

from __future__ import annotations

from dataclasses import dataclass

from raykeeper.clock import Clock
from raykeeper.history.store.background_look import BackgroundLook
from raykeeper.history.store.kube_facts import names_in
from raykeeper.history.store.rayjobs import RayJobReader, newest_first
from raykeeper.layout.keys import RAYJOBS_PREFIX, RayJobId, namespace_prefix
from raykeeper.layout.rayjobs import RayJobRecord
from raykeeper.storage.store import ObjectStore

MOST_RAYJOBS = 10_000
"""Records that one look goes through."""
MOST_LISTED = 500
"""Of those found, some 3 KB each; the others are counted."""
_READ_TOGETHER = 256


@dataclass(frozen=True)
class RayJobsWithoutCluster:
    """RayJobs for which no cluster was ever there."""

    newest: tuple[RayJobRecord, ...] = ()
    count: int = 0
    """Of all that were found."""
    is_complete: bool = False
    """Whether all RayJobs were looked at."""


class UnstartedRayJobs:
    """Knows the RayJobs of a store that were refused, or wait, before there was a cluster of theirs.

    One that had a cluster is not looked at again, so that only the first look costs a request for each.
    """

    def __init__(self, store: ObjectStore, clock: Clock, *, most: int = MOST_RAYJOBS) -> None:
        self._store = store
        self._reader = RayJobReader(store)
        self._most = most
        self._started: set[RayJobId] = set()
        self.known_within = BackgroundLook("RayJobs", self._find_all, clock, RayJobsWithoutCluster()).known_within

    async def _find_all(self) -> RayJobsWithoutCluster:
        newest: tuple[RayJobRecord, ...] = ()
        started, seen, count = set[RayJobId](), 0, 0
        for namespace in await names_in(self._store, RAYJOBS_PREFIX):
            ids = await self._reader.ids(namespace, self._most - seen)
            seen += len(ids)
            started |= self._started.intersection(ids)
            found = await self._without_cluster(namespace, [id_ for id_ in ids if id_ not in started], started)
            count += len(found)
            newest = newest_first([*newest, *found])[:MOST_LISTED]
        self._started = started
        return RayJobsWithoutCluster(newest, count, is_complete=seen < self._most)

    async def _without_cluster(self, namespace: str, ids: list[RayJobId], started: set[RayJobId]) -> list[RayJobRecord]:
        """Those of them for which no cluster was ever there; the others are added to `started`."""
        if not ids:
            return []
        clusters = frozenset(await names_in(self._store, namespace_prefix(namespace)))
        found = list[RayJobRecord]()
        for start in range(0, len(ids), _READ_TOGETHER):
            for record in await self._reader.read(ids[start : start + _READ_TOGETHER]):
                had_own = not record.is_on_selected_cluster and not clusters.isdisjoint(record.clusters)
                if record.has_run or had_own:
                    started.add(RayJobId(record.namespace, record.name, record.uid))
                else:
                    found.append(record)
        return found
