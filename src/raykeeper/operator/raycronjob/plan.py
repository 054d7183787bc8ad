"""What to do about a RayCronJob at a moment. Pure."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from raykeeper.api import labels
from raykeeper.api.meta import JSON
from raykeeper.api.raycronjob import ActiveRayJob, RayCronJob, RayCronJobStatus
from raykeeper.api.rayjob import RAY_JOBS, RayJob
from raykeeper.api.times import parse_time, to_time
from raykeeper.operator.raycronjob.schedule import Schedule
from raykeeper.operator.rayjob.states import COMPLETE, ENDED, SUCCEEDED, VALIDATION_FAILED
from raykeeper.operator.shared.children.metadata import NOT_FOR_CHILDREN
from raykeeper.operator.shared.owner import Owner

MINUTE: Final = timedelta(minutes=1)
MOST_DELETED: Final = 100
"""RayJobs that one pass deletes; another pass follows for the rest, so that no other RayCronJob waits long."""
MOST_LISTED: Final = 1000
"""Names in `status.active`; an object has a largest size."""
OVER: Final = ENDED | {VALIDATION_FAILED}


@dataclass(frozen=True)
class CronPlan:
    """What to replace, then what to create, then what to say, then what to forget, and when to look again.

    What has ended goes last: as long as it is there, it shows for which moment it was made.
    """

    status: RayCronJobStatus
    replace: tuple[RayJob, ...] = ()
    """Still running; deleted before the next is made."""
    create: datetime | None = None
    """The moment of the schedule that a RayJob is made for."""
    forget: tuple[RayJob, ...] = ()
    """Ended, and more than the history limits keep."""
    look_at: datetime | None = None
    skipped: str = ""
    """Why no RayJob is made though one is due."""
    missed: str = ""
    """Which moment it is too late for."""


@dataclass(frozen=True)
class Children:
    """The RayJobs of one RayCronJob."""

    active: Sequence[RayJob] = ()
    successful: Sequence[RayJob] = ()
    failed: Sequence[RayJob] = field(default_factory=tuple)

    @classmethod
    def sorted_out(cls, jobs: Sequence[RayJob]) -> Children:
        """By how they ended, oldest first."""
        active: list[RayJob] = []
        successful: list[RayJob] = []
        failed: list[RayJob] = []
        for job in sorted(jobs, key=lambda job: (job.metadata.creation_timestamp, job.metadata.name)):
            state = job.status.job_deployment_status
            kind = active if state not in OVER else successful if state == COMPLETE else failed
            kind.append(job)
        return cls(active, successful, failed)


def plan(cron: RayCronJob, schedule: Schedule, jobs: Sequence[RayJob], now: datetime) -> CronPlan:
    """At most one RayJob, for the last moment that was missed; none for those before it."""
    children = Children.sorted_out(jobs)
    last = _last_moment(cron, jobs)
    status = _status(cron, children, last)
    forget = tuple(_too_old(cron, children)[:MOST_DELETED])
    rest = now if len(forget) == MOST_DELETED else None
    if cron.spec.suspend:
        return CronPlan(status, forget=forget, look_at=rest)
    following = rest or schedule.after(now)
    due = schedule.latest(last or parse_time(cron.metadata.creation_timestamp) or now, now)
    if due is None:
        return CronPlan(status, forget=forget, look_at=following)
    if _is_too_late(cron, due, now):
        missed = f"It is too late for the RayJob of {to_time(due)}"
        return CronPlan(status, forget=forget, look_at=following, missed=missed)
    if children.active and cron.spec.concurrency_policy == "Forbid":
        running = children.active[0].metadata.name
        return CronPlan(status, forget=forget, look_at=following, skipped=f"RayJob {running} has not ended")
    replace = _not_deleted(children.active) if cron.spec.concurrency_policy == "Replace" else ()
    status = msgspec.structs.replace(status, last_schedule_time=to_time(due))
    return CronPlan(status, replace, due, forget, following)


def _last_moment(cron: RayCronJob, jobs: Sequence[RayJob]) -> datetime | None:
    """The moment a RayJob was last made for, also if the operator was stopped before it could write that down."""
    made = (parse_time(job.metadata.annotations.get(labels.CRONJOB_SCHEDULED_TIMESTAMP)) for job in jobs)
    known = (parse_time(cron.status.last_schedule_time), *made)
    return max((moment.astimezone(UTC) for moment in known if moment is not None), default=None)


def _is_too_late(cron: RayCronJob, due: datetime, now: datetime) -> bool:
    deadline = cron.spec.starting_deadline_seconds
    return deadline is not None and due < now - timedelta(seconds=deadline)


def _not_deleted(jobs: Sequence[RayJob]) -> tuple[RayJob, ...]:
    return tuple(job for job in jobs if job.metadata.deletion_timestamp is None)


def _status(cron: RayCronJob, children: Children, last: datetime | None) -> RayCronJobStatus:
    active = tuple(ActiveRayJob(job.metadata.name, job.metadata.uid) for job in children.active[:MOST_LISTED])
    ends = [job.status.end_time for job in children.successful if job.status.job_status == SUCCEEDED]
    known = [cron.status.last_successful_time] if cron.status.last_successful_time else []
    latest = max([*known, *(end for end in ends if end)], default=None)
    moment = to_time(last) if last else None
    return msgspec.structs.replace(cron.status, active=active, last_successful_time=latest, last_schedule_time=moment)


def _too_old(cron: RayCronJob, children: Children) -> list[RayJob]:
    found: list[RayJob] = []
    for jobs, limit in (
        (children.successful, cron.spec.successful_jobs_history_limit),
        (children.failed, cron.spec.failed_jobs_history_limit),
    ):
        if limit is not None:
            found += _not_deleted(jobs[: max(len(jobs) - limit, 0)])
    return found


def rayjob_name(cron: RayCronJob, schedule: Schedule, due: datetime) -> str:
    """Named after its moment, so that a repeat makes no second one: in minutes as KubeRay does, unless two of its
    moments share a minute.
    """
    following = schedule.after(due)
    is_fine = following is not None and following - due < MINUTE
    return f"{cron.metadata.name}-{int(due.timestamp()) // (1 if is_fine else 60)}"


def desired_rayjob(cron: RayCronJob, template: JSON, name: str, due: datetime) -> JSON:
    """The RayJob for a moment."""
    annotations = {key: value for key, value in cron.metadata.annotations.items() if key not in NOT_FOR_CHILDREN}
    return {
        "apiVersion": RAY_JOBS.api_version,
        "kind": RAY_JOBS.kind,
        "metadata": {
            "name": name,
            "namespace": cron.metadata.namespace,
            "labels": {**cron.metadata.labels, labels.CRONJOB_NAME: cron.metadata.name},
            "annotations": {**annotations, labels.CRONJOB_SCHEDULED_TIMESTAMP: to_time(due.astimezone(UTC))},
            "ownerReferences": [Owner.of(cron).reference()],
        },
        "spec": copy.deepcopy(template),
    }
