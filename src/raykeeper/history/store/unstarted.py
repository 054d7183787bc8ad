"""Which clusters never had a session: found in the background, so that no page waits for a listing of everything."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass
from datetime import datetime

from raykeeper.clock import Clock
from raykeeper.history.store.background_look import BackgroundLook
from raykeeper.history.store.kube_facts import MOST_CLUSTERS, incarnations_of, names_of_clusters
from raykeeper.history.visibility import EVERYTHING, Visibility
from raykeeper.layout.keys import KUBE_FOLDER, ClusterId, KubeFactsKey, cluster_prefix, parse_kube_facts_key
from raykeeper.storage.store import ObjectStore
from raykeeper.times import from_ns

Name = tuple[str, str]
"""Namespace and name of a cluster."""


@dataclass(frozen=True)
class UnstartedCluster:
    namespace: str
    cluster: str
    first_at: datetime
    """When Kubernetes was first heard about it; about the newest, if more than one had that name."""


@dataclass(frozen=True)
class Unstarted:
    """Clusters without a session."""

    found: tuple[UnstartedCluster, ...] = ()
    """The newest first."""
    is_complete: bool = False
    """Whether these are all."""


class UnstartedClusters:
    """Knows the clusters of a store that Kubernetes told of and that have no session.

    A cluster that has one is not looked at again, so that only the first look costs a request for each.
    """

    def __init__(self, store: ObjectStore, clock: Clock, *, most_names: int = MOST_CLUSTERS) -> None:
        self._store = store
        self._most_names = most_names
        self._started: set[Name] = set()
        self._first_at: dict[ClusterId, datetime] = {}
        self._look = BackgroundLook("clusters", self._find_all, clock, Unstarted())
        self._visibility = EVERYTHING

    def seen_by(self, visibility: Visibility) -> UnstartedClusters:
        """The same without those of other namespaces; one look serves all."""
        view = copy(self)
        view._visibility = visibility
        return view

    async def known_within(self, seconds: float) -> Unstarted:
        """What is known at latest after so many seconds. Raises what the store raises."""
        known = await self._look.known_within(seconds)
        visible = tuple(one for one in known.found if self._visibility.sees(one.namespace))
        return Unstarted(visible, known.is_complete)

    async def _find_all(self) -> Unstarted:
        found, started, seen = list[UnstartedCluster](), set[Name](), 0
        async for names in names_of_clusters(self._store):
            started |= self._started.intersection(names)
            fresh = [name for name in names if name not in started]
            looks = await asyncio.gather(*map(self._first_heard, fresh))
            for name, (has_session, first_at) in zip(fresh, looks, strict=True):
                if has_session:
                    started.add(name)
                elif first_at is not None:
                    found.append(UnstartedCluster(*name, first_at))
            seen += len(names)
            if seen >= self._most_names:
                break
        found.sort(key=lambda one: one.first_at, reverse=True)
        self._started = started
        self._forget_others(found)
        return Unstarted(tuple(found), is_complete=seen < self._most_names)

    async def _first_heard(self, name: Name) -> tuple[bool, datetime | None]:
        """Whether the cluster has a session; if not, when Kubernetes first told of it."""
        folders = await self._store.list_folders(cluster_prefix(*name))
        if any(folder != KUBE_FOLDER for folder in folders):
            return True, None
        times = [await self._first_segment(one) for one in await incarnations_of(self._store, *name)]
        return False, max((time for time in times if time), default=None)

    async def _first_segment(self, cluster: ClusterId) -> datetime | None:
        if (known := self._first_at.get(cluster)) is not None:
            return known
        async for stat in self._store.list(KubeFactsKey.prefix(cluster.namespace, cluster.cluster, cluster.uid)):
            if key := parse_kube_facts_key(stat.key):
                self._first_at[cluster] = from_ns(key.recorded_ns)
                return self._first_at[cluster]
        return None

    def _forget_others(self, found: Iterable[UnstartedCluster]) -> None:
        names = {(one.namespace, one.cluster) for one in found}
        self._first_at = {id_: at for id_, at in self._first_at.items() if (id_.namespace, id_.cluster) in names}
