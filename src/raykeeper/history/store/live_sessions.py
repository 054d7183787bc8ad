"""Which sessions KubeRay calls `live`: those of clusters that are there, by heartbeats and, where it can be asked, by
Kubernetes, which knows of a deleted cluster while its pods still end.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Protocol

from raykeeper.history.store.catalog import Catalog
from raykeeper.history.store.catalog_entries import CatalogEntry
from raykeeper.history.store.heartbeats import Heartbeats
from raykeeper.history.store.session_list import SessionList, SessionsRequest
from raykeeper.history.store.session_state import State
from raykeeper.layout.keys import SessionId


class Presence(Protocol):
    """Kubernetes, asked about RayClusters."""

    async def is_gone(self, namespace: str, cluster: str, uid: str) -> bool:
        """Whether there is no such RayCluster any more; False where nobody can tell."""
        ...


@dataclass(frozen=True)
class ListedSessions:
    """All sessions as KubeRay lists them."""

    live: tuple[CatalogEntry, ...]
    stored: tuple[CatalogEntry, ...]


@dataclass(frozen=True)
class LiveSessions:
    catalog: Catalog
    heartbeats: Heartbeats
    presence: Presence | None = None

    async def is_live(self, session: SessionId) -> bool:
        """Whether the session runs and its cluster is there."""
        if await self.heartbeats.is_over(session):
            return False
        entry = await self.catalog.find(session)
        return not await self._is_gone(session, entry.start.cluster_uid if entry else "")

    async def list(self, limit: int) -> ListedSessions:
        """Those of running clusters, one for each, and the newest of the rest; newest first."""
        sessions = SessionList(self.catalog, self.heartbeats)
        running = await sessions.rows(SessionsRequest(limit, state=State.RUNNING))
        entries = [row.entry for row in running.rows]
        gone = await asyncio.gather(*(self._is_gone(entry.id, entry.start.cluster_uid) for entry in entries))
        live = _newest_of_each([entry for entry, is_gone in zip(entries, gone, strict=True) if not is_gone])
        known = {entry.id for entry in live}
        newest = await sessions.rows(SessionsRequest(limit + len(live)))
        stored = [row.entry for row in newest.rows if row.entry.id not in known]
        return ListedSessions(tuple(live), tuple(stored[:limit]))

    async def _is_gone(self, session: SessionId, uid: str) -> bool:
        return self.presence is not None and await self.presence.is_gone(session.namespace, session.cluster, uid)


def _newest_of_each(entries: list[CatalogEntry]) -> list[CatalogEntry]:
    """Of each cluster the first: another one of it crashed a moment ago and only seems to run."""
    by_cluster: dict[tuple[str, str], CatalogEntry] = {}
    for entry in entries:
        by_cluster.setdefault((entry.id.namespace, entry.id.cluster), entry)
    return list(by_cluster.values())
