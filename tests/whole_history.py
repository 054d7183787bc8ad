"""The history server over a store that it sees for the first time, without a socket."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.types import ASGIApp

from conditions import eventually
from raykeeper.clock import Clock, SystemClock
from raykeeper.history.app import make_app
from raykeeper.history.asked import MetricsLinks
from raykeeper.history.catalog import Catalog
from raykeeper.history.database import Database
from raykeeper.history.heartbeats import Heartbeats
from raykeeper.history.ingest.sessions import Sessions, SessionsSettings
from raykeeper.history.logs.logstore import LogStore
from raykeeper.history.pages.dashboard import DashboardFiles
from raykeeper.history.parts import Parts
from raykeeper.history.program import built_parts
from raykeeper.history.settings import HistorySettings, HistoryStoreSettings
from raykeeper.history.storeclock import StoreClock
from raykeeper.layout.keys import SessionId
from raykeeper.storage.settings.urls import parse_store_url
from raykeeper.storage.store import ObjectStore

READ_SECONDS = 120.0  # a large session on a busy machine


@asynccontextmanager
async def whole_server(
    store: ObjectStore,
    session: SessionId,
    folder: Path,
    *,
    clock: Clock | None = None,
    links: MetricsLinks | None = None,
) -> AsyncIterator[ASGIApp]:
    """Every route of the server, once it has read the session."""
    clock = clock or SystemClock()
    sessions = Sessions(store, clock, SessionsSettings(folder))
    database = Database(folder)
    parts = Parts(
        catalog=Catalog(store, clock),
        heartbeats=Heartbeats(store, clock, StoreClock(store, clock)),
        sessions=sessions,
        database=database,
        logs=LogStore(store, clock),
        dashboard=DashboardFiles({}),
        links=links or MetricsLinks(),
    )

    async def is_read() -> bool:
        return (await sessions.open(session)).progress.is_done

    try:
        await eventually(is_read, seconds=READ_SECONDS)
        yield make_app(parts)
    finally:
        await sessions.close()
        await database.close()


@asynccontextmanager
async def built_server(bucket: Path, folder: Path) -> AsyncIterator[ASGIApp]:
    """The history server over a folder, as the command line builds it."""
    url = f"file://{bucket}"
    async with built_parts(HistorySettings(HistoryStoreSettings(url)), parse_store_url(url, {}), folder) as parts:
        yield make_app(parts)
