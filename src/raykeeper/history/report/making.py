"""Makes a report: asks the tables, lets the rules decide, and fetches the logs of what is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from raykeeper.history.asked import Asked
from raykeeper.history.kubefacts.merged import KubeFacts
from raykeeper.history.opened import OpenedSession
from raykeeper.history.report.failures import AttemptKey, FailedAttempt, FailureSet, failed_attempt, failure_sets
from raykeeper.history.report.fingerprint import CUT
from raykeeper.history.report.firstcause import explain_all
from raykeeper.history.report.logslice import log_slices
from raykeeper.history.report.masking import without_secrets
from raykeeper.history.report.model import (
    FailureGroup,
    Report,
    Unknown,
)
from raykeeper.history.report.scope import JobUnknown, Scope, find_scope
from raykeeper.history.report.shaping import (
    counts_of,
    example_of,
    group_of,
    outcome_of,
    uncoloured,
)
from raykeeper.history.report.situation import Ending, Kubernetes, Situation
from raykeeper.history.report.statements import COUNTED_ATTEMPTS, FIRST_FAILURES, GROUPED_FAILURES
from raykeeper.history.report.troubles import troubles_of
from raykeeper.history.report.unknowns import unknowns_of, unknowns_of_drivers, unknowns_of_kubernetes
from raykeeper.history.report.waiting import read_capacity, read_waiting, unmade_groups
from raykeeper.layout.records import HEAD_LOST

__all__ = ["GROUPS_LIMIT", "JobUnknown", "make_report"]

GROUPS_LIMIT = 50
"""Groups shown with an example; a person reads the first few."""
_FREQUENT_LIMIT = 5000  # digests; a message that is new each time would give one for each failure
_EARLY_LIMIT = 100
"""Rare failures that are explained too, though not shown: what happened once may be why others happened often."""
_NODES_LIMIT = 50
_LOGS_LIMIT = 10  # groups whose logs are fetched: each costs reads of the store
_MESSAGE_CHARS = 20_000  # as much as Ray keeps of a job's message
_SLACK_NS = 120 * 1_000_000_000
"""How far a node's death and the failures on it may lie apart: the head gives a silent node up after a minute at most,
and clocks of nodes differ."""


async def make_report(asked: Asked, job: str | None = None) -> Report:
    """The report on a session, or on the job or RayJob of that name. Raises JobUnknown."""
    scope = await find_scope(asked, job)
    [counted] = await asked.rows(COUNTED_ATTEMPTS, {"job_id": scope.job_id})
    sets = await _failure_sets(asked, scope)
    ending = _ending(asked, counted["cut_off"])
    facts = await asked.kube_facts()
    situation = Situation(sets, scope.jobs, ending, _kubernetes(asked, facts))
    explained = explain_all(await _with_waiting(asked, situation, scope.job_id))
    groups = [group_of(one, explained, counted["attempts"]) for one in sets[:GROUPS_LIMIT]]
    outcome = outcome_of(explained, sets, scope.jobs, is_over=ending.ended_at is not None)
    session = asked.session
    report = Report(
        namespace=session.id.namespace,
        cluster=session.id.cluster,
        session=session.id.session,
        job=scope.name,
        as_of=session.as_of,
        outcome=outcome,
        counts=counts_of(counted["attempts"], counted["failures"], sets, groups),
        first_cause=None if outcome.is_well else next(iter(explained.causes), None),
        causes=explained.causes,
        groups=await _with_logs(asked, groups, sets),
        jobs=scope.jobs,
        unknown=_unknown(asked, scope, ending, facts),
    )
    return without_secrets(report)


async def _failure_sets(asked: Asked, scope: Scope) -> list[FailureSet]:
    """The most frequent first, with the earliest of the rarer ones at the end: they may be why."""
    params = {
        "job_id": scope.job_id,
        "slack_ns": _SLACK_NS,
        "node_limit": _NODES_LIMIT,
        "frequent_limit": _FREQUENT_LIMIT,
        "early_limit": _EARLY_LIMIT,
    }
    found = failure_sets(await asked.rows(GROUPED_FAILURES, params), _NODES_LIMIT)
    rarer = sorted(found[GROUPS_LIMIT:], key=lambda one: (one.first_ns, one.id))
    sets = found[:GROUPS_LIMIT] + rarer[:_EARLY_LIMIT]
    if not sets:
        return []
    ids = sorted({one.first.task_id for one in sets})
    rows = await asked.rows(FIRST_FAILURES, {"task_ids": ids, "message_limit": _MESSAGE_CHARS, "cut": CUT})
    firsts = {_key(attempt): attempt for attempt in map(failed_attempt, rows)}
    return [replace(one, first=uncoloured(firsts.get(_key(one.first), one.first))) for one in sets]


async def _with_waiting(asked: Asked, situation: Situation, job_id: str | None) -> Situation:
    """With what was waited for, and what there was to have: read only where something waited, for it is a long read."""
    waiting = await read_waiting(asked, job_id) if situation.ending.cut_off else ()
    unmade = unmade_groups(asked)
    if not (waiting or unmade or any(one.never_ran for one in situation.sets)):
        return situation
    return replace(situation, waiting=waiting, unmade_groups=unmade, capacity=await read_capacity(asked))


def _kubernetes(asked: Asked, facts: KubeFacts) -> Kubernetes:
    session = asked.session
    nodes = session.nodes if isinstance(session, OpenedSession) else ()
    return Kubernetes(troubles_of(facts), {node.node_id: node.pod for node in nodes if node.pod})


def _key(attempt: FailedAttempt) -> AttemptKey:
    return attempt.task_id, attempt.attempt_number


def _ending(asked: Asked, cut_off: int) -> Ending:
    """A session without an end of its head, and that nobody closed, crashed."""
    session = asked.session
    if not isinstance(session, OpenedSession) or session.ended_at is None:
        return Ending()
    was_closed = session.closed is not None and session.closed.reason != HEAD_LOST
    has_end = was_closed or any(end.role == "head" for end in session.ends)
    said = session.closed.reason if session.closed else next((end.reason for end in session.ends), "")
    return Ending(session.ended_at, is_crash=not has_end, cut_off=cut_off, reason=said)


async def _with_logs(
    asked: Asked, groups: Sequence[FailureGroup], sets: Sequence[FailureSet]
) -> tuple[FailureGroup, ...]:
    """The groups with their examples; only the first have logs."""
    shown = []
    for number, (group, one) in enumerate(zip(groups, sets, strict=False)):
        logs = await log_slices(asked, one.first) if number < _LOGS_LIMIT else ()
        shown.append(replace(group, example=example_of(one.first, logs)))
    return tuple(shown)


def _unknown(asked: Asked, scope: Scope, ending: Ending, facts: KubeFacts) -> tuple[Unknown, ...]:
    session = asked.session
    found = list(unknowns_of(session, ending)) if isinstance(session, OpenedSession) else []
    found += unknowns_of_kubernetes(facts, session.record.cluster_uid if session.record else "")
    found += unknowns_of_drivers(scope.jobs)
    return tuple(Unknown(what, text) for what, text in found)
