"""What Ray really writes where failures meet: chained, nested, cut off, named, told by its own exceptions.

The texts are those of Ray 2.60 (of 2.52 where it says so), with places and names changed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from raykeeper.history.report.failures import FailedAttempt, with_told_actor
from raykeeper.history.report.fingerprint import ARGUMENT_MARK, headline, innermost_function
from raykeeper.history.report.model import Confidence, Outcome, Report
from raykeeper.history.report.rules.memory import memory_words
from raykeeper.history.text import shortened
from support.ingest_scene import HEAD, base64_id
from support.report_scene import (
    ACTOR,
    WORKER,
    a_job,
    actor_died,
    actor_task,
    failed,
    method,
    node_died,
    report_of,
    traceback_of,
    worker_died,
)

BOOM = "KeyError: 'row-1'"
AT = "(pid=7, ip=10.0.0.9)"
CHAINS = [
    "The above exception was the direct cause of the following exception:",
    "During handling of the above exception, another exception occurred:",
]
RAISED = "TASK_EXECUTION_EXCEPTION"


def chained(how: str) -> str:
    """Of a parent that caught its child's error and raised its own; Ray cut off the beginning."""
    return (
        "User exception:\n               ^^^^^^^^^^^^^^^^^^^\n"
        f'ray.exceptions.RayTaskError(KeyError): ray::child() {AT}\n  File "/app/main.py", line 5, in child\n'
        f"    raise oops\n{BOOM}\n\n{how}\n\n"
        f'ray::parent() {AT}\n  File "/app/main.py", line 11, in parent\n    raise oops from e\n'
        "RuntimeError: stage 1 failed"
    )


def first(report: Report) -> tuple[str, str, Confidence, int]:
    assert report.root_cause is not None
    cause = report.root_cause
    return cause.rule, cause.title, cause.confidence, cause.failures


def evidence(report: Report) -> str:
    assert report.root_cause is not None
    return "\n".join(fact.text for fact in report.root_cause.evidence)


@pytest.mark.parametrize("how", CHAINS)
async def test_an_exception_that_followed_from_a_childs_leads_to_the_child(how: str, tmp_path: Path) -> None:
    events = failed(1, RAISED, traceback_of("child", BOOM), name="child", seconds=5)
    events += failed(2, RAISED, chained(how), name="parent", seconds=6)
    log = f'Traceback (most recent call last):\n  File "main.py", line 9\n    ray.get(x)\n{chained(how)[16:]}'
    job = a_job("FAILED", message=f"exit code 1\n{log}", driver_exit_code=1)
    report = await report_of(tmp_path, events, jobs=[job])
    assert first(report) == ("raised_exception", f"child raised {BOOM} (main.py:3)", Confidence.CONFIRMED, 2)
    assert len(report.causes) == 1


async def test_a_childs_exception_is_told_where_its_own_failure_never_arrived(tmp_path: Path) -> None:
    report = await report_of(tmp_path, failed(2, RAISED, chained(CHAINS[0]), name="parent"))
    assert first(report) == ("failed_dependency", f"child raised {BOOM}", Confidence.LIKELY, 1)


async def test_clocks_of_nodes_that_differ_do_not_tear_an_error_from_where_it_came(tmp_path: Path) -> None:
    events = failed(1, RAISED, traceback_of("child", BOOM), name="child", seconds=8)
    events += failed(2, RAISED, chained(CHAINS[0]), name="parent", seconds=6)
    assert first(await report_of(tmp_path, events))[:2] == ("raised_exception", f"child raised {BOOM} (main.py:3)")


