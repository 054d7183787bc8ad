"""From what was found to what is answered. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from raykeeper.history.endpoints.ended import CLUSTER_ENDED
from raykeeper.history.report.failures import FailedAttempt, FailureSet
from raykeeper.history.report.firstcause import Explained
from raykeeper.history.report.model import (
    Counts,
    Example,
    FailureGroup,
    FunctionFailures,
    JobOutcome,
    LogSlice,
    Outcome,
)
from raykeeper.history.report.situation import moment

_FUNCTIONS_LIMIT = 20
_COLOUR = re.compile(r"\x1b[^m]*m")


def outcome_of(
    explained: Explained, sets: Sequence[FailureSet], jobs: Sequence[JobOutcome], *, is_over: bool
) -> Outcome:
    """By what became of jobs, then by failures that stayed and that neither a retry nor an intention explains."""
    statuses = {job.status for job in jobs}
    is_open = not is_over and (not jobs or bool(statuses & {"PENDING", "RUNNING"}))
    unintended = [set(cause.explains) for cause in explained.causes if not cause.is_intended]
    if "FAILED" in statuses:
        return Outcome.FAILED
    if statuses and statuses <= {"STOPPED", "SUCCEEDED"} and "STOPPED" in statuses:
        return Outcome.STOPPED
    lasting = {one.id for one in sets if one.failures > one.recovered}
    is_lost = not all(unintended)  # the cluster was, or never came up
    if not is_lost and not any(lasting & explains for explains in unintended):
        return Outcome.RUNNING if is_open else Outcome.OK
    if is_open and jobs and not is_lost:
        return Outcome.FAILING
    is_success = bool(jobs) and not any(job.status != "SUCCEEDED" or job.is_unjudged for job in jobs)
    return Outcome.WITH_FAILURES if is_success else Outcome.FAILED


def group_of(one: FailureSet, explained: Explained, attempts: int) -> FailureGroup:
    place, sureness = explained.places[one.id]
    return FailureGroup(
        fingerprint=one.id,
        error_type=one.error_type,
        title=one.title,
        failures=one.failures,
        recovered=one.recovered,
        share=one.failures / attempts if attempts else 0.0,
        first_at=moment(one.first_ns),
        last_at=moment(one.last_ns),
        functions=tuple(FunctionFailures(*item) for item in list(one.functions.items())[:_FUNCTIONS_LIMIT]),
        nodes=one.nodes,
        sureness=sureness,
        cause=place,
    )


def example_of(first: FailedAttempt, logs: tuple[LogSlice, ...]) -> Example:
    return Example(
        task_id=first.task_id,
        attempt_number=first.attempt_number,
        job_id=first.job_id,
        name=first.name,
        at=moment(first.end_ns),
        message=first.message,
        node_id=first.node_id,
        worker_id=first.worker_id,
        actor_id=first.actor_id,
        logs=logs,
    )


def counts_of(attempts: int, failures: int, sets: Sequence[FailureSet], groups: Sequence[FailureGroup]) -> Counts:
    grouped = sum(group.failures for group in groups)
    return Counts(attempts, failures, sum(one.recovered for one in sets), max(0, failures - grouped))


def job_outcome(job: Mapping[str, Any]) -> JobOutcome:
    """A job of Ray's job API in our words."""
    return JobOutcome(
        job_id=job.get("job_id"),
        submission_id=job.get("submission_id"),
        status=job.get("status") or "UNKNOWN",
        error_type=job.get("error_type"),
        message=_text(job.get("message")),
        exit_code=job.get("driver_exit_code"),
        entrypoint=job.get("entrypoint") or "",
        started_at=_time(job.get("start_time")),
        ended_at=_time(job.get("end_time")),
        is_cut_off=job.get("message") == CLUSTER_ENDED,
    )


def uncoloured(attempt: FailedAttempt) -> FailedAttempt:
    """Without the colours that Ray writes into errors."""
    return replace(attempt, message=_text(attempt.message) or "", exit_detail=_text(attempt.exit_detail))


def uncoloured_log(log: LogSlice | None) -> LogSlice | None:
    return log and replace(log, text=_text(log.text) or "")


def _text(message: object) -> str | None:
    return _COLOUR.sub("", message) if isinstance(message, str) else None


def _time(unix_ms: object) -> datetime | None:
    return datetime.fromtimestamp(unix_ms / 1000, UTC) if isinstance(unix_ms, int) and unix_ms > 0 else None
