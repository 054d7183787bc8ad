"""The report says what ran and why it failed; what differs from what must be there is named."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from raykeeper.demo.asking import LocalServer
from raykeeper.demo.expected import ACTOR, STATES, differences
from raykeeper.demo.rayinstall import RayInstall
from raykeeper.demo.rayjob import JobEnd, entrypoint, parse_end
from raykeeper.demo.remembered import RememberedSession
from raykeeper.demo.report import (
    Failure,
    Functions,
    Report,
    parse_actors,
    parse_failures,
    parse_functions,
    parse_jobs,
)
from raykeeper.demo.screen import Screen
from raykeeper.demo.settings import DemoSettings
from raykeeper.demo.telling import tell_ways
from raykeeper.layout.keys import SessionId

TRACEBACK = (
    '\x1b[36mray::divide()\x1b[39m (pid=7)\n  File "job.py", line 3, in divide\nZeroDivisionError: division by zero\n'
)
FAILED_AS_MEANT = JobEnd("demo-1", "FAILED", "", 1)
AS_MEANT = Report(
    functions=tuple(Functions(name, states) for name, states in STATES.items()),
    failures=(Failure("divide", "ZeroDivisionError: division by zero", 2),),
    more_failures=0,
    actors=(ACTOR,),
    jobs=("job demo-1 FAILED: it failed",),
)


def _failed(name: str, kind: str, message: str) -> dict[str, Any]:
    return {"func_or_class_name": name, "error_type": kind, "error_message": message}


def _listed(rows: list[dict[str, Any]], matching: int | None = None) -> dict[str, Any]:
    return {"data": {"result": {"result": rows, "num_filtered": len(rows) if matching is None else matching}}}


def test_failures_are_grouped_by_function_and_by_what_they_say_apart_from_numbers() -> None:
    pages = [_failed("fetch", "TASK_EXECUTION_EXCEPTION", f"ConnectionError: page {page} is gone") for page in (7, 8)]
    rows = [_failed("divide", "TASK_EXECUTION_EXCEPTION", TRACEBACK), *pages, _failed("crash", "WORKER_DIED", "")]
    assert parse_failures(_listed(rows)) == (
        (
            Failure("fetch", "ConnectionError: page 7 is gone", 2),
            Failure("divide", "ZeroDivisionError: division by zero", 1),
            Failure("crash", "WORKER_DIED", 1),
        ),
        0,
    )


def test_what_ray_says_of_a_process_is_told_by_its_first_line() -> None:
    rows = [_failed("crash", "WORKER_DIED", "RpcError: socket closed\nsome advice")]
    assert parse_failures(_listed(rows))[0][0].error == "WORKER_DIED: RpcError: socket closed"


def test_failures_that_one_answer_does_not_list_are_counted() -> None:
    failures, more = parse_failures(_listed([_failed("crash", "WORKER_DIED", "")], matching=41))
    report = replace(AS_MEANT, failures=failures, more_failures=more)
    assert "  and 40 more" in list(report.lines())


def test_a_report_reads_as_text() -> None:
    summary = {"square": {"state_counts": {"FINISHED": 20}}, "divide": {"state_counts": {"FINISHED": 6, "FAILED": 2}}}
    clusters = {"data": {"result": {"result": {"node_id_to_summary": {"cluster": {"summary": summary}}}}}}
    actors = [
        {"class_name": "Counter", "state": "DEAD", "num_restarts": "1"},
        {"class_name": "JobSupervisor", "state": "DEAD", "num_restarts": "0"},
    ]
    message = "Job entrypoint command failed with exit code 1, last available logs (truncated):\nmuch of it"
    jobs = [{"submission_id": "demo-1", "status": "FAILED", "message": message}]
    report = Report(parse_functions(clusters), AS_MEANT.failures, 0, parse_actors(_listed(actors)), parse_jobs(jobs))
    assert list(report.lines()) == [
        "job demo-1 FAILED: Job entrypoint command failed with exit code 1",
        "tasks (attempts by their state):",
        "  divide  2 FAILED, 6 FINISHED",
        "  square  20 FINISHED",
        "why attempts failed:",
        "  2 x divide: ZeroDivisionError: division by zero",
        "actors:",
        "  Counter DEAD, restarted 1 x",
    ]


def test_a_run_without_failures_says_so() -> None:
    assert "no attempt failed" in list(replace(AS_MEANT, failures=()).lines())


def test_a_history_that_says_what_happened_has_no_differences() -> None:
    assert list(differences(AS_MEANT, FAILED_AS_MEANT)) == []


def test_a_retry_of_the_actor_that_was_away_is_no_difference() -> None:
    waited = tuple(
        Functions(item.name, {**item.states, "FAILED": 1}) if item.name == "Counter.add" else item
        for item in AS_MEANT.functions
    )
    assert list(differences(replace(AS_MEANT, functions=waited), FAILED_AS_MEANT)) == []


def test_every_difference_is_named() -> None:
    forgetful = replace(AS_MEANT, functions=AS_MEANT.functions[1:], failures=(), actors=())
    assert list(differences(forgetful, JobEnd("demo-1", "SUCCEEDED", "", 0))) == [
        "the job should fail with code 1, but it is SUCCEEDED with code 0",
        "square should have {'FINISHED': 20}, but the history has nothing",
        f"an actor should be {ACTOR}, but the history has none",
        "no failure in the history names the ZeroDivisionError",
    ]


def test_the_exit_code_is_what_a_shell_would_say() -> None:
    def code(status: str, exit_code: int | None) -> int:
        return parse_end("x", {"status": status, "message": None, "driver_exit_code": exit_code}).shell_code

    assert code("SUCCEEDED", 0) == 0
    assert code("FAILED", 3) == 3
    assert code("FAILED", -9) == 137
    assert code("FAILED", None) == 1


def test_a_script_runs_where_the_user_stands(tmp_path: Any) -> None:
    assert entrypoint(["python", "my job.py", "$HOME"], tmp_path / "a b") == (
        f"cd '{tmp_path}/a b' && exec python 'my job.py' '$HOME'"
    )


@pytest.mark.parametrize(("status", "words"), [("SUCCEEDED", "its report"), ("FAILED", "why it failed")])
def test_a_script_that_went_well_is_not_said_to_have_failed(status: str, words: str, tmp_path: Path) -> None:
    printed = io.StringIO()
    end = JobEnd("demo-1", status, "", 0 if status == "SUCCEEDED" else 1)
    remembered = RememberedSession(LocalServer("history", 1), SessionId("local", "demo", "session_1"))
    for exits in (True, False):
        settings = DemoSettings(folder=tmp_path, exits=exits)
        tell_ways(
            settings,
            remembered,
            RayInstall(tmp_path / "python", "2.60.0", tmp_path),
            end,
            Screen(Console(file=printed)),
        )
    text = printed.getvalue()
    assert (text.count(words), text.count("why it failed")) == (2, 2 if status == "FAILED" else 0)
