"""A store with sessions in it, and the history server's application around it, without a socket."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

import msgspec
from starlette.types import ASGIApp

from raykeeper.clock import Clock, SystemClock
from raykeeper.history.http.app import make_app
from raykeeper.history.http.pages.dashboard import NO_DASHBOARD, DashboardFiles
from raykeeper.history.ingest.session import FixedTables, Session, Tables
from raykeeper.history.logs.store import LogStore
from raykeeper.history.query.context import Row
from raykeeper.history.query.database import Database, RowsCopy
from raykeeper.history.query.history import History
from raykeeper.history.settings import AccessSettings
from raykeeper.history.store.background_look import BackgroundLooks
from raykeeper.history.store.catalog import Catalog
from raykeeper.history.store.heartbeats import Heartbeats, StoreClock
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


def opened_plainly(session: SessionId, polled: Mapping[str, PolledAnswer] | None = None) -> Session:
    """A session of which only polled answers are known; its tables are empty."""
    return Session(session, FixedTables({}), STARTED_AT, polled=polled or {})


@dataclass
class PlainSessions:
    """Opens every session without reading it."""

    opened: dict[SessionId, Session] = field(default_factory=dict)

    async def open(self, session: SessionId) -> Session:
        return self.opened.get(session, opened_plainly(session))

    def have_polled(self, session: SessionId, path: str, body: object) -> None:
        """Let the session have this answer of Ray's dashboard."""
        raw = msgspec.Raw(msgspec.json.encode(body))
        opened = self.opened.get(session, opened_plainly(session))
        before = opened.polled.get(path)
        polled_at = before.polled_at + timedelta(seconds=1) if before else STARTED_AT
        answer = PolledAnswer(path=path, polled_at=polled_at, status=200, body=raw)
        self.opened[session] = replace(opened, polled={**opened.polled, path: answer})


class LazyDatabase(Database):
    """DuckDB, started by the first query: most scenes never ask one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started: Database | None = None

    async def query(self, sql: str, tables: Tables, params: Mapping[str, object] | None = None) -> list[Row]:
        return await self._database().query(sql, tables, params)

    async def query_shaped(
        self,
        sql: str,
        tables: Tables,
        params: Mapping[str, object],
        shape: Callable[[Row], T],
    ) -> list[T]:
        return await self._database().query_shaped(sql, tables, params, shape)

    async def copy(self, sql: str, tables: Tables, params: Mapping[str, object]) -> RowsCopy:
        return await self._database().copy(sql, tables, params)

    def _database(self) -> Database:
        self.started = self.started or Database(self.folder)
        return self.started


@dataclass
class Scene:
    """A history server on a local folder."""

    store: ObjectStore
    history: History
    sessions: PlainSessions
    app: ASGIApp


def a_scene(
    folder: Path,
    *,
    clock: Clock | None = None,
    dashboard: DashboardFiles = NO_DASHBOARD,
    access: AccessSettings | None = None,
) -> Scene:
    store, clock, sessions = local_store(folder / "store"), clock or SystemClock(), PlainSessions()
    (folder / "cache").mkdir(exist_ok=True)
    history = History(
        catalog=Catalog(store, clock),
        heartbeats=Heartbeats(store, clock, StoreClock(store, clock)),
        sessions=sessions,
        database=LazyDatabase(folder / "cache"),
        logs=LogStore(store, clock),
        access=access or AccessSettings(),
        clock=clock,
        looks=BackgroundLooks(clock),
    )
    return Scene(store, history, sessions, make_app(history, dashboard))


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
