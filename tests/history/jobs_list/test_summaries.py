"""Whoever reads a session to its end leaves a summary of its jobs in the catalog."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from history.browser.dead_session import put_dead_session
from raykeeper.history.http.app import make_app
from raykeeper.history.ingest.sessions import Sessions, SessionsSettings
from raykeeper.history.jobs_list import summary
from raykeeper.history.jobs_list.summary import SummaryWriter
from raykeeper.history.program import open_history
from raykeeper.history.query.context import SessionContext
from raykeeper.history.query.database import Database
from raykeeper.history.settings import HistorySettings, HistoryStoreSettings
from raykeeper.layout.keys import CatalogKey, PolledKey
from raykeeper.layout.polled import encode_polled
from raykeeper.layout.records import PolledAnswer, decode_record
from raykeeper.layout.summaries import SessionSummary
from raykeeper.storage.settings.urls import parse_store_url
from raykeeper.storage.store import ObjectStore
from support.asking import ask
from support.clocks import ManualClock
from support.conditions import eventually, until
from support.ingest_scene import (
    SESSION,
    START_NS,
    Event,
    definition,
    finished_task,
    lifecycle,
    local_store,
    put_records,
    put_segment,
    task_id,
)
from support.raycapture import SESSION as RECORDED
from support.raycapture import STARTED_AT as RECORDED_AT
from support.raycapture import RayCapture
from support.report_scene import JOB, a_job, failed, no_logs

STARTED = datetime.fromtimestamp(START_NS / 1e9, UTC)
KEY = CatalogKey(STARTED.date(), SESSION, "summary").key
RECORDED_KEY = CatalogKey(RECORDED_AT.date(), RECORDED, "summary").key


async def put_ended(store: ObjectStore, events: Iterable[Event], jobs: list[dict[str, Any]]) -> None:
    await put_segment(store, 0, events)
    body = msgspec.Raw(msgspec.json.encode(jobs))
    answer = PolledAnswer(path="/api/jobs/", polled_at=STARTED, status=200, body=body)
    await store.put(PolledKey(SESSION, "/api/jobs/", START_NS // 1_000_000).key, encode_polled(answer))
    await put_records(store, STARTED + timedelta(minutes=1), is_ended=True)


@asynccontextmanager
async def opening(store: ObjectStore, folder: Path) -> AsyncIterator[Sessions]:
    """Sessions of a replica that knows nothing yet."""
    sessions = Sessions(store, ManualClock(now=datetime.now(UTC)), SessionsSettings(folder))
    database = Database(folder)
    sessions.on_final = SummaryWriter(store, lambda session: SessionContext(session, database, no_logs())).write
    try:
        yield sessions
    finally:
        await sessions.close()
        await database.close()


async def open_whole(sessions: Sessions) -> None:
    await sessions.open(SESSION)
    await until(lambda: sessions.is_idle(SESSION))


async def summary_in(store: ObjectStore) -> SessionSummary | None:
    data = await store.find(KEY)
    return decode_record(data, SessionSummary) if data else None


async def test_a_session_that_was_read_to_its_end_has_a_summary(tmp_path: Path) -> None:
    store = local_store(tmp_path / "store")
    events = [
        *finished_task(1),
        *finished_task(2),
        *failed(3, "TASK_EXECUTION_EXCEPTION", "ZeroDivisionError: by zero"),
        definition(task_id(9), taskType="DRIVER_TASK"),
        lifecycle(task_id(9), [("FINISHED", 90)]),
    ]
    await put_ended(store, events, [a_job("FAILED", metadata={"owner": "me"}, message="exit code 1")])
    async with opening(store, tmp_path / "a") as sessions:
        await open_whole(sessions)
    summary = await summary_in(store)
    assert summary
    [job] = summary.jobs
    assert (job.job_id, job.submission_id, job.status) == (JOB, "nightly", "FAILED")
    assert (job.metadata, job.entrypoint) == ({"owner": "me"}, "python main.py")
    assert job.tasks == {"FAILED": 1, "FINISHED": 2}, "the driver is none of them, as on the job's page"
    assert job.failure
    assert job.ended_at
    assert job.started_at == STARTED


async def test_a_job_in_which_something_failed_is_not_judged_without_its_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reports are made of so many jobs; how the others went is not known by their status."""
    store = local_store(tmp_path / "store")
    events = [*failed(3, "TASK_EXECUTION_EXCEPTION", "ZeroDivisionError: by zero")]
    await put_ended(store, events, [a_job("SUCCEEDED")])
    for limit, judged in ((0, ("ok", True)), (50, ("with failures", False))):
        monkeypatch.setattr(summary, "REPORTED_JOBS", limit)
        await store.delete(KEY)
        async with opening(store, tmp_path / f"limit-{limit}") as sessions:
            await open_whole(sessions)
        found = await summary_in(store)
        assert found
        assert [(job.outcome, job.is_provisional) for job in found.jobs] == [judged]


async def test_the_list_of_jobs_says_of_a_recorded_run_why_each_failed(raycapture: RayCapture, tmp_path: Path) -> None:
    """Through all that the program wires together, from the first look at a session to the list."""
    await put_dead_session(raycapture, tmp_path / "store")
    (tmp_path / "cache").mkdir()
    url = f"file://{tmp_path}/store"
    settings = HistorySettings(HistoryStoreSettings(url))
    async with open_history(settings, parse_store_url(url, {}), tmp_path / "cache") as history:
        app = make_app(history)
        await ask(app, "/jobs")
        await eventually(lambda: local_store(tmp_path / "store").find(RECORDED_KEY))
    async with open_history(settings, parse_store_url(url, {}), tmp_path / "cache") as history:
        answered = (await ask(make_app(history), "/api/keeper/v1/jobs?status=FAILED")).body
    failures = {job["submission_id"]: job["failure"] for job in answered["jobs"]}
    assert failures.keys() == {"golden-badenv", "golden-fail"}
    assert "runtime environment" in failures["golden-badenv"], "its root cause, not the last line of its message"


async def test_a_running_session_has_none(tmp_path: Path) -> None:
    store = local_store(tmp_path / "store")
    await put_segment(store, 0, finished_task(1))
    await put_records(store, datetime.now(UTC), is_ended=False)
    async with opening(store, tmp_path / "a") as sessions:
        await open_whole(sessions)
    assert await summary_in(store) is None


async def test_another_replica_leaves_the_summary_as_it_is(tmp_path: Path) -> None:
    store = local_store(tmp_path / "store")
    await put_ended(store, finished_task(1), [a_job()])
    async with opening(store, tmp_path / "a") as sessions:
        await open_whole(sessions)
    written = (await store.stat(KEY)).modified
    async with opening(store, tmp_path / "b") as sessions:
        await open_whole(sessions)
    assert (await store.stat(KEY)).modified == written


async def test_late_events_make_a_new_summary(tmp_path: Path) -> None:
    store = local_store(tmp_path / "store")
    await put_ended(store, finished_task(1), [a_job()])
    async with opening(store, tmp_path / "a") as sessions:
        await open_whole(sessions)
    await put_segment(store, 1, finished_task(2))
    async with opening(store, tmp_path / "b") as sessions:
        await open_whole(sessions)
    summary = await summary_in(store)
    assert summary
    assert summary.jobs[0].tasks == {"FINISHED": 2}
