"""Moves one RayJob on: read, decide, act, say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from raykeeper.api import labels
from raykeeper.api.meta import JSON, Object, ObjectKey
from raykeeper.api.rayjob import RAY_JOBS, RayJob, RayJobStatus
from raykeeper.api.structs import parse_part
from raykeeper.kube.controllers.requeue import Requeue
from raykeeper.operator.context import Context
from raykeeper.operator.kinds import WATCHED_RAYJOBS
from raykeeper.operator.rayjob.apply import Actor, NotDone, SubmissionRefused
from raykeeper.operator.rayjob.conditions import with_conditions
from raykeeper.operator.rayjob.facts import (
    Step,
)
from raykeeper.operator.rayjob.gang import AT_REST
from raykeeper.operator.rayjob.machine import last_actions, step
from raykeeper.operator.rayjob.observe import Observed, Observer
from raykeeper.operator.rayjob.retries import failed_status
from raykeeper.operator.rayjob.states import (
    COMPLETE,
    ENDED,
    FAILED,
    RETRYING,
    UNSTARTED,
    VALIDATION_FAILED,
    WITH_CLUSTER,
    Reason,
)
from raykeeper.operator.rayjob.validation import violations
from raykeeper.operator.shared.finalizers import remove_finalizer
from raykeeper.operator.shared.history import History
from raykeeper.operator.shared.history_of_owners import OwnersHistory
from raykeeper.operator.shared.owner import Owner
from raykeeper.operator.shared.status import StatusWriter
from raykeeper.operator.shared.troubles import Trouble
from raykeeper.operator.shared.violations import Violation

NAME = "rayjob-controller"
SELECTED_SECONDS = 3.0
"""How often a job on another's cluster is looked at: changes of that cluster do not name the job."""


EDITED: Final = (
    "the spec was edited; the present attempt keeps the entrypoint, the runtime environment and the cluster "
    "that it was started with"
)


