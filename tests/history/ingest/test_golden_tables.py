"""The recorded run through segments, store and ingest says of every task, actor, node and worker what Ray said."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from raykeeper.clock import SystemClock
from raykeeper.history.ingest.sessions import Sessions, SessionsSettings
from raykeeper.history.ingest.tables import state_column
from raykeeper.rayevents.states import TASK_STATES
from support.ingest_scene import LocalTables, local_store, read_rows, segment
from support.raycapture import MOMENTS, Moment, RayCapture, put_into

Tables = dict[str, list[dict[str, Any]]]
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(scope="module", params=MOMENTS)
def moment(request: pytest.FixtureRequest) -> Moment:
    chosen: Moment = request.param
    return chosen


@pytest.fixture(scope="module")
def tables(moment: Moment, raycapture: RayCapture, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """Every table of the run at one moment."""
    return asyncio.run(ingested(raycapture, moment, tmp_path_factory.mktemp(f"golden-{moment}")))


async def ingested(capture: RayCapture, moment: Moment, folder: Path) -> Tables:
    store = local_store(folder / "store")
    session = await put_into(store, capture, moment)
    sessions = Sessions(store, SystemClock(), SessionsSettings(folder / "cache"))
    opened = await sessions.open(session)
    await opened.tables.fetch(list(opened.tables))
    rows = {name: read_rows(files) for name, files in opened.tables.items()}
    await sessions.close()
    return rows


def recorded(capture: RayCapture, moment: str, name: str) -> list[dict[str, Any]]:
    answer = json.loads((capture.folder / "api" / moment / f"{name}.json").read_text())
    rows: list[dict[str, Any]] = answer["response"]["json"]["data"]["result"]["result"]
    return rows


def milliseconds(ns: int | None) -> float | None:
    return None if ns is None else float(ns // 1_000_000)


def shown_task(row: dict[str, Any]) -> dict[str, Any]:
    """A row of ours in the words of Ray's state API."""
    events = [
        {"state": state, "created_ms": milliseconds(row[state_column(state)])}
        for state in TASK_STATES
        if row[state_column(state)] is not None
    ]
    if row["closed_by"] in ("worker", "job"):
        events.append({"state": "FAILED", "created_ms": milliseconds(row["closed_ns"])})
    return row | {
        "events": events,
        "creation_time_ms": milliseconds(row["creation_ns"]),
        "start_time_ms": milliseconds(row["start_ns"]),
        "end_time_ms": milliseconds(row["end_ns"]),
        "required_resources": json.loads(row["required_resources"]),
        "label_selector": json.loads(row["label_selector"]),
        "error_message": row["error_message"] and _ANSI.sub("", row["error_message"]),
        "spans": [span["event_name"] for span in row["spans"] or ()],
        "has_log": row["stdout_file"] is not None,
    }


def asked_task(row: dict[str, Any]) -> dict[str, Any]:
    return row | {
        "serialized_runtime_env": row["runtime_env_info"]["serialized_runtime_env"],
        "spans": [span["event_name"] for span in (row["profiling_data"] or {}).get("events", ())],
        "has_log": bool(row["task_log_info"]),
    }


TASK_FIELDS = (
    "name",
    "state",
    "job_id",
    "actor_id",
    "type",
    "func_or_class_name",
    "parent_task_id",
    "node_id",
    "worker_id",
    "worker_pid",
    "error_type",
    "error_message",
    "language",
    "placement_group_id",
    "required_resources",
    "label_selector",
    "call_site",
    "events",
    "creation_time_ms",
    "start_time_ms",
    "end_time_ms",
    "serialized_runtime_env",
    "spans",
    "has_log",
)


def test_every_task_attempt_has_the_fields_that_ray_showed(tables: Tables, moment: str, raycapture: RayCapture) -> None:
    ours = {
        (row["task_id"], row["attempt_number"]): shown_task(row) for row in tables["tasks"] if row["has_definition"]
    }
    rays = {
        (row["task_id"], row["attempt_number"]): asked_task(row)
        for row in recorded(raycapture, moment, "state.tasks_with_driver")
    }
    assert ours.keys() == rays.keys()
    differences = [
        (rays[key]["name"], field, rays[key][field], ours[key][field])
        for key in rays
        for field in TASK_FIELDS
        if rays[key][field] != ours[key][field]
    ]
    assert differences == []


