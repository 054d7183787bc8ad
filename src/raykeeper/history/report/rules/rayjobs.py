"""Why a RayJob ended on a cluster as it did: from what Kubernetes says of it, which Ray does not know. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from raykeeper.history.report.input import Explanation
from raykeeper.history.report.model import Confidence, Evidence, Who, WhoKind
from raykeeper.history.text import shortened
from raykeeper.layout.rayjobs import COMPLETE, FAILED, RayJobRecord, RayJobState
from raykeeper.times import to_ns

_VALIDATION_FAILED: Final = "ValidationFailed"
_STOPPED: Final = "STOPPED"
_SUSPENDED: Final = frozenset({"Suspending", "Suspended"})
_SOURCE: Final = "rayjob"
_WARNINGS_SHOWN = 2

FAILED_RAYJOB: Final = "failed_rayjob"
"""It failed, and others may know better why."""
WAITING_RAYJOB: Final = "waiting_rayjob"
"""It has not ended; this is what it waits for."""
_RULES: Final = {
    "DeadlineExceeded": ("rayjob_deadline", "ran longer than its activeDeadlineSeconds"),
    "PreRunningDeadlineExceeded": ("rayjob_deadline", "did not begin to run within its preRunningDeadlineSeconds"),
    "JobStatusCheckTimeoutExceeded": ("silent_rayjob", "was given up because the cluster's dashboard did not answer"),
    "SubmissionFailed": ("unsubmitted_rayjob", "could not be submitted"),
    "HeadLost": ("headless_rayjob", "lost the head that had its job"),
    "CannotStart": ("unstartable_rayjob", "can never start"),
    "ValidationFailed": ("invalid_rayjob", "is not valid"),
}
"""By status.reason, which KubeRay's operator and ours write."""
_COMPLETE_TITLES = frozenset({"rayjob_deadline"})  # others need the message
RAYJOB_FAILURES: Final = frozenset({FAILED_RAYJOB, *(rule for rule, _ in _RULES.values())})


def rayjob_end(record: RayJobRecord, cluster: str) -> Explanation | None:
    """How the RayJob, or its attempt on that cluster, ended without success; None where it did not, or goes on.

    Without a cluster's name it is about the RayJob as it was last seen.
    """
    state, after = _last_on(record, cluster)
    if state is not None and state.deployment_status == COMPLETE:
        # Of a session that is there, Ray's own records say so.
        is_stopped = not cluster and state.job_status == _STOPPED
        return (
            _interruption(record, "stopped_rayjob", "was stopped", state.ended_at or state.at) if is_stopped else None
        )
    if state is not None and state.deployment_status in (FAILED, _VALIDATION_FAILED):
        return _failure(record, state.reason, state.message, state.ended_at or state.at)
    tried = next((one for one in reversed(record.attempts) if cluster and one.cluster == cluster), None)
    if tried is not None:
        return _failure(record, tried.reason, tried.message, tried.ended_at)
    if state is not None and cluster and _is_suspending(state, after):
        return _interruption(record, "suspended_rayjob", "was suspended", (after or state).at)
    return _deletion(record) if cluster in ("", *record.clusters[-1:]) else None


def rayjob_wait(record: RayJobRecord) -> Explanation | None:
    """What a RayJob that did not end waits for; None where it waits for nothing that anybody named."""
    state = record.last
    if state is None or record.is_final or state.deployment_status == _VALIDATION_FAILED:
        return None
    if state.deployment_status in _SUSPENDED:
        words = "is suspended: it waits to be resumed, or to be admitted by a queue"
    elif state.waits_for and not state.job_status:
        words = f"waits: {state.waits_for}"
    elif record.warnings and not state.cluster:
        words = f"has no cluster: {record.warnings[-1].message}"
    else:
        return None
    title = shortened(f"RayJob {record.name} {words}")
    return _explained(record, WAITING_RAYJOB, title, Confidence.LIKELY, Evidence(_SOURCE, words, state.at))


def _last_on(record: RayJobRecord, cluster: str) -> tuple[RayJobState | None, RayJobState | None]:
    """The last state in which the RayJob had the cluster, and the one that followed."""
    places = [place for place, state in enumerate(record.states) if not cluster or state.cluster == cluster]
    if not places:
        return None, None
    after = record.states[places[-1] + 1 :]
    return record.states[places[-1]], after[0] if after else None


def _is_suspending(state: RayJobState, after: RayJobState | None) -> bool:
    return any(one.deployment_status in _SUSPENDED for one in (state, after) if one is not None)


def _failure(record: RayJobRecord, reason: str, message: str, at: datetime | None) -> Explanation:
    rule, words = _RULES.get(reason, (FAILED_RAYJOB, "failed"))
    more = "" if rule in _COMPLETE_TITLES else f": {message or reason or 'nobody said why'}"
    said = ": ".join(filter(None, (reason, message))) or FAILED
    title = shortened(f"RayJob {record.name} {words}{more}")
    confidence = Confidence.POSSIBLE if rule == FAILED_RAYJOB else Confidence.CONFIRMED
    return _explained(record, rule, title, confidence, Evidence(_SOURCE, said, at))


def _interruption(record: RayJobRecord, rule: str, words: str, at: datetime, more: str = "") -> Explanation:
    """Somebody asked for it."""
    title = f"RayJob {record.name} {words} before it ended"
    said = Evidence(_SOURCE, f"{title}{more}", at)
    return _explained(record, rule, title, Confidence.CONFIRMED, said, is_intended=True)


def _deletion(record: RayJobRecord) -> Explanation | None:
    at = record.deletion_requested_at or record.deleted_at
    if at is None:
        return None
    is_unseen = record.was_away_at_deletion and record.deletion_requested_at is None
    more = ", at some time while nobody observed it" if is_unseen else ""
    return _interruption(record, "deleted_rayjob", "was deleted", at, more)


def _explained(
    record: RayJobRecord, rule: str, title: str, confidence: Confidence, said: Evidence, *, is_intended: bool = False
) -> Explanation:
    evidence = (said, *_hints(record, said)) if not is_intended else (said,)
    return Explanation(
        title,
        confidence,
        evidence,
        to_ns(said.at),
        subject=record.uid,
        is_intended=is_intended,
        rule=rule,
        who=Who(WhoKind.JOB, record.name),
        basis="Kubernetes says so",
    )


def _hints(record: RayJobRecord, said: Evidence) -> Iterator[Evidence]:
    """What the RayJob waited for before it ever ran, and the last Warnings about it."""
    waits = [state for state in record.states if state.waits_for and not state.job_status]
    if waits and waits[-1].waits_for not in said.text:
        yield Evidence(_SOURCE, f"it waited: {waits[-1].waits_for}", waits[-1].at)
    for event in record.warnings[-_WARNINGS_SHOWN:]:
        yield Evidence("kubernetes", f"{event.reason}: {event.message}", event.at)
