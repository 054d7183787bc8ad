"""What people see of retention: removed sessions, holds, sizes and cost, and the numbers for Prometheus."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from starlette.types import ASGIApp

from raykeeper.clock import SystemClock
from raykeeper.history.http.app import make_app
from raykeeper.history.prices import parse_price_list
from raykeeper.history.retention.holds import hold
from raykeeper.history.retention.metrics import MOST_LABELS, RetentionMetrics
from raykeeper.history.retention.sweeper import Sweeper, SweepLoop, SweepResult
from raykeeper.history.retention.usage import UsageCount
from raykeeper.history.settings import AccessSettings
from raykeeper.history.store.heartbeats import StoreClock
from raykeeper.layout.retention import MOST_NAMESPACES, NamespaceUsage, SessionFacts, Usage
from support.asking import ask
from support.conditions import eventually
from support.history_scene import Scene, a_scene
from support.retention_scene import SmallSession, keys_of, local_folder, week_policy

OLD = SmallSession("session_old")
FAILED = SmallSession("session_failed", outcome="failed", segments=5)
OTHER = SmallSession("session_<b>", "team-b", age=timedelta(days=1))
PRICES = parse_price_list(b"currency: EUR\nprices: [{node_hour: 1}]\nstorage_gb_month: 20000\n")


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    for session in (OLD, FAILED, OTHER):
        session.put_into(tmp_path / "store")
    return a_scene(tmp_path)


def app_of(scene: Scene, **changes: object) -> ASGIApp:
    return make_app(replace(scene.history, **changes))  # type: ignore[arg-type]


async def swept(scene: Scene, registry: CollectorRegistry | None = None, wait: int = 0) -> None:
    metrics = RetentionMetrics(registry) if registry else None
    policy = week_policy(reader_wait=timedelta(seconds=wait))
    sweeper = Sweeper(scene.store, SystemClock(), policy, "a test", metrics)
    await sweeper.sweep()
    if not wait:

        async def is_done() -> bool:
            result = SweepResult()
            await sweeper.go_on(result)
            return not result.waiting

        await eventually(is_done)


@pytest.mark.parametrize("wait", [0, 600])
async def test_a_removed_session_is_gone_with_a_reason_for_those_who_have_the_link(scene: Scene, wait: int) -> None:
    await swept(scene, wait=wait)
    app = app_of(scene)
    listed = (await ask(app, "/api/keeper/v1/sessions")).body["sessions"]
    assert {one["session"] for one in listed} == {FAILED.name, OTHER.name}
    for path in (
        f"/s/{OLD.id}/overview",
        f"/s/{OLD.id}/",
        f"/s/{OLD.id}/api/v0/tasks",
        f"/s/{OLD.id}/nodes?view=summary",
    ):
        answer = await ask(app, path)
        assert answer.status == 410, path
        assert "removed by retention on" in answer.text
        assert "a session that succeeded is kept for 7 days" in answer.text
    told = await ask(app, f"/api/keeper/v1/sessions/{OLD.id}")
    assert (told.status, "rule 'default'" in told.body["error"]) == (410, True)
    assert "Removed by retention" in (await ask(app, f"/s/{OLD.id}/overview", headers={"accept": "text/html"})).text
    assert (await ask(app, "/s/team-a/train/latest/")).headers["location"] == f"/s/{FAILED.id}/"
    assert (await ask(app, "/s/team-a/train/session_never/")).status == 404
    compared = await ask(app, f"/api/keeper/v1/compare?a={OLD.id}&b={FAILED.id}")
    assert (compared.status, "removed by retention" in compared.text) == (400, True)


async def test_a_held_session_is_shown_as_held(scene: Scene) -> None:
    await hold(scene.store, SystemClock(), StoreClock(scene.store, SystemClock()), OLD.id, "me", "a lawsuit")
    await swept(scene)
    app = app_of(scene)
    listed = (await ask(app, "/api/keeper/v1/sessions")).body["sessions"]
    assert {one["session"]: one["is_held"] for one in listed} == {OLD.name: True, FAILED.name: False, OTHER.name: False}
    assert ">held<" in (await ask(app, "/sessions")).text
    assert (await ask(app, f"/api/keeper/v1/sessions/{OLD.id}")).body["is_held"] is True
    [team_a] = [
        one for one in (await ask(app, "/api/keeper/v1/storage")).body["namespaces"] if one["namespace"] == "team-a"
    ]
    assert team_a["held"] == 1


async def test_sizes_and_cost_are_told_by_namespace(scene: Scene) -> None:
    await swept(scene)
    await swept(scene)
    app = app_of(scene, prices=PRICES, retention=week_policy())
    answer = (await ask(app, "/api/keeper/v1/storage")).body
    told = {one["namespace"]: one for one in answer["namespaces"]}
    stored = [stat async for stat in scene.store.list("v1/data/team-a/")]
    assert (told["team-a"]["sessions"], told["team-a"]["objects"]) == (1, len(stored))
    assert told["team-a"]["bytes"] == sum(stat.size for stat in stored)
    assert told["team-a"]["cost_per_month"] == pytest.approx(told["team-a"]["bytes"] / 1e9 * 20000)
    assert told["team-a"]["kept"]["failed_days"] == 90
    page = (await ask(app, "/storage")).text
    assert "EUR" in page
    assert "failed 90 days, succeeded 7 days" in page
    assert "/sessions?namespace=team-a" in page


async def test_a_server_without_sizes_says_how_to_get_them(scene: Scene) -> None:
    app = app_of(scene)
    assert (await ask(app, "/api/keeper/v1/storage")).body["as_of"] is None
    assert "--retention" in (await ask(app, "/storage")).text


async def test_names_of_namespaces_are_only_text_on_the_page(tmp_path: Path) -> None:
    SmallSession("s", '<script>alert("x")</script>&y', outcome="failed").put_into(tmp_path / "store")
    scene = a_scene(tmp_path)
    await swept(scene)
    assert "<script>alert" not in (await ask(app_of(scene), "/storage")).text


async def test_metrics_tell_what_was_removed_and_what_namespaces_have(scene: Scene) -> None:
    registry = CollectorRegistry()
    await swept(scene, registry)
    text = generate_latest(registry).decode()
    assert "raykeeper_retention_removed_sessions_total 1.0" in text
    assert 'raykeeper_storage_sessions{session_namespace="team-b"} 1.0' in text
    assert "raykeeper_retention_removed_bytes_total" in text


async def test_metrics_name_namespaces_only_to_those_who_see_all_of_them(tmp_path: Path) -> None:
    scene = a_scene(tmp_path, access=AccessSettings("token", "t0ken-of-the-test"))
    RetentionMetrics(scene.history.metrics.registry).show(
        Usage(as_of=datetime.now(UTC), namespaces=(NamespaceUsage(namespace="team-secret", bytes=5),))
    )
    for headers, names in (
        ({}, False),
        ({"Authorization": "Bearer wrong"}, False),
        ({"Authorization": "Bearer t0ken-of-the-test"}, True),
    ):
        told = await ask(scene.app, "/metrics", headers=headers)
        assert (told.status, "team-secret" in told.text) == (200, names)
        assert "raykeeper_retention_removed_bytes_total" in told.text


def test_namespaces_are_a_bounded_label_and_a_bounded_list() -> None:
    registry, number = CollectorRegistry(), MOST_NAMESPACES + 50
    now = SystemClock().now()
    count = UsageCount(frozenset())
    count.add(
        SessionFacts(f"n{one}", "c", "s", started_at=now, start_written=now, bytes=one, objects=1)
        for one in range(number)
    )
    usage = count.usage(now)
    assert (len(usage.namespaces), usage.left_out) == (MOST_NAMESPACES, 50)
    RetentionMetrics(registry).show(usage)
    lines = [
        line
        for line in generate_latest(registry).decode().splitlines()
        if line.startswith("raykeeper_storage_sessions{")
    ]
    assert len(lines) == MOST_LABELS + 1
    assert f'raykeeper_storage_sessions{{session_namespace="(others)"}} {float(number - MOST_LABELS)}' in lines


async def test_the_servers_loop_sweeps_by_itself(tmp_path: Path) -> None:
    for session in (OLD, FAILED):
        session.put_into(tmp_path)
    store, registry = local_folder(tmp_path), CollectorRegistry()
    policy = week_policy(interval=timedelta(seconds=1), reader_wait=timedelta(seconds=1))
    loops = [
        SweepLoop(
            local_folder(tmp_path),
            SystemClock(),
            policy,
            name,
            RetentionMetrics(registry if not number else CollectorRegistry()),
        )
        for number, name in enumerate(("a", "b"))
    ]
    running = [asyncio.create_task(loop.run()) for loop in loops]

    async def is_gone() -> bool:
        return not any(key.startswith(OLD.id.prefix) for key in await keys_of(store))

    try:
        await eventually(is_gone)
    finally:
        for task in running:
            task.cancel()
    assert any(key.startswith(FAILED.id.prefix) for key in await keys_of(store))
    claims = [stat async for stat in store.list("v1/retention/claims/")]
    assert 1 <= len(claims) <= 2, "one for each five minutes of the store's clock, and the next one towards their end"
