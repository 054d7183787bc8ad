"""Curves of a session and of a node: what was sampled comes back, added up, in the parts that were asked for."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from raykeeper.history.curves.model import Curve, Curves
from raykeeper.history.curves.read import read_curves
from raykeeper.history.curves.scope import Scope, session_scope
from raykeeper.history.samples import builder, periods
from raykeeper.layout.keys import parse_sample_table_key, sample_tables_prefix
from raykeeper.layout.samples import encode_block, to_block
from raykeeper.times import NS, from_ns
from support.ingest_scene import HEAD, SESSION, START_NS, WORKER_NODE
from support.sample_scene import MIB, START, SampleScene, a_sample_scene, gpu, rows

HOUR = 3600


async def curves_of(scene: SampleScene, points: int = 2000, scope: Scope | None = None) -> Curves:
    return await read_curves(scene.context, scope or await session_scope(scene.context), points)


def named(curves: Curves, name: str) -> Curve:
    return next(curve for curve in curves.curves if curve.name == name)


def busy(row: int) -> dict[str, int]:
    """Two CPUs of four at work, and all of them in row 7."""
    totals = {"cpu_total": 400, "cpu_reserved": 300, "memory_total": 4000}
    return {"cpu": 400 if row == 7 else 200, "memory": 1000, **totals}


async def test_a_node_alone_is_seen_row_by_row(tmp_path: Path) -> None:
    async with a_sample_scene(tmp_path, seconds=600) as scene:
        await scene.put(HEAD, rows(START, 60, busy))
        curves = await curves_of(scene)
    cpu = named(curves, "cpu")
    assert (curves.source, curves.width_seconds, curves.notes) == ("sampled", 10, ())
    assert curves.at[:3] == (START, START + 10, START + 20)
    assert cpu.mean[:9] == (2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 4.0, 2.0)
    assert (cpu.unit, cpu.total and cpu.total[0], cpu.reserved and cpu.reserved[0]) == ("CPUs", 4.0, 3.0)
    assert named(curves, "memory").mean[0] == 1000 * MIB
    assert [curve.name for curve in curves.curves] == ["cpu", "memory"]


@pytest.mark.parametrize("points", [10, 61])
async def test_a_peak_survives_in_wider_parts(tmp_path: Path, points: int) -> None:
    async with a_sample_scene(tmp_path, seconds=600) as scene:
        await scene.put(HEAD, rows(START, 60, busy))
        curves = await curves_of(scene, points)
    cpu = named(curves, "cpu")
    assert len(curves.at) <= points
    assert max(number for number in cpu.max if number is not None) == 4.0
    assert cpu.mean[-2] == 2.0
    assert all(len(numbers) == len(curves.at) for numbers in (cpu.mean, cpu.min, cpu.max, curves.nodes))


async def test_nodes_are_added_up_and_one_that_is_there_for_a_part_counts_for_that_part(tmp_path: Path) -> None:
    async with a_sample_scene(tmp_path, seconds=600) as scene:
        await scene.put(HEAD, rows(START, 60, {"cpu": 100, "cpu_total": 400}))
        await scene.put(WORKER_NODE, rows(START + 300, 15, {"cpu": 800, "cpu_total": 800}))
        by_minute = await curves_of(scene, 11)
        by_row = await curves_of(scene)
    assert by_minute.width_seconds == 120
    assert named(by_minute, "cpu").mean == (1.0, 1.0, 5.0, 7.0, 1.0, None)
    assert named(by_row, "cpu").mean[29:31] == (1.0, 9.0)
    assert by_row.nodes[29:31] == (1, 2)


async def test_a_gap_is_none_and_a_short_pause_is_bridged(tmp_path: Path) -> None:
    samples = rows(START, 10, {"cpu": 100}) + rows(START + 120, 10, {"cpu": 100}) + rows(START + 400, 5, {"cpu": 100})
    async with a_sample_scene(tmp_path, seconds=600) as scene:
        await scene.put(HEAD, samples)
        curves = await curves_of(scene)
    mean = named(curves, "cpu").mean
    assert mean[:22] == (1.0,) * 22
    assert mean[22:40] == (None,) * 18
    assert mean[40:45] == (1.0,) * 5


async def test_days_come_from_rows_of_five_minutes_and_say_the_same(tmp_path: Path) -> None:
    async with a_sample_scene(tmp_path, seconds=30 * HOUR) as scene:
        for hour in range(30):
            await scene.put(HEAD, rows(START + hour * HOUR, 360, busy))
        curves = await curves_of(scene, 200)
    cpu = named(curves, "cpu")
    assert (curves.width_seconds, curves.resolution_seconds) == (600, 300)
    assert max(number for number in cpu.max if number) == 4.0
    assert sum(number or 0 for number in cpu.mean) / 180 == pytest.approx((359 * 2 + 4) / 360, rel=1e-4)


async def table_keys(scene: SampleScene) -> list[str]:
    """Of the tables that are in the store."""
    return [stat.key async for stat in scene.store.list(sample_tables_prefix(SESSION))]


async def test_each_gpu_of_a_node_has_a_curve(tmp_path: Path) -> None:
    async with a_sample_scene(tmp_path, seconds=100) as scene:
        await scene.put(HEAD, rows(START, 10, lambda row: {"cpu": 1, "gpus": (gpu(0, 100), gpu(1, 10 * row))}))
        await scene.put(WORKER_NODE, rows(START, 10, {"cpu": 1, "gpus": (gpu(0, 50, name="H100"),)}))
        whole = await session_scope(scene.context)
        of_node = await read_curves(scene.context, Scope(whole.begin, whole.end, (HEAD,)), 100, of_one_node=True)
        of_all = await curves_of(scene)
    assert [(one.index, one.name) for one in of_node.gpus] == [(0, "NVIDIA A100"), (1, "NVIDIA A100")]
    assert of_node.gpus[1].used[:3] == (0.0, 0.1, 0.2)
    assert of_node.gpus[0].memory_total[0] == 40_000 * MIB
    assert named(of_node, "gpu").mean[1] == 1.1
    assert named(of_all, "gpu").mean[1] == 1.6
    assert named(of_all, "gpu").total == (*(3.0,) * 10, *(None,) * (len(of_all.at) - 10))


async def test_rows_of_a_heartbeat_count_until_a_block_has_them(tmp_path: Path) -> None:
    async with a_sample_scene(tmp_path, seconds=300, is_over=False) as scene:
        scene.beat(HEAD, rows(START, 12, {"cpu": 100}))
        first = await curves_of(scene)
        scene.beat(HEAD, rows(START, 15, {"cpu": 100}))
        second = await curves_of(scene)
        await scene.put(HEAD, rows(START, 20, {"cpu": 100}))
        scene.clock.advance(60)
        third = await curves_of(scene)
    seen = [sum(number is not None for number in named(curves, "cpu").mean) for curves in (first, second, third)]
    assert seen == [12, 15, 20]


async def test_of_a_running_session_only_what_all_nodes_have_told_is_shown(tmp_path: Path) -> None:
    async with a_sample_scene(tmp_path, seconds=300, is_over=False) as scene:
        scene.beat(HEAD, rows(START, 30, {"cpu": 100}))
        scene.beat(WORKER_NODE, rows(START, 27, {"cpu": 100}))
        scene.beat("cc" * 28, rows(START, 3, {"cpu": 100}))  # it died
        curves = await curves_of(scene)
    assert named(curves, "cpu").mean[:31] == (*(3.0,) * 3, *(2.0,) * 24, *(None,) * 4)


async def test_a_node_that_was_lost_with_its_disk_is_known_to_its_last_heartbeat(tmp_path: Path) -> None:
    async with a_sample_scene(tmp_path, seconds=600) as scene:
        await scene.put(HEAD, rows(START, 30, {"cpu": 100}))
        scene.beat(WORKER_NODE, rows(START, 9, {"memory": 3999, "memory_total": 4000}))
        curves = await curves_of(scene)
    assert named(curves, "memory").max[8] == 3999 * MIB


async def test_a_block_that_cannot_be_read_is_counted_and_costs_its_neighbours_nothing(tmp_path: Path) -> None:
    async with a_sample_scene(tmp_path, seconds=600) as scene:
        await scene.put(HEAD, rows(START, 30, {"cpu": 100}))
        key = await scene.put(WORKER_NODE, rows(START, 30, {"cpu": 100}))
        await scene.store.put(key, b"garbage")
        scene.beat("cc" * 28, data=b"garbage")
        curves = await curves_of(scene)
    assert named(curves, "cpu").mean[0] == 1.0
    assert curves.notes == ("2 blocks of samples could not be read and are missing.",)


async def test_what_is_larger_or_more_than_any_cluster_has_is_left_out_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(periods, "MAX_BLOCKS", 3)
    async with a_sample_scene(tmp_path, seconds=600) as scene:
        key = await scene.put(f"{0:056x}", rows(START, 30, {"cpu": 100}))
        await scene.store.put(key, b"x" * (periods.MAX_BLOCK_BYTES + 1))
        for number in range(1, 6):
            await scene.put(f"{number:056x}", rows(START, 30, {"cpu": 100}))
        curves = await curves_of(scene)
    assert named(curves, "cpu").mean[0] == 2.0
    assert curves.notes == ("4 blocks of samples could not be read and are missing.",)


async def test_tables_are_put_into_the_store_once(tmp_path: Path) -> None:
    async with a_sample_scene(tmp_path, seconds=600) as scene:
        for number in range(20):
            await scene.put(f"{number:056x}", rows(START, 30, {"cpu": 100}))
        await curves_of(scene)
        before = [stat async for stat in scene.store.list(sample_tables_prefix(SESSION))]
        scene.clock.advance(1000)
        await curves_of(scene)
        assert [stat async for stat in scene.store.list(sample_tables_prefix(SESSION))] == before
        await scene.put(f"{20:056x}", rows(START, 30, {"cpu": 100}))
        scene.clock.advance(1000)
        await curves_of(scene)
        after = [stat async for stat in scene.store.list(sample_tables_prefix(SESSION))]
    assert len(after) == 2
    assert not {stat.key for stat in before} & {stat.key for stat in after}


async def test_rows_outside_of_their_hour_are_not_believed(tmp_path: Path) -> None:
    async with a_sample_scene(tmp_path, seconds=2 * HOUR) as scene:
        key = await scene.put(HEAD, rows(START, 10, {"cpu": 100}))
        await scene.store.put(key, encode_block(to_block(rows(START + HOUR, 10, {"cpu": 100}))))
        curves = await curves_of(scene)
    assert (curves.curves, curves.source) == ((), "none")


async def test_a_late_block_changes_what_was_said(tmp_path: Path) -> None:
    async with a_sample_scene(tmp_path, seconds=600) as scene:
        await scene.put(HEAD, rows(START, 30, {"cpu": 100}))
        before = await curves_of(scene)
        await scene.put(WORKER_NODE, rows(START, 30, {"cpu": 100}))
        scene.clock.advance(400)
        after = await curves_of(scene)
    assert (named(before, "cpu").mean[0], named(after, "cpu").mean[0]) == (1.0, 2.0)


async def test_tables_of_many_blocks_serve_the_next_server(tmp_path: Path) -> None:
    async with a_sample_scene(tmp_path / "one", seconds=600) as scene:
        for number in range(20):
            await scene.put(f"{number:056x}", rows(START, 30, {"cpu": 100}))
        first = await curves_of(scene)
        stored = [parse_sample_table_key(key) for key in await table_keys(scene)]
        assert [(facts.period, facts.level) for facts in stored if facts] == [
            ("2026-11-15", "coarse"),
            ("2026-11-15", "fine"),
        ]
        async with a_sample_scene(tmp_path / "two", seconds=600) as other:
            reader = SampleScene(other.context, scene.store, other.samples, other.clock, other.cache)
            reader.restart()
            reads: list[str] = []
            original = reader.samples.builder._read

            async def counted(key: str, size: int) -> bytes | None:
                reads.append(key)
                return await original(key, size)

            reader.samples.builder._read = counted  # type: ignore[method-assign]
            second = await curves_of(reader)
            await reader.samples.close()
    assert named(first, "cpu").mean == named(second, "cpu").mean
    assert reads == []


async def test_tables_that_somebody_else_put_there_are_made_anew_when_they_cannot_be_read(tmp_path: Path) -> None:
    async with a_sample_scene(tmp_path / "one", seconds=600) as scene:
        for number in range(20):
            await scene.put(f"{number:056x}", rows(START, 30, {"cpu": 100}))
        await curves_of(scene)
        keys = await table_keys(scene)
        sizes = {key: len(await scene.store.get(key)) for key in keys}
        for key in keys:
            await scene.store.put(key, b"P" * sizes[key])
        async with a_sample_scene(tmp_path / "two", seconds=600) as other:
            reader = SampleScene(other.context, scene.store, other.samples, other.clock, other.cache)
            reader.restart()
            with pytest.raises(Exception, match="made anew"):
                await curves_of(reader)
            curves = await curves_of(reader)
            await reader.samples.close()
    assert named(curves, "cpu").mean[0] == 20.0


async def test_what_takes_long_is_answered_in_parts(tmp_path: Path) -> None:
    async with a_sample_scene(tmp_path, seconds=3 * HOUR) as scene:
        for hour in range(3):
            await scene.put(HEAD, rows(START + hour * HOUR, 360, {"cpu": 100}))
        whole = await session_scope(scene.context)
        async with scene.samples.opened(scene.context.session, whole.begin, whole.end, "fine", 0.0) as opened:
            assert opened.unread_hours == 3
        await asyncio.wait(scene.samples._making.values())
        curves = await curves_of(scene)
    assert curves.unread_hours == 0
    assert sum(named(curves, "cpu").mean[:1080]) == pytest.approx(1080)  # type: ignore[arg-type]


async def test_a_session_without_samples_says_so(tmp_path: Path) -> None:
    async with a_sample_scene(tmp_path, seconds=600) as scene:
        curves = await curves_of(scene)
    assert curves.source == "none"
    assert "no resource samples" in curves.notes[0]
    assert not any(number is not None for curve in curves.curves for number in curve.mean)


MACHINE = {
    "cpu": 50.0,
    "cpus": [8, 4],
    "mem": [8 << 30, 0, 0, 2 << 30],
    "gpus": [{"utilizationGpu": 25, "memoryUsed": 100, "memoryTotal": 1000}],
    "raylet": {"nodeId": HEAD, "objectStoreUsedMemory": 7, "objectStoreAvailableMemory": 93},
}


async def test_a_session_of_before_has_what_the_head_was_asked_once_a_minute(tmp_path: Path) -> None:
    async with a_sample_scene(tmp_path, seconds=600) as scene:
        scene.polled((60 * minute, [MACHINE, {}]) for minute in range(10))
        curves = await curves_of(scene)
        elsewhere = await curves_of(scene, scope=Scope(START, START + 600, (WORKER_NODE,)))
    cpu = named(curves, "cpu")
    assert (curves.source, curves.resolution_seconds, curves.nodes[0]) == ("polled", 60, 1)
    assert "once a minute" in curves.notes[0]
    assert (cpu.mean[0], cpu.total and cpu.total[0]) == (4.0, 8.0)
    assert cpu.mean[5] == 4.0  # until the next answer
    assert named(curves, "memory").mean[0] == 2 << 30
    assert named(curves, "gpu").mean[0] == 0.25
    assert named(curves, "object_store").total[0] == 100  # type: ignore[index]
    assert elsewhere.source == "none"


async def test_where_rays_metrics_are_off_disk_and_network_are_sampled_and_the_rest_is_the_heads(
    tmp_path: Path,
) -> None:
    async with a_sample_scene(tmp_path, seconds=600) as scene:
        await scene.put(HEAD, rows(START, 60, {"disk": 100, "disk_total": 200, "received": 5}))
        scene.polled((60 * minute, [MACHINE]) for minute in range(10))
        curves = await curves_of(scene)
    assert curves.source == "sampled"
    assert "showed no metrics" in curves.notes[0]
    assert named(curves, "cpu").mean[0] == 4.0
    assert named(curves, "disk").mean[0] == 100 * MIB
    assert named(curves, "network_received").mean[0] == 5.0


async def test_a_part_of_the_time_is_read_alone(tmp_path: Path) -> None:
    async with a_sample_scene(tmp_path, seconds=3 * HOUR) as scene:
        for hour in range(3):
            await scene.put(HEAD, rows(START + hour * HOUR, 360, {"cpu": 100 * (hour + 1)}))
        begin = from_ns(START_NS + HOUR * NS)
        scope = (await session_scope(scene.context)).within(begin, begin + timedelta(minutes=10))
        curves = await curves_of(scene, 100, scope)
    assert (curves.begin, curves.width_seconds) == (begin, 10)
    assert set(named(curves, "cpu").mean) <= {2.0, None}
    assert sum(number == 2.0 for number in named(curves, "cpu").mean) == 60


async def test_blocks_that_would_fill_the_disk_are_left_out_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few hundred bytes can hold a block of a megabyte of lines."""
    monkeypatch.setattr(builder, "MAX_LINES_BYTES", 100_000)
    async with a_sample_scene(tmp_path) as scene:
        for number in range(20):
            await scene.put(f"{number:056x}", rows(START, 360, busy))
        curves = await curves_of(scene)
    mean = named(curves, "cpu").mean[0]
    assert mean is not None
    assert 0 < mean < 20 * 2.0
    assert any("could not be read" in words or "missing" in words for words in curves.notes), curves.notes
