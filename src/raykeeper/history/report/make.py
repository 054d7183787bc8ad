"""Makes the report of a session or of one of its jobs: asks for failures, jobs and logs, and has their causes found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from raykeeper.history.entities.job import Job, JobUnknown, is_made_for, is_of_rayjob
from raykeeper.history.entities.job_list import named_job, session_jobs
from raykeeper.history.entities.polled import polled_rows
from raykeeper.history.query.context import SessionContext
from raykeeper.history.report.causes import explain_all
from raykeeper.history.report.deaths import read_deaths
from raykeeper.history.report.failures import (
    AttemptKey,
    FailedAttempt,
    FailureSet,
    failed_attempt,
    failure_sets,
    with_told_actor,
)
from raykeeper.history.report.fingerprint import CUT, is_end_alone
from raykeeper.history.report.input import Capacity, Ending, Kubernetes, ReportInput, UnmadeGroup, Waiting, capacity_of
from raykeeper.history.report.log_excerpts import actor_name, data_texts, driver_log, log_slices
from raykeeper.history.report.model import (
    JobOutcome,
    Report,
    Unknown,
)
from raykeeper.history.report.naming import TRAIN_CLASS, TUNE_CLASSES, plain, ranks_in, trials_in
from raykeeper.history.report.pod_failures import pod_failures_of
from raykeeper.history.report.rules.drivers import told_by_message, with_whole_words
from raykeeper.history.report.serve_logs import read_serve
from raykeeper.history.report.shape import (
    counts_of,
    example_of,
    group_of,
    headline_of,
    job_outcome,
    outcome_of,
    readable,
)
from raykeeper.history.report.sql import (
    COUNTED_ATTEMPTS,
    FIRST_FAILURES,
    GIVEN_RESOURCES,
    GROUPED_FAILURES,
    NODE_RESOURCES,
    TROUBLED_JOBS,
    UNDEFINED_ATTEMPTS,
    WAITING,
)
from raykeeper.history.report.tracebacks import is_wrapper
from raykeeper.history.report.train_logs import read_train
from raykeeper.history.report.unknowns import (
    unknowns_of,
    unknowns_of_definitions,
    unknowns_of_drivers,
    unknowns_of_kubernetes,
)
from raykeeper.history.store.kube_facts import KubeFacts
from raykeeper.history.store.session_state import lost_heads, node_lives
from raykeeper.history.text import shortened, without_ansi
from raykeeper.layout.rayjobs import RayJobRecord
from raykeeper.masking import masked_value
from raykeeper.times import NS

_WAITING_STATES = ("PENDING", "RESCHEDULING")


class _Stats(msgspec.Struct):
    end_to_end_creation_latency_us: int = 0


class _Bundle(msgspec.Struct):
    unit_resources: dict[str, float] = {}


class _Group(msgspec.Struct):
    placement_group_id: str
    state: str
    creator_job_id: str = ""
    bundles: list[_Bundle] = []
    stats: _Stats | None = None


async def _read_capacity(context: SessionContext) -> Capacity:
    nodes = await context.rows(NODE_RESOURCES)
    given = await context.rows(GIVEN_RESOURCES)
    return capacity_of([row["resources_total"] for row in nodes], [row["required_resources"] for row in given])


async def _read_waiting(context: SessionContext, job_id: str | None) -> tuple[Waiting, ...]:
    """What waited for a node when the cluster ended, the longest first."""
    return tuple(Waiting(**row) for row in await context.rows(WAITING, {"job_id": job_id}))


def unmade_groups(context: SessionContext) -> tuple[UnmadeGroup, ...]:
    """Placement groups that were never made, of those that the dashboard listed last."""
    return parse_unmade(polled_rows(context.session, "placement_groups", ["placement_group_id"]) or [])


def parse_unmade(rows: Iterable[Mapping[str, Any]]) -> tuple[UnmadeGroup, ...]:
    """Of Ray's rows those that still wait, or were removed before they ever came to be."""
    groups = []
    for row in rows:
        try:
            group = msgspec.convert(row, _Group, strict=False)  # Ray writes large numbers as texts
        except msgspec.ValidationError:
            continue  # a shape that we do not know says nothing to us
        was_made = group.state not in _WAITING_STATES and (
            group.state != "REMOVED" or group.stats is None or bool(group.stats.end_to_end_creation_latency_us)
        )
        if not was_made:
            bundles = tuple(bundle.unit_resources for bundle in group.bundles)
            groups.append(UnmadeGroup(group.placement_group_id, group.creator_job_id, bundles))
    return tuple(groups)