def test_the_lists_and_the_summary_agree_with_the_whole_rows(tables: Tables) -> None:
    def listed(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
        return [(row["task_id"], row["attempt_number"], row["name"], row["state"]) for row in rows]

    assert listed(tables["task_list"]) == sorted(listed(tables["tasks"]))
    unfinished = [row for row in tables["task_list"] if row["state"] != "FINISHED"]
    assert listed(tables["unfinished_tasks"]) == listed(unfinished)
    defined = sum(1 for row in tables["tasks"] if row["has_definition"])
    assert sum(row["number"] for row in tables["task_summary"]) == defined


ACTOR_FIELDS = (
    "state",
    "class_name",
    "job_id",
    "name",
    "node_id",
    "pid",
    "ray_namespace",
    "serialized_runtime_env",
    "is_detached",
    "placement_group_id",
    "repr_name",
)


def test_every_actor_has_the_fields_that_ray_showed(tables: Tables, moment: str, raycapture: RayCapture) -> None:
    ours = {row["actor_id"]: row for row in tables["actors"]}
    rays = {row["actor_id"]: row for row in recorded(raycapture, moment, "state.actors_detail")}
    assert ours.keys() == rays.keys()
    for key, row in rays.items():
        assert {field: ours[key][field] for field in ACTOR_FIELDS} == {field: row[field] for field in ACTOR_FIELDS}
        assert ours[key]["num_restarts"] == int(row["num_restarts"])
        assert json.loads(ours[key]["required_resources"]) == row["required_resources"]


def test_every_node_has_the_fields_that_ray_showed(tables: Tables, moment: str, raycapture: RayCapture) -> None:
    ours = {row["node_id"]: row for row in tables["nodes"]}
    for row in recorded(raycapture, moment, "state.nodes_detail"):
        node = ours.pop(row["node_id"])
        assert (node["state"], node["node_ip"], node["node_name"]) == (row["state"], row["node_ip"], row["node_name"])
        assert node["is_head_node"] is row["is_head_node"]
        assert json.loads(node["labels"]) == row["labels"]
        assert milliseconds(node["started_ns"]) == row["start_time_ms"]
    assert not ours


def test_every_worker_process_has_the_fields_that_ray_showed(
    tables: Tables, moment: str, raycapture: RayCapture
) -> None:
    ours = {row["worker_id"]: row for row in tables["workers"]}
    rays = [row for row in recorded(raycapture, moment, "state.workers_detail") if row["worker_type"] == "WORKER"]
    assert len(ours) == len(rays)
    for row in rays:
        worker = ours[row["worker_id"]]
        assert worker["is_alive"] is row["is_alive"]
        assert (worker["pid"], worker["node_id"]) == (row["pid"], row["node_id"])
        assert (worker["exit_type"], worker["exit_detail"]) == (row["exit_type"], row["exit_detail"])
        assert (worker["start_ms"], worker["end_ms"]) == (row["start_time_ms"], row["end_time_ms"])


def test_events_of_ray_2_52_make_tables_without_what_it_does_not_send(raycapture: RayCapture, tmp_path: Path) -> None:
    bodies = sorted((raycapture.folder / "events-2.52").glob("0*.json"))
    made = LocalTables(tmp_path)
    projected = made.add([segment(json.loads(body.read_text())) for body in bodies])
    made.merge()
    made.close()
    assert projected.gaps == ()
    assert not [row for row in made.rows("counters") if row["odd_events"]]
    tasks = [row for row in made.rows("tasks") if row["has_definition"]]
    assert {row["state"] for row in tasks} >= {"FINISHED"}
    assert all(row["name"] or row["type"] == "DRIVER_TASK" for row in tasks)
    assert {row["stdout_file"] for row in tasks} == {None}
    assert made.rows("workers") == []
    assert [row["hostname"] for row in made.rows("nodes")] == [None] * len(made.rows("nodes"))
