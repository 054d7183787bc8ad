"""How the grace period is used, and who owns up to what is missing."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from collector.ray_folders import NODE_A, NODE_B, SESSION, a_port_file, a_session
from raykeeper.collector.delivery import observe_left_by
from raykeeper.collector.ending import SILENT_SECONDS, is_silent, left_by_node, plan_end
from raykeeper.collector.node_records import LeftBehind
from raykeeper.collector.sessions import SessionWatch
from raykeeper.layout.records import MissingLog
from support.clocks import ManualClock
from support.event_scene import Directory, MemoryStore, a_scene
from support.ray_event_batches import EventMaker, body_of

A, B = (SESSION, NODE_A), (SESSION, NODE_B)


@pytest.mark.parametrize("grace", [0.0, 1.0, 25.0, 600.0])
def test_every_step_of_the_end_fits_into_the_grace_period(grace: float) -> None:
    deadlines = plan_end(100.0, grace)
    assert 100.0 <= deadlines.poll <= deadlines.listen <= deadlines.flush <= deadlines.end == 100.0 + grace


def test_time_for_the_end_records_is_kept_where_there_is_any() -> None:
    assert plan_end(0.0, 25.0).flush == 23.0
    assert plan_end(0.0, 2.0).flush == 1.5


def test_ray_is_heard_while_its_raylet_lives_or_it_still_speaks() -> None:
    later = 50.0 + SILENT_SECONDS
    assert not is_silent(later + 100, 50.0, raylet=True)
    assert not is_silent(later - 0.1, 50.0, raylet=False)
    assert is_silent(later, 50.0, raylet=False)
    assert is_silent(later, None, raylet=None)


def test_what_is_missing_is_its_nodes_and_events_without_a_name_are_everybodys() -> None:
    log = MissingLog(path="raylet.out", offset=5, length=7)
    assert left_by_node([(A, log)], 0, {A: 0, B: 0}) == {A: LeftBehind((log,))}
    assert left_by_node([(A, log)], 9, {A: 0, B: 9}) == {A: LeftBehind((log,)), B: LeftBehind(missing_event_bytes=9)}
    assert left_by_node([(B, log)], 9, {A: 2, B: 4}) == {A: LeftBehind((), 5), B: LeftBehind((log,), 7)}
    assert left_by_node([], 9, {}) == {}


async def test_a_replaced_node_leaves_behind_what_may_be_its_own_and_nothing_of_its_successor(tmp_path: Path) -> None:
    session = a_session(tmp_path / "ray")
    a_port_file(session, NODE_A, at=1000)
    watch, store = SessionWatch(tmp_path / "ray", ManualClock()), MemoryStore()
    watch.poll()
    async with a_scene(tmp_path / "spool", store, Directory({SESSION: NODE_A}, SESSION)) as scene:

        async def left() -> int:
            return (await observe_left_by(SESSION, NODE_A, watch, scene.path, None)).missing_event_bytes

        await scene.post(body_of(EventMaker(session=SESSION, node=NODE_A).events(3)))
        a_port_file(session, NODE_B)
        watch.poll()
        assert await left() > 0
        store.gate.clear()
        flushing = asyncio.create_task(scene.flush())
        await asyncio.sleep(0)
        assert await left() > 0
        store.gate.set()
        await flushing
        assert await left() == 0
        await scene.post(body_of(EventMaker(seed=1, session=SESSION, node=NODE_B).events(3)))
        assert await left() == 0
