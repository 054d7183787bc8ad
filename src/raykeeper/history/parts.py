"""What the history server is made of, as everything that answers requests is given it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from raykeeper.history.addressing import LATEST
from raykeeper.history.asked import Asked, ClusterFacts, Database, MetricsLinks, Session
from raykeeper.history.catalog import Catalog
from raykeeper.history.heartbeats import Heartbeats
from raykeeper.history.ingest.sessions import SessionMissing
from raykeeper.history.kuberayapi.live import LiveSessions, Presence
from raykeeper.history.logs.logstore import LogStore
from raykeeper.history.metrics import HistoryMetrics
from raykeeper.history.pages.dashboard import DashboardFiles
from raykeeper.history.settings import AccessSettings
from raykeeper.layout.keys import SessionId


class Sessions(Protocol):
    async def open(self, session: SessionId) -> Session:
        """The session, ready to be read."""
        ...


@dataclass(frozen=True)
class Parts:
    """What the server is made of; `main.py` builds the real ones."""

    catalog: Catalog
    heartbeats: Heartbeats
    sessions: Sessions
    database: Database
    logs: LogStore
    dashboard: DashboardFiles
    access: AccessSettings = field(default_factory=AccessSettings)
    links: MetricsLinks = field(default_factory=MetricsLinks)
    metrics: HistoryMetrics = field(default_factory=HistoryMetrics)
    kubernetes: ClusterFacts | None = None
    presence: Presence | None = None
    """Tells which RayClusters are gone; None where there is no Kubernetes to ask."""

    @property
    def live(self) -> LiveSessions:
        return LiveSessions(self.catalog, self.heartbeats, self.presence)

    async def ask(self, session: SessionId) -> Asked:
        """The session and the means to read it. Raises SessionMissing."""
        await self.check_known(session)
        return Asked(await self.sessions.open(session), self.database, self.logs, self.links, self.kubernetes)

    async def resolve(self, session: SessionId) -> SessionId:
        """The session that `latest` means now, where no redirect can lead to it."""
        if session.session != LATEST:
            return session
        return await self.catalog.newest_of_cluster(session.namespace, session.cluster) or session

    async def check_known(self, session: SessionId) -> None:
        """Raises SessionMissing where the store has nothing of the session."""
        if not await self.catalog.is_known(session):
            raise SessionMissing(session)
