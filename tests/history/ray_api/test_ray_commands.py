"""Ray's own command line works against a dead session, with its address in the URL."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.routing import Mount

from bed.ports import free_port
from bed.rayenv import ray_python
from support.conditions import until
from support.goldensession import Moments, dashboard, golden_session
from support.raycapture import RayCapture

pytestmark = pytest.mark.bed

COMMANDS = Path(__file__).parent / "ray_commands.py"
PREFIX = "/s/golden/capture/session"
LISTS = {
    "tasks": "task_id",
    "actors": "actor_id",
    "jobs": "submission_id",
    "nodes": "node_id",
    "workers": "worker_id",
    "placement-groups": "placement_group_id",
}
ACTOR = "18adbf4a98a5998fd9ef81ee02000000"
TASK = "0021899358e75e3cffffffffffffffffffffffff02000000"


async def test_ray_and_serve_commands_read_a_dead_session(raycapture: RayCapture, ingested_moments: Moments) -> None:
    lists = [["ray", "list", name, "--format", "json", "--limit", "1000"] for name in LISTS]
    others = [
        ["ray", "list", "tasks", "--format", "json", "-f", "state=FAILED", "--detail"],
        ["ray", "list", "objects"],
        ["ray", "list", "cluster-events", "--format", "json"],
        ["ray", "get", "actors", ACTOR],
        ["ray", "get", "tasks", TASK],
        ["ray", "summary", "tasks"],
        ["ray", "summary", "actors"],
        ["ray", "job", "list"],
        ["ray", "job", "status", "golden-fail"],
        ["serve", "status"],
    ]
    async with golden_session(ingested_moments["final"]) as asked, serving(dashboard(asked)) as address:
        answers = await run_commands([[*command, "--address", address] for command in (*lists, *others)])
    for command, answer in zip((*lists, *others), answers, strict=True):
        assert answer["exit_code"] == 0, (command, answer)

    recorded = {found.name: found.body for found in raycapture.requests("final")}
    for (name, identity), answer in zip(LISTS.items(), answers, strict=False):
        rows = recorded[f"state.{name.replace('-', '_')}_detail"]["data"]["result"]["result"]
        ours = {row[identity] for row in rows_in(answer["output"])}
        assert ours == {row[identity] for row in rows} - DRIVERS_OF_THE_DASHBOARD, name

    failed, objects, events, actor, task, tasks, actors, jobs, status, serve = (
        answer["output"] for answer in answers[len(lists) :]
    )
    assert {row["state"] for row in rows_in(failed)} == {"FAILED"}
    assert "No resource in the cluster" in objects
    assert len(rows_in(events)) > 30
    assert "named_counter" in actor
    assert "noop" in task
    assert "FINISHED: " in tasks
    assert "ServeReplica:hello_app:Hello" in actors
    assert "golden-badenv" in jobs
    assert "failed" in status
    assert "HEALTHY" in serve


DRIVERS_OF_THE_DASHBOARD = {f"{job}000000".ljust(56, "f") for job in ("01", "08", "09", "0a")}
"""They send no events."""


def rows_in(output: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(output[output.index("[") : output.rindex("]") + 1])
    return rows


async def run_commands(commands: list[list[str]]) -> list[dict[str, Any]]:
    process = await asyncio.create_subprocess_exec(
        str(ray_python()), str(COMMANDS), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(120):
        output, _ = await process.communicate(json.dumps(commands).encode())
    answers: list[dict[str, Any]] = json.loads(output.splitlines()[-1])
    return answers


@asynccontextmanager
async def serving(app: Starlette) -> AsyncIterator[str]:
    """The application under a prefix of a real server on loopback."""
    port = free_port()
    config = uvicorn.Config(Starlette(routes=[Mount(PREFIX, app)]), host="127.0.0.1", port=port, log_level="warning")
    server = uvicorn.Server(config)
    running = asyncio.create_task(server.serve())
    try:
        await until(lambda: server.started)
        yield f"http://127.0.0.1:{port}{PREFIX}"
    finally:
        server.should_exit = True
        await running
