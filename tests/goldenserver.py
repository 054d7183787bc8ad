"""The recorded run behind the whole history server."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from starlette.types import ASGIApp

from goldensession import Ingested, ReadySession, golden_session
from raycapture import NODES
from raykeeper.clock import SystemClock
from raykeeper.history.app import make_app
from raykeeper.history.catalog import Catalog
from raykeeper.history.heartbeats import Heartbeats
from raykeeper.history.logs.logstore import LogStore
from raykeeper.history.pages.dashboard import DashboardFiles
from raykeeper.history.parts import Parts
from raykeeper.history.storeclock import StoreClock
from raykeeper.layout.keys import SessionId, node_record_key


@dataclass(frozen=True)
class OneSession:
    """Opens the recorded session, whatever is asked for."""

    session: ReadySession

    async def open(self, _: SessionId) -> ReadySession:
        return self.session


@asynccontextmanager
async def golden_server(ingested: Ingested) -> AsyncIterator[ASGIApp]:
    """Every route of the server, over one moment of the run, whose nodes fell silent long ago."""
    clock, store = SystemClock(), ingested.store
    for node in NODES:
        os.utime(ingested.folder / "store" / node_record_key(ingested.session.id, node.node_id), (0, 0))
    async with golden_session(ingested) as asked:
        parts = Parts(
            catalog=Catalog(store, clock),
            heartbeats=Heartbeats(store, clock, StoreClock(store, clock)),
            sessions=OneSession(ingested.session),
            database=asked.database,
            logs=LogStore(store, clock),
            dashboard=DashboardFiles({}),
        )
        yield make_app(parts)