_DRIVER_LOGS_LIMIT = 10  # each costs reads of the store


@dataclass(frozen=True)
class Scope:
    """What is reported on."""

    name: str | None
    job_id: str | None
    """None: all tasks. A job that never had a driver has no tasks, and an empty id here."""
    jobs: tuple[JobOutcome, ...]
    rayjobs: tuple[RayJobRecord, ...] = ()


async def _find_scope(context: SessionContext, wanted: str | None, rayjobs: tuple[RayJobRecord, ...]) -> Scope:
    """The whole session, or what the name means: a job's id, a submission's, or that of a RayJob. Raises JobUnknown."""
    jobs = await session_jobs(context)
    if wanted is None:
        return Scope(None, None, await _with_driver_logs(context, jobs), rayjobs)
    named = tuple(one for one in rayjobs if one.name == wanted)
    found = await named_job(context, wanted)
    if found is not None:
        its_own = named or tuple(one for one in rayjobs if is_of_rayjob(found, one))
        return Scope(wanted, found.job_id or "", await _with_driver_logs(context, [found]), its_own)
    if is_made_for(context.session.record, wanted):
        return Scope(wanted, None, await _with_driver_logs(context, jobs), named)
    if named:  # it never got as far as a job on this cluster, which others may use
        return Scope(wanted, "", (), named)
    raise JobUnknown(f"there is no job {wanted} in session {context.session.id}")


async def _with_driver_logs(context: SessionContext, jobs: Sequence[Job]) -> tuple[JobOutcome, ...]:
    """The jobs; the first of those that failed with the end of their drivers' logs, without colours."""
    failed = [job.submission_id for job in jobs if job.status == "FAILED" and job.submission_id][:_DRIVER_LOGS_LIMIT]
    logs = {name: await driver_log(context, name) for name in failed}
    return tuple(replace(job_outcome(job), log=logs.get(job.submission_id or "")) for job in jobs)


__all__ = ["GROUPS_LIMIT", "JobUnknown", "find_report", "make_report"]

GROUPS_LIMIT = 50
"""Groups shown with an example; a person reads the first few."""
_FREQUENT_LIMIT = 5000  # digests; a message that is new each time would give one for each failure
_EARLY_LIMIT = 100
"""Rare failures that are explained too, though not shown: what happened once may be why others happened often."""
_NODES_LIMIT = 50
_LOGS_LIMIT = 10  # groups whose logs are fetched: each costs reads of the store
_MESSAGE_CHARS = 20_000  # as much as Ray keeps of a job's message
_SLACK_NS = 120 * NS
"""How far a node's death and the failures on it may lie apart: the head gives a silent node up after a minute at most,
and clocks of nodes differ."""


async def find_report(context: SessionContext, job: str | None = None) -> Report:
    """The same as `make_report`, made once while the session stays as it is. Raises JobUnknown."""
    return await context.remembered(("report", job), lambda: make_report(context, job))


