"""The history server over a store that it sees for the first time, without a socket."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.types import ASGIApp

from raykeeper.clock import Clock, SystemClock
from raykeeper.history.http.app import make_app
from raykeeper.history.ingest.sessions import Sessions, SessionsSettings
from raykeeper.history.logs.store import LogStore
from raykeeper.history.program import open_history
from raykeeper.history.query.database import Database
from raykeeper.history.query.history import History
from raykeeper.history.settings import GrafanaSettings, HistorySettings, HistoryStoreSettings
from raykeeper.history.store.catalog import Catalog
from raykeeper.history.store.heartbeats import Heartbeats, StoreClock
from raykeeper.layout.keys import SessionId
from raykeeper.storage.settings.urls import parse_store_url
from raykeeper.storage.store import ObjectStore
from support.conditions import eventually

READ_SECONDS = 120.0  # a large session on a busy machine


@asynccontextmanager
async def whole_server(
    store: ObjectStore,
    session: SessionId,
    folder: Path,
    *,
    clock: Clock | None = None,
    grafana: GrafanaSettings | None = None,
) -> AsyncIterator[ASGIApp]:
    """Every route of the server, once it has read the session."""
    clock = clock or SystemClock()
    sessions = Sessions(store, clock, SessionsSettings(folder))
    database = Database(folder)
    history = History(
        catalog=Catalog(store, clock),
        heartbeats=Heartbeats(store, clock, StoreClock(store, clock)),
        sessions=sessions,
        database=database,
        logs=LogStore(store, clock),
        grafana=grafana or GrafanaSettings(),
    )

    async def is_read() -> bool:
        return (await sessions.open(session)).progress.is_done

    try:
        await eventually(is_read, seconds=READ_SECONDS)
        yield make_app(history)
    finally:
        await sessions.close()
        await database.close()


@asynccontextmanager
async def built_server(bucket: Path, folder: Path) -> AsyncIterator[ASGIApp]:
    """The history server over a folder, as the command line builds it."""
    url = f"file://{bucket}"
    async with open_history(HistorySettings(HistoryStoreSettings(url)), parse_store_url(url, {}), folder) as history:
        yield make_app(history)
