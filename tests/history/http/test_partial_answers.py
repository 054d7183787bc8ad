"""While a session is still being read, every answer about it says so; afterwards none does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from raykeeper.clock import SystemClock
from raykeeper.history.http.app import make_app
from raykeeper.history.http.responses import PROGRESS_HEADER
from raykeeper.history.ingest.session import Progress, Session
from raykeeper.history.ingest.sessions import Sessions, SessionsSettings
from raykeeper.history.logs.store import LogStore
from raykeeper.history.query.database import Database
from raykeeper.history.query.history import History
from raykeeper.history.store.catalog import Catalog
from raykeeper.history.store.heartbeats import Heartbeats, StoreClock
from raykeeper.layout.keys import CatalogKey, SessionId
from raykeeper.layout.records import CatalogStart, encode_record
from support.asking import Answered, ask
from support.ingest_scene import SESSION, finished_task, local_store, put_records, put_segment

PREFIX = f"/s/{SESSION.namespace}/{SESSION.cluster}/{SESSION.session}"


class FarAsRead:
    """Opens a session of which so much was read."""

    def __init__(self, sessions: Sessions, progress: Progress) -> None:
        self._sessions = sessions
        self._progress = progress

    async def open(self, session: SessionId) -> Session:
        return replace(await self._sessions.open(session), progress=self._progress)


async def answered(folder: Path, path: str, progress: Progress) -> Answered:
    store, clock = local_store(folder / "store"), SystemClock()
    await put_segment(store, 0, finished_task(1))
    await put_records(store, clock.now(), is_ended=True)
    names = {"namespace": SESSION.namespace, "cluster": SESSION.cluster, "session": SESSION.session}
    start = CatalogStart(**names, started_at=clock.now())
    await store.put(CatalogKey(clock.now().date(), SESSION, "start").key, encode_record(start))
    sessions, database = Sessions(store, clock, SessionsSettings(folder / "local")), Database(folder / "local")
    history = History(
        catalog=Catalog(store, clock),
        heartbeats=Heartbeats(store, clock, StoreClock(store, clock)),
        sessions=FarAsRead(sessions, progress),
        database=database,
        logs=LogStore(store, clock),
    )
    try:
        return await ask(make_app(history), PREFIX + path)
    finally:
        await sessions.close()
        await database.close()


@pytest.mark.parametrize("path", ["/api/v0/tasks", "/api/v0/nodes", "/api/v0/tasks/summarize"])
async def test_a_list_of_a_session_half_read_warns_as_ray_does(tmp_path: Path, path: str) -> None:
    half = await answered(tmp_path, path, Progress(20, 40))
    assert "50 % of its events" in half.body["data"]["result"]["partial_failure_warning"]
    assert half.headers[PROGRESS_HEADER.lower()] == "20/40"


async def test_a_session_that_was_read_warns_of_nothing(tmp_path: Path) -> None:
    whole = await answered(tmp_path, "/api/v0/tasks", Progress(40, 40))
    assert whole.body["data"]["result"]["partial_failure_warning"] == ""
    assert PROGRESS_HEADER.lower() not in whole.headers
