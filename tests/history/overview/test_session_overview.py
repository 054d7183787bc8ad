"""One session at a glance: the recorded run against Ray's own words, and small ones made by hand."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from raykeeper.history.entities.tasks import QUESTIONS
from raykeeper.history.overview.model import SessionOverview
from raykeeper.history.overview.session import session_overview
from support.goldensession import Moments, golden_session
from support.ingest_scene import definition, lifecycle, task_id
from support.overview_scene import SECOND, asked_about, at
from support.raycapture import HEAD, STARTED_AT, WORKER, RayCapture
from support.report_scene import node_died


async def golden_overview(moments: Moments) -> SessionOverview:
    async with golden_session(moments["final"]) as asked:
        return await session_overview(asked)


async def test_functions_are_counted_as_ray_counts_them(ingested_moments: Moments, raycapture: RayCapture) -> None:
    overview = await golden_overview(ingested_moments)
    path = "/api/v0/tasks/summarize?timeout=30"
    [said] = [asked.body for asked in raycapture.requests("final") if asked.path == path]
    functions: dict[str, Any] = said["data"]["result"]["result"]["node_id_to_summary"]["cluster"]["summary"]
    users = {name: entry for name, entry in functions.items() if name not in QUESTIONS}
    counted = {name: entry["state_counts"] for name, entry in users.items() if entry["type"] != "DRIVER_TASK"}
    shown = {row.name: (row.attempts, row.failed) for row in overview.functions.rows}
    assert shown == {name: (sum(states.values()), states.get("FAILED", 0)) for name, states in counted.items()}
    assert overview.functions.left_out == 0
    assert overview.counts.attempts == sum(attempts for attempts, _ in shown.values())


async def test_the_recorded_run_has_its_nodes_jobs_and_versions(ingested_moments: Moments) -> None:
    overview = await golden_overview(ingested_moments)
    assert (overview.facts.ray_version, overview.facts.python_version) == ("2.60.0", "3.11.7")
    assert {node.node_id for node in overview.nodes.rows} == {HEAD.node_id, WORKER.node_id}
    assert overview.nodes.rows[0].is_head
    assert max(overview.nodes.alive) == 2
    assert {"golden-main", "golden-fail", "golden-badenv"} <= {job.id for job in overview.jobs}
    assert overview.jobs[0].started_at == max(job.started_at for job in overview.jobs if job.started_at)
    [cpu] = [row for row in overview.resources.rows if row.name == "CPU"]
    assert 0 < cpu.asked < cpu.available < 1  # four CPUs for some six minutes


async def test_a_failed_job_has_its_root_cause_in_one_line(ingested_moments: Moments) -> None:
    failures = {job.id: job.failure for job in (await golden_overview(ingested_moments)).jobs}
    assert "runtime environment" in failures["golden-badenv"], "its root cause, not the last line of its message"
    assert failures["golden-main"].startswith("fail_app raised ValueError: boom"), "it succeeded with failures"


async def test_every_attempt_is_somewhere_in_the_time(ingested_moments: Moments) -> None:
    overview = await golden_overview(ingested_moments)
    series = overview.tasks
    assert (sum(series.finished), sum(series.failed)) == (overview.counts.finished, overview.counts.failed)
    ran = sum(row.total_seconds for row in overview.functions.rows)
    still_running = overview.counts.running * 600
    assert ran * 0.99 <= sum(series.running) * series.width_seconds <= ran * 1.001 + still_running
    assert series.begin <= STARTED_AT + timedelta(seconds=1)


async def test_tasks_wait_run_and_end_when_they_did(tmp_path: Path) -> None:
    first, second = task_id(1), task_id(2)
    events = [
        definition(first, name="load"),
        lifecycle(first, [("PENDING_ARGS_AVAIL", 0), ("RUNNING", 20 * SECOND), ("FINISHED", 60 * SECOND)]),
        definition(second, name="train"),
        lifecycle(second, [("PENDING_ARGS_AVAIL", 0), ("FAILED", 48 * SECOND)]),
    ]
    async with asked_about(tmp_path, events, as_of=at(96)) as asked:
        overview = await session_overview(asked)
    series = overview.tasks
    assert (series.begin, series.width_seconds) == (at(0), 1)
    assert [series.pending[second] for second in (0, 19, 20, 47, 48)] == [2, 2, 1, 1, 0]
    assert [series.running[second] for second in (19, 20, 59, 60)] == [0, 1, 1, 0]
    assert [place for place, number in enumerate(series.finished) if number] == [60]
    assert [place for place, number in enumerate(series.failed) if number] == [48]
    [load, train] = overview.functions.rows
    assert (load.name, load.p50_seconds, load.total_seconds, load.failed) == ("load", 40, 40, 0)
    assert (train.name, train.p50_seconds, train.total_seconds, train.failed) == ("train", None, 0, 1)


async def test_a_lost_node_tells_why_and_a_session_of_nothing_is_empty(tmp_path: Path) -> None:
    (tmp_path / "lost").mkdir()
    died = node_died("UNEXPECTED_TERMINATION", "health check failed", 30)
    async with asked_about(tmp_path / "lost", died, as_of=at(60)) as asked:
        [node] = (await session_overview(asked)).nodes.rows
    assert (node.ended_at, node.death) == (at(30), "Unexpected termination: health check failed")
    (tmp_path / "none").mkdir()
    async with asked_about(tmp_path / "none", [], as_of=at(60)) as asked:
        empty = await session_overview(asked)
    assert (empty.counts.attempts, empty.functions.rows, empty.nodes.rows, empty.jobs) == (0, (), (), ())
    assert set(empty.tasks.running) == {0}


@pytest.mark.parametrize("spread_out", [1, 3])
async def test_quantiles_are_exact(tmp_path: Path, spread_out: int) -> None:
    lengths = [number * spread_out for number in range(1, 101)]
    events = []
    for number, seconds in enumerate(lengths):
        task = task_id(number)
        states = [("PENDING_ARGS_AVAIL", 0), ("RUNNING", 0), ("FINISHED", seconds * SECOND)]
        events += [definition(task), lifecycle(task, states)]
    async with asked_about(tmp_path, events, as_of=at(1000)) as asked:
        [row] = (await session_overview(asked)).functions.rows
    assert row.attempts == 100
    assert row.p50_seconds == pytest.approx(50.5 * spread_out)
    assert row.p95_seconds == pytest.approx(95.05 * spread_out)
    assert row.total_seconds == sum(lengths)
