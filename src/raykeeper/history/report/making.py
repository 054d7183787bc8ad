"""Makes a report: asks the tables, lets the rules decide, and fetches the logs of what is shown."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from raykeeper.history.asked import Asked
from raykeeper.history.endpoints.joblist import all_jobs
from raykeeper.history.opened import OpenedSession
from raykeeper.history.report.failures import AttemptKey, FailedAttempt, FailureSet, failed_attempt, failure_sets
from raykeeper.history.report.firstcause import Explained, explain_all
from raykeeper.history.report.logslice import log_slices
from raykeeper.history.report.model import (
    Cause,
    Counts,
    Example,
    FailureGroup,
    FunctionFailures,
    JobOutcome,
    Outcome,
    Report,
    Unknown,
)
from raykeeper.history.report.situation import Ending, Situation, moment
from raykeeper.history.report.statements import COUNTED_ATTEMPTS, FIRST_FAILURES, GROUPED_FAILURES
from raykeeper.history.report.unknowns import unknowns_of

GROUPS_LIMIT = 50
"""Groups shown with an example; a person reads the first few."""
_ROWS_LIMIT = 5000  # digests; a message that is new each time would give one for each failure
_FUNCTIONS_LIMIT, _NODES_LIMIT = 20, 50
_LOGS_LIMIT = 10  # groups whose logs are fetched: each costs reads of the store
_MESSAGE_CHARS = 20_000  # as much as Ray keeps of a job's message
_SLACK_NS = 120 * 1_000_000_000
"""How far a node's death and the failures on it may lie apart: the head gives a silent node up after a minute at most,
and clocks of nodes differ."""
_COLOUR = re.compile(r"\x1b[^m]*m")


class JobUnknown(Exception):
    """The session has no such job."""


@dataclass(frozen=True)
class Scope:
    """What a report is about: the whole session, or one of its jobs."""

    name: str | None
    job_id: str | None
    """None: all tasks. A job that never had a driver has no tasks, and an empty id here."""
    jobs: tuple[JobOutcome, ...]


async def make_report(asked: Asked, job: str | None = None) -> Report:
    """The report on a session, or on the job with that id or submission id. Raises JobUnknown."""
    scope = await _scope(asked, job)
    [counted] = await asked.rows(COUNTED_ATTEMPTS, {"job_id": scope.job_id})
    sets = await _failure_sets(asked, scope)
    ending = _ending(asked, counted["cut_off"])
    explained = explain_all(Situation(sets, scope.jobs, ending))
    groups = [_group(one, explained, counted["attempts"]) for one in sets[:GROUPS_LIMIT]]
    is_over = ending.ended_at is not None
    recovered = sum(one.recovered for one in sets)
    outcome = outcome_of(explained, sets, scope.jobs, is_over=is_over)
    session = asked.session
    return Report(
        namespace=session.id.namespace,
        cluster=session.id.cluster,
        session=session.id.session,
        job=scope.name,
        as_of=session.as_of,
        outcome=outcome,
        counts=Counts(
            counted["attempts"],
            counted["failures"],
            recovered,
            counted["failures"] - sum(one.failures for one in groups),
        ),
        first_cause=_first(explained.causes) if outcome in (Outcome.FAILED, Outcome.STOPPED) else None,
        causes=explained.causes,
        groups=await _with_logs(asked, groups, sets),
        jobs=scope.jobs,
        unknown=_unknown(asked, ending),
    )


async def _scope(asked: Asked, wanted: str | None) -> Scope:
    jobs = [job_outcome(job) for job in await all_jobs(asked)]
    if wanted is None:
        return Scope(None, None, tuple(jobs))
    for job in jobs:
        if wanted in (job.job_id, job.submission_id):
            return Scope(wanted, job.job_id or "", (job,))
    raise JobUnknown(f"there is no job {wanted} in session {asked.session.id}")


async def _failure_sets(asked: Asked, scope: Scope) -> list[FailureSet]:
    params = {
        "job_id": scope.job_id,
        "slack_ns": _SLACK_NS,
        "node_limit": _NODES_LIMIT,
        "row_limit": _ROWS_LIMIT,
    }
    sets = failure_sets(await asked.rows(GROUPED_FAILURES, params), _NODES_LIMIT)[:GROUPS_LIMIT]
    if not sets:
        return []
    ids = sorted({one.first.task_id for one in sets})
    rows = await asked.rows(FIRST_FAILURES, {"task_ids": ids, "message_limit": _MESSAGE_CHARS})
    firsts = {_key(attempt): attempt for attempt in map(failed_attempt, rows)}
    return [replace(one, first=_plain(firsts.get(_key(one.first), one.first))) for one in sets]


def _key(attempt: FailedAttempt) -> AttemptKey:
    return attempt.task_id, attempt.attempt_number


def _plain(attempt: FailedAttempt) -> FailedAttempt:
    """Without the colours that Ray writes into errors."""
    detail = attempt.exit_detail
    return replace(
        attempt,
        message=_COLOUR.sub("", attempt.message),
        exit_detail=None if detail is None else _COLOUR.sub("", detail),
    )


def _ending(asked: Asked, cut_off: int) -> Ending:
    """A session without an end of its head, and that nobody closed, crashed."""
    session = asked.session
    if not isinstance(session, OpenedSession) or session.ended_at is None:
        return Ending()
    has_end = session.closed is not None or any(end.role == "head" for end in session.ends)
    return Ending(session.ended_at, is_crash=not has_end, cut_off=cut_off)


def outcome_of(
    explained: Explained, sets: Sequence[FailureSet], jobs: Sequence[JobOutcome], *, is_over: bool
) -> Outcome:
    """Failed if a job did, the cluster was lost, or failures stayed that neither a retry nor an intention explains."""
    statuses = {job.status for job in jobs}
    unmade = {one.id for one in sets if one.failures > one.recovered}
    has_failed = "FAILED" in statuses or any(
        not cause.is_intended and (unmade & set(cause.explains) or not cause.explains) for cause in explained.causes
    )
    if has_failed:
        return Outcome.FAILED
    if "STOPPED" in statuses:
        return Outcome.STOPPED
    is_open = not is_over and (not jobs or bool(statuses & {"PENDING", "RUNNING"}))
    return Outcome.RUNNING if is_open else Outcome.OK


def _first(causes: Sequence[Cause]) -> Cause | None:
    return causes[0] if causes else None


def _group(one: FailureSet, explained: Explained, attempts: int) -> FailureGroup:
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


async def _with_logs(
    asked: Asked, groups: Sequence[FailureGroup], sets: Sequence[FailureSet]
) -> tuple[FailureGroup, ...]:
    shown = []
    for number, (group, one) in enumerate(zip(groups, sets, strict=False)):
        first = one.first
        example = Example(
            task_id=first.task_id,
            attempt_number=first.attempt_number,
            job_id=first.job_id,
            name=first.name,
            at=moment(first.end_ns),
            message=first.message,
            node_id=first.node_id,
            worker_id=first.worker_id,
            actor_id=first.actor_id,
            logs=await log_slices(asked, first) if number < _LOGS_LIMIT else (),
        )
        shown.append(replace(group, example=example))
    return tuple(shown)


def _unknown(asked: Asked, ending: Ending) -> tuple[Unknown, ...]:
    if not isinstance(asked.session, OpenedSession):
        return ()
    return tuple(Unknown(what, text) for what, text in unknowns_of(asked.session, ending))


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
    )


def _text(message: object) -> str | None:
    return _COLOUR.sub("", message) if isinstance(message, str) else None


def _time(unix_ms: object) -> datetime | None:
    return datetime.fromtimestamp(unix_ms / 1000, UTC) if isinstance(unix_ms, int) and unix_ms > 0 else None
