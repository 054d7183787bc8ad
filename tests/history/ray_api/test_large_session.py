"""More tasks than Ray lists at once: pages are cut, totals and summaries are not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from starlette.types import ASGIApp

from bench.sessions import SessionSpec, write_session
from raykeeper.clock import SystemClock
from raykeeper.history.ingest.sessions import Sessions, SessionsSettings
from raykeeper.history.logs.store import LogStore
from raykeeper.history.query.context import SessionContext
from raykeeper.history.query.database import Database
from raykeeper.storage.opening import open_store
from raykeeper.storage.settings.urls import parse_store_url
from support.asking import ask
from support.conditions import eventually
from support.goldensession import dashboard

SPEC = SessionSpec(tasks=11_000)


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[ASGIApp]:
    store, clock = open_store(parse_store_url(f"file://{tmp_path}/store", {})), SystemClock()
    await write_session(store, SPEC)
    sessions, database = Sessions(store, clock, SessionsSettings(tmp_path / "local")), Database(tmp_path / "local")

    async def is_read() -> bool:
        return (await sessions.open(SPEC.id)).progress.is_done

    try:
        await eventually(is_read)
        yield dashboard(SessionContext(await sessions.open(SPEC.id), database, LogStore(store, clock)))
    finally:
        await sessions.close()
        await database.close()


async def test_pages_are_cut_and_everything_is_counted(app: ASGIApp) -> None:
    listed = await result(app, "/api/v0/tasks", limit="10000")
    detailed = await result(app, "/api/v0/tasks", limit="10000", detail="1")
    ids = [row["task_id"] for row in listed["result"]]
    assert (len(set(ids)), ids) == (10_000, sorted(ids))
    assert [row["task_id"] for row in detailed["result"]] == ids
    assert {(page["total"], page["num_after_truncation"], page["num_filtered"]) for page in (listed, detailed)} == {
        (11_000, 11_000, 11_000)
    }

    functions = (await result(app, "/api/v0/tasks/summarize"))["result"]["node_id_to_summary"]["cluster"]
    assert counted(functions["summary"].values()) == 11_000
    assert sum(functions[name] for name in ("total_tasks", "total_actor_tasks", "total_actor_scheduled")) == 11_000

    failed = await result(app, "/api/v0/tasks", filter_keys="state", filter_predicates="=", filter_values="failed")
    states = [entry["state_counts"] for entry in functions["summary"].values()]
    assert failed["total"] == sum(counts.get("FAILED", 0) for counts in states) > 0

    jobs = {row["job_id"] for row in listed["result"]}
    assert len(jobs) == SPEC.jobs
    of_jobs = [
        await result(app, "/api/v0/tasks", limit="1", filter_keys="job_id", filter_predicates="=", filter_values=job)
        for job in jobs
    ]
    assert sum(page["total"] for page in of_jobs) == 11_000
    await check_tree(app)


async def check_tree(app: ASGIApp) -> None:
    """It has groups instead of members."""
    answer = await result(app, "/api/v0/tasks/summarize", summary_by="lineage")
    tree = answer["result"]["node_id_to_summary"]["cluster"]["summary"]
    assert {node["type"] for node in tree} == {"GROUP"}
    assert len(tree) < 100
    assert counted(tree) <= 11_000  # methods of actors whose making is not in the session stand nowhere
    assert counted(tree) > 8_000
    assert answer["warnings"] is None


def counted(nodes: Any) -> int:
    return sum(sum(node["state_counts"].values()) for node in nodes)


async def result(app: ASGIApp, path: str, **params: str) -> dict[str, Any]:
    answered = await ask(app, f"{path}?{urlencode(params)}")
    assert answered.status == 200, answered.text
    found: dict[str, Any] = answered.body["data"]["result"]
    return found
