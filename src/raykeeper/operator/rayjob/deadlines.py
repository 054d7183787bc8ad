"""How long an attempt may take. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

from raykeeper.api.rayjob import RayJob
from raykeeper.api.times import parse_time
from raykeeper.operator.rayjob.states import INITIALIZING, WAITING, Reason


def deadlines(job: RayJob) -> dict[Reason, datetime]:
    """The moments at which the present attempt fails, whatever becomes of it until then, by the reason."""
    start = parse_time(job.status.start_time)
    if start is None:
        return {}
    found: dict[Reason, datetime] = {}
    spec = job.spec
    if spec.active_deadline_seconds is not None and spec.active_deadline_seconds > 0:
        found[Reason.DEADLINE_EXCEEDED] = start + timedelta(seconds=spec.active_deadline_seconds)
    is_before_running = job.status.job_deployment_status in (INITIALIZING, WAITING)
    if is_before_running and spec.pre_running_deadline_seconds is not None and spec.pre_running_deadline_seconds > 0:
        found[Reason.PRE_RUNNING_DEADLINE_EXCEEDED] = start + timedelta(seconds=spec.pre_running_deadline_seconds)
    return found


def missed_deadline(job: RayJob, now: datetime) -> Reason | None:
    """The deadline that has passed; of two, the one for the whole job."""
    return next((reason for reason, moment in deadlines(job).items() if now >= moment), None)


def next_deadline(job: RayJob, now: datetime) -> datetime | None:
    """The next one to come."""
    return min((moment for moment in deadlines(job).values() if moment > now), default=None)


DEADLINE_FIELDS = {
    Reason.DEADLINE_EXCEEDED: "activeDeadlineSeconds",
    Reason.PRE_RUNNING_DEADLINE_EXCEEDED: "preRunningDeadlineSeconds",
}
