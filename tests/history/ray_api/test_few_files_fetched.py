"""What people look at first costs what it is about, not what there are tasks: few files are fetched for it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from starlette.types import ASGIApp

from raykeeper.clock import SystemClock
from raykeeper.history.ingest.batches import may_hold, task_ranges
from raykeeper.history.ingest.manifests import TableFile, newest_manifest
from raykeeper.history.ingest.session import SessionTables
from raykeeper.history.ingest.sessions import Sessions, SessionsSettings
from raykeeper.history.ingest.tables import TASKS
from raykeeper.history.jobs_list.summary import summarize
from raykeeper.history.logs.store import LogStore
from raykeeper.history.overview.session import session_overview
from raykeeper.history.query.context import SessionContext
from raykeeper.history.query.database import Database
from raykeeper.history.report import make
from raykeeper.history.report.failures import FailedAttempt
from raykeeper.history.report.make import make_report
from raykeeper.history.report.model import LogSlice
from raykeeper.history.search.match import make_matcher
from raykeeper.history.search.model import SearchRequest, Skipped
from raykeeper.history.search.records import find_records
from raykeeper.history.store.disk_cache import LocalCache
from raykeeper.storage.store import ObjectStore
from support.asking import ask
from support.conditions import eventually
from support.goldensession import dashboard
from support.ingest_scene import SESSION, Event, definition, lifecycle, local_store, put_records, put_segment, task_id
from support.report_scene import no_logs

FUNCTION = {"pythonFunctionDescriptor": {"moduleName": "main", "className": "", "functionName": "main"}}


def named_task(number: int, name: str, state: str, pid: int) -> list[Event]:
    """A task of the function `main`, under a name of its own or none."""
    task = task_id(number)
    error = {"errorType": "TASK_EXECUTION_EXCEPTION", "errorMessage": "User exception: wrong on purpose"}
    more: dict[str, Any] = {"rayErrorInfo": error} if state == "FAILED" else {}
    return [definition(task, name=name, taskFunc=FUNCTION), lifecycle(task, [(state, number)], workerPid=pid, **more)]


@pytest.fixture
async def context(tmp_path: Path) -> AsyncIterator[SessionContext]:
    """The session on a replica that has fetched nothing of it."""
    store, clock = local_store(tmp_path / "store"), SystemClock()
    await ingest_elsewhere(store, tmp_path / "elsewhere")
    sessions, database = Sessions(store, clock, SessionsSettings(tmp_path / "here")), Database(tmp_path / "here")
    try:
        yield SessionContext(await sessions.open(SESSION), database, LogStore(store, clock))
    finally:
        await sessions.close()
        await database.close()


async def without_logs(_context: SessionContext, _failed: FailedAttempt) -> tuple[LogSlice, ...]:
    return ()


def is_fetched(context: SessionContext, table: str) -> bool:
    return any(path.exists() for path in context.session.tables[table])


async def test_counts_by_name_are_answered_without_fetching_any_task(context: SessionContext) -> None:
    app = dashboard(context)
    assert await counts(app) == {"main": {"FINISHED": 2, "FAILED": 1}, "step": {"FINISHED": 1}}
    assert await counts(app, "name", "STEP") == {"step": {"FINISHED": 1}}
    assert not is_fetched(context, "tasks")
    assert not is_fetched(context, "task_list")
    assert await counts(app, "worker_pid", "7") == {"main": {"FAILED": 1}}  # only the tasks can tell
    assert is_fetched(context, "task_list")


async def test_a_report_an_overview_a_search_and_a_summary_leave_the_details_of_tasks_in_the_store(
    context: SessionContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(make, "log_slices", without_logs)  # those of the failed tasks alone need their details
    assert (await summarize(context)).left_out == 0
    assert (await make_report(replace(context, logs=no_logs()))).counts.failures == 1
    assert (await session_overview(context)).counts.attempts == 4
    wanted = SearchRequest("on purpose")
    [record] = await find_records(context, wanted, make_matcher(wanted), None, 10, Skipped())
    assert record.message == "User exception: wrong on purpose"
    assert not is_fetched(context, "tasks")


async def ingest_elsewhere(store: ObjectStore, folder: Path) -> None:
    """Tables of four tasks that another replica published."""
    found = [("", "FINISHED", 1), ("", "FAILED", 7), ("step", "FINISHED", 2), ("main", "FINISHED", 3)]
    await put_segment(store, 0, [item for number, task in enumerate(found) for item in named_task(number, *task)])
    await put_records(store, datetime.now(UTC), is_ended=True)
    sessions = Sessions(store, SystemClock(), SessionsSettings(folder))

    async def is_published() -> bool:
        return await newest_manifest(store, SESSION) is not None

    try:
        await sessions.open(SESSION)
        await eventually(is_published)
    finally:
        await sessions.close()


async def counts(app: ASGIApp, column: str = "", value: str = "") -> dict[str, dict[str, int]]:
    query = {"filter_keys": column, "filter_predicates": "=", "filter_values": value} if column else {}
    answered = await ask(app, f"/api/v0/tasks/summarize?{urlencode(query)}")
    assert answered.status == 200, answered.text
    summary: dict[str, Any] = answered.body["data"]["result"]["result"]["node_id_to_summary"]["cluster"]["summary"]
    return {name: entry["state_counts"] for name, entry in summary.items()}


async def test_a_statement_about_few_tasks_fetches_only_the_files_that_can_hold_them(tmp_path: Path) -> None:
    store, cache = local_store(tmp_path / "store"), LocalCache(tmp_path / "here", 1 << 30)
    keys = [f"tables/tasks/generation-{part.name}.parquet" for part in task_ranges(2)]
    for key in keys:
        await store.put(key, b"")
    tables = SessionTables(store, cache, {TASKS.name: [TableFile(key, 0) for key in keys]})
    excerpt = tables.of_tasks("7f" * 24, "80" * 24)
    await excerpt.fetch([TASKS.name])
    assert [path.exists() for path in tables[TASKS.name]] == [False, True, True, False]
    assert excerpt.layers(TASKS.name).files == tables[TASKS.name][1:3]
    await tables.fetch([TASKS.name])
    assert all(path.exists() for path in tables[TASKS.name])


@pytest.mark.parametrize(
    ("first_id", "last_id", "expected"),
    [
        ("", "", []),
        ("0" * 48, "0" * 48, [0]),
        ("3fff" * 12, "4000" * 12, [0, 1]),
        ("c000" * 12, "f" * 48, [3]),
        ("0" * 48, "f" * 48, [0, 1, 2, 3]),
    ],
)
def test_a_file_may_hold_what_lies_in_its_range(first_id: str, last_id: str, expected: list[int]) -> None:
    found = [part.number for part in task_ranges(2) if may_hold(f"generation-{part.name}", first_id, last_id)]
    assert found == expected
