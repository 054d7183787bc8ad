"""What never said that it ended: closed by its worker, its job, its node or the cluster."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from raykeeper.history.ingest.records import RecordReader
from raykeeper.history.store.session_state import State
from raykeeper.layout.keys import closed_record_key, end_record_key, node_record_key
from raykeeper.layout.records import ClosedRecord, EndRecord, NodeRecord, encode_record
from raykeeper.storage.opening import open_store
from raykeeper.storage.settings.urls import parse_store_url
from support.ingest_scene import (
    HEAD,
    SESSION,
    START_NS,
    base64_id,
    definition,
    event,
    job_lifecycle,
    lifecycle,
    tables_of,
    task_id,
    timestamp,
    worker_lifecycle,
)

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
WORKER = "cc" * 28
RUNNING = [
    definition(task_id(1)),
    lifecycle(task_id(1), [("SUBMITTED_TO_WORKER", 1)], workerId=base64_id(WORKER)),
    lifecycle(task_id(1), [("RUNNING", 2)], workerPid=7),
]


def closed(folder: Path, *more: dict[str, object], cluster_end_ns: int | None = None) -> tuple[object, ...]:
    [row] = tables_of(folder, [*RUNNING, *more], cluster_end_ns).rows("tasks")
    return row["state"], row["error_type"], row["closed_by"], row["end_ns"] and row["end_ns"] - START_NS


def test_a_running_task_of_a_running_cluster_is_open(tmp_path: Path) -> None:
    assert closed(tmp_path) == ("RUNNING", None, None, None)


def test_a_task_whose_worker_died_has_failed_at_that_time_in_the_gcs_words(tmp_path: Path) -> None:
    death = worker_lifecycle(WORKER, "DEAD", 9, deathInfo={"exitType": "USER_ERROR", "exitDetail": "boom"})
    [row] = tables_of(tmp_path, [*RUNNING, death]).rows("tasks")
    assert (row["state"], row["error_type"], row["closed_by"]) == ("FAILED", "WORKER_DIED", "worker")
    assert row["end_ns"] == START_NS + 9
    assert row["error_message"] == (
        f"Worker running the task ({WORKER}) died with exit_type: 2 with error_message: boom"
    )
    assert row["failed_ns"] is None  # what the events said stays apart


def test_a_task_whose_job_ended_has_failed_at_that_time(tmp_path: Path) -> None:
    assert closed(tmp_path, job_lifecycle("01000000", "FINISHED", 8)) == ("FAILED", "WORKER_DIED", "job", 8)


def test_at_the_clusters_end_an_open_task_keeps_its_state(tmp_path: Path) -> None:
    assert closed(tmp_path, cluster_end_ns=START_NS + 50) == ("RUNNING", None, "cluster", None)


def test_a_task_that_ended_is_not_closed_again(tmp_path: Path) -> None:
    ended = lifecycle(task_id(1), [("FINISHED", 5)])
    finished = job_lifecycle("01000000", "FINISHED", 8)
    assert closed(tmp_path, ended, finished, cluster_end_ns=START_NS + 50) == ("FINISHED", None, None, 5)


def test_a_worker_dies_with_its_node_and_the_head_with_the_cluster(tmp_path: Path) -> None:
    lost = "dd" * 28
    found = [
        event(
            "WORKER_DEFINITION_EVENT",
            "workerDefinitionEvent",
            {"workerId": base64_id(WORKER), "nodeId": base64_id(lost)},
        )
    ]
    for node, state in ((HEAD, "ALIVE"), (lost, "ALIVE"), (lost, "DEAD")):
        ns = START_NS + (30 if state == "DEAD" else 1)
        body = {"nodeId": base64_id(node), "stateTransitions": [{"state": state, "timestamp": timestamp(ns)}]}
        found.append(event("NODE_LIFECYCLE_EVENT", "nodeLifecycleEvent", body))
    made = tables_of(tmp_path, found, START_NS + 50)
    [worker] = made.rows("workers")
    assert (worker["is_alive"], worker["closed_by"], worker["closed_ns"] - START_NS) == (True, "node", 30)
    nodes = {row["node_id"]: (row["state"], row["closed_by"]) for row in made.rows("nodes")}
    assert nodes == {HEAD: ("ALIVE", "cluster"), lost: ("DEAD", None)}


def node(node_id: str, *, role: str = "head", silent: float = 0, started: int = 0) -> NodeRecord:
    return NodeRecord(
        node_id=node_id,
        role="head" if role == "head" else "worker",
        started_at=NOW - timedelta(hours=2) + timedelta(seconds=started),
        beat_at=NOW - timedelta(seconds=silent),
        interval_seconds=30,
    )


def end(node_id: str) -> EndRecord:
    return EndRecord(node_id=node_id, role="head", ended_at=NOW, reason="SIGTERM", is_complete=True)


async def test_a_heartbeat_after_an_end_takes_it_back(tmp_path: Path) -> None:
    """A collector that is restarted alone says that its node ended, and then that it lives."""
    store = open_store(parse_store_url(f"file://{tmp_path}", {}))
    await store.put(node_record_key(SESSION, "a"), encode_record(node("a")))
    await store.put(end_record_key(SESSION, "a"), encode_record(end("a")))
    facts = await RecordReader(store, SESSION).read()
    assert (facts.ends, facts.state(datetime.now(UTC)).state) == ((end("a"),), State.ENDED)
    await store.put(node_record_key(SESSION, "a"), encode_record(node("a")))
    facts = await RecordReader(store, SESSION).read()
    assert (facts.ends, facts.state(datetime.now(UTC)).state) == ((), State.RUNNING)


async def test_a_head_that_goes_on_with_a_closed_session_opens_it_again(tmp_path: Path) -> None:
    store = open_store(parse_store_url(f"file://{tmp_path}", {}))
    record = ClosedRecord(closed_at=NOW, reason="head lost", cluster_uid="u")
    await store.put(node_record_key(SESSION, "a"), encode_record(node("a")))
    await store.put(closed_record_key(SESSION), encode_record(record))
    assert (await RecordReader(store, SESSION).read()).closed == record
    await store.put(node_record_key(SESSION, "b"), encode_record(node("b", role="worker")))
    assert (await RecordReader(store, SESSION).read()).closed == record
    await store.put(node_record_key(SESSION, "a"), encode_record(node("a")))
    assert (await RecordReader(store, SESSION).read()).closed is None
