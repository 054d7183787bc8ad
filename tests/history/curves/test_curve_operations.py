"""Curves and hours over the JSON API, as a page of charts asks for them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest
from starlette.types import ASGIApp

from raykeeper.history.http.app import make_app
from raykeeper.history.http.keeper_api.operation import PREFIX
from raykeeper.history.http.pages.dashboard import NO_DASHBOARD
from raykeeper.history.prices import parse_price_list
from support.asking import ask
from support.history_scene import a_scene, put_session
from support.ingest_scene import HEAD, SESSION, WORKER_NODE
from support.sample_scene import START, SampleScene, a_sample_scene, gpu, rows

BASE = f"{PREFIX}/sessions/{SESSION.namespace}/{SESSION.cluster}/{SESSION.session}"
PRICES = parse_price_list(b"currency: USD\nprices: [{cpu_hour: 1}]")


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[tuple[ASGIApp, SampleScene]]:
    """A server that knows one session, of two nodes and ten minutes."""
    async with a_sample_scene(folder / "samples", seconds=600) as scene:
        values = {"cpu": 100, "cpu_total": 400, "memory": 1000, "memory_total": 4000}
        await scene.put(HEAD, rows(START, 60, {**values, "gpus": (gpu(0, 50),)}))
        await scene.put(WORKER_NODE, rows(START, 60, values))
        around = a_scene(folder)
        await put_session(around.store, SESSION)
        around.sessions.opened[SESSION] = scene.context.session
        history = replace(around.history, samples=scene.samples, database=scene.context.database, prices=PRICES)
        yield make_app(history, NO_DASHBOARD), scene


async def test_arrays_are_aligned_as_charts_need_them(tmp_path: Path) -> None:
    async with served(tmp_path) as (app, _):
        answered = await ask(app, f"{BASE}/curves?points=100")
        short = await ask(app, f"/s/{SESSION.namespace}/{SESSION.cluster}/{SESSION.session}{PREFIX}/curves?points=10")
    body = answered.body
    assert (answered.status, body["source"], body["width_seconds"]) == (200, "sampled", 10)
    arrays = [curve[name] for curve in body["curves"] for name in ("mean", "min", "max", "total", "reserved")]
    assert {len(array) for array in [*arrays, body["nodes"]] if array is not None} == {len(body["at"])}
    assert body["at"] == sorted(body["at"])
    assert body["curves"][0]["mean"][0] == 2.0
    assert len(short.body["at"]) <= 10


async def test_a_node_is_asked_for_by_its_id(tmp_path: Path) -> None:
    async with served(tmp_path) as (app, _):
        known = await ask(app, f"{BASE}/nodes/{HEAD}/curves")
        unknown = await ask(app, f"{BASE}/nodes/{'ee' * 28}/curves")
        odd = await ask(app, f"{BASE}/nodes/{quote(chr(39) + ' OR 1=1', safe='')}/curves")
    assert known.body["curves"][0]["mean"][0] == 1.0
    assert [one["name"] for one in known.body["gpus"]] == ["NVIDIA A100"]
    assert (unknown.status, odd.status) == (404, 404)


async def test_hours_have_a_cost_where_there_is_a_price_list(tmp_path: Path) -> None:
    async with served(tmp_path) as (app, _):
        body = (await ask(app, f"{BASE}/usage")).body
    hours = {row["name"]: row for row in body["hours"]}
    assert hours["CPU"]["used"] == pytest.approx(2 / 6)
    assert body["cost"]["available"] == pytest.approx(8 / 6)
    assert body["cost"]["used"] == pytest.approx(2 / 6)
    assert {node["node_id"] for node in body["nodes"]} == {HEAD, WORKER_NODE}


@pytest.mark.parametrize(
    "query",
    [
        *("points=9", "points=2001", "points=many", "since=yesterday", "width=10"),
        "since=2026-11-15T11:00:00Z&until=2026-11-15T10:00:00Z",
    ],
)
async def test_what_cannot_be_asked_is_refused(tmp_path: Path, query: str) -> None:
    async with served(tmp_path) as (app, _):
        assert (await ask(app, f"{BASE}/curves?{query}")).status == 400


async def test_an_unknown_job_is_not_found(tmp_path: Path) -> None:
    async with served(tmp_path) as (app, _):
        assert (await ask(app, f"{BASE}/jobs/nothing/curves")).status == 404
        assert (await ask(app, f"{BASE}/jobs/nothing/usage")).status == 404


async def test_a_time_outside_of_the_session_has_no_curve(tmp_path: Path) -> None:
    async with served(tmp_path) as (app, _):
        body = (await ask(app, f"{BASE}/curves?since=2027-01-01T00:00:00Z")).body
    assert not any(number is not None for curve in body["curves"] for number in curve["mean"])
