"""Failures that somebody asked for: jobs that ended over open tasks, cancelled tasks, killed actors."""

from __future__ import annotations

from raykeeper.history.report.failures import FailureSet
from raykeeper.history.report.model import Evidence, JobOutcome, Sureness
from raykeeper.history.report.rules.starting import is_waiting
from raykeeper.history.report.situation import Explanation, Situation, moment

_JOB_IS_OVER = "job has finished"
_RETURNED = ("requested to be destroyed when it is returned", "receives a SIGTERM")
"""What Ray says of a worker that it ended itself, because the driver that had it was gone."""
_LEFT = "exit_actor() is called"
_REASONS = {
    "RAY_KILL": "the actor was killed by `ray.kill`",
    "OUT_OF_SCOPE": "nothing referred to the actor any more",
    "REF_DELETED": "nothing referred to the actor any more",
    "OWNER_DIED": "the actor ended with its owner",
}
"""Of an actor's death, as Ray's `ActorDiedErrorContext` names them."""


def ended_with_job(failed: FailureSet, situation: Situation) -> Explanation | None:
    """The driver ended while these were open; Ray marks them as failed."""
    if not were_open_at_end(failed):
        return None
    job = situation.jobs_by_id.get(failed.first.job_id)
    said = f"job {job.submission_id or job.job_id} is {job.status}" if job else "its driver ended"
    evidence = [Evidence("job", said, job.ended_at if job else None)]
    if failed.first.exit_detail:
        evidence.append(Evidence("worker", failed.first.exit_detail, moment(failed.first.worker_end_ns)))
    return Explanation(
        _ended_title(job),
        Sureness.CERTAIN,
        tuple(evidence),
        failed.first_ns,
        subject=failed.first.job_id,
        is_intended=True,
    )


def were_open_at_end(failed: FailureSet) -> bool:
    """Whether the end of their job is all that ended them."""
    detail = failed.first.exit_detail or failed.first.message
    ended_by_ray = _JOB_IS_OVER in detail or all(mark in detail for mark in _RETURNED)
    return failed.job_ends == failed.failures or ended_by_ray or is_waiting(failed)


def _ended_title(job: JobOutcome | None) -> str:
    if job is not None and job.status == "STOPPED":
        return "the job was stopped by its user while tasks ran"
    return "the job ended while tasks were open"


def cancelled(failed: FailureSet, _: Situation) -> Explanation | None:
    if failed.error_type != "TASK_CANCELLED":
        return None
    evidence = (Evidence("task", failed.first.message or "TASK_CANCELLED", moment(failed.first_ns)),)
    title = f"{failed.first.function or 'a task'} was cancelled"
    return Explanation(title, Sureness.CERTAIN, evidence, failed.first_ns, is_intended=True)


def ended_actor(failed: FailureSet, _: Situation) -> Explanation | None:
    """The actor was ended by the program itself; its open calls failed of it."""
    context = failed.first.actor_end
    is_own_wish = _LEFT in str(context.get("errorMessage"))
    said = "the actor ended itself by `exit_actor`" if is_own_wish else _REASONS.get(str(context.get("reason")))
    if failed.error_type not in ("ACTOR_DIED", "WORKER_DIED") or said is None:
        return None
    evidence = (Evidence("actor", str(context.get("errorMessage", said)), moment(failed.first.actor_end_ns)),)
    at_ns = failed.first_ns if failed.first.actor_end_ns is None else min(failed.first.actor_end_ns, failed.first_ns)
    return Explanation(said, Sureness.CERTAIN, evidence, at_ns, subject=failed.first.actor_id or "", is_intended=True)
