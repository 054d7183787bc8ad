"""Drivers that read a result which was never made: its maker had failed where the driver could not see it. Pure.

The error of a task goes to whoever asks for its result, who may handle it. Nobody in the user's program can handle an
exception that takes its process down, nor one that a library of Ray's takes care of by itself: the program goes on, and
fails over what is missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from raykeeper.history.report.failures import FailureSet
from raykeeper.history.report.input import Explanation, ReportInput
from raykeeper.history.report.model import Confidence, JobOutcome
from raykeeper.history.report.rules.deaths import unasked_death
from raykeeper.history.report.rules.drivers import DriverEnd, driver_end
from raykeeper.history.report.rules.entrypoints import lasting_failures, words_of
from raykeeper.history.report.rules.infrastructure import OF_WORKER_LOSS
from raykeeper.history.report.rules.start import at
from raykeeper.history.report.rules.table import explain
from raykeeper.history.report.tracebacks import Raised, tracebacks_in
from raykeeper.history.text import shortened
from raykeeper.times import NS, to_ns

_MISSING = re.compile(
    r"(?:KeyError|IndexError|StopIteration|ZeroDivisionError)\b"
    r"|(?:AttributeError|TypeError): .*\bNoneType\b|ValueError: .*\bempty\b"
)
"""What Python raises over a result that is not there: no such key, nothing in the list, None, nothing to divide by."""
_STATEMENTS = ("raise ", "assert ")
"""By these the driver says in its own words why it gives up; that is no accident."""
_SOON_NS = 120 * NS
"""A library may wait a minute for what died before it goes on."""


@dataclass(frozen=True)
class _Unseen:
    """A failure in the user's code that the driver could not handle."""

    id: str
    why: Explanation
    last_ns: int
    actor_id: str


def missing_result_of_job(job: JobOutcome, report_input: ReportInput) -> Explanation | None:
    """The driver fell over a missing result, soon after the user's code had failed where the driver could not see it.

    That the one followed from the other is likely: nobody says so.
    """
    end = driver_end(job)
    raised = _missing(end) if job.status == "FAILED" and job.exit_code else None
    if raised is None:
        return None
    unseen = [one for one in _unseen(job, report_input) if _is_near(one, job, end)]
    root = min(unseen, key=lambda one: (one.why.at_ns or one.last_ns, one.id), default=None)
    if root is None:
        return None
    frame = raised.users_frame
    return Explanation(
        root.why.title,
        Confidence.LIKELY,
        (words_of(job),),
        root.why.at_ns,
        because_of=root.id,
        then=shortened(f"the driver went on without it: {raised.error}{at(frame.location if frame else None)}"),
        basis="the driver could not see it, and read a result soon after that was not there",
    )


def _missing(end: DriverEnd) -> Raised | None:
    """The driver's own exception, if it is about what is not there and no statement of its code raised it."""
    raised = end.fatal.users if end.fatal else None
    frame = raised.users_frame if raised else None
    if raised is None or frame is None or raised.call or not _MISSING.match(raised.error):
        return None
    source = end.source_of(frame)
    return raised if source and not source.startswith(_STATEMENTS) else None


def _unseen(job: JobOutcome, report_input: ReportInput) -> Iterator[_Unseen]:
    for one in lasting_failures(job, report_input):
        why = explain(one, report_input)[1]
        if why.error and why.where and (one.error_type in OF_WORKER_LOSS or _is_within_library(one)):
            yield _Unseen(one.id, why, one.last_ns, one.first.actor_id or "")
    for death in report_input.deaths:
        told = unasked_death(death, report_input) if death.job_id == job.job_id else None
        if told is not None and told.error and told.where:
            yield _Unseen(death.id, told, death.at_ns, death.actor_id or "")


def _is_within_library(one: FailureSet) -> bool:
    """Whether a library of Ray's had called the user's code, and so got its exception."""
    found = tracebacks_in(one.first.message)
    return any(frame.is_of_library for trace in found for raised in trace.raised for frame in raised.frames)


def _is_near(one: _Unseen, job: JobOutcome, end: DriverEnd) -> bool:
    """Whether it came soon before the driver's end, or the driver's own log names the actor."""
    is_soon = job.ended_at is not None and to_ns(job.ended_at) - one.last_ns <= _SOON_NS
    return is_soon or bool(one.actor_id and one.actor_id in end.own)
