"""Each rule finds its cause in a session of events made by hand, and no other one does."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from raykeeper.history import report as report_package
from raykeeper.history.report.fingerprint import ARGUMENT_MARK
from raykeeper.history.report.model import Confidence, Outcome, Report
from support.ingest_scene import definition, finished_task, job_lifecycle, lifecycle, task_id
from support.report_scene import (
    NODE,
    SECOND,
    WORKER,
    a_job,
    actor_died,
    actor_task,
    failed,
    method,
    node_died,
    report_of,
    running_task,
    traceback_of,
    worker_died,
)

BOOM = "ValueError: boom"
SOCKET = "RpcError: RPC error: Socket closed rpc_code: 14"


def first(report: Report) -> tuple[str, str, int]:
    """Rule, confidence and number of failures of the root cause."""
    assert report.root_cause is not None
    return report.root_cause.rule, report.root_cause.confidence, report.root_cause.failures


def evidence(report: Report) -> str:
    assert report.root_cause is not None
    return "\n".join(f"{fact.source}: {fact.text}" for fact in report.root_cause.evidence)


async def test_a_session_that_went_well_says_so(tmp_path: Path) -> None:
    report = await report_of(tmp_path, finished_task(1), jobs=[a_job()])
    assert (report.outcome, report.root_cause, report.causes, report.groups) == (Outcome.OK, None, (), ())
    assert report.counts.attempts == 1


async def test_one_exception_among_many_tasks_is_its_own_cause(tmp_path: Path) -> None:
    fine = [one for number in range(2, 30) for one in finished_task(number)]
    report = await report_of(tmp_path, [*fine, *failed(1, "TASK_EXECUTION_EXCEPTION", traceback_of("step", BOOM))])
    assert first(report) == ("raised_exception", Confidence.CONFIRMED, 1)
    [group] = report.groups
    assert (group.title, group.failures, group.share) == (BOOM, 1, 1 / 29)
    assert [(function.name, function.failures) for function in group.functions] == [("step", 1)]
    assert group.example is not None
    assert (group.example.task_id, group.nodes) == (task_id(1), (NODE,))


async def test_a_failed_argument_leads_to_the_task_that_made_it(tmp_path: Path) -> None:
    own = traceback_of("make", BOOM)
    passed_on = f"ray::use() (pid=8)\n  {ARGUMENT_MARK}:\nray.exceptions.RayTaskError: {own}"
    events = failed(1, "TASK_EXECUTION_EXCEPTION", own, name="make", seconds=5)
    for number in (2, 3):
        events += failed(number, "TASK_EXECUTION_EXCEPTION", passed_on, name="use", seconds=9)
    report = await report_of(tmp_path, events)
    assert first(report) == ("raised_exception", Confidence.CONFIRMED, 3)
    assert len(report.causes) == 1
    assert "an argument of use was the error of make" in evidence(report)
    assert {group.functions[0].name for group in report.groups} == {"make", "use"}


async def test_an_error_that_a_parent_got_leads_to_its_child(tmp_path: Path) -> None:
    inner = traceback_of("child", BOOM)
    nested = (
        f'ray::parent() (pid=8)\n  File "/a.py", line 2, in parent\nray.exceptions.RayTaskError(ValueError): {inner}'
    )
    events = failed(1, "TASK_EXECUTION_EXCEPTION", inner, name="child", seconds=5)
    events += failed(2, "TASK_EXECUTION_EXCEPTION", nested, name="parent", seconds=6)
    report = await report_of(tmp_path, events)
    assert first(report) == ("raised_exception", Confidence.CONFIRMED, 2)
    assert "parent asked for the result of child" in evidence(report)


async def test_a_dependency_whose_own_failure_is_missing_is_only_likely(tmp_path: Path) -> None:
    passed_on = f"ray::use() (pid=8)\n  {ARGUMENT_MARK}:\nray.exceptions.RayTaskError: {traceback_of('make', BOOM)}"
    report = await report_of(tmp_path, failed(2, "TASK_EXECUTION_EXCEPTION", passed_on, name="use"))
    assert first(report) == ("failed_dependency", Confidence.LIKELY, 1)


@pytest.mark.parametrize("error_type", ["OUT_OF_MEMORY", "WORKER_DIED"])
async def test_a_worker_killed_for_memory_is_named_before_its_task(error_type: str, tmp_path: Path) -> None:
    killed = worker_died("NODE_OUT_OF_MEMORY", "Task was killed due to the node running low on memory.", 9)
    report = await report_of(tmp_path, [killed, *failed(1, error_type, SOCKET, seconds=10)])
    assert first(report) == ("out_of_memory", Confidence.CONFIRMED, 1)
    assert report.root_cause is not None
    assert report.root_cause.at is not None
    assert report.root_cause.at.second == 9
    assert "running low on memory" in evidence(report)


async def test_a_lost_node_explains_the_tasks_on_it_even_those_that_failed_before_it_was_given_up(
    tmp_path: Path,
) -> None:
    events = node_died("UNEXPECTED_TERMINATION", "health check failed due to missing too many heartbeats", 25)
    for number in range(1, 6):
        events += failed(number, "WORKER_DIED", SOCKET, seconds=10 + number)
    report = await report_of(tmp_path, events)
    assert first(report) == ("lost_node", Confidence.LIKELY, 5)
    assert "health check failed" in evidence(report)
    assert "5 of 5" in evidence(report)


async def test_a_node_that_ray_names_as_the_reason_is_certain(tmp_path: Path) -> None:
    events = [*node_died("UNEXPECTED_TERMINATION", "gone", 12), *failed(1, "NODE_DIED", f"node {NODE} died")]
    assert first(await report_of(tmp_path, events)) == ("lost_node", Confidence.CONFIRMED, 1)


async def test_a_node_that_died_an_hour_later_explains_nothing(tmp_path: Path) -> None:
    events = [*node_died("EXPECTED_TERMINATION", "scaled down", 3600), *failed(1, "WORKER_DIED", SOCKET)]
    assert first(await report_of(tmp_path, events))[0] == "crashed_worker"


async def test_an_exception_on_a_node_that_died_later_is_still_an_exception(tmp_path: Path) -> None:
    raised = failed(1, "TASK_EXECUTION_EXCEPTION", traceback_of("step", BOOM))
    events = [*node_died("UNEXPECTED_TERMINATION", "gone", 12), worker_died("SYSTEM_ERROR", "EOF", 12), *raised]
    assert first(await report_of(tmp_path, events))[0] == "raised_exception"


async def test_a_lost_object_is_guessed_to_be_gone_with_the_node_before_it(tmp_path: Path) -> None:
    events = [*node_died("UNEXPECTED_TERMINATION", "gone", 12), *failed(1, "WORKER_DIED", SOCKET, seconds=11)]
    events += failed(2, "OBJECT_LOST", "Failed to retrieve object ab12", seconds=20, worker="ab" * 28, node="9a" * 28)
    report = await report_of(tmp_path, events)
    assert first(report) == ("lost_node", Confidence.LIKELY, 2)
    assert {group.error_type: group.confidence for group in report.groups}["OBJECT_LOST"] is Confidence.POSSIBLE


async def test_a_failed_runtime_environment_is_certain(tmp_path: Path) -> None:
    report = await report_of(tmp_path, failed(1, "RUNTIME_ENV_SETUP_FAILED", "OSError: no package", worker="", node=""))
    assert first(report) == ("failed_environment", Confidence.CONFIRMED, 1)


async def test_a_crashed_worker_is_likely_because_nobody_knows_why(tmp_path: Path) -> None:
    events = [
        worker_died("SYSTEM_ERROR", "connection error code 2. End of file.", 9),
        *failed(1, "WORKER_DIED", SOCKET),
    ]
    report = await report_of(tmp_path, events)
    assert first(report) == ("crashed_worker", Confidence.LIKELY, 1)
    assert "End of file" in evidence(report)


async def test_methods_of_an_actor_fail_because_its_constructor_did(tmp_path: Path) -> None:
    made = {"errorType": "TASK_EXECUTION_EXCEPTION", "errorMessage": traceback_of("Counter.__init__", BOOM)}
    called = {"errorType": "ACTOR_DIED", "errorMessage": f"The actor died: {BOOM}"}
    events = [
        *actor_died({"creationTaskFailureContext": {}}, 4),
        *method(actor_task(0xFFFFFFFFFFFFFFFF), "__init__", made, 3),
        *method(actor_task(1), "inc", called, 5),
        *method(actor_task(2), "inc", called, 6),
    ]
    report = await report_of(tmp_path, events)
    assert first(report) == ("raised_exception", Confidence.CONFIRMED, 3)
    assert "its constructor raised" in evidence(report)


async def test_calls_while_an_actor_restarts_follow_from_what_ended_it(tmp_path: Path) -> None:
    cut = {"errorType": "ACTOR_UNAVAILABLE", "errorMessage": f"The actor is temporarily unavailable: {SOCKET}"}
    waiting = {"errorType": "ACTOR_UNAVAILABLE", "errorMessage": "The actor is restarting."}
    events = [
        worker_died("SYSTEM_ERROR", "End of file.", 4),
        *method(actor_task(1), "die", cut, 5, worker=WORKER),
        *method(actor_task(2), "inc", waiting, 6),
    ]
    report = await report_of(tmp_path, events)
    assert first(report) == ("crashed_worker", Confidence.LIKELY, 2)


async def test_what_the_program_asked_for_is_no_failure(tmp_path: Path) -> None:
    died: dict[str, Any] = {
        "reason": "RAY_KILL",
        "errorMessage": "The actor is dead because it was killed by `ray.kill`.",
    }
    called = {"errorType": "ACTOR_DIED", "errorMessage": died["errorMessage"]}
    events = [
        *actor_died({"actorDiedErrorContext": died}, 4),
        *method(actor_task(1), "inc", called, 5),
        *failed(2, "TASK_CANCELLED", "cancelled"),
    ]
    report = await report_of(tmp_path, events, jobs=[a_job()])
    assert (report.outcome, report.root_cause) == (Outcome.OK, None)
    assert {cause.rule for cause in report.causes} == {"ended_actor", "cancelled"}
    assert report.counts.failures == 2


async def test_resources_that_never_come_are_certain_if_ray_says_so_and_likely_if_the_job_gave_up(
    tmp_path: Path,
) -> None:
    told = failed(1, "TASK_UNSCHEDULABLE_ERROR", "no node has GPU", worker="", node="", requiredResources={"GPU": 8.0})
    report = await report_of(tmp_path / "told", told)
    assert first(report) == ("unschedulable", Confidence.CONFIRMED, 1)
    assert "required resources: GPU 8" in evidence(report)
    waited = [definition(task_id(1)), lifecycle(task_id(1), [("PENDING_NODE_ASSIGNMENT", 1)])]
    report = await report_of(tmp_path / "waited", [*waited, job_lifecycle("01000000", "FINISHED", 60 * SECOND)])
    assert first(report) == ("never_scheduled", Confidence.LIKELY, 1)


async def test_tasks_that_were_open_when_their_job_succeeded_are_no_failure(tmp_path: Path) -> None:
    ended = job_lifecycle("01000000", "FINISHED", 60 * SECOND)
    report = await report_of(tmp_path, [*running_task(1), ended], jobs=[a_job()])
    assert (report.outcome, [cause.rule for cause in report.causes]) == (Outcome.OK, ["ended_with_job"])


async def test_a_stopped_job_is_why_its_tasks_ended(tmp_path: Path) -> None:
    ended = job_lifecycle("01000000", "FINISHED", 60 * SECOND)
    stopped = a_job("STOPPED", message="Job was intentionally stopped.")
    report = await report_of(tmp_path, [*running_task(1), ended], jobs=[stopped])
    assert report.outcome is Outcome.STOPPED
    assert first(report) == ("ended_with_job", Confidence.CONFIRMED, 1)
    assert "intentionally stopped" in evidence(report)


async def test_a_retry_that_hid_a_failure_is_told_and_is_no_failure(tmp_path: Path) -> None:
    events = failed(1, "TASK_EXECUTION_EXCEPTION", traceback_of("step", BOOM), attempt=0)
    events += [
        definition(task_id(1), attempt=1),
        lifecycle(task_id(1), [("RUNNING", 11 * SECOND), ("FINISHED", 12 * SECOND)], attempt=1),
    ]
    report = await report_of(tmp_path, events, jobs=[a_job()])
    assert (report.outcome, report.root_cause) == (Outcome.OK, None)
    assert (report.counts.failures, report.counts.recovered, report.groups[0].recovered) == (1, 1, 1)


async def test_the_exception_that_ended_the_driver_comes_before_earlier_ones_that_it_survived(tmp_path: Path) -> None:
    events = failed(1, "TASK_EXECUTION_EXCEPTION", traceback_of("warm", "KeyError: 'a'"), seconds=2)
    events += failed(2, "TASK_EXECUTION_EXCEPTION", traceback_of("step", BOOM), seconds=9)
    log = f'Traceback (most recent call last):\n  File "main.py", line 9\n    ray.get(x)\n{traceback_of("step", BOOM)}'
    job = a_job("FAILED", message=f"exit code 1\n{log}", driver_exit_code=1, error_type="JOB_ENTRYPOINT_COMMAND_ERROR")
    report = await report_of(tmp_path, events, jobs=[job], job="nightly")
    assert first(report) == ("raised_exception", Confidence.CONFIRMED, 1)
    assert report.root_cause is not None
    assert (report.root_cause.title, report.root_cause.ends_job) == (f"step raised {BOOM} (main.py:3)", True)


JOB_ENDS = [
    ({"driver_exit_code": 7, "message": "exit code 7"}, "failed_entrypoint", "exited with code 7"),
    ({"error_type": "RUNTIME_ENV_SETUP_FAILURE", "message": "pip failed"}, "failed_job_environment", "pip failed"),
    ({"error_type": "JOB_SUPERVISOR_ACTOR_START_TIMEOUT"}, "unstarted_driver", "not started in time"),
    ({"error_type": "JOB_SUPERVISOR_ACTOR_DIED"}, "dead_supervisor", "watched the driver died"),
]


@pytest.mark.parametrize(("facts", "rule", "title"), JOB_ENDS)
async def test_a_job_without_failed_tasks_is_explained_by_its_own_words(
    facts: dict[str, Any], rule: str, title: str, tmp_path: Path
) -> None:
    report = await report_of(tmp_path, [], jobs=[a_job("FAILED", **facts)])
    assert report.outcome is Outcome.FAILED
    assert report.root_cause is not None
    assert report.root_cause.rule == rule
    assert title in report.root_cause.title


async def test_a_supervisor_that_died_with_a_node_is_explained_by_the_node(tmp_path: Path) -> None:
    events = [*node_died("UNEXPECTED_TERMINATION", "gone", 12), *failed(1, "WORKER_DIED", SOCKET)]
    job = a_job("FAILED", error_type="JOB_SUPERVISOR_ACTOR_DIED", message="Job supervisor actor died")
    report = await report_of(tmp_path, events, jobs=[job])
    assert first(report)[0] == "lost_node"
    assert "supervisor actor died" in evidence(report)


async def test_a_report_on_a_job_leaves_the_others_out(tmp_path: Path) -> None:
    other = failed(1, "TASK_EXECUTION_EXCEPTION", traceback_of("step", BOOM))
    jobs = [a_job(), a_job("SUCCEEDED", job_id="02000000", submission_id="other")]
    report = await report_of(tmp_path, other, jobs=jobs, job="other")
    assert (report.outcome, report.groups, [job.submission_id for job in report.jobs]) == (Outcome.OK, (), ["other"])


async def test_a_long_error_keeps_its_beginning_and_its_exception(tmp_path: Path) -> None:
    long = traceback_of("step", "x" * 30_000).replace("x" * 30_000, "    frame\n" * 4000 + BOOM)
    report = await report_of(tmp_path, failed(1, "TASK_EXECUTION_EXCEPTION", long))
    assert report.root_cause is not None
    assert report.root_cause.title == f"step raised {BOOM} (main.py:3)"
    [group] = report.groups
    assert group.example is not None
    assert group.example.message.startswith("User exception:")
    assert len(group.example.message) < 21_000


DEAD = "The actor is dead because its worker process has died. Worker exit type: {exit_type} Worker exit detail: EOF"


async def test_calls_of_an_actor_out_of_restarts_follow_from_the_death_of_its_worker(tmp_path: Path) -> None:
    died = {"reason": "WORKER_DIED", "errorMessage": DEAD.format(exit_type="SYSTEM_ERROR")}
    cut = {"errorType": "ACTOR_UNAVAILABLE", "errorMessage": f"The actor is temporarily unavailable: {SOCKET}"}
    called = {"errorType": "ACTOR_DIED", "errorMessage": died["errorMessage"]}
    calls = [*method(actor_task(2), "inc", called, 6), *method(actor_task(3), "inc", called, 7)]
    events = [*actor_died({"actorDiedErrorContext": died}, 5), *calls]
    alone = await report_of(tmp_path / "alone", events)
    assert first(alone) == ("dead_actor", Confidence.LIKELY, 2)
    crash = [worker_died("SYSTEM_ERROR", "EOF", 4), *method(actor_task(1), "die", cut, 5, worker=WORKER)]
    assert first(await report_of(tmp_path / "whole", [*events, *crash])) == ("crashed_worker", Confidence.LIKELY, 3)


async def test_an_actor_killed_for_memory_is_named_by_its_death(tmp_path: Path) -> None:
    died = {"reason": "WORKER_DIED", "errorMessage": DEAD.format(exit_type="NODE_OUT_OF_MEMORY")}
    called = {"errorType": "ACTOR_DIED", "errorMessage": died["errorMessage"]}
    events = [*actor_died({"actorDiedErrorContext": died}, 5), *method(actor_task(2), "inc", called, 6)]
    assert first(await report_of(tmp_path, events)) == ("out_of_memory", Confidence.CONFIRMED, 1)


async def test_a_job_that_failed_comes_before_one_that_was_stopped_earlier(tmp_path: Path) -> None:
    stopped = a_job("STOPPED", end_time=a_job()["start_time"] + 1)
    broken = a_job("FAILED", job_id="02000000", submission_id="other", driver_exit_code=3, message="exit code 3")
    report = await report_of(tmp_path, [], jobs=[stopped, broken])
    assert report.outcome is Outcome.FAILED
    assert [cause.rule for cause in report.causes] == ["failed_entrypoint", "stopped_job"]


def test_every_rule_that_confirms_says_what_that_rests_on() -> None:
    """Or it passes on the cause of another failure, whose basis counts."""
    bare = []
    for file in sorted(Path(report_package.__file__).parent.rglob("*.py")):
        for call in ast.walk(ast.parse(file.read_text())):
            if not isinstance(call, ast.Call) or ast.unparse(call.func) != "Explanation":
                continue
            names = {keyword.arg for keyword in call.keywords}
            if "CONFIRMED" in ast.unparse(call) and not names & {"basis", "because_of"}:
                bare.append(f"{file.name}:{call.lineno}")
    assert bare == []
