"""What the history server is made of, as everything that answers requests is given it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

import msgspec

from raykeeper.clock import Clock, SystemClock
from raykeeper.history.ingest.session import Session
from raykeeper.history.ingest.sessions import SessionMissing
from raykeeper.history.live_objects.model import LiveObjects, VisibleLiveObjects
from raykeeper.history.logs.store import LogStore
from raykeeper.history.metrics import HistoryMetrics
from raykeeper.history.prices import PriceList
from raykeeper.history.query.cache import ResponseCache
from raykeeper.history.query.context import ClusterFacts, Database, SessionContext
from raykeeper.history.retention.usage import read_usage
from raykeeper.history.retention_policy import RetentionPolicy
from raykeeper.history.samples.store import SampleStore
from raykeeper.history.settings import AccessSettings, GrafanaSettings
from raykeeper.history.store.background_look import BackgroundLooks
from raykeeper.history.store.catalog import Catalog
from raykeeper.history.store.heartbeats import Heartbeats
from raykeeper.history.store.live_sessions import LiveSessions, Presence
from raykeeper.history.urls import LATEST
from raykeeper.history.visibility import EVERYTHING, Visibility
from raykeeper.layout.keys import SessionId
from raykeeper.layout.retention import Usage


class Sessions(Protocol):
    async def open(self, session: SessionId) -> Session:
        """The session, ready to be read."""
        ...


@dataclass(frozen=True)
class History:
    """What the server is made of; `main.py` builds the real ones."""

    catalog: Catalog
    heartbeats: Heartbeats
    sessions: Sessions
    database: Database
    logs: LogStore
    access: AccessSettings = field(default_factory=AccessSettings)
    grafana: GrafanaSettings = field(default_factory=GrafanaSettings)
    metrics: HistoryMetrics = field(default_factory=HistoryMetrics)
    kubernetes: ClusterFacts | None = None
    cache: ResponseCache = field(default_factory=ResponseCache)
    samples: SampleStore | None = None
    prices: PriceList | None = None
    retention: RetentionPolicy | None = None
    """How long sessions are kept; None where this server removes nothing."""
    presence: Presence | None = None
    """Tells which RayClusters are gone; None where there is no Kubernetes to ask."""
    live_objects: LiveObjects | None = None
    """Ray's objects that exist now; None where Kubernetes is not asked for them."""
    clock: Clock = field(default_factory=SystemClock)
    looks: BackgroundLooks = field(default_factory=lambda: BackgroundLooks(SystemClock()))
    """What is counted over all sessions, while nobody waits."""
    read_to_end: Callable[[SessionId], Awaitable[None]] | None = None
    """Has a session read for its summary, by which retention knows how it went; None where nothing can be read."""
    visibility: Visibility = EVERYTHING
    """Of whom it is made for."""

    def seen_by(self, visibility: Visibility) -> History:
        """The history as somebody may see it: a session of another namespace is one that does not exist.

        What is remembered of the store is shared, and what is worked out over several sessions is not.
        """
        if visibility.is_everything:
            return self
        return replace(
            self,
            catalog=self.catalog.seen_by(visibility),
            sessions=_VisibleSessions(self.sessions, visibility),
            looks=self.looks.seen_by(visibility),
            live_objects=VisibleLiveObjects(self.live_objects, visibility) if self.live_objects else None,
            visibility=visibility,
        )

    @property
    def live(self) -> LiveSessions:
        return LiveSessions(self.catalog, self.heartbeats, self.presence)

    async def storage_usage(self) -> Usage | None:
        """What each namespace has in the store, by the last sweep; None where retention never ran."""
        usage, visibility = await read_usage(self.catalog.store), self.visibility
        if usage is None or visibility.is_everything:
            return usage
        visible = tuple(one for one in usage.namespaces if visibility.sees(one.namespace))
        return msgspec.structs.replace(usage, namespaces=visible, others=None, left_out=0)

    async def open(self, session: SessionId) -> SessionContext:
        """The session and the means to read it. Raises SessionMissing."""
        await self.check_known(session)
        opened = await self.sessions.open(session)
        return SessionContext(
            opened, self.database, self.logs, self.grafana, self.kubernetes, self.cache, self.heartbeats, self.samples
        )

    async def resolve(self, session: SessionId) -> SessionId:
        """The session that `latest` means now, where no redirect can lead to it."""
        if session.session != LATEST:
            return session
        return await self.catalog.newest_of_cluster(session.namespace, session.cluster) or session

    async def check_known(self, session: SessionId) -> None:
        """Raises SessionMissing where the store has nothing of the session."""
        if not await self.catalog.is_known(session):
            raise SessionMissing(session)


@dataclass(frozen=True)
class _VisibleSessions:
    """Opens no session of another namespace, whoever found its name."""

    sessions: Sessions
    visibility: Visibility

    async def open(self, session: SessionId) -> Session:
        if not self.visibility.sees(session.namespace):
            raise SessionMissing(session)
        return await self.sessions.open(session)
