"""What the history must say after the demo's own job: a demo that shows something else has failed. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from raykeeper.demo.rayjob import JobEnd
from raykeeper.demo.report import Report

STATES = {
    "square": {"FINISHED": 20},
    "divide": {"FINISHED": 6, "FAILED": 2},
    "fetch": {"FINISHED": 3, "FAILED": 3},  # each page failed once before it came
    "crash": {"FAILED": 2},
    "Counter.__init__": {"FINISHED": 1},
    "Counter.add": {"FINISHED": 2},  # and maybe a failed attempt, made before the actor was back
    "Counter.die": {"FAILED": 1},
}
"""Attempts by function and state, as `workload/failing_job.py` makes them."""

ACTOR = "Counter DEAD, restarted 1 x"


def differences(report: Report, end: JobEnd) -> Iterator[str]:
    """What is not as it should be, a sentence each."""
    if (end.status, end.exit_code) != ("FAILED", 1):
        yield f"the job should fail with code 1, but it is {end.status} with code {end.exit_code}"
    remembered = {function.name: dict(function.states) for function in report.functions}
    for name, states in STATES.items():
        if not states.items() <= remembered.get(name, {}).items():
            yield f"{name} should have {states}, but the history has {remembered.get(name) or 'nothing'}"
    if ACTOR not in report.actors:
        yield f"an actor should be {ACTOR}, but the history has {', '.join(report.actors) or 'none'}"
    if not any("ZeroDivisionError" in failure.error for failure in report.failures):
        yield "no failure in the history names the ZeroDivisionError"
