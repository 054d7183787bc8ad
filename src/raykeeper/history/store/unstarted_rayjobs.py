"""Which RayJobs never had a cluster: found in the background, so that no page waits for a listing of everything."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field

from raykeeper.clock import Clock
from raykeeper.history.store.background_look import BackgroundLook
from raykeeper.history.store.kube_facts import names_in
from raykeeper.history.store.rayjobs import RayJobReader, newest_first
from raykeeper.history.visibility import EVERYTHING, Visibility
from raykeeper.layout.keys import RAYJOBS_PREFIX, RayJobId, namespace_prefix
from raykeeper.layout.rayjobs import RayJobRecord
from raykeeper.storage.store import ObjectStore

MOST_RAYJOBS = 10_000
"""Records that one look goes through."""
MOST_LISTED = 500
"""Of those found in one namespace, and of all, some 3 KB each; the others are counted."""
_READ_TOGETHER = 256


@dataclass(frozen=True)
class RayJobsWithoutCluster:
    """RayJobs for which no cluster was ever there."""

    newest: tuple[RayJobRecord, ...] = ()
    count: int = 0
    """Of all that were found."""
    is_complete: bool = False
    """Whether all RayJobs were looked at."""


@dataclass(frozen=True)
class _OfNamespace:
    newest: tuple[RayJobRecord, ...]
    count: int


@dataclass(frozen=True)
class _Found:
    """What one look found."""

    by_namespace: Mapping[str, _OfNamespace] = field(default_factory=dict)
    is_complete: bool = False


class UnstartedRayJobs:
    """Knows the RayJobs of a store that were refused, or wait, before there was a cluster of theirs.

    One that had a cluster is not looked at again, so that only the first look costs a request for each.
    """

    def __init__(self, store: ObjectStore, clock: Clock, *, most: int = MOST_RAYJOBS) -> None:
        self._store = store
        self._reader = RayJobReader(store)
        self._most = most
        self._started: set[RayJobId] = set()
        self._look = BackgroundLook("RayJobs", self._find_all, clock, _Found())
        self._visibility = EVERYTHING

    def seen_by(self, visibility: Visibility) -> UnstartedRayJobs:
        """The same without those of other namespaces; one look serves all."""
        view = copy(self)
        view._visibility = visibility
        return view

    async def known_within(self, seconds: float) -> RayJobsWithoutCluster:
        """What is known at latest after so many seconds. Raises what the store raises."""
        known = await self._look.known_within(seconds)
        visible = [one for namespace, one in known.by_namespace.items() if self._visibility.sees(namespace)]
        newest = newest_first(record for one in visible for record in one.newest)[:MOST_LISTED]
        return RayJobsWithoutCluster(newest, sum(one.count for one in visible), known.is_complete)

    async def _find_all(self) -> _Found:
        by_namespace = dict[str, _OfNamespace]()
        started, seen = set[RayJobId](), 0
        for namespace in await names_in(self._store, RAYJOBS_PREFIX):
            ids = await self._reader.ids(namespace, self._most - seen)
            seen += len(ids)
            started |= self._started.intersection(ids)
            found = await self._without_cluster(namespace, [id_ for id_ in ids if id_ not in started], started)
            if found:
                by_namespace[namespace] = _OfNamespace(newest_first(found)[:MOST_LISTED], len(found))
        self._started = started
        return _Found(by_namespace, is_complete=seen < self._most)

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
