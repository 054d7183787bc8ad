"""Failures that somebody asked for: jobs that ended over open tasks, cancelled tasks, killed actors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from raykeeper.history.report.failures import FailureSet
from raykeeper.history.report.input import Explanation, ReportInput
from raykeeper.history.report.model import Confidence, Evidence, JobOutcome
from raykeeper.history.report.rules.start import is_waiting
from raykeeper.times import NS, from_ns

_JOB_IS_OVER = "job has finished"
_OF_ENDED_ACTORS = ("ACTOR_DIED", "WORKER_DIED")
_AT_ONCE_NS = 2 * NS
_RETURNED = ("requested to be destroyed when it is returned", "receives a SIGTERM")
"""What Ray says of a worker that it ended itself, because the driver that had it was gone."""
_LEFT = "exit_actor() is called"
CANCELLED = "Ray says that it was cancelled"
STOPPED = "Ray says that its user stopped the job"
_INTENDED_EXIT = "Worker exit type: INTENDED_"
_REASONS = {
    "RAY_KILL": "the actor was killed by `ray.kill`",
    "OUT_OF_SCOPE": "nothing referred to the actor any more",
    "REF_DELETED": "nothing referred to the actor any more",
    "OWNER_DIED": "the actor ended with its owner",
}
"""Of an actor's death, as Ray's `ActorDiedErrorContext` names them."""


def ended_with_job(failed: FailureSet, report_input: ReportInput) -> Explanation | None:
    """The driver ended while these were open; Ray marks them as failed."""
    if not were_open_at_end(failed):
        return None
    job = report_input.jobs_by_id.get(failed.first.job_id)
    said = f"job {job.submission_id or job.job_id} is {job.status}" if job else "its driver ended"
    evidence = [Evidence("job", said, job.ended_at if job else None)]
    if failed.first.exit_detail:
        at = from_ns(failed.first.worker_end_ns)
        evidence.append(Evidence("worker", failed.first.exit_detail, at, failed.first.address))
    is_told = _were_ended_by_ray(failed)
    return Explanation(
        _ended_title(job),
        Confidence.CONFIRMED if is_told else Confidence.LIKELY,
        tuple(evidence),
        failed.first_ns,
        subject=failed.first.job_id,
        is_intended=True,
        basis=_basis(job) if is_told else "they waited for a node until their job ended",
    )


def were_open_at_end(failed: FailureSet) -> bool:
    """Whether the end of their job is all that ended them."""
    return _were_ended_by_ray(failed) or is_waiting(failed)


def _were_ended_by_ray(failed: FailureSet) -> bool:
    detail = failed.first.exit_detail or failed.first.message
    return failed.job_ends == failed.failures or is_ended_by_ray(detail)


def is_ended_by_ray(detail: str) -> bool:
    """Whether Ray itself ended a worker because its job or its driver was gone."""
    return _JOB_IS_OVER in detail or all(mark in detail for mark in _RETURNED)


def _ended_title(job: JobOutcome | None) -> str:
    if job is not None and job.status == "STOPPED":
        return "the job was stopped by its user while tasks ran"
    return "the job ended while tasks were open"


def _basis(job: JobOutcome | None) -> str:
    return STOPPED if job is not None and job.status == "STOPPED" else "Ray says that their job was over"


def cancelled(failed: FailureSet, _: ReportInput) -> Explanation | None:
    if failed.error_type != "TASK_CANCELLED":
        return None
    first = failed.first
    evidence = (Evidence("task", first.message or "TASK_CANCELLED", from_ns(failed.first_ns), first.address),)
    title = f"{first.function or 'a task'} was cancelled"
    return Explanation(
        title, Confidence.CONFIRMED, evidence, failed.first_ns, is_intended=True, who=first.who, basis=CANCELLED
    )


def ended_actor(failed: FailureSet, _: ReportInput) -> Explanation | None:
    """The actor was ended by the program itself; its open calls failed of it."""
    context = failed.first.actor_end
    said = was_asked_for(context)
    if not said or not (failed.error_type in _OF_ENDED_ACTORS or _is_cut_by_end(failed)):
        return None
    words, at = str(context.get("errorMessage", said)), from_ns(failed.first.actor_end_ns)
    evidence = (Evidence("actor", words, at, failed.first.address),)
    at_ns = failed.first_ns if failed.first.actor_end_ns is None else min(failed.first.actor_end_ns, failed.first_ns)
    return Explanation(
        said,
        Confidence.CONFIRMED,
        evidence,
        at_ns,
        subject=failed.first.actor_id or "",
        is_intended=True,
        basis="Ray says how the actor was ended",
    )


def _is_cut_by_end(failed: FailureSet) -> bool:
    """Whether a call lost its actor when that was ended, as far as anybody told. An actor may also have crashed under a
    call, been started again and been ended much later.
    """
    end_ns = failed.first.actor_end_ns
    is_untold = failed.error_type == "ACTOR_UNAVAILABLE" and failed.first.exit_type is None
    return is_untold and end_ns is not None and failed.first_ns >= end_ns - _AT_ONCE_NS


def was_asked_for(context: Mapping[str, Any]) -> str:
    """How an actor's end was asked for, by Ray's context of its death; empty where it was not."""
    said = str(context.get("errorMessage"))
    if _LEFT in said:
        return "the actor ended itself by `exit_actor`"
    if _INTENDED_EXIT in said:
        return "the actor was ended by its program"
    return _REASONS.get(str(context.get("reason")), "")
