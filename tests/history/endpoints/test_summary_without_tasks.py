"""A summary by function costs what there are functions, not what there are tasks."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from starlette.types import ASGIApp

from asking import ask
from conditions import eventually
from goldensession import dashboard
from ingest_scene import SESSION, Event, definition, lifecycle, local_store, put_records, put_segment, task_id
from raykeeper.clock import SystemClock
from raykeeper.history.asked import Asked
from raykeeper.history.database import Database
from raykeeper.history.ingest.manifests import newest_manifest
from raykeeper.history.ingest.sessions import Sessions, SessionsSettings
from raykeeper.history.logs.logstore import LogStore
from raykeeper.storage.store import ObjectStore

FUNCTION = {"pythonFunctionDescriptor": {"moduleName": "main", "className": "", "functionName": "main"}}


def named_task(number: int, name: str, state: str, pid: int) -> list[Event]:
    """A task of the function `main`, under a name of its own or none."""
    task = task_id(number)
    return [definition(task, name=name, taskFunc=FUNCTION), lifecycle(task, [(state, number)], workerPid=pid)]


async def test_counts_by_name_are_answered_without_fetching_any_task(tmp_path: Path) -> None:
    store, clock = local_store(tmp_path / "store"), SystemClock()
    await ingest_elsewhere(store, tmp_path / "elsewhere")
    sessions, database = Sessions(store, clock, SessionsSettings(tmp_path / "here")), Database(tmp_path / "here")
    try:
        opened = await sessions.open(SESSION)
        app = dashboard(Asked(opened, database, LogStore(store, clock)))
        assert await counts(app) == {"main": {"FINISHED": 2, "FAILED": 1}, "step": {"FINISHED": 1}}
        assert await counts(app, "name", "STEP") == {"step": {"FINISHED": 1}}
        assert not any(path.exists() for name in ("tasks", "task_list") for path in opened.tables[name])
        assert await counts(app, "worker_pid", "7") == {"main": {"FAILED": 1}}  # only the tasks can tell
        assert all(path.exists() for path in opened.tables["task_list"])
    finally:
        await sessions.close()
        await database.close()


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
        await eventually(is_published, seconds=60)
    finally:
        await sessions.close()


async def counts(app: ASGIApp, column: str = "", value: str = "") -> dict[str, dict[str, int]]:
    query = {"filter_keys": column, "filter_predicates": "=", "filter_values": value} if column else {}
    answered = await ask(app, f"/api/v0/tasks/summarize?{urlencode(query)}")
    assert answered.status == 200, answered.text
    summary: dict[str, Any] = answered.body["data"]["result"]["result"]["node_id_to_summary"]["cluster"]["summary"]
    return {name: entry["state_counts"] for name, entry in summary.items()}