class RayJobReconciler:
    """Safe at any time, any number of times, after any crash."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._recorder = context.recorder(NAME)
        self._status = StatusWriter(context.kube, RAY_JOBS, context.informers.cache(WATCHED_RAYJOBS))
        self._observer = Observer(context)
        self._actor = Actor(context, self._recorder, self._observer.remember)
        self._history = OwnersHistory(context.kube, self._recorder, History(context.settings.history))

    async def __call__(self, key: ObjectKey) -> Requeue:
        item = self._status.current(key)
        if item is None:
            self._observer.forget(key)
            return Requeue.never()
        try:
            job = RayJob.from_object(item)
        except msgspec.ValidationError as error:
            return await self._refuse_unreadable(item, str(error))
        if job.spec.managed_by not in (None, "", labels.MANAGED_BY_KUBERAY):
            self._observer.forget(key)
            return Requeue.never()
        observed = self._observer.observe(job)
        if job.metadata.deletion_timestamp is not None:
            return await self._say_goodbye(job, observed)
        broken = self._violations(job)
        if broken and job.status.job_deployment_status in UNSTARTED:
            return await self._refuse(job, item, broken)
        return await self._advance(job, item, observed, broken)

    def _violations(self, job: RayJob) -> list[Violation]:
        found = violations(job, self._context.settings.gates)
        return [*found, *self._context.scheduler.violations(Owner.of(job))]

    async def _advance(self, job: RayJob, item: Object, observed: Observed, broken: Sequence[Violation]) -> Requeue:
        """One step of the job's life. A spec that was edited into nonsense does not stop what runs."""
        invalid = self._warn(job, broken) if broken else ""
        known = _without_suspension(job) if broken else job
        now = self._context.clock.now()
        taken = step(known, observed.facts, now)
        for warning in taken.warnings:
            self._recorder.warning(Owner.of(job).ref(), warning.reason, warning.message, action="Reconcile")
        state = taken.status.job_deployment_status
        try:
            if state not in AT_REST:
                await self._actor.keep_gang(job, observed, state)
            await self._actor.apply(job, _spec(item), observed, taken.actions)
            await self._history.pass_on(Owner.of(job), filter(None, [observed.cluster]))
        except SubmissionRefused as error:
            status = failed_status(job, job.status, Reason.SUBMISSION_FAILED, str(error), now)
            taken = Step(status, look_at=now)
        except NotDone as error:
            await self._say(job, item, Step(job.status, trouble=Trouble("Refused", str(error))), invalid)
            raise
        await self._say(job, item, taken, invalid)
        self._tell_edit(job, taken.status)
        self._tell_end(job, taken.status)
        if state in AT_REST:  # what is refused here holds up nothing
            await self._actor.keep_gang(job, observed, state)
        return self._next_look(job, taken)

    def _tell_edit(self, job: RayJob, status: RayJobStatus) -> None:
        """That an edit does not reach the attempt that runs, which nobody would see otherwise."""
        is_edited = job.metadata.generation != job.status.observed_generation
        state = status.job_deployment_status
        if is_edited and state in WITH_CLUSTER and state == job.status.job_deployment_status:
            self._recorder.normal(Owner.of(job).ref(), "SpecChanged", EDITED, action="Run")

    def _tell_end(self, job: RayJob, status: RayJobStatus) -> None:
        """How an attempt ended, as an Event: it outlives the status of a RayJob that is tried again or deleted."""
        state, ref = status.job_deployment_status, Owner.of(job).ref()
        if state == job.status.job_deployment_status:
            return
        if state in (FAILED, RETRYING):
            self._recorder.warning(ref, status.reason, status.message, action="Run")
        elif state == COMPLETE:
            self._recorder.normal(ref, COMPLETE, f"Ray says {status.job_status}", action="Run")

    async def _say(self, job: RayJob, item: Object, taken: Step, invalid: str) -> None:
        now = self._context.clock.now()
        status = with_conditions(job, taken.status, taken.trouble, invalid, now)
        spec = None if job.spec.cluster_selector else job.spec.ray_cluster_spec
        status = self._history.told(Owner.of(job), spec, status, job.metadata.generation, now)
        history = self._context.settings.history.server_url
        url = f"{history}/rayjobs/{job.metadata.namespace}/{job.metadata.name}" if history else ""
        await self._status.write(item, job.status, msgspec.structs.replace(status, history_url=url))

    def _next_look(self, job: RayJob, taken: Step) -> Requeue:
        is_over = taken.status.job_deployment_status in ENDED
        if job.spec.cluster_selector and not is_over and taken.look_at != self._context.clock.now():
            return Requeue.after(SELECTED_SECONDS)
        return Requeue.at(taken.look_at)

    async def _say_goodbye(self, job: RayJob, observed: Observed) -> Requeue:
        """Stop the Ray job, once and without waiting for it; then the RayJob may go, and its children with it."""
        if labels.RAYJOB_FINALIZER in job.metadata.finalizers:
            if last_actions(job, observed.facts):
                await self._actor.stop(observed, job.status.job_id)
            await remove_finalizer(self._context.kube, RAY_JOBS, job.metadata, labels.RAYJOB_FINALIZER)
        self._observer.forget(job.key)
        return Requeue.never()

    async def _refuse(self, job: RayJob, item: Object, broken: Sequence[Violation]) -> Requeue:
        """Say what is wrong and make nothing until the spec changes."""
        message = self._warn(job, broken)
        status = msgspec.structs.replace(
            job.status, job_deployment_status=VALIDATION_FAILED, reason=Reason.VALIDATION_FAILED.value, message=message
        )
        await self._say(job, item, Step(status), "")
        return Requeue.never()

    def _warn(self, job: RayJob, broken: Sequence[Violation]) -> str:
        message = "; ".join(map(str, broken))
        self._recorder.warning(Owner.of(job).ref(), broken[0].reason(RAY_JOBS.kind), message, action="Validate")
        return message

    async def _refuse_unreadable(self, item: Object, cause: str) -> Requeue:
        """A spec that the CRD of another version let pass; at most its status can be read."""
        status = _readable_status(item)
        job = RayJob(item.metadata, status=status or RayJobStatus())
        if item.metadata.deletion_timestamp is not None:
            return await self._say_goodbye(job, self._observer.observe(job))
        if status is None:  # how far the job is cannot be told, so nothing is begun anew
            self._warn(job, [Violation("status", "cannot be read", cause, "Status")])
            return Requeue.never()
        broken = [Violation("spec", "cannot be read", cause)]
        if status.job_deployment_status in UNSTARTED:
            return await self._refuse(job, item, broken)
        message = self._warn(job, broken)
        await self._say(job, item, Step(status, trouble=Trouble("InvalidSpec", message)), message)
        return Requeue.never()


def _readable_status(item: Object) -> RayJobStatus | None:
    try:
        return parse_part(item.status, RayJobStatus)
    except msgspec.ValidationError:
        return None


def _without_suspension(job: RayJob) -> RayJob:
    """The job as it goes on though its spec is wrong: nothing is torn down for a spec that makes no sense."""
    return msgspec.structs.replace(job, spec=msgspec.structs.replace(job.spec, suspend=False))


def _spec(item: Object) -> JSON:
    """The spec as the user wrote it."""
    found: JSON = msgspec.json.decode(item.spec or b"{}")
    return found
