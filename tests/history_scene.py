"""A store with sessions in it, and the history server's application around it, without a socket."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import msgspec
from starlette.types import ASGIApp

from raykeeper.clock import Clock, SystemClock
from raykeeper.history.app import make_app
from raykeeper.history.asked import Row
from raykeeper.history.catalog import Catalog
from raykeeper.history.database import Database
from raykeeper.history.heartbeats import Heartbeats
from raykeeper.history.logs.logstore import LogStore
from raykeeper.history.pages.dashboard import DashboardFiles
from raykeeper.history.parts import Parts
from raykeeper.history.settings import AccessSettings
from raykeeper.history.storeclock import StoreClock
from raykeeper.layout.keys import (
    CatalogKey,
    LogPackKey,
    SessionId,
    end_record_key,
    node_record_key,
    session_record_key,
)
from raykeeper.layout.packs import Gap, PackWriter
from raykeeper.layout.records import (
    CatalogEnd,
    CatalogStart,
    EndRecord,
    NodeRecord,
    PolledAnswer,
    Role,
    SessionRecord,
    encode_record,
)
from raykeeper.storage.opening import open_store
from raykeeper.storage.settings.urls import parse_store_url
from raykeeper.storage.store import ObjectStore

T = TypeVar("T")

STARTED_AT = datetime(2026, 11, 15, 20, 0, tzinfo=UTC)
SESSION = SessionId("team-a", "train", "session_2026-11-15_20-00-00_000000_9")
HEAD_ID, WORKER_ID = "aa" * 28, "bb" * 28
SEALED_NS = int(STARTED_AT.timestamp()) * 1_000_000_000


def local_store(folder: Path) -> ObjectStore:
    return open_store(parse_store_url(f"file://{folder}", {}))


@dataclass(frozen=True)
class OpenedPlainly:
    """A session of which only polled answers are known; its tables are empty."""

    id: SessionId
    record: SessionRecord | None = None
    tables: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)
    as_of: datetime = STARTED_AT
    polled: Mapping[str, PolledAnswer] = field(default_factory=dict)


@dataclass
class PlainSessions:
    """Opens every session without reading it."""

    opened: dict[SessionId, OpenedPlainly] = field(default_factory=dict)

    async def open(self, session: SessionId) -> OpenedPlainly:
        return self.opened.get(session, OpenedPlainly(session))

    def have_polled(self, session: SessionId, path: str, body: object) -> None:
        """Let the session have this answer of Ray's dashboard."""
        raw = msgspec.Raw(msgspec.json.encode(body))
        answer = PolledAnswer(path=path, polled_at=STARTED_AT, status=200, body=raw)
        opened = self.opened.get(session, OpenedPlainly(session))
        self.opened[session] = replace(opened, polled={**opened.polled, path: answer})


@dataclass
class LazyDatabase:
    """DuckDB, started by the first query: most scenes never ask one."""

    folder: Path
    started: Database | None = None

    async def query(self, sql: str, files: Mapping[str, Sequence[Path]], params: Mapping[str, object]) -> list[Row]:
        return await self._database().query(sql, files, params)

    async def query_shaped(
        self,
        sql: str,
        files: Mapping[str, Sequence[Path]],
        params: Mapping[str, object],
        shape: Callable[[Row], T],
    ) -> list[T]:
        return await self._database().query_shaped(sql, files, params, shape)

    def _database(self) -> Database:
        self.started = self.started or Database(self.folder)
        return self.started


@dataclass
class Scene:
    """A history server on a local folder."""

    store: ObjectStore
    parts: Parts
    sessions: PlainSessions
    app: ASGIApp


def a_scene(
    folder: Path,
    *,
    clock: Clock | None = None,
    dashboard: DashboardFiles | None = None,
    access: AccessSettings | None = None,
) -> Scene:
    store, clock, sessions = local_store(folder / "store"), clock or SystemClock(), PlainSessions()
    (folder / "cache").mkdir(exist_ok=True)
    parts = Parts(
        catalog=Catalog(store, clock),
        heartbeats=Heartbeats(store, clock, StoreClock(store, clock)),
        sessions=sessions,
        database=LazyDatabase(folder / "cache"),
        logs=LogStore(store, clock),
        dashboard=dashboard or DashboardFiles({}),
        access=access or AccessSettings(),
    )
    return Scene(store, parts, sessions, make_app(parts))


def session_url(session: SessionId = SESSION) -> str:
    return f"/s/{session.namespace}/{session.cluster}/{session.session}"


async def put_session(
    store: ObjectStore,
    session: SessionId = SESSION,
    *,
    started_at: datetime = STARTED_AT,
    ended_at: datetime | None = None,
    owner: tuple[str, str] = ("", ""),
    head_id: str = HEAD_ID,
) -> None:
    """What the head's collector writes about a session: its record and its catalog entry."""
    names = {"namespace": session.namespace, "cluster": session.cluster, "session": session.session}
    record = SessionRecord(**names, started_at=started_at, recorded_at=started_at, ray_version="2.60.0")
    start = CatalogStart(
        **names,
        started_at=started_at,
        head_node_id=head_id,
        owner_kind=owner[0],
        owner_name=owner[1],
        ray_version="2.60.0",
    )
    await store.put(session_record_key(session), encode_record(record))
    await store.put(CatalogKey(started_at.date(), session, "start").key, encode_record(start))
    if ended_at:
        end = CatalogEnd(ended_at=ended_at, reason="head ended", head_node_id=head_id)
        await store.put(CatalogKey(started_at.date(), session, "end").key, encode_record(end))


async def put_beat(
    store: ObjectStore, node_id: str = HEAD_ID, role: Role = "head", session: SessionId = SESSION
) -> None:
    """A heartbeat now."""
    now = datetime.now(UTC)
    record = NodeRecord(node_id=node_id, role=role, started_at=STARTED_AT, beat_at=now, interval_seconds=30.0)
    await store.put(node_record_key(session, node_id), encode_record(record))


async def put_end(
    store: ObjectStore, node_id: str = HEAD_ID, role: Role = "head", session: SessionId = SESSION
) -> None:
    """A graceful end."""
    record = EndRecord(node_id=node_id, role=role, ended_at=datetime.now(UTC), reason="SIGTERM", is_complete=True)
    await store.put(end_record_key(session, node_id), encode_record(record))


@dataclass
class PackBuilder:
    """One pack after the other of one node."""

    store: ObjectStore
    session: SessionId = SESSION
    node_id: str = HEAD_ID
    sequence: int = 0
    writer: PackWriter = field(default_factory=PackWriter)

    def add(self, path: str, data: bytes, *, offset: int = 0, generation: str = "", is_whole: bool = False) -> None:
        read_ns = SEALED_NS + self.sequence
        self.writer.add(path, generation or f"g-{path}", offset, data, read_ns, is_whole=is_whole)

    def lose(self, path: str, offset: int, length: int, reason: str) -> None:
        self.writer.add_gap(Gap(path, f"g-{path}", offset, length, reason))

    async def put(self) -> str:
        """Store what was added as one pack; its key."""
        key = LogPackKey(self.session, self.node_id, SEALED_NS, self.sequence).key
        await self.store.put(key, self.writer.to_bytes())
        self.writer, self.sequence = PackWriter(), self.sequence + 1
        return key
