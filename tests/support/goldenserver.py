"""The recorded run behind the whole history server."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from starlette.types import ASGIApp

from raykeeper.clock import SystemClock
from raykeeper.history.http.app import make_app
from raykeeper.history.ingest.session import Session
from raykeeper.history.logs.store import LogStore
from raykeeper.history.query.history import History
from raykeeper.history.store.catalog import Catalog
from raykeeper.history.store.heartbeats import Heartbeats, StoreClock
from raykeeper.layout.keys import SessionId, node_record_key
from support.goldensession import Ingested, golden_session
from support.raycapture import NODES


@dataclass(frozen=True)
class OneSession:
    """Opens the recorded session, whatever is asked for."""

    session: Session

    async def open(self, _: SessionId) -> Session:
        return self.session


@asynccontextmanager
async def golden_server(ingested: Ingested) -> AsyncIterator[ASGIApp]:
    """Every route of the server, over one moment of the run, whose nodes fell silent long ago."""
    clock, store = SystemClock(), ingested.store
    for node in NODES:
        os.utime(ingested.folder / "store" / node_record_key(ingested.session.id, node.node_id), (0, 0))
    async with golden_session(ingested) as asked:
        history = History(
            catalog=Catalog(store, clock),
            heartbeats=Heartbeats(store, clock, StoreClock(store, clock)),
            sessions=OneSession(ingested.session),
            database=asked.database,
            logs=LogStore(store, clock),
        )
        yield make_app(history)
