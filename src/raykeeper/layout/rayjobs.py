"""What became of a RayJob, in one object that grows up to a bound. Pure: the record, and how two of them are one.

A RayJob outlives its clusters and may never get one, so its record stands beside theirs. Whoever sees a RayJob makes a
record with one state; merged with what is stored, it is its history.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import ClassVar, Final, TypeVar

import msgspec

from raykeeper.layout.kube_facts import EventFact
from raykeeper.layout.records import MIB, Record

T = TypeVar("T")

FIRST_STATES: Final = 10
LAST_STATES: Final = 50
"""A retry has some six states; of what lies between the first and the last ones only the number is kept."""
MOST_CLUSTERS: Final = 50
MOST_ATTEMPTS: Final = 50
MOST_WARNINGS: Final = 10

COMPLETE: Final = "Complete"
FAILED: Final = "Failed"
_ENDS: Final = frozenset({COMPLETE, FAILED})
_WITH_CLUSTER: Final = frozenset({"Waiting", "Running", COMPLETE})


class RayJobState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The RayJob's status from this moment on, until the next one."""

    at: datetime
    """When the observer saw it."""
    deployment_status: str = ""
    """`jobDeploymentStatus`: `Initializing` to `Complete` or `Failed`."""
    job_status: str = ""
    """What Ray said."""
    job_id: str = ""
    """Submission id of the Ray job."""
    cluster: str = ""
    """Name of the RayCluster."""
    reason: str = ""
    message: str = ""
    waits_for: str = ""
    """What it waits for, as conditions or the cluster's status say: an image, quota, a node."""
    suspend: bool = False
    failed: int = 0
    """Attempts that failed so far."""
    started_at: datetime | None = None
    ended_at: datetime | None = None

    @property
    def is_end(self) -> bool:
        return self.deployment_status in _ENDS


class RayJobAttempt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An attempt that failed and was followed by another."""

    cluster: str = ""
    job_id: str = ""
    reason: str = ""
    message: str = ""
    started_at: datetime | None = None
    ended_at: datetime | None = None


class RayJobRecord(Record, frozen=True, kw_only=True, omit_defaults=True):
    """One RayJob (one uid)."""

    limit_bytes: ClassVar[int] = 4 * MIB
    """60 states with the longest messages are below 1 MB."""
    namespace: str
    name: str
    uid: str
    owner: str = ""
    """Name of the RayCronJob that made it."""
    created_at: datetime | None = None
    is_on_selected_cluster: bool = False
    """It runs on a cluster of somebody else (`clusterSelector`)."""
    states: tuple[RayJobState, ...] = ()
    """By time."""
    states_left_out: int = 0
    """Between the first and the last ones."""
    attempts: tuple[RayJobAttempt, ...] = ()
    """Those that failed before the present one, oldest first."""
    clusters: tuple[str, ...] = ()
    """Every RayCluster it had, oldest first."""
    warnings: tuple[EventFact, ...] = ()
    """The newest Warning Events about it."""
    deletion_requested_at: datetime | None = None
    deleted_at: datetime | None = None
    """When it was found to be gone."""
    was_away_at_deletion: bool = False
    """Nobody observed when it was deleted, so it was some time before `deleted_at`."""

    @property
    def last(self) -> RayJobState | None:
        return self.states[-1] if self.states else None

    @property
    def is_final(self) -> bool:
        """Nothing more will become of it."""
        return self.deleted_at is not None or (self.last is not None and self.last.is_end)

    @property
    def has_run(self) -> bool:
        """A cluster was ready for it, at least once."""
        return any(state.job_status or state.deployment_status in _WITH_CLUSTER for state in self.states)

    @property
    def job_ids(self) -> tuple[str, ...]:
        """Submission ids of its Ray jobs, newest first."""
        told = [*(one.job_id for one in self.attempts), *(one.job_id for one in self.states)]
        return tuple(dict.fromkeys(id_ for id_ in reversed(told) if id_))


def merged_rayjob(before: RayJobRecord | None, after: RayJobRecord) -> RayJobRecord:
    """One record of two: what was known, and what was seen later. Seeing the same again changes nothing."""
    if before is None:
        return after
    states, left_out = _bounded(_joined(before.states, after.states))
    return msgspec.structs.replace(
        after,
        owner=after.owner or before.owner,
        created_at=after.created_at or before.created_at,
        is_on_selected_cluster=after.is_on_selected_cluster or before.is_on_selected_cluster,
        states=states,
        states_left_out=before.states_left_out + after.states_left_out + left_out,
        attempts=_unique([*before.attempts, *after.attempts])[-MOST_ATTEMPTS:],
        clusters=_unique([*before.clusters, *after.clusters])[-MOST_CLUSTERS:],
        warnings=_newest_warnings([*before.warnings, *after.warnings]),
        deletion_requested_at=after.deletion_requested_at or before.deletion_requested_at,
        deleted_at=before.deleted_at or after.deleted_at,
        was_away_at_deletion=(before if before.deleted_at else after).was_away_at_deletion,
    )


def says_the_same_state(before: RayJobState | None, after: RayJobState) -> bool:
    """Whether only the time of looking differs."""
    return before is not None and msgspec.structs.replace(before, at=after.at) == after


def _joined(before: Iterable[RayJobState], after: Iterable[RayJobState]) -> list[RayJobState]:
    joined = list(before)
    for state in after:
        if not says_the_same_state(joined[-1] if joined else None, state):
            joined.append(state)
    return joined


def _bounded(states: list[RayJobState]) -> tuple[tuple[RayJobState, ...], int]:
    surplus = max(0, len(states) - FIRST_STATES - LAST_STATES)
    kept = states if not surplus else [*states[:FIRST_STATES], *states[-LAST_STATES:]]
    return tuple(kept), surplus


def _unique(items: Iterable[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(items))


def _newest_warnings(events: Iterable[EventFact]) -> tuple[EventFact, ...]:
    newest: dict[str, EventFact] = {}
    for event in events:
        known = newest.get(event.uid)
        if known is None or (event.count, event.at) > (known.count, known.at):
            newest[event.uid] = event
    return tuple(sorted(newest.values(), key=lambda event: (event.at, event.uid)))[-MOST_WARNINGS:]
