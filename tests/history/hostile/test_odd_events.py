"""Events of the right types whose values are as odd as can be: whoever posts them breaks no page of their session.

User code posts to the collector as Ray does, so that all jobs of a cluster share a session with such events.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

from history.hostile.attacked_server import TASKS, attacked_server, put_ended_session, put_object
from raykeeper.history.ingest.event_lines import fits, members
from raykeeper.history.ingest.events_sql import CLUSTER_PAYLOADS, TASK_PAYLOADS
from raykeeper.layout.segments import compress_lines
from support.history_scene import SESSION, local_store
from support.ingest_scene import base64_id, task_id

LINES = 2000
PAYLOADS = {**TASK_PAYLOADS, **CLUSTER_PAYLOADS}
IDS = ["", "AA==", "AAAA", "/////w==", *map(base64_id, (task_id(300), "ff" * 24, "00" * 16, "ab" * 28, "01000000"))]
TEXTS = [
    "",
    "x" * 3000,
    "\u202e\0<b>",
    "NIL",
    "FAILED",
    "FINISHED",
    "RUNNING",
    "\N{SNOWMAN}",
    "' OR 1=1 --",
    "../../etc",
]
OBJECTS: list[Any] = [None, {}, [], 5, "x", {"CPU": 1e308}, {"CPU": -1}, {"CPU": "x"}, {"a": {"b": [1]}}]
OBJECTS += [
    {"errorType": 5, "errorMessage": ["x"]},
    {"errorType": "TASK_EXECUTION_EXCEPTION", "errorMessage": "x" * 5000},
]
OBJECTS += [{"actorDiedErrorContext": 5}, {"actorDiedErrorContext": {"errorMessage": 5, "reason": []}}]
VALUES: dict[str, list[Any]] = {
    "VARCHAR": TEXTS,
    "INTEGER": [-(2**31), 2**31 - 1, 0, -1],
    "BIGINT": [-(2**62), 2**62, "-8999999999999999999", "8999999999999999999", 0, -1, "5"],
    "UBIGINT": [0, 2**62, "8999999999999999999"],
    "BOOLEAN": [True, False],
    "TIMESTAMP_NS": ["1970-01-01T00:00:00Z", "2199-12-31T23:59:59.999999999Z", "2026-11-15T10:00:00Z"],
    "JSON": OBJECTS,
}
PAGES = (
    *(
        "/report",
        "/api/jobs/",
        "/nodes?view=summary",
        "/api/v0/tasks?detail=1",
        "/api/v0/nodes?detail=1",
        "/logical/actors",
    ),
    *("/api/v0/actors?detail=1", "/api/v0/workers?detail=1", "/api/v0/jobs?detail=1", "/api/v0/tasks/timeline", "/"),
    *("/api/v0/actors/summarize", "/api/v0/tasks/summarize", "/api/v0/tasks/summarize?summary_by=lineage", "/overview"),
    *(f"/nodes/{'ab' * 28}", "/search?text=x", "/api/keeper/v1/overview", "/events", "/api/v0/cluster_events"),
    "/api/v0/tasks?filter_keys=state&filter_predicates=%3D&filter_values=FAILED",
)


class OddEvents:
    """Makes them at random."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)

    def line(self) -> bytes:
        payload = self._dice.choice(list(PAYLOADS))
        kind = "".join(f"_{char}" if char.isupper() else char for char in payload).upper()
        event = {"eventId": "AQ==", "eventType": kind, "timestamp": "2026-11-15T10:00:00Z"}
        return msgspec.json.encode(event | {payload: self._value(payload, PAYLOADS[payload])})

    def _value(self, name: str, sql: str) -> Any:
        if self._dice.random() < 0.15:
            return None
        if sql.endswith("[]"):
            return [self._value(name, sql[:-2]) for _ in range(self._dice.choice((0, 1, 3, 30)))]
        if sql.startswith("STRUCT("):
            wanted = [part for part in members(sql) if self._dice.random() < 0.85]
            return {member: self._value(member, kind) for member, kind in wanted}
        return self._dice.choice(IDS if sql == "VARCHAR" and name.endswith("Id") else VALUES[sql])


@pytest.mark.parametrize("number", range(2))
async def test_odd_values_in_events_break_no_page(number: int, tmp_path: Path) -> None:
    seed = int(os.environ.get("FUZZ_SEED", "0")) + number
    odd = OddEvents(seed)
    lines = [odd.line() for _ in range(LINES)]
    assert all(map(fits, lines)), "the types are right"
    store = local_store(tmp_path / "store")
    prefix = await put_ended_session(store)
    await put_object(store, SESSION, compress_lines(lines), 1)
    async with attacked_server(tmp_path / "store", tmp_path / "server") as server:
        answered = {page: await server.get(prefix + page) for page in PAGES}
        failed = {page: body[:300] for page, (status, body) in answered.items() if status == 500}
        assert failed == {}, f"FUZZ_SEED={seed}"
        ours = "/api/v0/tasks?filter_keys=func_or_class_name&filter_predicates=%3D&filter_values=step"
        status, body = await server.get(prefix + ours)
        assert (status, msgspec.json.decode(body)["data"]["result"]["num_filtered"]) == (200, TASKS)
