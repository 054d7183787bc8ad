"""The recorded run as a history server has it: stored by collectors, ingested, and ready to be asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from raykeeper.clock import SystemClock
from raykeeper.history.http.errors import failure_response
from raykeeper.history.http.ray_api.routes import ENDPOINTS, Endpoint
from raykeeper.history.http.responses import not_found_response
from raykeeper.history.ingest.messages import Batch, MergeRequest, Slice
from raykeeper.history.ingest.session import FixedTables, Session
from raykeeper.history.ingest.worker import IngestWorker, Limits
from raykeeper.history.logs.store import LogStore
from raykeeper.history.query.context import SessionContext
from raykeeper.history.query.database import Database
from raykeeper.history.settings import GrafanaSettings
from raykeeper.layout.keys import EventSegmentKey, PolledKey, SessionId, session_record_key
from raykeeper.layout.polled import decode_polled
from raykeeper.layout.records import PolledAnswer, SessionRecord, decode_record
from raykeeper.storage.opening import open_store
from raykeeper.storage.settings.urls import parse_store_url
from raykeeper.storage.store import ObjectStore
from support.raycapture import ASKED_AT, MOMENTS, Moment, RayCapture, put_into


@dataclass(frozen=True)
class Ingested:
    """A session in a local store, with its tables beside it."""

    folder: Path
    session: Session

    @property
    def store(self) -> ObjectStore:
        return _store(self.folder)


Moments = Mapping[Moment, Ingested]


@pytest.fixture(scope="session")
def ingested_moments(raycapture: RayCapture, tmp_path_factory: pytest.TempPathFactory) -> Moments:
    """The run as it was at each recorded moment."""
    return {
        moment: asyncio.run(_ingest_moment(raycapture, moment, tmp_path_factory.mktemp(moment))) for moment in MOMENTS
    }


@asynccontextmanager
async def golden_session(ingested: Ingested, grafana: GrafanaSettings | None = None) -> AsyncIterator[SessionContext]:
    """One moment, ready to be asked."""
    database = Database(ingested.folder)
    try:
        yield SessionContext(
            ingested.session, database, LogStore(ingested.store, SystemClock()), grafana or GrafanaSettings()
        )
    finally:
        await database.close()


def dashboard(context: SessionContext) -> Starlette:
    """Every endpoint, for this one session."""
    return Starlette(
        routes=[Route(endpoint.path, _answering(endpoint, context)) for endpoint in ENDPOINTS],
        exception_handlers={404: lambda _, __: not_found_response()},
    )


def _answering(endpoint: Endpoint, context: SessionContext):  # type: ignore[no-untyped-def]  # starlette names the type
    async def answer(request: Request) -> Response:
        try:
            return await endpoint.answer(request, context)
        except Exception as error:
            if (response := failure_response(error)) is None:
                raise
            return response

    return answer


def _store(folder: Path) -> ObjectStore:
    return open_store(parse_store_url(f"file://{folder}/store", {}))


async def _ingest_moment(capture: RayCapture, moment: Moment, folder: Path) -> Ingested:
    store = _store(folder)
    session = await put_into(store, capture, moment)
    ready = Session(
        id=session,
        record=decode_record(await store.get(session_record_key(session)), SessionRecord),
        tables=FixedTables(await _tables(store, session, folder)),
        as_of=ASKED_AT[moment],
        polled=await _polled(store, session),
    )
    return Ingested(folder, ready)


async def _tables(store: ObjectStore, session: SessionId, folder: Path) -> Mapping[str, tuple[Path, ...]]:
    events = folder / "events.ndjson.zst"
    slices = []
    with events.open("wb") as file:
        async for found in store.list(EventSegmentKey.prefix(session)):
            slices.append(Slice(found.key, file.tell(), found.size))
            file.write(await store.get(found.key))
    workbench = IngestWorker(folder / "work", 0, Limits())
    try:
        workbench.project(Batch("all", events, tuple(slices)))
        return workbench.merge(MergeRequest(folder / "tables", ("all",), 0)).tables
    finally:
        workbench.close()


async def _polled(store: ObjectStore, session: SessionId) -> Mapping[str, PolledAnswer]:
    answers = [decode_polled(await store.get(found.key)) async for found in store.list(PolledKey.prefix(session))]
    return {answer.path: answer for answer in answers}
