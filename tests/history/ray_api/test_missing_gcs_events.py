"""A cluster whose GCS never reached its agent: no event of nodes, actors and jobs, and yet they are shown."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from starlette.types import ASGIApp

from raykeeper.history.entities.missing_gcs_events import WARNING
from raykeeper.history.query.database import Database
from support.asking import ask
from support.ingest_scene import local_store
from support.raycapture import HEAD, NODES, SESSION, RayCapture, RecordedNode, put_into
from support.whole_history import built_server

PREFIX = f"/s/{SESSION.namespace}/{SESSION.cluster}/{SESSION.session}"
OF_TASKS = ("TASK_", "ACTOR_TASK_")


class CaptureWithoutGcs(RayCapture):
    """The recorded run as workers alone told it."""

    def events(self, node: RecordedNode, until: datetime) -> Iterator[dict[str, Any]]:
        return (event for event in super().events(node, until) if event["eventType"].startswith(OF_TASKS))


class CaptureWithoutActors(CaptureWithoutGcs):
    """Of these, what is about no actor."""

    def events(self, node: RecordedNode, until: datetime) -> Iterator[dict[str, Any]]:
        return (
            event
            for event in super().events(node, until)
            if event.get("taskDefinitionEvent", {}).get("taskType", "NORMAL_TASK") == "NORMAL_TASK"
            and not event["eventType"].startswith("ACTOR_")
        )


@pytest.fixture
async def app(raycapture: RayCapture, tmp_path: Path) -> AsyncIterator[ASGIApp]:
    async with serving(CaptureWithoutGcs(raycapture.folder), tmp_path) as app:
        yield app


@asynccontextmanager
async def serving(capture: RayCapture, folder: Path) -> AsyncIterator[ASGIApp]:
    await put_into(local_store(folder / "bucket"), capture, "final")
    async with built_server(folder / "bucket", folder) as app:
        yield app


async def rows(app: ASGIApp, kind: str) -> list[dict[str, Any]]:
    result = (await ask(app, f"{PREFIX}/api/v0/{kind}?detail=1&limit=10000")).body["data"]["result"]
    assert result["warnings"] == [WARNING]
    assert result["total"] == len(result["result"])
    return list(result["result"])


def said(capture: RayCapture, path: str) -> Any:
    return next(recorded.body for recorded in capture.requests("final") if recorded.path == path)


async def test_nodes_are_those_of_the_last_poll(app: ASGIApp, raycapture: RayCapture) -> None:
    theirs = said(raycapture, "/api/v0/nodes?detail=True&limit=10000")["data"]["result"]["result"]
    kept = ("node_id", "node_ip", "is_head_node", "state", "node_name", "resources_total", "labels", "start_time_ms")
    assert [{name: row[name] for name in kept} for row in await rows(app, "nodes")] == [
        {name: row[name] for name in kept} for row in theirs
    ]
    hosts = await ask(app, f"{PREFIX}/nodes?view=hostNameList")
    assert len(hosts.body["data"]["hostNameList"]) == len(NODES)
    log = await ask(app, f"{PREFIX}/api/v0/logs/file?node_ip={HEAD.ip}&filename=raylet.out&lines=1")
    assert log.status == 200


async def test_actors_are_those_that_tasks_tell_of(app: ASGIApp, raycapture: RayCapture) -> None:
    theirs = said(raycapture, "/logical/actors")["data"]["actors"]
    ours = {row["actor_id"]: row for row in await rows(app, "actors")}
    assert ours.keys() <= theirs.keys()
    assert len(ours) > 5
    alive = {id_ for id_, actor in theirs.items() if actor["state"] == "ALIVE" and id_ in ours}
    assert {ours[id_]["state"] for id_ in alive} == {"ALIVE"}
    assert [
        (ours[i]["node_id"], theirs[i]) for i in alive if ours[i]["node_id"] != theirs[i]["address"]["nodeId"]
    ] == []
    assert [
        (row["job_id"], theirs[id_]["jobId"]) for id_, row in ours.items() if row["job_id"] != theirs[id_]["jobId"]
    ] == []
    logical = (await ask(app, f"{PREFIX}/logical/actors")).body["data"]["actors"]
    assert logical.keys() == ours.keys()
    logs = [await ask(app, f"{PREFIX}/api/v0/logs/file?actor_id={id_}") for id_ in alive]
    assert {answered.status for answered in logs} == {200}


async def test_a_session_without_actors_says_so_without_a_look_at_its_tasks(
    raycapture: RayCapture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    statements: list[str] = []
    query = Database.query

    async def noted(self: Database, sql: str, *rest: Any) -> list[dict[str, Any]]:
        statements.append(sql)
        return await query(self, sql, *rest)

    async with serving(CaptureWithoutActors(raycapture.folder), tmp_path) as app:
        tasks = (await ask(app, f"{PREFIX}/api/v0/tasks?limit=1")).body["data"]["result"]
        assert tasks["total"] > 5
        monkeypatch.setattr(Database, "query", noted)
        actors = (await ask(app, f"{PREFIX}/api/v0/actors")).body["data"]["result"]
    assert actors["result"] == []
    assert statements
    assert [sql for sql in statements if "task_list" in sql] == []


async def test_a_list_that_events_tell_of_has_no_warning(app: ASGIApp) -> None:
    result = (await ask(app, f"{PREFIX}/api/v0/tasks?limit=1")).body["data"]["result"]
    assert result["warnings"] is None
