"""Any order, any repeats, any batches: the same tables. A small merge in plain Python says which."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raykeeper.history.ingest.tables import state_column
from raykeeper.rayevents.states import TASK_STATES
from support.ingest_scene import (
    START_NS,
    Event,
    LocalTables,
    Row,
    base64_id,
    definition,
    event,
    job_lifecycle,
    lifecycle,
    segment,
    tables_of,
    task_id,
    timestamp,
    worker_lifecycle,
)

TASKS = [task_id(number) for number in range(1, 4)]
WORKERS = ["c1" * 28, "c2" * 28]
moments = st.integers(0, 5_000_000_000)
transitions = st.lists(st.tuples(st.sampled_from(TASK_STATES), moments), max_size=4)


@st.composite
def lifecycles(draw: st.DrawFn) -> Event:
    more: dict[str, Any] = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "workerId": st.sampled_from([base64_id(worker) for worker in WORKERS]),
                "workerPid": st.integers(1, 4),
                "actorReprName": st.sampled_from(["", "A(1)", "A(2)"]),
                "rayErrorInfo": st.sampled_from(
                    [{"errorType": kind, "errorMessage": "no"} for kind in ("OUT_OF_MEMORY", "WORKER_DIED")]
                ),
                "taskLogInfo": st.fixed_dictionaries(
                    {"stdoutFile": st.just("/logs/a.out"), "stdoutStart": st.integers(0, 3).map(str)},
                    optional={"stdoutEnd": st.integers(3, 9).map(str)},
                ),
            },
        )
    )
    return lifecycle(draw(st.sampled_from(TASKS)), draw(transitions), attempt=draw(st.integers(0, 1)), **more)


@st.composite
def profiles(draw: st.DrawFn) -> Event:
    span = st.fixed_dictionaries(
        {
            "startTime": st.integers(0, 3).map(str),
            "endTime": st.integers(3, 6).map(str),
            "eventName": st.sampled_from(["task:execute", "task:store"]),
            "extraData": st.just("{}"),
        }
    )
    body = {
        "taskId": base64_id(draw(st.sampled_from(TASKS))),
        "attemptNumber": draw(st.integers(0, 1)),
        "jobId": base64_id("01000000"),
        "profileEvents": {"componentType": "worker", "events": draw(st.lists(span, max_size=3))},
    }
    return event("TASK_PROFILE_EVENT", "taskProfileEvents", body)


definitions = st.builds(
    definition, st.sampled_from(TASKS), attempt=st.integers(0, 1), name=st.sampled_from(["", "a", "module.b"])
)
cluster_events = st.one_of(
    st.builds(worker_lifecycle, st.sampled_from(WORKERS), st.sampled_from(["ALIVE", "DEAD"]), moments),
    st.builds(job_lifecycle, st.just("01000000"), st.sampled_from(["CREATED", "FINISHED"]), moments),
)
events = st.lists(st.one_of(definitions, lifecycles(), profiles(), cluster_events), min_size=1, max_size=14)


def merged_task(parts: Sequence[Event]) -> Row:
    """What one attempt's events say together, by the rules in words: earliest times, greatest values, first error."""
    row: Row = {state_column(state): None for state in TASK_STATES}
    row |= {"has_definition": False, "task_name": None, "worker_id": None, "worker_pid": None, "actor_repr_name": None}
    row |= {"stdout_file": None, "stdout_start": None, "stdout_end": None}
    errors, spans = [], set()
    for part in parts:
        if body := part.get("taskDefinitionEvent"):
            row["has_definition"] = True
            _take(row, "task_name", body["taskName"], max)
        elif body := part.get("taskLifecycleEvent"):
            times = [(item["state"], _ns(item["timestamp"])) for item in body["stateTransitions"]]
            for state, ns in times:
                _take(row, state_column(state), ns, min)
            _take(row, "worker_id", _hex(body["workerId"]), max)
            _take(row, "worker_pid", body["workerPid"] or None, max)
            _take(row, "actor_repr_name", body.get("actorReprName"), max)
            log = body.get("taskLogInfo", {})
            _take(row, "stdout_file", log.get("stdoutFile"), max)
            for column, field in (("stdout_start", "stdoutStart"), ("stdout_end", "stdoutEnd")):
                _take(row, column, int(log[field]) if field in log else None, max)
            if error := body.get("rayErrorInfo"):
                failed = [ns for state, ns in times if state == "FAILED"]
                errors.append((min(failed, default=_ns(part["timestamp"])), error["errorType"]))
        else:
            spans |= {
                (int(span["endTime"]), int(span["startTime"]), span["eventName"])
                for span in part["taskProfileEvents"]["profileEvents"]["events"]
            }
    return row | {"error": min(errors, default=None), "spans": sorted(spans)}