async def make_report(context: SessionContext, job: str | None = None) -> Report:
    """The report on a session, or on the job or RayJob of that name. Raises JobUnknown."""
    facts = await context.kube_facts()
    scope = await _find_scope(context, job, facts.rayjobs)
    ranks = ranks_in("\n".join(job.log.text for job in scope.jobs if job.log))
    [counted] = await context.rows(COUNTED_ATTEMPTS, {"job_id": scope.job_id})
    sets = await _failure_sets(context, scope, ranks)
    ending = Ending.of(context.session.state, counted["cut_off"])
    kubernetes, cluster = _kubernetes(context, facts), context.session.id.cluster
    lost = lost_heads(node_lives(context.session.nodes, context.session.ends))
    report_input = ReportInput(
        sets,
        scope.jobs,
        ending,
        kubernetes,
        lost_heads=lost,
        rayjobs=scope.rayjobs,
        deaths=await read_deaths(context, scope.job_id, ranks),
        serve=await read_serve(context, scope.job_id),
        train_errors=await read_train(context, scope.job_id),
        cluster=cluster,
    )
    explained = explain_all(await _with_waiting(context, report_input, scope.job_id))
    groups = [group_of(one, explained, counted["attempts"]) for one in sets[:GROUPS_LIMIT]]
    outcome = outcome_of(explained, sets, scope.jobs, is_over=ending.ended_at is not None)
    session = context.session
    report = Report(
        namespace=session.id.namespace,
        cluster=session.id.cluster,
        session=session.id.session,
        job=scope.name,
        as_of=session.as_of,
        outcome=outcome,
        counts=counts_of(counted["attempts"], counted["failures"], sets, groups),
        headline=None if outcome.is_well else headline_of(explained),
        excerpts=() if outcome.is_well else explained.details[0].excerpts,
        steps=() if outcome.is_well else explained.details[0].steps,
        root_cause=None if outcome.is_well else next(iter(explained.causes), None),
        causes=explained.causes,
        groups=tuple(replace(group, example=example_of(one.first)) for group, one in zip(groups, sets, strict=False)),
        jobs=scope.jobs,
        unknown=await _unknown(context, scope, facts),
        is_doubtful=outcome.is_open and session.state.is_doubtful,
    )
    return masked_value(report)


async def _failure_sets(context: SessionContext, scope: Scope, ranks: Mapping[int, str]) -> list[FailureSet]:
    """The most frequent first, with the earliest of the rarer ones at the end: they may be why."""
    params = {
        "job_id": scope.job_id,
        "slack_ns": _SLACK_NS,
        "node_limit": _NODES_LIMIT,
        "frequent_limit": _FREQUENT_LIMIT,
        "early_limit": _EARLY_LIMIT,
    }
    found = failure_sets(await context.rows(GROUPED_FAILURES, params), _NODES_LIMIT)
    rarer = sorted(found[GROUPS_LIMIT:], key=lambda one: (one.first_ns, one.id))
    sets = found[:GROUPS_LIMIT] + rarer[:_EARLY_LIMIT]
    if not sets:
        return []
    ids = sorted({one.first.task_id for one in sets})
    rows = await context.rows(FIRST_FAILURES, {"task_ids": ids, "message_limit": _MESSAGE_CHARS, "cut": CUT})
    firsts = {_key(attempt): attempt for attempt in map(failed_attempt, rows)}
    told = [replace(one, first=_known(firsts.get(_key(one.first), one.first), ranks)) for one in sets]
    is_cut = any(is_wrapper(one.words) or is_end_alone(one.first.message) for one in told)
    texts = await data_texts(context) if is_cut else []
    drivers = "\n".join(job.log.text for job in scope.jobs if job.log)
    trials = trials_in("\n".join([drivers, *await _drivers_of_trials(context, scope, told)]))
    known = [replace(one, first=_with_trial(with_told_actor(one.first, drivers), trials)) for one in told]
    whole = [with_whole_words(one, scope.jobs, texts) for one in known]
    logs = [await log_slices(context, one.first) for one in whole[:_LOGS_LIMIT]]
    with_logs = [replace(one, first=replace(one.first, logs=found)) for one, found in zip(whole, logs, strict=False)]
    named = [replace(one, first=await _with_trainable(context, one.first)) for one in with_logs]
    return [*named, *whole[_LOGS_LIMIT:]]


