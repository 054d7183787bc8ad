"""What an endpoint is given beside the request: the session it is about, and the means to read it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

import msgspec

from raykeeper.history.kubefacts.merged import KubeFacts
from raykeeper.layout.keys import SessionId
from raykeeper.layout.records import PolledAnswer, SessionRecord

Row = dict[str, Any]
T = TypeVar("T")


class Session(Protocol):
    """One session, ready to be read."""

    @property
    def id(self) -> SessionId: ...
    @property
    def record(self) -> SessionRecord | None: ...
    @property
    def tables(self) -> Mapping[str, tuple[Path, ...]]:
        """Local Parquet files of each table."""
        ...

    @property
    def as_of(self) -> datetime:
        """What happened later is not in it."""
        ...

    @property
    def polled(self) -> Mapping[str, PolledAnswer]:
        """The newest answer of Ray's dashboard for each path that was asked."""
        ...


TaskIds = tuple[str, str]
"""The first and the last one that a statement is about."""


@runtime_checkable
class TasksByRange(Protocol):
    """Tables of which some files of `tasks` are enough for a statement about few ids."""

    def of_tasks(self, first_id: str, last_id: str) -> Mapping[str, tuple[Path, ...]]: ...


class Database(Protocol):
    async def query(self, sql: str, files: Mapping[str, Sequence[Path]], params: Mapping[str, object]) -> list[Row]:
        """Rows of one statement that calls tables by name; values are bound."""
        ...

    async def query_shaped(
        self,
        sql: str,
        files: Mapping[str, Sequence[Path]],
        params: Mapping[str, object],
        shape: Callable[[Row], T],
    ) -> list[T]:
        """What `shape` makes of each row; the rows themselves are never all in memory."""
        ...


class LogFiles(Protocol):
    async def read_matching(self, session: Session, pattern: str, limit_bytes: int) -> Sequence[bytes]:
        """The ends of all files under `logs/` of any node whose path matches, at most so many bytes of each."""
        ...


class ClusterFacts(Protocol):
    async def read(self, namespace: str, cluster: str, uid: str) -> KubeFacts:
        """What Kubernetes said about the cluster with that uid; empty where nobody recorded it."""
        ...


@dataclass(frozen=True)
class MetricsLinks:
    """Where the metrics of past sessions are to be seen. Names follow Ray's own variables."""

    grafana_host: str = ""
    """RAY_GRAFANA_HOST as the browser reaches it; empty: there is none; `DISABLED` hides the frontend's tab."""
    grafana_org_id: str = "1"
    grafana_cluster_filter: str | None = None
    prometheus_name: str = "Prometheus"
    """Grafana's name of the data source."""


@dataclass(frozen=True)
class Asked:
    """One session and what answers about it are made with."""

    session: Session
    database: Database
    logs: LogFiles
    metrics: MetricsLinks = field(default_factory=MetricsLinks)
    kubernetes: ClusterFacts | None = None

    async def kube_facts(self) -> KubeFacts:
        """What Kubernetes said about this session's cluster; empty where nobody recorded it."""
        record = self.session.record
        if self.kubernetes is None or record is None or not record.cluster_uid:
            return KubeFacts()
        return await self.kubernetes.read(record.namespace, record.cluster, record.cluster_uid)

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

    def _tables(self, ids: TaskIds | None) -> Mapping[str, tuple[Path, ...]]:
        tables = self.session.tables
        return tables.of_tasks(*ids) if ids and isinstance(tables, TasksByRange) else tables

    def polled_body(self, path: str, kind: type[T]) -> T | None:
        """The newest good answer for a path, or None where there never was one of this shape."""
        answer = self.session.polled.get(path)
        if answer is None or answer.status != 200:
            return None
        try:
            return msgspec.json.decode(bytes(answer.body), type=kind)
        except msgspec.ValidationError:
            return None
