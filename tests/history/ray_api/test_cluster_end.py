"""Lists of a dead cluster: what lived to its end is over, what tasks were doing stays, and logs stay in reach."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from starlette.types import ASGIApp

from raykeeper.clock import SystemClock
from raykeeper.history.entities.job import CLUSTER_ENDED, ended_with_cluster
from raykeeper.history.ingest.sessions import Sessions, SessionsSettings
from raykeeper.history.logs.store import LogStore
from raykeeper.history.query.context import SessionContext
from raykeeper.history.query.database import Database
from raykeeper.layout.keys import PolledKey
from raykeeper.layout.polled import encode_polled
from raykeeper.layout.records import PolledAnswer
from support.asking import ask
from support.goldensession import dashboard
from support.history_scene import PackBuilder
from support.ingest_scene import (
    HEAD,
    SESSION,
    START_NS,
    base64_id,
    definition,
    event,
    finished_task,
    job_lifecycle,
    lifecycle,
    local_store,
    put_records,
    put_segment,
    task_id,
    timestamp,
    worker_lifecycle,
)

ENDED_AT = datetime.now(UTC).replace(microsecond=0)
ENDED_MS = int(ENDED_AT.timestamp()) * 1000
WORKER, GONE_WORKER = "c1" * 28, "c2" * 28
ACTOR = "ac" * 12 + "01000000"
CONTROLLER = "ee" * 12 + "03000000"
SERVE = "ServeController"


def of_the_gcs(kind: str, **body: Any) -> dict[str, Any]:
    words = kind.split("_")
    payload = words[0] + "".join(word.capitalize() for word in words[1:]) + "Event"
    return event(f"{kind.upper()}_EVENT", payload, body)


def alive(ns: int = 1, **more: Any) -> list[dict[str, Any]]:
    return [{"state": "ALIVE", "timestamp": timestamp(START_NS + ns), **more}]


EVENTS = [
    of_the_gcs("node_definition", nodeId=base64_id(HEAD), nodeIpAddress="10.0.0.1", hostname="head", labels={}),
    of_the_gcs("node_lifecycle", nodeId=base64_id(HEAD), stateTransitions=alive(resources={"CPU": 2.0})),
    of_the_gcs("actor_definition", actorId=base64_id(ACTOR), jobId=base64_id("01000000"), className="Counter"),
    of_the_gcs("actor_lifecycle", actorId=base64_id(ACTOR), stateTransitions=alive(nodeId=base64_id(HEAD), pid=7)),
    of_the_gcs("actor_definition", actorId=base64_id(CONTROLLER), jobId=base64_id("03000000"), className=SERVE),
    of_the_gcs("actor_lifecycle", actorId=base64_id(CONTROLLER), stateTransitions=alive(nodeId=base64_id(HEAD), pid=8)),
    *(
        of_the_gcs("worker_definition", workerId=base64_id(worker), nodeId=base64_id(HEAD), workerType="WORKER", pid=7)
        for worker in (WORKER, GONE_WORKER)
    ),
    worker_lifecycle(GONE_WORKER, "DEAD", 5, deathInfo={"exitType": "USER_ERROR", "exitDetail": "boom"}),
    of_the_gcs("driver_job_definition", jobId=base64_id("01000000"), driverPid="9", driverNodeId=base64_id(HEAD)),
    job_lifecycle("01000000", "CREATED", 1),
    of_the_gcs("driver_job_definition", jobId=base64_id("02000000"), driverPid="9", driverNodeId=base64_id(HEAD)),
    job_lifecycle("02000000", "FINISHED", 9),
    *finished_task(1),
    definition(task_id(2)),
    lifecycle(task_id(2), [("RUNNING", 2)], workerId=base64_id(WORKER)),
]
POLLED_JOBS = [
    {"type": "SUBMISSION", "job_id": "01000000", "submission_id": "works", "status": "RUNNING", "end_time": None},
    {"type": "SUBMISSION", "job_id": "02000000", "submission_id": "unknown", "status": "RUNNING", "end_time": None},
    {"type": "SUBMISSION", "job_id": None, "submission_id": "unseen", "status": "RUNNING", "end_time": None},
    {"type": "SUBMISSION", "job_id": None, "submission_id": "done", "status": "SUCCEEDED", "end_time": 5},
]
UNMEASURED = PolledAnswer(
    path="/nodes?view=summary",
    polled_at=ENDED_AT,
    status=200,
    body=msgspec.Raw(msgspec.json.encode({"data": {"summary": [{"raylet": {"nodeId": HEAD, "state": "ALIVE"}}]}})),
)
"""What a head says of a node that has just come."""
JOB_EVENT = {
    "event_id": "1",
    "source_type": "JOBS",
    "message": "Completed a ray job unseen with a status SUCCEEDED.",
    "timestamp": "1794773500",
    "custom_fields": {"submission_id": "unseen"},
}


@pytest.fixture(params=[True, False], ids=["ended", "running"])
def is_ended(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
async def app(tmp_path: Path, *, is_ended: bool) -> AsyncIterator[ASGIApp]:
    store, clock = local_store(tmp_path / "store"), SystemClock()
    await put_segment(store, 0, EVENTS)
    await put_records(store, ENDED_AT, is_ended=is_ended)
    answer = PolledAnswer(
        path="/api/jobs/", polled_at=ENDED_AT, status=200, body=msgspec.Raw(msgspec.json.encode(POLLED_JOBS))
    )
    await store.put(PolledKey(SESSION, "/api/jobs/", ENDED_MS).key, encode_polled(answer))
    await store.put(PolledKey(SESSION, UNMEASURED.path, ENDED_MS).key, encode_polled(UNMEASURED))
    logs = PackBuilder(store, SESSION, HEAD)
    logs.add("events/event_JOBS.log", msgspec.json.encode(JOB_EVENT) + b"\n")
    await logs.put()
    sessions, database = Sessions(store, clock, SessionsSettings(tmp_path / "local")), Database(tmp_path / "local")
    try:
        yield dashboard(SessionContext(await sessions.open(SESSION), database, LogStore(store, clock)))
    finally:
        await sessions.close()
        await database.close()


async def rows(app: ASGIApp, kind: str) -> list[dict[str, Any]]:
    answered = await ask(app, f"/api/v0/{kind}?detail=1")
    found: list[dict[str, Any]] = answered.body["data"]["result"]["result"]
    return found


async def test_serves_controller_is_not_dead_in_the_frontend_because_the_cluster_is_over(
    app: ASGIApp, *, is_ended: bool
) -> None:
    """The frontend takes a dead controller for an unhealthy Serve, in red and above all else."""
    shown = (await ask(app, "/logical/actors")).body["data"]["actors"]
    assert shown[CONTROLLER]["state"] == "ALIVE"
    assert shown[ACTOR]["state"] == ("DEAD" if is_ended else "ALIVE")
    listed = {actor["actor_id"]: actor["state"] for actor in await rows(app, "actors")}
    assert listed[CONTROLLER] == ("DEAD" if is_ended else "ALIVE")


async def test_what_lived_to_the_end_of_its_cluster_ended_with_it(app: ASGIApp, *, is_ended: bool) -> None:
    over = ("DEAD", CLUSTER_ENDED, ENDED_MS) if is_ended else ("ALIVE", None, 0)
    [node] = await rows(app, "nodes")
    assert (node["state"], node["state_message"], node["end_time_ms"]) == over
    actor = next(actor for actor in await rows(app, "actors") if actor["actor_id"] == ACTOR)
    cause = {"actor_died_error_context": {"error_message": CLUSTER_ENDED}} if is_ended else None
    assert (actor["state"], actor["death_cause"]) == (over[0], cause)
    page = (await ask(app, f"/logical/actors/{ACTOR}")).body["data"]["detail"]
    assert (page["state"], page["exitDetail"], page["endTime"]) == (over[0], over[1] or "-", over[2])
    workers = {row["worker_id"]: row for row in await rows(app, "workers")}
    for lived_on in (WORKER, "01000000".ljust(56, "f")):
        ending = [workers[lived_on][name] for name in ("is_alive", "exit_type", "exit_detail", "end_time_ms")]
        assert ending == [not is_ended, None, over[1], over[2]]
    assert (workers[GONE_WORKER]["exit_type"], workers[GONE_WORKER]["exit_detail"]) == ("USER_ERROR", "boom")


async def test_lists_are_filtered_and_counted_by_what_they_show(app: ASGIApp, *, is_ended: bool) -> None:
    state = "DEAD" if is_ended else "ALIVE"
    for kind, number in (("nodes", 1), ("actors", 2)):
        path = f"/api/v0/{kind}?filter_keys=state&filter_predicates=%3D&filter_values={state}"
        assert len((await ask(app, path)).body["data"]["result"]["result"]) == number
    summary = (await ask(app, "/api/v0/actors/summarize")).body["data"]["result"]["result"]
    assert summary["node_id_to_summary"]["cluster"]["summary"]["Counter"]["state_counts"] == {state: 1}


async def test_a_task_keeps_what_it_was_doing_when_its_cluster_ended(app: ASGIApp, *, is_ended: bool) -> None:
    tasks = {row["task_id"]: row for row in await rows(app, "tasks")}
    cut = tasks[task_id(2)]
    expected = (CLUSTER_ENDED, ENDED_MS) if is_ended else (None, None)
    assert (cut["state"], cut["error_type"], cut["error_message"], cut["end_time_ms"]) == ("RUNNING", None, *expected)
    assert tasks[task_id(1)]["error_message"] is None


async def test_a_job_that_was_at_work_failed_with_its_cluster(app: ASGIApp, *, is_ended: bool) -> None:
    jobs = {job["submission_id"]: job for job in (await ask(app, "/api/jobs/")).body}
    expected = ("FAILED", CLUSTER_ENDED, ENDED_MS) if is_ended else ("RUNNING", None, None)
    assert (jobs["works"]["status"], jobs["works"].get("message"), jobs["works"]["end_time"]) == expected
    assert (await ask(app, "/api/jobs/works")).body == jobs["works"]
    assert (jobs["done"]["status"], jobs["done"]["end_time"]) == ("SUCCEEDED", 5)
    assert jobs["unknown"]["status"] == "RUNNING"  # its driver ended by itself, and no poll saw how


async def test_a_job_that_ended_after_the_last_poll_ended_as_rays_event_file_says(
    app: ASGIApp, *, is_ended: bool
) -> None:
    job = (await ask(app, "/api/jobs/unseen")).body
    assert (job["status"], job["end_time"]) == (("SUCCEEDED", 1794773500000) if is_ended else ("RUNNING", None))


async def test_a_node_that_nobody_named_is_called_by_its_address(app: ASGIApp) -> None:
    [node] = await rows(app, "nodes")
    assert node["node_name"] == "10.0.0.1"
    path = "/api/v0/nodes?filter_keys=node_name&filter_predicates=%3D&filter_values=10.0.0.1"
    assert len((await ask(app, path)).body["data"]["result"]["result"]) == 1


async def test_hosts_are_listed_although_one_was_never_measured(app: ASGIApp) -> None:
    assert (await ask(app, "/nodes?view=hostNameList")).body["data"]["hostNameList"] == ["head"]


async def test_the_frontend_sees_a_living_node_so_that_it_offers_its_logs(app: ASGIApp) -> None:
    [node] = (await ask(app, "/nodes?view=summary")).body["data"]["summary"]
    assert node["raylet"]["state"] == "ALIVE"


def test_a_job_that_waited_for_its_driver_failed_too() -> None:
    waiting = {"status": "PENDING", "message": "waits"}
    assert ended_with_cluster(waiting, None) == waiting
    assert ended_with_cluster(waiting, ENDED_AT) == {"status": "FAILED", "message": CLUSTER_ENDED, "end_time": ENDED_MS}