async def _drivers_of_trials(context: SessionContext, scope: Scope, sets: Sequence[FailureSet]) -> list[str]:
    """The ends of driver logs that were not read yet, of jobs whose trials failed: there Ray Tune names them."""
    jobs = {one.first.job_id for one in sets if plain(one.first.class_name or "") in TUNE_CLASSES}
    unread = [job.submission_id for job in scope.jobs if job.job_id in jobs and job.log is None and job.submission_id]
    logs = [await driver_log(context, name) for name in unread[:_DRIVER_LOGS_LIMIT]]
    return [log.text for log in logs if log]


def _with_trial(first: FailedAttempt, trials: Mapping[str, str]) -> FailedAttempt:
    return replace(first, trial=trials.get(first.actor_id or "", ""))


async def _with_trainable(context: SessionContext, first: FailedAttempt) -> FailedAttempt:
    """With the name of what Ray Tune trains; where it never came to be, the one that its process wrote down."""
    if plain(first.class_name or "") not in TUNE_CLASSES or first.repr_name:
        return first
    return replace(first, repr_name=await actor_name(context, first))


def _known(first: FailedAttempt, ranks: Mapping[int, str]) -> FailedAttempt:
    """Without colours, and with its rank if it is of Ray Train."""
    is_of_train = first.class_name == TRAIN_CLASS
    return replace(readable(first), rank=ranks.get(first.pid or 0, "") if is_of_train else "")


async def _with_waiting(context: SessionContext, report_input: ReportInput, job_id: str | None) -> ReportInput:
    """With what was waited for, and what there was to have: read only where something waited, for it is a long read."""
    waiting = await _read_waiting(context, job_id) if report_input.ending.cut_off else ()
    unmade = unmade_groups(context)
    if not (waiting or unmade or any(one.never_ran for one in report_input.sets)):
        return report_input
    return replace(report_input, waiting=waiting, unmade_groups=unmade, capacity=await _read_capacity(context))


def _kubernetes(context: SessionContext, facts: KubeFacts) -> Kubernetes:
    session = context.session
    return Kubernetes(pod_failures_of(facts), {node.node_id: node.pod for node in session.nodes if node.pod})


def _key(attempt: FailedAttempt) -> AttemptKey:
    return attempt.task_id, attempt.attempt_number


async def _unknown(context: SessionContext, scope: Scope, facts: KubeFacts) -> tuple[Unknown, ...]:
    session = context.session
    found = list(unknowns_of(session))
    [undefined] = await context.rows(UNDEFINED_ATTEMPTS, {"job_id": scope.job_id})
    found += unknowns_of_definitions(undefined["attempts"], undefined["jobs"])
    found += unknowns_of_kubernetes(facts, session.record.cluster_uid if session.record else "")
    found += unknowns_of_drivers(scope.jobs)
    return tuple(Unknown(what, text) for what, text in found)


REPORTS_LIMIT = 10
"""Jobs whose root cause is looked for where somebody waits for it; of the others their own message has to do."""
_FAILED = ("FAILED", "STOPPED")


async def reports_on_jobs(
    context: SessionContext, statuses: Mapping[str, str], limit: int = REPORTS_LIMIT
) -> dict[str, Report | None]:
    """By their names, those on jobs that did not go well: that failed first, then those in which something failed.

    Beyond the limit there is none: nobody knows how such a job went.
    """
    ids = {job.name: job.job_id for job in await session_jobs(context)}
    troubled = {row["job_id"] for row in await context.rows(TROUBLED_JOBS)}
    failed = [name for name, status in statuses.items() if name and status == "FAILED"]
    others = [name for name in statuses if name and name not in failed and ids.get(name) in troubled]
    wanted = [*failed, *others]
    reports = {name: await find_report(context, name) for name in wanted[:limit]}
    return {name: reports.get(name) for name in wanted}


def why_in_one_line(status: str, message: str | None, report: Report | None = None) -> str:
    """The cause where one is known, else what the job's own message says that its driver raised or wrote last."""
    if report is not None and report.root_cause is not None:
        return report.root_cause.title
    if status not in _FAILED:
        return ""
    return shortened(told_by_message(without_ansi(message or "")))
