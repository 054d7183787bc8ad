"""Tasks that wait: for what never comes, for their turn, for their arguments. Only the first is why a job failed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from raykeeper.history.entities.job import Job
from raykeeper.history.report.causes import explain_all
from raykeeper.history.report.input import Capacity, Ending, ReportInput, UnmadeGroup, Waiting, capacity_of, in_words
from raykeeper.history.report.make import parse_unmade
from raykeeper.history.report.model import Confidence, Outcome, Report
from raykeeper.history.report.shape import job_outcome
from support.ingest_scene import (
    START_NS,
    Event,
    base64_id,
    definition,
    event,
    finished_task,
    lifecycle,
    task_id,
    timestamp,
)
from support.report_scene import (
    NODE,
    NOW,
    SECOND,
    a_job,
    actor_task,
    failed,
    method,
    report_of,
    running_task,
    traceback_of,
)

ENDED = "Job finishes (01000000) as driver exits. Marking all non-terminal tasks as failed."
CODES = [
    a_job("STOPPED", message="Job was intentionally stopped."),
    a_job("FAILED", driver_exit_code=124, message="", entrypoint="timeout 60 python main.py"),
    a_job("FAILED", driver_exit_code=137, message=""),
]
IDS = ["stopped", "timed out", "killed"]


def node_with(**resources: float) -> Event:
    transition = {"state": "ALIVE", "timestamp": timestamp(START_NS), "resources": resources}
    body = {"nodeId": base64_id(NODE), "stateTransitions": [transition]}
    return event("NODE_LIFECYCLE_EVENT", "nodeLifecycleEvent", body)


def waiting(number: int, name: str = "embed", **resources: float) -> list[Event]:
    """A task that found no node until its job ended."""
    return failed(number, "WORKER_DIED", ENDED, name=name, worker="", node="", requiredResources=resources)


def first(report: Report) -> tuple[str, str, Confidence]:
    assert report.root_cause is not None
    return report.root_cause.rule, report.root_cause.title, report.root_cause.confidence


def evidence(report: Report) -> str:
    assert report.root_cause is not None
    return "\n".join(fact.text for fact in report.root_cause.evidence)


@pytest.mark.parametrize("job", CODES, ids=IDS)
async def test_a_job_that_somebody_ended_while_it_waited_in_vain_failed_of_what_never_came(
    job: dict[str, Any], tmp_path: Path
) -> None:
    events = [node_with(CPU=2.0), *finished_task(9), *waiting(1, CPU=1.0, GPU=4.0)]
    report = await report_of(tmp_path, events, jobs=[job])
    assert first(report) == (
        "never_scheduled",
        "embed waited for resources that never came: CPU 1, GPU 4",
        Confidence.LIKELY,
    )
    assert "no node had GPU 4: the most that one had was GPU 0" in evidence(report)
    assert report.outcome is (Outcome.STOPPED if job["status"] == "STOPPED" else Outcome.FAILED)


async def test_tasks_in_line_behind_others_of_their_kind_are_no_failure_of_a_job_that_was_stopped(
    tmp_path: Path,
) -> None:
    events = [node_with(CPU=2.0), *finished_task(9), *waiting(1, "step", CPU=1.0), *waiting(2, "step", CPU=1.0)]
    report = await report_of(tmp_path, events, jobs=[CODES[0]])
    assert (report.outcome, first(report)[0]) == (Outcome.STOPPED, "ended_with_job")


async def test_what_waits_in_vain_is_told_apart_from_what_waits_in_line(tmp_path: Path) -> None:
    line = [one for number in range(20, 30) for one in waiting(number, "step", CPU=1.0)]
    events = [node_with(CPU=2.0), *finished_task(9), *line, *waiting(1, CPU=1.0, GPU=1.0)]
    report = await report_of(tmp_path, events, jobs=[CODES[0]])
    assert first(report)[1] == "embed waited for resources that never came: CPU 1, GPU 1"
    assert [(cause.rule, cause.failures) for cause in report.causes] == [("never_scheduled", 1), ("ended_with_job", 10)]


async def test_a_task_that_waits_for_its_arguments_never_asked_for_a_node(tmp_path: Path) -> None:
    error = {"errorType": "WORKER_DIED", "errorMessage": ENDED}
    states = [("PENDING_ARGS_AVAIL", 1), ("FAILED", 9 * SECOND)]
    events = [definition(task_id(1), requiredResources={"GPU": 1.0}), lifecycle(task_id(1), states, rayErrorInfo=error)]
    report = await report_of(tmp_path, [*events, *running_task(2)], jobs=[CODES[0]])
    assert "never_scheduled" not in {cause.rule for cause in report.causes}


async def test_calls_of_an_actor_that_found_no_node_lead_to_its_constructor(tmp_path: Path) -> None:
    error = {"errorType": "WORKER_DIED", "errorMessage": ENDED}
    events = method(actor_task(0xFFFFFFFFFFFFFFFF), "__init__", error, 9, waited=True)
    events += method(actor_task(1), "run", error, 8, waited=True)
    report = await report_of(tmp_path, events, jobs=[CODES[0]])
    assert first(report)[1] == "Counter.__init__ waited for resources that never came"
    assert (report.causes[0].failures, len(report.causes)) == (2, 1)


GROUP: dict[str, Any] = {
    "placement_group_id": "ab" * 18,
    "creator_job_id": "01000000",
    "state": "REMOVED",
    "bundles": [{"unit_resources": {"CPU": 64.0}}],
    "stats": {"end_to_end_creation_latency_us": "0", "scheduling_state": "REMOVED"},
}
FRAMES = 'Traceback (most recent call last):\n  File "m.py", line 1\n    get()\n'
VAIN = f"{FRAMES}ray.exceptions.GetTimeoutError: Get timed out: some object(s) not ready."


@pytest.mark.parametrize(
    "job", [a_job("FAILED", driver_exit_code=1, message=VAIN), *CODES[:2]], ids=["gave up", *IDS[:2]]
)
async def test_a_placement_group_that_was_never_made_is_what_the_job_waited_for(
    job: dict[str, Any], tmp_path: Path
) -> None:
    report = await report_of(tmp_path, [node_with(CPU=2.0)], jobs=[job], groups=[GROUP])
    title = "job nightly waited for a placement group that never came: CPU 64"
    assert first(report) == ("missing_placement_group", title, Confidence.LIKELY)
    assert "no node had CPU 64: the most that one had was CPU 2" in evidence(report)


async def test_a_placement_group_that_was_made_explains_nothing(tmp_path: Path) -> None:
    made = GROUP | {"stats": {"end_to_end_creation_latency_us": "1500"}}
    report = await report_of(tmp_path, [], jobs=[a_job("FAILED", driver_exit_code=1, message=VAIN)], groups=[made])
    assert first(report)[0] == "failed_entrypoint"


def test_groups_in_a_shape_that_nobody_knows_are_left_out() -> None:
    assert parse_unmade([{"state": 7}, GROUP | {"state": "CREATED"}]) == ()
    assert [group.id for group in parse_unmade([GROUP | {"state": "PENDING"}])] == ["ab" * 18]


def test_what_a_job_waited_for_until_its_cluster_was_deleted_is_why_it_never_ended() -> None:
    job = replace(job_outcome(Job(a_job("FAILED"))), is_cut_off=True)
    wait = Waiting("01000000", "embed", '{"GPU": 4.0}', 3, START_NS)
    ending = Ending(NOW, reason="cluster deleted")
    causes = explain_all(ReportInput((), (job,), ending, waiting=[wait])).causes
    assert [(cause.rule, cause.confidence) for cause in causes] == [
        ("never_scheduled", Confidence.LIKELY),
        ("ended_cluster", Confidence.CONFIRMED),
    ]
    in_line = Capacity(given=frozenset({frozenset({("GPU", 4.0)})}))
    causes = explain_all(ReportInput((), (job,), ending, waiting=[wait], capacity=in_line)).causes
    assert [cause.rule for cause in causes] == ["ended_cluster"]


def test_a_shortage_names_what_was_short_alone() -> None:
    capacity = capacity_of(['{"CPU": 8.0}', '{"CPU": 2.0, "GPU": 1.0}'], [None, '{"CPU":1.0}', "[]"])
    assert capacity.shortage({"CPU": 1.0, "GPU": 4.0}) == "no node had GPU 4: the most that one had was GPU 1"
    assert capacity.shortage({"CPU": 8.0, "GPU": 1.0}).startswith("no node had CPU 8, GPU 1")
    assert capacity.shortage({"CPU": 8.0}) == Capacity().shortage({"CPU": 99.0}) == ""
    assert capacity.was_given({"CPU": 1.0})
    assert in_words({"CPU": 0.5}) == "CPU 0.5"


def a_driver(status: str = "SUCCEEDED") -> dict[str, Any]:
    """A driver that somebody started by hand: Ray calls it SUCCEEDED however it ended."""
    return a_job(status, type="DRIVER", submission_id=None)


async def test_nobody_says_of_a_driver_started_by_hand_that_it_succeeded(tmp_path: Path) -> None:
    events = failed(1, "TASK_EXECUTION_EXCEPTION", traceback_of("step", "ValueError: boom"))
    report = await report_of(tmp_path / "failed", events, jobs=[a_driver()])
    assert (report.outcome, first(report)[1]) == (Outcome.FAILED, "step raised ValueError: boom (main.py:3)")
    fine = await report_of(tmp_path / "fine", finished_task(1), jobs=[a_driver()])
    assert fine.outcome is Outcome.OK
    assert [unknown.text for unknown in fine.unknown if unknown.what == "ends of drivers"] == [
        "Ray's events do not say how a driver ended that was not submitted as a job: 01000000"
    ]
    submitted = await report_of(tmp_path / "submitted", finished_task(1), jobs=[a_job()])
    assert "ends of drivers" not in {unknown.what for unknown in submitted.unknown}


async def test_a_job_at_work_whose_tasks_failed_for_good_has_not_failed_yet(tmp_path: Path) -> None:
    events = failed(1, "TASK_EXECUTION_EXCEPTION", traceback_of("step", "ValueError: boom"))
    report = await report_of(tmp_path, events, jobs=[a_job("RUNNING", end_time=None)])
    assert (report.outcome, first(report)[0]) == (Outcome.FAILING, "raised_exception")


def test_equal_bundles_of_a_placement_group_are_counted() -> None:
    gpu, cpus = {"GPU": 1.0}, {"CPU": 8.0}
    assert UnmadeGroup("g", "01", (gpu, gpu, cpus, gpu)).asked == "3 x GPU 1; CPU 8"
    several = tuple({"CPU": float(number)} for number in range(1, 6))
    assert UnmadeGroup("g", "01", several).asked == "CPU 1; CPU 2; CPU 3; and 2 more"