async def test_tasks_with_names_of_their_own_are_found_by_them(tmp_path: Path) -> None:
    name = "Load(shard 3)->Map(f)"
    own = f'User exception:\nray::{name}() {AT}\n  File "a.py", line 5, in load\n    raise x\n{BOOM}'
    passed_on = f"User exception:\nray::Use 3() {AT}\n  {ARGUMENT_MARK}:\nray.exceptions.RayTaskError: {own[16:]}"
    events = failed(1, RAISED, own, seconds=5, taskName=name, name="load")
    events += failed(2, RAISED, passed_on, seconds=6, taskName="Use 3", name="use")
    report = await report_of(tmp_path, events)
    assert innermost_function(passed_on) == name
    assert (first(report)[0], first(report)[3], len(report.causes)) == ("raised_exception", 2, 1)


CRASH = "ray.exceptions.WorkerCrashedError: The worker died unexpectedly while executing this task."


async def test_a_parent_that_got_rays_own_exception_is_not_the_cause(tmp_path: Path) -> None:
    nested = f'User exception:\nray::parent() {AT}\n  File "a.py", line 2, in parent\n    ray.get(x)\n{CRASH}'
    events = [worker_died("SYSTEM_ERROR", "Worker exits with an exit code 3.", 4)]
    events += failed(
        1, "WORKER_DIED", "UnexpectedSystemExit: Worker exits with an exit code 3.", name="child", seconds=5
    )
    events += failed(2, RAISED, nested, name="parent", seconds=6, worker="ab" * 28)
    log = f'Traceback (most recent call last):\n  File "m.py", line 9\n    ray.get(x)\n{nested[16:]}'
    report = await report_of(tmp_path, events, jobs=[a_job("FAILED", message=log, driver_exit_code=1)])
    assert first(report)[:2] == ("crashed_worker", "the worker process that ran child died with exit code 3")
    assert f"parent asked for a result and got {CRASH}" in evidence(report)
    assert len(report.causes) == 1


async def test_rays_own_exception_is_told_where_nothing_else_is_known(tmp_path: Path) -> None:
    nested = f'User exception:\nray::parent() {AT}\n  File "a.py", line 2, in parent\n    ray.get(x)\n{CRASH}'
    report = await report_of(tmp_path, failed(2, RAISED, nested, name="parent", worker="ab" * 28))
    assert first(report)[1] == f"parent asked for a result that Ray could not give: {CRASH}"


async def test_an_actor_that_died_in_its_constructor_is_named_by_who_asked_it(tmp_path: Path) -> None:
    words = f'ray::Counter.__init__() {AT}\n  File "a.py", line 9, in __init__\n    raise x\nOSError: no weights'
    made = {"errorType": RAISED, "errorMessage": f"CreationTaskError: User exception:\n{words}"}
    asked = (
        f'User exception:\nray::ask() {AT}\n  File "a.py", line 2, in ask\n    ray.get(x)\n'
        f"ray.exceptions.ActorDiedError: The actor died because of an error raised in its creation task, {words}"
    )
    events = method(actor_task(0xFFFFFFFFFFFFFFFF), "__init__", made, 3)
    events += failed(2, RAISED, asked, name="ask", seconds=6)
    report = await report_of(tmp_path, events)
    assert first(report) == (
        "raised_exception",
        "Counter.__init__ raised OSError: no weights (a.py:9)",
        Confidence.CONFIRMED,
        2,
    )


async def test_a_caller_of_an_actor_that_went_with_its_node_follows_from_the_node(tmp_path: Path) -> None:
    said = "ray.exceptions.ActorUnavailableError: The actor {} is unavailable: Socket closed rpc_code: 14."
    asked = f'User exception:\nray::ask() {AT}\n  File "a.py", line 2, in ask\n    ray.get(x)\n{said.format(ACTOR)}'
    lost = {"errorType": "WORKER_DIED", "errorMessage": "Socket closed"}
    events = [
        *node_died("UNEXPECTED_TERMINATION", "gone", 12, HEAD),
        *method(actor_task(1), "inc", lost, 10, worker=WORKER),
    ]
    events += failed(2, RAISED, asked, name="ask", seconds=6, worker="ab" * 28, node="9a" * 28)
    report = await report_of(tmp_path, events)
    assert (first(report)[0], first(report)[3], len(report.causes)) == ("lost_node", 2, 1)


