"""Which clusters Kubernetes said something about, also those whose head never started and that have no session."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

from raykeeper.layout.keys import DATA_PREFIX, ClusterId, KubeFactsKey, namespace_prefix
from raykeeper.layout.names import from_segment
from raykeeper.storage.store import ObjectStore

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
    namespaces = [namespace] if namespace is not None else await _names(store, DATA_PREFIX)
    for one in namespaces:
        clusters = await _names(store, namespace_prefix(one))
        for start in range(0, len(clusters), _ASKED_AT_ONCE):
            yield [(one, cluster) for cluster in clusters[start : start + _ASKED_AT_ONCE]]


async def incarnations_of(store: ObjectStore, namespace: str, cluster: str) -> list[ClusterId]:
    """All clusters that had that name and that Kubernetes said something about."""
    uids = await _names(store, KubeFactsKey.folder(namespace, cluster))
    return [ClusterId(namespace, cluster, uid) for uid in uids]


async def _names(store: ObjectStore, prefix: str) -> list[str]:
    """Names of the folders there; what the layout does not write is passed over."""
    names = []
    for folder in await store.list_folders(prefix):
        try:
            names.append(from_segment(folder))
        except ValueError:
            continue
    return names
