"""From what was found to what is answered. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from raykeeper.history.entities.job import OPEN_STATUSES, Job
from raykeeper.history.report.causes import Explained
from raykeeper.history.report.failures import FailedAttempt, FailureSet
from raykeeper.history.report.last_words import without_markers
from raykeeper.history.report.model import (
    Cause,
    Counts,
    Example,
    FailureGroup,
    FunctionFailures,
    Headline,
    JobOutcome,
    Outcome,
)
from raykeeper.history.report.rules.rayjobs import RAYJOB_FAILURES
from raykeeper.history.report.rules.train import FAILED_RANK
from raykeeper.history.text import counted, without_ansi
from raykeeper.masking import masked_text
from raykeeper.times import from_ns

_FUNCTIONS_LIMIT = 20


def outcome_of(
    explained: Explained, sets: Sequence[FailureSet], jobs: Sequence[JobOutcome], *, is_over: bool
) -> Outcome:
    """By what became of jobs, then by failures that stayed and that neither a retry nor an intention explains."""
    statuses = {job.status for job in jobs}
    is_open = not is_over and (not jobs or bool(statuses & OPEN_STATUSES))
    unintended = [cause for cause in explained.causes if not cause.is_intended]
    if "FAILED" in statuses or any(cause.rule in RAYJOB_FAILURES for cause in explained.causes):
        return Outcome.FAILED
    if statuses and statuses <= {"STOPPED", "SUCCEEDED"} and "STOPPED" in statuses:
        return Outcome.STOPPED
    lasting = {one.id for one in sets if one.failures > one.recovered}
    is_lost = any(
        not (cause.explains or _is_within(cause)) for cause in unintended
    )  # the cluster was, or never came up
    has_deaths = any(cause.deaths or cause.requests or _is_lasting_rank(cause) for cause in unintended)
    if not is_lost and not has_deaths and not any(lasting.intersection(cause.explains) for cause in unintended):
        return Outcome.RUNNING if is_open else Outcome.OK
    if is_open and (jobs or has_deaths) and not is_lost:
        return Outcome.FAILING
    is_success = bool(jobs) and not any(job.status != "SUCCEEDED" or job.is_unjudged for job in jobs)
    return Outcome.WITH_FAILURES if is_success else Outcome.FAILED


def _is_within(cause: Cause) -> bool:
    """Whether it struck what no failed task tells of, within a cluster that was well."""
    return bool(cause.deaths or cause.requests) or cause.rule == FAILED_RANK


def _is_lasting_rank(cause: Cause) -> bool:
    return cause.rule == FAILED_RANK and cause.failures > cause.recovered


def headline_of(explained: Explained) -> Headline | None:
    """Of the first cause."""
    if not explained.causes:
        return None
    cause, details = explained.causes[0], explained.details[0]
    return Headline(
        text=cause.error or cause.title,
        what=details.what,
        where=cause.where,
        who=cause.who,
        then=details.then,
        confidence=cause.confidence,
        basis=details.basis,
        fingerprint=cause.fingerprint,
    )


def how_often(cause: Cause) -> str:
    """How many failed or died of it, to stand behind other words."""
    failures = f", {counted(cause.failures, 'failure')}" if cause.failures else ""
    requests = f", {counted(cause.requests, 'failed request')}" if cause.requests else ""
    return failures + (f", {counted(cause.deaths, 'process death')}" if cause.deaths else "") + requests


def group_of(one: FailureSet, explained: Explained, attempts: int) -> FailureGroup:
    place, confidence = explained.places[one.id]
    return FailureGroup(
        fingerprint=one.id,
        error_type=one.error_type,
        title=one.words,
        failures=one.failures,
        recovered=one.recovered,
        share=one.failures / attempts if attempts else 0.0,
        first_at=from_ns(one.first_ns),
        last_at=from_ns(one.last_ns),
        functions=tuple(FunctionFailures(*item) for item in list(one.functions.items())[:_FUNCTIONS_LIMIT]),
        nodes=one.nodes,
        confidence=confidence,
        cause=place,
    )


def example_of(first: FailedAttempt) -> Example:
    return Example(
        task_id=first.task_id,
        attempt_number=first.attempt_number,
        job_id=first.job_id,
        name=first.name,
        at=from_ns(first.end_ns),
        message=first.message,
        node_id=first.node_id,
        worker_id=first.worker_id,
        actor_id=first.actor_id,
        logs=tuple(map(without_markers, first.logs)),
    )


def counts_of(attempts: int, failures: int, sets: Sequence[FailureSet], groups: Sequence[FailureGroup]) -> Counts:
    grouped = sum(group.failures for group in groups)
    return Counts(attempts, failures, sum(one.recovered for one in sets), max(0, failures - grouped))


def job_outcome(job: Job) -> JobOutcome:
    return JobOutcome(
        job_id=job.job_id,
        submission_id=job.submission_id,
        status=job.status,
        error_type=job.error_type,
        message=_text(job.message),
        exit_code=job.exit_code,
        entrypoint=job.entrypoint,
        started_at=job.started_at,
        ended_at=job.ended_at,
        is_cut_off=job.is_cut_off,
    )


def readable(attempt: FailedAttempt) -> FailedAttempt:
    """Without secrets, and without the colours that Ray writes into errors."""
    return replace(attempt, message=_text(attempt.message) or "", exit_detail=_text(attempt.exit_detail))


def _text(message: str | None) -> str | None:
    return None if message is None else masked_text(without_ansi(message), keeps_lines=True)