END = "Some common causes include: (1) the process was killed by the OOM killer" + " or by something else" * 20


async def test_an_exception_of_which_the_end_is_left_follows_from_the_failure_that_ends_so(tmp_path: Path) -> None:
    died = f"The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR {END}"
    context = {"actorDiedErrorContext": {"reason": "WORKER_DIED", "errorMessage": died}}
    events = [*actor_died(context, 4)]
    events += method(actor_task(1), "inc", {"errorType": "ACTOR_DIED", "errorMessage": died}, 5)
    events += failed(2, RAISED, f"User exception:\n{died[-400:]}", name="ask", seconds=6)
    report = await report_of(tmp_path, events)
    assert (first(report)[0], first(report)[3], len(report.causes)) == ("dead_actor", 2, 1)
    assert first(report)[1] == (
        "actor Counter died: The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR"
    )


HEADLINES = [
    (f'User exception:\nray::gen() {AT}\n    raise ValueError("broke")\nValueError: broke', "ValueError: broke"),
    (
        f"ray.exceptions.RayTaskError(OwnerDiedError): ray::use() {AT}\n  {ARGUMENT_MARK}:\n"
        "ray.exceptions.OwnerDiedError: Failed to retrieve object 00ff.\n\nThe object's owner has exited.",
        "ray.exceptions.OwnerDiedError: Failed to retrieve object 00ff.",
    ),
    (
        "User exception:\nnit()`.\n\nThe object's owner has exited. This is the worker that made it.",
        "ray.exceptions.OwnerDiedError: The object's owner has exited",
    ),
    ("User exception:\n  left over\nlib.OddError: 1 and 2\nsecond line of it", "lib.OddError: 1 and 2"),
    (
        "User exception:\non causes include: (1) nobody knows",
        "an exception of which Ray kept the end alone: ...on causes include: (1) nobody knows",
    ),
    ("User exception:", "User exception:"),
]


@pytest.mark.parametrize(("message", "line"), HEADLINES)
def test_the_headline_is_the_exception_also_where_frames_are_missing(message: str, line: str) -> None:
    assert headline(message) == line


IN_DATA = "site-packages/ray/data/_internal/planner/plan_udf_map_op.py"
WRAPPED = (
    f'  File "/env/lib/python3.11/{IN_DATA}", line 400, in _wrapped_udf_map_fn\n    _try_wrap_udf_exception(e)\n'
    f'  File "/env/lib/python3.11/{IN_DATA}", line 416, in _try_wrap_udf_exception\n'
    '    raise UserCodeException("UDF failed to process a data block.") from e\n'
    "ray.exceptions.UserCodeException: UDF failed to process a data block."
)


async def test_an_error_of_which_ray_2_52_kept_the_end_is_whole_in_the_drivers_words(tmp_path: Path) -> None:
    whole = (
        f'Traceback (most recent call last):\n  File "/env/site-packages/ray/a.py", line 1, in get\n    raise value\n'
        f"ray.exceptions.RayTaskError(UserCodeException): ray::Map(parse)() {AT}\n"
        f'  File "/app/etl.py", line 14, in parse\n    float(text)\nValueError: no number\n\n{CHAINS[0]}\n\n'
        f"ray::Map(parse)() {AT}\n{WRAPPED}"
    )
    kept = failed(1, RAISED, f"User exception:\nrow = fn(row)\n      ^^^^^^^\n{WRAPPED}", name="Map(parse)")
    report = await report_of(
        tmp_path, kept, jobs=[a_job("FAILED", driver_exit_code=1, message=f"exit code 1\n{whole}")]
    )
    assert report.headline is not None
    assert report.headline.where is not None
    assert (report.headline.text, report.headline.where.text) == ("ValueError: no number", "etl.py:14")


