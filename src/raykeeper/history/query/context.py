"""What an endpoint is given beside the request: the session it is about, and the means to read it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import msgspec

from raykeeper.history.ingest.session import Session, Tables
from raykeeper.history.logs.store import LogStore
from raykeeper.history.query.cache import ResponseCache, session_version
from raykeeper.history.query.database import Database as Database
from raykeeper.history.query.database import Row as Row
from raykeeper.history.samples.store import SampleStore
from raykeeper.history.settings import GrafanaSettings
from raykeeper.history.store.heartbeats import Heartbeats
from raykeeper.history.store.kube_facts import KubeFacts
from raykeeper.history.store.session_state import State
from raykeeper.layout.records import PolledAnswer

T = TypeVar("T")
_SMALL_BODY_BYTES = 256 << 10  # decoded in a few milliseconds; a larger one in a thread, and one at a time


TaskIds = tuple[str, str]
"""The first and the last one that a statement is about."""


class ClusterFacts(Protocol):
    async def read(self, namespace: str, cluster: str, uid: str) -> KubeFacts:
        """What Kubernetes said about the cluster with that uid; empty where nobody recorded it."""
        ...


@dataclass(frozen=True)
class SessionContext:
    """One session and what answers about it are made with."""

    session: Session
    database: Database
    logs: LogStore
    grafana: GrafanaSettings = field(default_factory=GrafanaSettings)
    kubernetes: ClusterFacts | None = None
    cache: ResponseCache = field(default_factory=ResponseCache)
    heartbeats: Heartbeats | None = None
    """Tell whether the session goes on after it was opened; without them it stays as it was then."""
    samples: SampleStore | None = None
    """What its nodes used; None where nobody may ask."""

    async def is_over(self) -> bool:
        """Whether nobody writes to the session's logs any more."""
        if self.heartbeats is None:
            return self.session.state.state is not State.RUNNING
        return await self.heartbeats.is_over(self.session.id)

    async def remembered(
        self, what: Hashable, make: Callable[[], Awaitable[T]], is_whole: Callable[[T], bool] = lambda _: True
    ) -> T:
        """What `make` gives, or gave when the session and what Kubernetes said about it were the same."""
        key = (what, session_version(self.session), _kube_version(await self.kube_facts()))
        return await self.cache.get(key, make, is_whole=is_whole)

    async def kube_facts(self) -> KubeFacts:
        """What Kubernetes said about this session's cluster; empty where nobody recorded it."""
        record = self.session.record
        if self.kubernetes is None or record is None or not record.cluster_uid:
            return KubeFacts()
        return await self.kubernetes.read(self.session.id.namespace, self.session.id.cluster, record.cluster_uid)

    async def rows(self, sql: str, params: Mapping[str, object] | None = None, ids: TaskIds | None = None) -> list[Row]:
        """Rows of one statement over the session's tables; every value a request brings is in `params`.

        A statement that reads no other `tasks` than those between two ids says so, and fewer files are fetched for it.
        """
        return await self.database.query(sql, self._tables(ids), params or {})

    async def shaped_rows(
        self, sql: str, params: Mapping[str, object], shape: Callable[[Row], T], ids: TaskIds | None = None
    ) -> list[T]:
        """What `shape` makes of each row of a statement that may have many of them; it is called on another thread."""
        return await self.database.query_shaped(sql, self._tables(ids), params, shape)

    def _tables(self, ids: TaskIds | None) -> Tables:
        tables = self.session.tables
        return tables.of_tasks(*ids) if ids else tables

    async def polled_body(self, path: str, kind: type[T]) -> T | None:
        """The newest good answer for a path, or None where there never was one of this shape."""
        answer = self.session.polled.get(path)
        if answer is None or answer.status != 200:
            return None
        if len(memoryview(answer.body)) <= _SMALL_BODY_BYTES:
            return _decoded(answer, kind)
        async with self.cache.large_answers:
            return await asyncio.to_thread(_decoded, answer, kind)


def _decoded(answer: PolledAnswer, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(answer.body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _kube_version(facts: KubeFacts) -> Hashable:
    """Differs as soon as Kubernetes said more."""
    seen = (len(facts.pods), facts.pods[-1:], len(facts.events), facts.events[-1:], facts.cluster)
    rayjobs = tuple((one.uid, one.last, len(one.states), len(one.warnings), one.is_final) for one in facts.rayjobs)
    return str(seen), rayjobs, facts.lost_pods, facts.lost_events, facts.unread_segments, facts.unreadable