def _take(row: Row, column: str, value: Any, choose: Any) -> None:
    if value is not None:
        row[column] = value if row[column] is None else choose(row[column], value)


def _ns(text: str) -> int:
    whole, _, digits = text.removesuffix("Z").partition(".")
    assert whole.startswith("2026-11-15T10:00:0")
    return START_NS + int(whole[-1]) * 1_000_000_000 + int(digits.ljust(9, "0"))


def _hex(text: str) -> str | None:
    return {base64_id(worker): worker for worker in WORKERS}.get(text)


def reference(found: Sequence[Event]) -> dict[tuple[str, int], Row]:
    names = {base64_id(task): task for task in TASKS}
    parts: dict[tuple[str, int], list[Event]] = {}
    for item in found:
        body = item.get("taskDefinitionEvent") or item.get("taskLifecycleEvent") or item.get("taskProfileEvents")
        if body:
            attempt = body["taskAttempt"] if "taskAttempt" in body else body["attemptNumber"]
            parts.setdefault((names[body["taskId"]], attempt), []).append(item)
    return {key: merged_task(of_key) for key, of_key in parts.items()}


def ours(rows: Sequence[Row]) -> dict[tuple[str, int], Row]:
    columns = ["has_definition", "task_name", "worker_id", "worker_pid", "actor_repr_name"]
    columns += ["stdout_file", "stdout_start", "stdout_end", *map(state_column, TASK_STATES)]
    found = {}
    for row in rows:
        error, spans = row["reported_error"], row["spans"] or ()
        found[row["task_id"], row["attempt_number"]] = {column: row[column] for column in columns} | {
            "error": error and (error["ns"], error["error_type"]),
            "spans": [(span["end_ns"], span["start_ns"], span["event_name"]) for span in spans],
        }
    return found


@settings(max_examples=12, deadline=None)
@given(found=events, data=st.data())
def test_tables_do_not_depend_on_order_repeats_or_batches(found: list[Event], data: st.DataObject) -> None:
    repeated = data.draw(st.permutations(found + data.draw(st.lists(st.sampled_from(found), max_size=4))))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(repeated)), max_size=3)))
    pieces = [repeated[start:end] for start, end in zip([0, *cuts], [*cuts, len(repeated)], strict=True)]
    with TemporaryDirectory() as first, TemporaryDirectory() as second:
        at_once = tables_of(Path(first), found)
        step_by_step = LocalTables(Path(second))
        for number, piece in enumerate(pieces):
            step_by_step.add([segment(piece)], name=f"piece-{number}")
            if data.draw(st.booleans()):
                step_by_step.merge(into=f"tables-{number}")  # a merge of merged rows
        step_by_step.merge(into="tables")
        step_by_step.close()
        for table in ("tasks", "task_list", "unfinished_tasks", "task_summary", "workers", "jobs"):
            assert step_by_step.rows(table) == at_once.rows(table)
        assert ours(at_once.rows("tasks")) == reference(found)


def test_a_state_is_the_last_in_the_order_of_rays_enum_not_in_time(tmp_path: Path) -> None:
    task = task_id(1)
    made = tables_of(tmp_path, [lifecycle(task, [("FINISHED", 5), ("RUNNING", 9)])])
    assert [(row["state"], row["end_ns"] - START_NS) for row in made.rows("tasks")] == [("FINISHED", 5)]