def test_an_actor_that_no_event_told_of_is_known_by_rays_exception() -> None:
    told = (
        "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n"
        f"\tclass_name: Trainer\n\tactor_id: {ACTOR}\n\tpid: 727\n\tname: trainer-2\n\tnamespace: x\n\tip: 10.0.0.9\n"
        "The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR\n"
    )
    known = with_told_actor(FailedAttempt("t", 0, actor_id=ACTOR), told)
    assert (known.class_name, known.actor_name, known.pid) == ("Trainer", "trainer-2", 727)
    assert known.actor_end["reason"] == "WORKER_DIED"
    assert with_told_actor(FailedAttempt("t", 0, actor_id="ab"), told).class_name is None
    assert with_told_actor(FailedAttempt("t", 0, actor_id=ACTOR, class_name="Own"), told).class_name == "Own"


async def test_tries_of_one_task_that_crash_in_other_words_are_one_cause(tmp_path: Path) -> None:
    events = [worker_died("SYSTEM_ERROR", "End of file.", 4), worker_died("SYSTEM_ERROR", "reset", 8, "ab" * 28)]
    events += failed(1, "WORKER_DIED", "", seconds=5)
    events += failed(1, "WORKER_DIED", "RpcError: Socket closed", seconds=9, attempt=1, worker="ab" * 28)
    report = await report_of(tmp_path, events)
    assert (first(report)[0], first(report)[3], len(report.causes)) == ("crashed_worker", 2, 1)


async def test_a_worker_of_whose_end_nothing_is_recorded_died_all_the_same(tmp_path: Path) -> None:
    message = "UnexpectedSystemExit: Worker exits with an exit code 3."
    report = await report_of(tmp_path, failed(1, "WORKER_DIED", message))
    title = "the worker process that ran step died with exit code 3"
    assert first(report) == ("crashed_worker", title, Confidence.LIKELY, 1)
    assert evidence(report) == message


async def test_an_actor_out_of_restarts_is_explained_though_nothing_is_recorded_of_its_workers(tmp_path: Path) -> None:
    cut = {
        "errorType": "ACTOR_UNAVAILABLE",
        "errorMessage": "temporarily unavailable: IOError: The actor was restarted",
    }
    died = {"reason": "WORKER_DIED", "errorMessage": f"The actor is dead because its worker process has died. {END}"}
    called = {"errorType": "ACTOR_DIED", "errorMessage": died["errorMessage"]}
    events = [*actor_died({"actorDiedErrorContext": died}, 7), *method(actor_task(1), "die", cut, 5, worker=WORKER)]
    report = await report_of(tmp_path, [*events, *method(actor_task(2), "inc", called, 8)])
    title = "the process of actor Counter died before Counter.die ended, and no restart was left"
    assert first(report) == ("crashed_worker", title, Confidence.LIKELY, 2)


async def test_an_actor_that_ended_itself_was_asked_to(tmp_path: Path) -> None:
    said = "Worker exit type: INTENDED_USER_EXIT Worker exit detail: Worker exits by request. exit_actor() is called."
    context = {"actorDiedErrorContext": {"reason": "WORKER_DIED", "errorMessage": said}}
    events = [
        *actor_died(context, 4),
        *method(actor_task(1), "inc", {"errorType": "ACTOR_DIED", "errorMessage": said}, 5),
    ]
    report = await report_of(tmp_path, events, jobs=[a_job()])
    assert (report.outcome, [cause.rule for cause in report.causes]) == (Outcome.OK, ["ended_actor"])


@pytest.mark.parametrize(("seconds", "rule"), [(20, "ended_actor"), (5, "crashed_worker")])
async def test_a_call_that_lost_its_actor_when_that_was_killed_did_not_crash(
    seconds: int, rule: str, tmp_path: Path
) -> None:
    killed = {"actorDiedErrorContext": {"reason": "RAY_KILL", "errorMessage": "it was killed by `ray.kill`"}}
    error = {"errorType": "ACTOR_UNAVAILABLE", "errorMessage": "The actor is temporarily unavailable"}
    events = [*actor_died(killed, 20), *method(actor_task(1), "inc", error, seconds, worker=WORKER)]
    report = await report_of(tmp_path, events, jobs=[a_job()])
    assert [cause.rule for cause in report.causes] == [rule]


