"""Every filter on every column gives the rows that Ray's own filter gives."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from bed.rayenv import ray_python
from raykeeper.history.http.ray_api import actors, events, jobs, nodes, objects, tasks, workers
from raykeeper.history.http.ray_api.state_query import Columns
from support.asking import ask
from support.goldensession import Moments, dashboard, golden_session

pytestmark = pytest.mark.bed


RAY_FILTERS = Path(__file__).parent / "ray_filters.py"
VALUES_PER_COLUMN = 1


@dataclass(frozen=True)
class StateList:
    """One list: where it is, what Ray calls its schema, and how its rows are told apart."""

    path: str
    schema: str
    columns: Columns
    identity: tuple[str, ...]
    absent: tuple[str, ...]
    """Columns that a row of Ray's does not have where the answer says null."""


LISTS = (
    StateList("/api/v0/tasks", "TaskState", tasks.COLUMNS, ("task_id", "attempt_number"), ("error_type",)),
    StateList(
        "/api/v0/actors",
        "ActorState",
        actors.ACTORS.columns,
        ("actor_id",),
        ("node_id", "placement_group_id"),
    ),
    StateList(
        "/api/v0/workers",
        "WorkerState",
        workers.WORKERS.columns,
        ("worker_id",),
        ("exit_type", "debugger_port", "num_paused_threads"),
    ),
    StateList("/api/v0/nodes", "NodeState", nodes.NODES.columns, ("node_id",), ()),
    StateList("/api/v0/placement_groups", "PlacementGroupState", objects.GROUP_COLUMNS, ("placement_group_id",), ()),
    StateList("/api/v0/jobs", "JobState", jobs.COLUMNS, ("job_id", "submission_id"), ()),
)

NEVER_EQUAL_IN_RAY = {("TaskState", "worker_pid"), ("ActorState", "pid"), ("PlacementGroupState", "is_detached")}
"""With `!=` Ray compares these with a text, so that nothing is ever equal. Ours compares numbers with numbers."""


async def test_every_column_filters_as_in_ray(ingested_moments: Moments) -> None:
    async with golden_session(ingested_moments["final"]) as asked:
        app = dashboard(asked)
        everything = {item.path: (await _rows(app, item, {})) for item in LISTS}
        cases = [case for item in LISTS for case in _cases(item, everything[item.path])]
        expected = _ask_ray(cases, everything)
        for (item, key, predicate, value), numbers in zip(cases, expected, strict=True):
            query = {"filter_keys": key, "filter_predicates": predicate, "filter_values": value}
            found = {_identity(item, row) for row in await _rows(app, item, query)}
            rows = [everything[item.path][number] for number in numbers]
            if (item.schema, key) in NEVER_EQUAL_IN_RAY and predicate == "!=":
                rows = [row for row in rows if str(row[key]) != value]
            wanted = {_identity(item, row) for row in rows}
            assert found == wanted, f"{item.path} {key} {predicate} {value}"
    assert len(cases) > 150


def test_every_column_of_ray_can_be_filtered_by() -> None:
    script = (
        "import json; from ray.util.state import common;"
        "print(json.dumps({name: sorted(getattr(common, name).filterable_columns()) for name in NAMES}))"
    )
    columns = {item.schema: item.columns for item in LISTS} | {
        "ObjectState": objects.OBJECT_COLUMNS,
        "RuntimeEnvState": objects.ENV_COLUMNS,
        "ClusterEventState": events.COLUMNS,
    }
    answer = subprocess.run(
        [str(ray_python()), "-c", script.replace("NAMES", repr(list(columns)))],
        capture_output=True,
        check=True,
        text=True,
        timeout=120,
        cwd="/",
    )
    theirs = json.loads(answer.stdout.splitlines()[-1])
    assert theirs == {schema: sorted(names) for schema, names in columns.items()}


Case = tuple[StateList, str, str, str]


def _cases(item: StateList, rows: list[dict[str, Any]]) -> Iterator[Case]:
    for column in item.columns:
        seen = dict.fromkeys(str(row[column]) for row in rows if row[column] not in (None, ""))
        for value in [*list(seen)[:VALUES_PER_COLUMN], *_strangers(item, column)]:
            for predicate in ("=", "!="):
                yield item, column, predicate, value
            if value != value.swapcase() and item.columns[column].kind not in ("int", "bool"):
                yield item, column, "=", value.swapcase()


def _strangers(item: StateList, column: str) -> list[str]:
    """Values that no row has."""
    known = item.columns[column]
    if known.id_bytes:
        return ["ab" * known.id_bytes]
    if column == "state" and item.schema in ("ActorState", "NodeState"):
        return []
    return {"int": ["987654321"], "bool": []}.get(known.kind, ["' OR 1=1 --"])


def _ask_ray(cases: list[Case], everything: Mapping[str, list[dict[str, Any]]]) -> list[list[int]]:
    rows = {item.path: [_as_ray_holds(item, row) for row in everything[item.path]] for item in LISTS}
    asked = [
        {"rows": item.path, "schema": item.schema, "filter": [key, predicate, value]}
        for item, key, predicate, value in cases
    ]
    answer = subprocess.run(
        [str(ray_python()), str(RAY_FILTERS)],
        input=json.dumps({"rows": rows, "cases": asked}),
        capture_output=True,
        check=True,
        text=True,
        timeout=120,
    )
    answers: list[list[int]] = json.loads(answer.stdout)
    return answers


def _as_ray_holds(item: StateList, row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None or name not in item.absent}


async def _rows(app: Any, item: StateList, query: Mapping[str, str]) -> list[dict[str, Any]]:
    answered = await ask(app, f"{item.path}?{urlencode({'detail': '1', 'limit': '10000', **query})}")
    assert answered.status == 200, answered.text
    rows: list[dict[str, Any]] = answered.body["data"]["result"]["result"]
    assert len(rows) == answered.body["data"]["result"]["num_filtered"]
    return rows


def _identity(item: StateList, row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in item.identity)