def test_an_event_without_transitions_still_gives_its_pid(tmp_path: Path) -> None:
    [row] = tables_of(tmp_path, [definition(task_id(1)), lifecycle(task_id(1), [], workerPid=42)]).rows("tasks")
    assert (row["worker_pid"], row["state"]) == (42, None)


def test_nanoseconds_survive_in_every_length_that_ray_prints(tmp_path: Path) -> None:
    for number, ns in enumerate([0, 7_000_000, 7_123_000, 7_123_456]):
        assert timestamp(START_NS + ns).endswith(["00Z", "007Z", "007123Z", "007123456Z"][number])
    states = [("PENDING_ARGS_AVAIL", 0), ("RUNNING", 7_000_000), ("FAILED", 7_123_000), ("FINISHED", 7_123_456)]
    [row] = tables_of(tmp_path, [lifecycle(task_id(1), states)]).rows("tasks")
    assert [row[state_column(state)] - START_NS for state, _ in states] == [ns for _, ns in states]


@pytest.mark.parametrize("class_name", ["Counter", "make.<locals>.Counter", "Outer.Counter"])
def test_an_actors_methods_carry_its_repr_unless_they_were_named(tmp_path: Path, class_name: str) -> None:
    function = {"pythonFunctionDescriptor": {"className": class_name, "functionName": "inc", "moduleName": "m"}}
    found = []
    for number, name in enumerate(["Counter.inc", "mine"]):
        body = definition(task_id(number))["taskDefinitionEvent"] | {"actorTaskName": name, "actorFunc": function}
        found.append(event("ACTOR_TASK_DEFINITION_EVENT", "actorTaskDefinitionEvent", body))
        found.append(lifecycle(task_id(number), [], actorReprName="Counter(3)"))
    rows = {row["task_id"]: row for row in tables_of(tmp_path, found).rows("tasks")}
    assert [rows[task_id(number)]["name"] for number in range(2)] == ["Counter(3).inc", "mine"]
    assert {row["func_or_class_name"] for row in rows.values()} == {"Counter.inc"}


def test_json_is_kept_as_ray_wrote_it(tmp_path: Path) -> None:
    more: dict[str, Any] = {
        "requiredResources": {"CPU": 0.1, "node:10.0.0.1": 0.001},
        "labelSelector": {"ray.io/x": '!in(a,"b")'},
    }
    [row] = tables_of(tmp_path, [definition(task_id(1), **more)]).rows("tasks")
    assert json.loads(row["required_resources"]) == more["requiredResources"]
    assert json.loads(row["label_selector"]) == more["labelSelector"]


def actor_events(actor: str, *transitions: dict[str, Any]) -> list[dict[str, Any]]:
    ids = {"actorId": base64_id(actor), "jobId": base64_id(actor[-8:])}
    return [
        event("ACTOR_DEFINITION_EVENT", "actorDefinitionEvent", {**ids, "className": "Counter"}),
        event("ACTOR_LIFECYCLE_EVENT", "actorLifecycleEvent", {**ids, "stateTransitions": list(transitions)}),
    ]


def test_where_an_old_ray_says_no_pid_of_an_actor_it_is_that_of_the_last_task_that_made_it(tmp_path: Path) -> None:
    alive = {"state": "ALIVE", "timestamp": timestamp(START_NS), "nodeId": "", "workerId": ""}
    actors: dict[str, list[dict[str, Any]]] = {
        "old": [alive],
        "new": [{**alive, "pid": 7}],
        "waiting": [{**alive, "state": "PENDING_CREATION"}],
    }
    ids = {name: f"{number:024x}01000000" for number, name in enumerate(actors)}
    found = [item for name, transitions in actors.items() for item in actor_events(ids[name], *transitions)]
    for actor in ids.values():
        found += [
            lifecycle("f" * 16 + actor, [("RUNNING", 1)], attempt=attempt, workerPid=pid)
            for attempt, pid in ((1, 40), (0, 50))
        ]
    found.append(lifecycle("f" * 40 + "01000000", [("RUNNING", 1)], workerPid=60))
    rows = {row["actor_id"]: row["pid"] for row in tables_of(tmp_path, found).rows("actors")}
    assert rows == {ids["old"]: 40, ids["new"]: 7, ids["waiting"]: 0}