async def test_an_actor_whose_process_died_in_its_constructor_did_not_wait_for_resources(tmp_path: Path) -> None:
    died = {"reason": "WORKER_DIED", "errorMessage": f"The actor is dead because its worker process has died. {END}"}
    lost = {"errorType": "WORKER_DIED", "errorMessage": ""}
    called = {"errorType": "ACTOR_DIED", "errorMessage": died["errorMessage"]}
    events = [
        *actor_died({"actorDiedErrorContext": died}, 4),
        *method(actor_task(0xFFFFFFFFFFFFFFFF), "__init__", lost, 9, waited=True),
        *method(actor_task(1), "inc", called, 5),
    ]
    report = await report_of(tmp_path, events)
    title = "the process of actor Counter died before Counter.__init__ ended"
    assert first(report) == ("crashed_worker", title, Confidence.LIKELY, 2)


def test_what_ray_2_52_says_of_memory_keeps_its_numbers() -> None:
    said = (
        "Task was killed due to the node running low on memory.\nMemory on the node (IP: 10.0.0.9, ID: ab) where the "
        "task was running was 30.4GB / 32GB (0.95), which exceeds the threshold. Ray killed this worker (ID: cd) "
        "because it was the most recently scheduled task\nTop 10 memory users:\n7 1.2GB python"
    )
    assert memory_words(said) == said.partition("\nTop 10")[0]


PIP = (
    'Failed to set up runtime environment.\n  File "pip.py", line 252, in _install\nlib.SubprocessCalledProcessError: '
    "Run cmd[9] failed with the following details.\nCommand '['python', '-m', 'pip']' returned status 1.\n"
    "Last 50 lines of stdout:\n    Collecting\n    ERROR: No matching distribution found for nowhere==9\n    notice\n"
)


@pytest.mark.parametrize("where", ["task", "job"])
async def test_an_environment_that_pip_could_not_make_is_told_in_pips_words(where: str, tmp_path: Path) -> None:
    events = failed(1, "RUNTIME_ENV_SETUP_FAILED", PIP, worker="", node="") if where == "task" else []
    broken = a_job("FAILED", error_type="RUNTIME_ENV_SETUP_FAILURE", message=PIP)
    report = await report_of(tmp_path, events, jobs=[] if where == "task" else [broken])
    assert first(report)[1].endswith("failed: ERROR: No matching distribution found for nowhere==9")


async def test_a_worker_that_could_not_be_started_is_certain(tmp_path: Path) -> None:
    report = await report_of(tmp_path, failed(1, "WORKER_STARTUP_FAILED", "no port is free", worker="", node=""))
    assert first(report)[0:3] == ("unschedulable", "no worker process could be started (step)", Confidence.CONFIRMED)


def job_of(words: str, **more: Any) -> dict[str, Any]:
    return a_job("FAILED", message=words, driver_exit_code=1, **more)


async def test_a_driver_that_wraps_what_a_task_raised_leads_to_the_task(tmp_path: Path) -> None:
    frames = 'Traceback (most recent call last):\n  File "main.py", line 9\n    ray.get(x)\n'
    again = f"{frames}ray.exceptions.RayTaskError(KeyError): {traceback_of('step', BOOM)[16:]}"
    words = f"{again}\n\n{CHAINS[0]}\n\n{frames}RuntimeError: training failed"
    report = await report_of(tmp_path, failed(1, RAISED, traceback_of("step", BOOM)), jobs=[job_of(words)])
    assert first(report)[:3] == ("raised_exception", f"step raised {BOOM} (main.py:3)", Confidence.CONFIRMED)
    assert "RuntimeError: training failed" in evidence(report)


