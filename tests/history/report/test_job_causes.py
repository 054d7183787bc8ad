"""Why a job failed: its exit code is only the end of it. What its driver said last leads to what happened before."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from raykeeper.history.entities.job import Job
from raykeeper.history.report.causes import explain_all
from raykeeper.history.report.input import Ending, ReportInput
from raykeeper.history.report.model import Confidence, Outcome, Report
from raykeeper.history.report.shape import job_outcome
from support.report_scene import NOW, WORKER, a_job, failed, report_of, traceback_of, worker_died

BOOM = "ZeroDivisionError: division by zero"
FRAMES = '  File "main.py", line 7, in <module>\n    main()\n  File "worker.py", line 1053, in get_objects\n'
CRASH = "RpcError: RPC error: Socket closed rpc_code: 14"


def ended(words: str, code: int = 1, **more: Any) -> dict[str, Any]:
    """A job that failed, with the last lines of its driver as Ray puts them into the message."""
    said = f"Job entrypoint command failed with exit code {code}, last available logs (truncated to 20,000 chars):\n"
    return a_job("FAILED", driver_exit_code=code, message=said + words, **more)


def first(report: Report) -> tuple[str, str, bool]:
    assert report.root_cause is not None
    return report.root_cause.rule, report.root_cause.confidence, report.root_cause.ends_job


AGAIN = f'{FRAMES}    raise value\nray.exceptions.RayTaskError: ray::step() (pid=7)\n  File "main.py", line 3\n{BOOM}'
RAISED = [
    f"Traceback (most recent call last):\n{AGAIN}",
    AGAIN,
    f"3 tasks failed for good:\nstep: {BOOM}\nstep: {BOOM}",
]


@pytest.mark.parametrize("words", RAISED, ids=["whole traceback", "cut traceback", "told by the driver itself"])
async def test_what_a_driver_says_last_leads_to_the_task_that_failed(words: str, tmp_path: Path) -> None:
    hidden = failed(1, "TASK_EXECUTION_EXCEPTION", traceback_of("other", "ValueError: earlier"), seconds=5)
    task = failed(2, "TASK_EXECUTION_EXCEPTION", traceback_of("step", BOOM), seconds=10)
    report = await report_of(tmp_path, [*hidden, *task], jobs=[ended(words)])
    assert first(report) == ("raised_exception", Confidence.CONFIRMED, True)
    assert report.root_cause is not None
    assert report.root_cause.title == f"step raised {BOOM} (main.py:3)"
    assert len(report.causes) == 2


RELAYED = (
    "(raylet) Task fetch failed. There are 2 retries remaining, so the task will be retried. Error: User exception:\n"
    'ray::fetch() (pid=7)\n  File "main.py", line 37, in fetch\n    raise x\nConnectionError: page 2 did not answer'
)


@pytest.mark.parametrize("words", [f"{RAISED[2]}\n{RELAYED}", f"{RAISED[0]}\n{RELAYED}"], ids=["told", "raised"])
async def test_errors_that_ray_relays_into_a_drivers_log_are_not_the_drivers(words: str, tmp_path: Path) -> None:
    task = failed(2, "TASK_EXECUTION_EXCEPTION", traceback_of("step", BOOM))
    report = await report_of(tmp_path, task, jobs=[ended(words)])
    assert report.root_cause is not None
    assert report.root_cause.title == f"step raised {BOOM} (main.py:3)"


async def test_a_driver_that_says_nothing_of_its_tasks_failed_on_its_own(tmp_path: Path) -> None:
    task = failed(2, "TASK_EXECUTION_EXCEPTION", traceback_of("step", BOOM))
    report = await report_of(tmp_path, task, jobs=[ended(f"{FRAMES}    x = None + 1\nTypeError: unsupported operand")])
    assert first(report) == ("failed_entrypoint", Confidence.CONFIRMED, True)
    assert report.root_cause is not None
    assert report.root_cause.title.endswith("raised TypeError: unsupported operand (worker.py:1053)")


WITHIN_TUNE = (
    "User exception:\nray::train() (pid=7, ip=10.0.0.9)\n"
    '  File "/lib/python3.11/site-packages/ray/tune/trainable/function_trainable.py", line 45, in <lambda>\n'
    f'    output = fn()\n  File "/app/main.py", line 3, in objective\n    return 1 / 0\n{BOOM}'
)
MISSING = '  File "main.py", line 9, in <module>\n    print(results["loss"])\nKeyError: \'loss\''


async def test_a_driver_that_reads_what_was_never_made_leads_to_what_ray_kept_from_it(tmp_path: Path) -> None:
    trial = failed(2, "TASK_EXECUTION_EXCEPTION", WITHIN_TUNE)
    report = await report_of(tmp_path, trial, jobs=[ended(f"Traceback (most recent call last):\n{MISSING}")])
    assert first(report) == ("raised_exception", Confidence.LIKELY, True)
    assert report.headline is not None
    assert report.headline.where is not None
    assert (report.headline.text, report.headline.where.text) == (BOOM, "main.py:3")
    assert report.headline.then == "the driver went on without it: KeyError: 'loss' (main.py:9)"
    assert report.headline.basis == "the driver could not see it, and read a result soon after that was not there"
    assert [step.text for step in report.steps][-2:] == ["the driver got KeyError at main.py:9", STEP_OF_END]


CORE = (
    'Traceback (most recent call last):\n  File "/app/core.py", line 12, in load\n'
    "    raise ValueError(40)\nValueError: 40 layers\n"
)
POINTER = "RuntimeError: Engine core initialization failed. See root cause above."
START = f'Traceback (most recent call last):\n  File "/app/main.py", line 9, in <module>\n    start()\n{POINTER}\n'


@pytest.mark.parametrize("relay", ["", "(EngineCore pid=9) "])
async def test_a_driver_that_only_says_where_to_look_leads_to_what_is_there(relay: str, tmp_path: Path) -> None:
    core = "".join(f"{relay}{line}\n" for line in CORE.splitlines())
    report = await report_of(tmp_path, [], jobs=[ended(f"{core}{START}")])
    assert first(report) == ("relayed_exception", Confidence.LIKELY, True)
    assert report.headline is not None
    assert report.headline.where is not None
    assert (report.headline.text, report.headline.where.text) == ("ValueError: 40 layers", "core.py:12")
    assert report.headline.then == POINTER


async def test_what_a_command_of_the_driver_wrote_is_the_next_sentence(tmp_path: Path) -> None:
    error = "subprocess.CalledProcessError: Command '['gzip', 'a.gz']' returned non-zero exit status 1."
    words = f'gzip: a.gz: not in gzip format\nTraceback (most recent call last):\n  File "/a.py", line 2, in x\n{error}'
    report = await report_of(tmp_path, [], jobs=[ended(words)])
    assert report.headline is not None
    assert report.headline.text == error
    assert report.headline.then == "the command had written: gzip: a.gz: not in gzip format"


STEP_OF_END = "job nightly FAILED, exit code 1"
OWN_ENDS = {
    "a driver that gives up in words of its own": (WITHIN_TUNE, MISSING.replace("print(", "raise KeyError("), 10),
    "an error about something else": (WITHIN_TUNE, MISSING.replace("KeyError: 'loss'", "OSError: disk full"), 10),
    "an error that the driver could have handled": (traceback_of("step", BOOM), MISSING, 10),
    "a failure long before": (WITHIN_TUNE, MISSING, 10 - 180),
    "no line of code in the traceback": (WITHIN_TUNE, MISSING.replace('    print(results["loss"])\n', ""), 10),
}


@pytest.mark.parametrize(("message", "words", "seconds"), OWN_ENDS.values(), ids=OWN_ENDS)
async def test_the_drivers_own_error_stays_the_cause_of(message: str, words: str, seconds: int, tmp_path: Path) -> None:
    task = failed(2, "TASK_EXECUTION_EXCEPTION", message, seconds=seconds)
    report = await report_of(tmp_path, task, jobs=[ended(f"Traceback (most recent call last):\n{words}")])
    assert first(report) == ("failed_entrypoint", Confidence.CONFIRMED, True)
    assert report.headline is not None
    assert report.headline.then == f"1 step task had failed for good: 1 x {BOOM}"


async def test_a_task_whose_attempts_failed_in_two_ways_is_counted_once_by_its_last(tmp_path: Path) -> None:
    attempts = [
        *failed(1, "TASK_EXECUTION_EXCEPTION", traceback_of("step", "OSError: first"), seconds=5, attempt=0),
        *failed(1, "TASK_EXECUTION_EXCEPTION", traceback_of("step", "ValueError: second"), seconds=6, attempt=1),
        *failed(2, "TASK_EXECUTION_EXCEPTION", traceback_of("step", BOOM), seconds=7),
    ]
    job = ended(f"{FRAMES}    raise RuntimeError()\nRuntimeError: too many failed")
    report = await report_of(tmp_path, attempts, jobs=[job])
    assert report.headline is not None
    assert report.headline.then == f"2 step tasks had failed for good: 1 x ValueError: second; 1 x {BOOM}"


@pytest.mark.parametrize(
    ("exception", "error_type", "rule"),
    [
        ("WorkerCrashedError", "WORKER_DIED", "crashed_worker"),
        ("NodeDiedError", "NODE_DIED", "lost_node"),
        ("RuntimeEnvSetupError", "RUNTIME_ENV_SETUP_FAILED", "failed_environment"),
        ("TaskUnschedulableError", "TASK_UNSCHEDULABLE_ERROR", "unschedulable"),
    ],
)
async def test_rays_own_exceptions_lead_to_failures_of_their_kind(
    exception: str, error_type: str, rule: str, tmp_path: Path
) -> None:
    died = worker_died("SYSTEM_ERROR", "EOF", 9)
    task = failed(1, error_type, "it is gone" if rule != "crashed_worker" else CRASH)
    job = ended(f"{FRAMES}    raise value\nray.exceptions.{exception}: words that no task has")
    report = await report_of(tmp_path, [died, *task], jobs=[job])
    assert (first(report)[0], first(report)[2], len(report.causes)) == (rule, True, 1)


async def test_a_driver_that_waited_in_vain_leads_to_tasks_that_never_ran(tmp_path: Path) -> None:
    waiting = failed(1, "WORKER_DIED", "job ended", worker="", node="", requiredResources={"GPU": 4.0})
    job = ended(f"{FRAMES}    check_status()\nray.exceptions.GetTimeoutError: Get timed out: some object(s) not ready.")
    report = await report_of(tmp_path, waiting, jobs=[job])
    assert first(report) == ("never_scheduled", Confidence.LIKELY, True)


LOW = (
    "Unexpected error occurred: 2 worker(s) were killed due to the node running low on memory. Memory on the node (IP: "
    "10.0.0.9, ID: abc) was 4GB used\nOOM kill reason: too much\nSelected to kill: (Task: task name=build_index, x)\n"
    "Selected to kill: (Actor(1): task name=_ray_internal_job_actor_x:JobSupervisor.__init__, x)\nTop 10 memory users"
)
ENDS = [
    (
        ended("", 124, entrypoint="timeout 60 python main.py"),
        "timed_out_entrypoint",
        Confidence.CONFIRMED,
        "ran out of time",
    ),
    (ended("", 124), "timed_out_entrypoint", Confidence.LIKELY, "ran out of time"),
    (ended("", 137), "killed_entrypoint", Confidence.LIKELY, "was ended by SIGKILL"),
    (ended("", -15), "killed_entrypoint", Confidence.LIKELY, "was ended by SIGTERM"),
    (ended("", 3), "failed_entrypoint", Confidence.LIKELY, "exited with code 3"),
    (
        a_job("FAILED", error_type="JOB_SUPERVISOR_ACTOR_UNKNOWN_FAILURE", message=LOW),
        "job_out_of_memory",
        Confidence.CONFIRMED,
        "out of memory: Ray killed build_index on 10.0.0.9",
    ),
    (
        ended(
            f"{FRAMES}ray.exceptions.RayTaskError: ray::crawl() (pid=1)\n{FRAMES}ray.exceptions.TaskCancelledError: x"
        ),
        "cancelled_task_of_job",
        Confidence.CONFIRMED,
        "crawl was cancelled, and job nightly needed its result",
    ),
]


@pytest.mark.parametrize(
    ("job", "rule", "confidence", "title"), ENDS, ids=[f"{n}-{row[1]}" for n, row in enumerate(ENDS)]
)
async def test_a_job_without_failed_tasks_is_explained_by_how_it_ended(
    job: dict[str, Any], rule: str, confidence: Confidence, title: str, tmp_path: Path
) -> None:
    report = await report_of(tmp_path, [], jobs=[job])
    assert (report.outcome, first(report)) == (Outcome.FAILED, (rule, confidence, True))
    assert report.root_cause is not None
    assert title in report.root_cause.title


async def test_workers_that_ray_ended_behind_a_driver_that_was_gone_did_not_crash(tmp_path: Path) -> None:
    detail = (
        "The leased worker has unrecoverable failure. Worker is requested to be destroyed when it is returned. Worker "
        "exits with an exit code 1. The process receives a SIGTERM."
    )
    events = [worker_died("SYSTEM_ERROR", detail, 9), *failed(1, "WORKER_DIED", detail, worker=WORKER)]
    report = await report_of(tmp_path, events, jobs=[a_job("STOPPED")])
    assert (report.outcome, first(report)) == (Outcome.STOPPED, ("ended_with_job", Confidence.CONFIRMED, True))


def test_a_cluster_that_was_ended_over_a_job_at_work_is_why_it_failed() -> None:
    job = replace(job_outcome(Job(a_job("FAILED"))), is_cut_off=True)
    [cause] = explain_all(ReportInput((), (job,), Ending(NOW, reason="cluster deleted"))).causes
    assert (cause.rule, cause.is_intended, cause.ends_job) == ("ended_cluster", True, True)
    assert cause.title == "the cluster was ended while job nightly was at work"
    assert "cluster deleted" in cause.evidence[0].text


@pytest.mark.parametrize(("number", "words"), [(2, "jobs a0, a1 were at work"), (5, "jobs a0, a1, a2 and 2 more were")])
def test_several_jobs_that_a_cluster_was_ended_over_are_counted(number: int, words: str) -> None:
    jobs = [replace(job_outcome(Job(a_job("FAILED", submission_id=f"a{n}"))), is_cut_off=True) for n in range(number)]
    [cause] = explain_all(ReportInput((), tuple(jobs), Ending(NOW))).causes
    assert words in cause.title
