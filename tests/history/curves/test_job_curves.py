"""Curves and hours of a job: of the nodes it ran on, while it ran."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from raykeeper.history.curves import usage as curve_usage
from raykeeper.history.curves.read import read_curves
from raykeeper.history.curves.scope import job_scope
from raykeeper.history.entities.job import JobUnknown
from raykeeper.history.overview.usage import SHARED, Usage, UsageHours, job_usage, session_usage
from raykeeper.history.prices import parse_price_list
from raykeeper.layout.samples import Sample
from support.ingest_scene import (
    HEAD,
    START_NS,
    WORKER_NODE,
    Event,
    base64_id,
    definition,
    event,
    lifecycle,
    task_id,
    timestamp,
)
from support.sample_scene import START, a_sample_scene, gpu, rows

SECOND = 1_000_000_000
OTHER_NODE = "cc" * 28
PRICES = """
currency: EUR
prices:
- labels: {zone: "a*"}
  cpu_hour: 0.1
  memory_gib_hour: 0.01
  gpu_hour: {H100: 8, "*": 4}
- instance_type: spot-*
  node_hour: 1.5
"""


def task(number: int, job: int, node: str, begin: int, end: int) -> list[Event]:
    """One task of a job on a node, in seconds after the start."""
    name = task_id(number, job)
    states = [("PENDING_ARGS_AVAIL", begin * SECOND), ("RUNNING", begin * SECOND), ("FINISHED", end * SECOND)]
    return [definition(name), lifecycle(name, states, nodeId=base64_id(node))]


def node(node_id: str, **facts: Any) -> list[Event]:
    """A node with two CPUs and a GPU from the start on."""
    resources = {"CPU": 2.0, "GPU": 1.0, "memory": float(4 << 30), "accelerator_type:A100": 1.0}
    alive = {"state": "ALIVE", "timestamp": timestamp(START_NS), "resources": resources}
    began = {"nodeId": base64_id(node_id), "startTimestamp": timestamp(START_NS), **facts}
    life = {"nodeId": base64_id(node_id), "stateTransitions": [alive]}
    return [
        event("NODE_DEFINITION_EVENT", "nodeDefinitionEvent", began),
        event("NODE_LIFECYCLE_EVENT", "nodeLifecycleEvent", life),
    ]


def job(number: int, begin: int, end: int | None) -> dict[str, Any]:
    """As Ray's job API lists it."""
    began_ms = START_NS // 1_000_000
    return {
        "type": "SUBMISSION",
        "job_id": f"{number:02d}000000",
        "submission_id": f"job-{number}",
        "status": "RUNNING" if end is None else "SUCCEEDED",
        "start_time": began_ms + begin * 1000,
        "end_time": None if end is None else began_ms + end * 1000,
    }


ALONE = [*task(1, 1, HEAD, 60, 120), *task(2, 1, WORKER_NODE, 90, 180), *task(3, 2, OTHER_NODE, 60, 120)]


async def test_a_job_has_the_curves_of_its_nodes_while_it_ran(tmp_path: Path) -> None:
    async with a_sample_scene(tmp_path, ALONE, jobs=[job(1, 55, 185), job(2, 50, 130)], seconds=600) as scene:
        for node_id, cpu in ((HEAD, 100), (WORKER_NODE, 1000), (OTHER_NODE, 10_000)):
            await scene.put(node_id, rows(START, 60, {"cpu": cpu}))
        scope = await job_scope(scene.context, "job-1")
        curves = await read_curves(scene.context, scope, 100)
    assert (scope.begin, scope.end, scope.node_ids) == (START + 55, START + 185, (HEAD, WORKER_NODE))
    assert scope.other_jobs == 0
    known = [number for number in curves.curves[0].mean if number is not None]
    assert known == [11.0] * 13


async def test_jobs_that_share_nodes_say_so(tmp_path: Path) -> None:
    events = [*ALONE, *task(4, 2, HEAD, 100, 110)]
    async with a_sample_scene(tmp_path, events, jobs=[job(1, 55, 185), job(2, 50, 130)], seconds=600) as scene:
        await scene.put(HEAD, rows(START, 60, {"cpu": 100, "cpu_total": 200}))
        usage = await job_usage(scene.context, "job-1", None)
    assert usage.other_jobs == 1
    assert SHARED in usage.notes


async def test_an_unknown_job_is_unknown(tmp_path: Path) -> None:
    async with a_sample_scene(tmp_path, ALONE) as scene:
        with pytest.raises(JobUnknown):
            await job_scope(scene.context, "job-9")


def hours_of(usage: Usage, name: str) -> UsageHours:
    return next(row for row in usage.hours if row.name == name)