async def test_two_jobs_that_failed_alike_have_one_cause(tmp_path: Path) -> None:
    events = failed(1, RAISED, traceback_of("step", BOOM))
    events += failed(2, RAISED, traceback_of("step", BOOM), seconds=20, jobId=base64_id("02000000"))
    frames = 'Traceback (most recent call last):\n  File "main.py", line 9\n    ray.get(x)\n'
    log = frames + traceback_of("step", BOOM)[16:]
    jobs = [job_of(log), job_of(log, job_id="02000000", submission_id="other")]
    report = await report_of(tmp_path, events, jobs=jobs)
    assert first(report)[0::3] == ("raised_exception", 2)
    assert len(report.causes) == 1


async def test_a_driver_that_only_left_with_a_code_is_likely_to_mean_its_failed_tasks(tmp_path: Path) -> None:
    events = failed(1, RAISED, traceback_of("step", BOOM))
    report = await report_of(tmp_path, events, jobs=[job_of("3 of 9 items failed")])
    assert first(report)[:3] == ("raised_exception", f"step raised {BOOM} (main.py:3)", Confidence.LIKELY)
    assert "exit code 1: python main.py" in evidence(report)


async def test_a_driver_that_gives_a_reason_of_its_own_is_believed_though_tasks_had_failed(tmp_path: Path) -> None:
    events = failed(1, RAISED, traceback_of("step", BOOM))
    report = await report_of(tmp_path, events, jobs=[job_of("FATAL: accuracy 0.41 is below the gate 0.80")])
    assert report.headline is not None
    assert report.headline.text == "FATAL: accuracy 0.41 is below the gate 0.80"
    assert report.headline.then == f"1 step task had failed for good: 1 x {BOOM}"


async def test_a_driver_that_left_over_failures_of_several_kinds_is_explained_by_the_most_frequent(
    tmp_path: Path,
) -> None:
    other = "OSError: disk full"
    events = [
        *failed(1, RAISED, traceback_of("step", other), seconds=5),
        *failed(2, RAISED, traceback_of("step", BOOM), seconds=6),
        *failed(3, RAISED, traceback_of("step", BOOM), seconds=7),
    ]
    words = f"3 tasks failed for good:\nstep: {other}\nstep: {BOOM}\nstep: {BOOM}"
    report = await report_of(tmp_path, events, jobs=[job_of(words)])
    assert report.headline is not None
    assert (report.headline.text, report.headline.confidence) == (BOOM, Confidence.LIKELY)
    assert report.headline.then == f"3 step tasks had failed for good: 2 x {BOOM}; 1 x {other}"
    assert "the driver left: 3 tasks failed for good: step: OSError: disk full" in [one.text for one in report.steps]


async def test_a_task_whose_error_the_driver_caught_before_it_went_on_is_not_confirmed(tmp_path: Path) -> None:
    frames = 'Traceback (most recent call last):\n  File "main.py", line 9, in load\n    ray.get(x)\n'
    log = f"{frames}{traceback_of('step', BOOM)[16:]}\nclosing the writer\n"
    report = await report_of(tmp_path, failed(1, RAISED, traceback_of("step", BOOM)), jobs=[job_of(log)])
    assert first(report)[:3] == ("raised_exception", f"step raised {BOOM} (main.py:3)", Confidence.LIKELY)


async def test_a_command_that_is_not_there_says_so(tmp_path: Path) -> None:
    words = "Running entrypoint for job nightly: nowhere\n/bin/sh: 1: nowhere: not found\n"
    report = await report_of(tmp_path, [], jobs=[job_of(words)])
    assert first(report)[1] == "the entrypoint of job nightly exited with code 1: /bin/sh: 1: nowhere: not found"


@pytest.mark.parametrize("length", [240, 241, 2000])
def test_long_words_end_at_a_word_with_a_sign_that_there_was_more(length: int) -> None:
    text = ("boom " * 500)[:length]
    short = shortened(text)
    assert short == text if length == 240 else short.endswith("boom ...")
    assert len(short) <= 240
    assert shortened("x" * 300) == "x" * 236 + " ..."
