"""Makes RayJobs by a time table: read, decide, act, say."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from datetime import datetime
from typing import Final

import msgspec

from raykeeper.api.conditions import find_condition
from raykeeper.api.meta import JSON, Object, ObjectKey
from raykeeper.api.raycronjob import RAY_CRON_JOBS, RayCronJob, RayCronJobSpec, RayCronJobStatus
from raykeeper.api.rayjob import RAY_JOBS, RayJob, RayJobSpec, RayJobStatus
from raykeeper.api.structs import parse_part
from raykeeper.kube.controllers.requeue import Requeue
from raykeeper.kube.errors import NotFound
from raykeeper.operator.context import Context
from raykeeper.operator.kinds import BY_OWNER, WATCHED_RAYCRONJOBS, WATCHED_RAYJOBS
from raykeeper.operator.raycronjob.plan import CronPlan, desired_rayjob, plan, rayjob_name
from raykeeper.operator.raycronjob.schedule import Schedule, parse_schedule
from raykeeper.operator.raycronjob.validation import violations
from raykeeper.operator.raycronjob.zones import parse_zone
from raykeeper.operator.shared.children.apply import ChildWriter, Refusal
from raykeeper.operator.shared.children.drift import Drift
from raykeeper.operator.shared.children.plan import CreateChild
from raykeeper.operator.shared.conditions import Finding, updated
from raykeeper.operator.shared.owner import Owner
from raykeeper.operator.shared.status import StatusWriter
from raykeeper.operator.shared.violations import Violation

NAME = "raycronjob-controller"
READY: Final = "Ready"
STALLED: Final = "Stalled"
SUSPENDED: Final = "Suspended"


def no_drift(_owner: Owner, _desired: JSON, _actual: JSON) -> Drift:
    """A RayJob is made once and then its own."""
    return None


def read_cron(item: Object) -> tuple[RayCronJob, list[Violation]]:
    """The RayCronJob, and what of it cannot be read, such as a spec that the CRD of another version let pass; then that
    part of it is empty, so that it can be spoken of.
    """
    try:
        return RayCronJob.from_object(item), []
    except msgspec.ValidationError as error:
        status, cause = _readable_status(item), str(error)
    spec = RayCronJobSpec(schedule="", job_template=RayJobSpec())
    if status is None:
        return RayCronJob(item.metadata, spec), [Violation("status", "cannot be read", cause, "Status")]
    return RayCronJob(item.metadata, spec, status), [Violation("spec", "cannot be read", cause)]


def _readable_status(item: Object) -> RayCronJobStatus | None:
    try:
        return parse_part(item.status, RayCronJobStatus)
    except msgspec.ValidationError:
        return None


class RayCronJobReconciler:
    """Safe at any time, any number of times, after any crash: RayJobs are named after their moment."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._recorder = context.recorder(NAME)
        self._status = StatusWriter(context.kube, RAY_CRON_JOBS, context.informers.cache(WATCHED_RAYCRONJOBS))
        self._jobs = context.informers.cache(WATCHED_RAYJOBS)
        self._children = ChildWriter(context.kube, self._recorder, no_drift)

    async def __call__(self, key: ObjectKey) -> Requeue:
        item = self._status.current(key)
        if item is None or item.metadata.deletion_timestamp is not None:
            return Requeue.never()
        cron, unreadable = read_cron(item)
        if broken := unreadable or violations(cron, self._context.settings.gates):
            return await self._refuse(cron, item, broken)
        return await self._advance(cron, item)

    async def _advance(self, cron: RayCronJob, item: Object) -> Requeue:
        schedule = parse_schedule(cron.spec.schedule, parse_zone(cron.spec.time_zone))
        taken = plan(cron, schedule, self._children_of(cron), self._context.clock.now())
        self._tell(cron, taken)
        await self._delete(cron, taken.replace)
        if taken.create is not None and (refusal := await self._create(cron, item, schedule, taken.create)):
            await self._say(cron, item, cron.status, [Finding(READY, "False", "FailedToCreateRayJob", str(refusal))])
            raise refusal
        reason = SUSPENDED if cron.spec.suspend else "Scheduled"
        await self._say(cron, item, taken.status, [Finding(READY, "True", reason)])
        await self._delete(cron, taken.forget)
        return Requeue.at(taken.look_at)

    def _children_of(self, cron: RayCronJob) -> list[RayJob]:
        """Its RayJobs, without their specs."""
        found = self._jobs.find(BY_OWNER, cron.metadata.uid)
        return [RayJob(job.metadata, status=parse_part(job.status, RayJobStatus)) for job in found]

    def _tell(self, cron: RayCronJob, taken: CronPlan) -> None:
        """What does not happen, and why."""
        ref = Owner.of(cron).ref()
        if taken.skipped:
            self._recorder.normal(ref, "JobAlreadyActive", taken.skipped, action="Schedule")
        if taken.missed:
            self._recorder.warning(ref, "MissSchedule", taken.missed, action="Schedule")
        ready = find_condition(cron.status.conditions, READY)
        if cron.spec.suspend and (ready is None or ready.reason != SUSPENDED):
            self._recorder.normal(ref, "SuspendedRayCronJob", "No RayJobs are made while suspended", action="Schedule")

    async def _create(self, cron: RayCronJob, item: Object, schedule: Schedule, due: datetime) -> Refusal | None:
        """Make the RayJob of a moment; why that was refused, if it was."""
        template = msgspec.json.decode(item.spec)["jobTemplate"]
        body = desired_rayjob(cron, template, rayjob_name(cron, schedule, due), due)
        ledger = await self._children.apply(Owner.of(cron), [CreateChild(body)])
        return ledger.refusals[0] if ledger.refusals else None

    async def _delete(self, cron: RayCronJob, jobs: Sequence[RayJob]) -> None:
        for job in jobs:
            with contextlib.suppress(NotFound):
                await self._context.kube.delete(RAY_JOBS, job.key, uid=job.metadata.uid)
                note = f"Deleted RayJob {job.metadata.name}"
                self._recorder.normal(Owner.of(cron).ref(), "DeletedRayJob", note, action="Delete")

    async def _refuse(self, cron: RayCronJob, item: Object, broken: Sequence[Violation]) -> Requeue:
        """Say what is wrong and make nothing until the spec changes."""
        message, reason = "; ".join(map(str, broken)), broken[0].reason(RAY_CRON_JOBS.kind)
        self._recorder.warning(Owner.of(cron).ref(), reason, message, action="Validate")
        if broken[0].part == "Status":  # writing would wipe what it says about the moments that were
            return Requeue.never()
        findings = [Finding(READY, "False", reason, message), Finding(STALLED, "True", reason, message)]
        await self._say(cron, item, cron.status, findings)
        return Requeue.never()

    async def _say(self, cron: RayCronJob, item: Object, status: RayCronJobStatus, findings: list[Finding]) -> None:
        generation, now = cron.metadata.generation, self._context.clock.now()
        conditions = updated(cron.status.conditions, findings, {READY, STALLED}, generation, now)
        said = msgspec.structs.replace(status, conditions=conditions, observed_generation=generation)
        await self._status.write(item, cron.status, said)