async def test_hours_are_what_was_there_reserved_asked_and_used(tmp_path: Path) -> None:
    events = [*node(HEAD), *task(1, 1, HEAD, 0, 1800)]
    async with a_sample_scene(tmp_path, events, jobs=[job(1, 0, 1800)], seconds=3600) as scene:
        values = {"cpu": 150, "cpu_total": 400, "cpu_reserved": 100, "memory": 1024, "memory_total": 4096}
        gpus = {"gpus": (gpu(0, 50),), "gpu_reserved": 100}
        await scene.put(HEAD, rows(START, 360, {**values, **gpus}))
        of_session, of_job = await session_usage(scene.context, None), await job_usage(scene.context, "job-1", None)
    cpu = hours_of(of_session, "CPU")
    assert (cpu.available, cpu.reserved, cpu.asked, cpu.used) == pytest.approx((4.0, 1.0, 0.5, 1.5), rel=1e-3)
    assert hours_of(of_session, "memory").used == pytest.approx(1.0)
    assert hours_of(of_session, "GPU").used == pytest.approx(0.5)
    assert hours_of(of_job, "CPU").used == pytest.approx(0.75)
    [only] = of_session.nodes
    assert (only.cpus, only.cpu_mean, only.memory_peak, only.gpu_type) == (4.0, 1.5, 1 << 30, "NVIDIA A100")
    assert only.hours == pytest.approx(1.0)
    assert of_session.cost is None


async def test_nodes_with_the_highest_peak_of_memory_come_first(tmp_path: Path) -> None:
    async with a_sample_scene(tmp_path, seconds=600) as scene:
        await scene.put(HEAD, rows(START, 60, {"memory": 1000, "memory_total": 4000}))
        await scene.put(WORKER_NODE, rows(START, 60, lambda row: {"memory": 3999 if row == 5 else 1, "cpu": 1}))
        usage = await session_usage(scene.context, None)
    assert [one.node_id for one in usage.nodes] == [WORKER_NODE, HEAD]


async def test_cost_is_of_what_was_there_and_of_what_was_used(tmp_path: Path) -> None:
    events = [*node(HEAD, labels={"zone": "a1"}), *node(WORKER_NODE, instanceTypeName="spot-large"), *node(OTHER_NODE)]
    async with a_sample_scene(tmp_path, events, seconds=3600) as scene:
        values = {"cpu": 200, "cpu_total": 400, "memory": 2048, "memory_total": 4096}
        await scene.put(HEAD, rows(START, 360, {**values, "gpus": (gpu(0, 25, name="H100 SXM"),)}))
        await scene.put(WORKER_NODE, rows(START, 360, values))
        await scene.put(OTHER_NODE, rows(START, 360, values))
        usage = await session_usage(scene.context, parse_price_list(PRICES.encode()))
    cost = usage.cost
    assert cost is not None
    assert {row.name: row.available for row in cost.rows} == pytest.approx(
        {"CPU": 0.4, "memory": 0.04, "GPU H100 SXM": 8.0, "node": 1.5}
    )
    assert {row.name: row.used for row in cost.rows} == pytest.approx(
        {"CPU": 0.2, "memory": 0.02, "GPU H100 SXM": 2.0, "node": 0.75}
    )
    assert (cost.currency, cost.unpriced_nodes) == ("EUR", 1)
    assert cost.available == pytest.approx(9.94)


async def test_a_session_without_samples_costs_what_ray_says_its_nodes_had(tmp_path: Path) -> None:
    async with a_sample_scene(tmp_path, node(HEAD, labels={"zone": "a1"}), seconds=7200) as scene:
        usage = await session_usage(scene.context, parse_price_list(PRICES.encode()))
    assert usage.cost is not None
    assert {row.name: row.available for row in usage.cost.rows} == pytest.approx(
        {"CPU": 0.4, "memory": 0.08, "GPU A100": 8.0}, rel=1e-2
    )
    assert (usage.cost.used, usage.source) == (None, "none")


async def test_hours_are_the_same_from_rows_of_ten_seconds_and_of_five_minutes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice = random.Random(7)
    async with a_sample_scene(tmp_path, seconds=3 * 3600) as scene:
        expected = 0
        for node_id in (HEAD, WORKER_NODE, OTHER_NODE):
            for hour in range(3):
                first = dice.randint(0, 200)
                every = rows(START + 3600 * hour, 360, lambda _: {"cpu": dice.randint(0, 800)})
                kept = [sample for sample in every[first : first + 150] if dice.random() < 0.9]
                await scene.put(node_id, kept)
                expected += sum(carried_hundredths(kept))
        fine = await session_usage(scene.context, None)
        monkeypatch.setattr(curve_usage, "FINE_NODE_HOURS", 0)
        coarse = await session_usage(scene.context, None)
    used = [hours_of(usage, "CPU").used for usage in (fine, coarse)]
    assert used == pytest.approx([expected / 100 * 10 / 3600] * 2, rel=1e-4)
    assert [node.cpu_peak for node in fine.nodes] == [node.cpu_peak for node in coarse.nodes]


def carried_hundredths(samples: list[Sample]) -> Iterator[int]:
    """The CPU of each row, and of each short pause after it."""
    for one, following in zip(samples, [*samples[1:], None], strict=True):
        yield one.cpu or 0
        pause = (following.at - one.at) // 10 - 1 if following else 0
        yield from [one.cpu or 0] * (pause if pause <= 3 else 0)
