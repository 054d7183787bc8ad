"""Why a job itself ended as it did: from its own status and message, and from the failures of its tasks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from raykeeper.history.report.failures import FailureSet
from raykeeper.history.report.fingerprint import digest, headline, title_of
from raykeeper.history.report.model import Evidence, JobOutcome, Sureness
from raykeeper.history.report.rules.asked_for import were_open_at_end
from raykeeper.history.report.situation import Explanation, Situation

_ENVIRONMENT = "RUNTIME_ENV_SETUP_FAILURE"
_NOT_STARTED = {
    "JOB_SUPERVISOR_ACTOR_START_TIMEOUT": "the job's driver was not started in time",
    "JOB_SUPERVISOR_ACTOR_START_FAILURE": "the job's driver could not be started",
    "JOB_SUPERVISOR_ACTOR_UNSCHEDULABLE": "no node could run the job's driver",
    "JOB_ENTRYPOINT_COMMAND_START_ERROR": "the entrypoint could not be started",
}
_DIED = {
    "JOB_SUPERVISOR_ACTOR_DIED": "the process that watched the driver died",
    "JOB_SUPERVISOR_ACTOR_UNKNOWN_FAILURE": "the process that watched the driver failed",
}
_MESSAGE_CHARS, _TITLE_CHARS = 4000, 240


@dataclass(frozen=True)
class JobExplanation:
    """Why one job ended."""

    rule: str
    job: JobOutcome
    explanation: Explanation


def explain_jobs(situation: Situation) -> Iterator[JobExplanation]:
    """Every job that failed or was stopped, with the first rule that knows why."""
    for job in situation.jobs:
        for rule in JOB_RULES:
            found = rule(job, situation)
            if found is not None:
                yield JobExplanation(rule.__name__, job, found)
                break


def stopped_job(job: JobOutcome, situation: Situation) -> Explanation | None:
    if job.status != "STOPPED":
        return None
    cut = next((one.id for one in situation.sets if one.first.job_id == job.job_id and were_open_at_end(one)), None)
    return Explanation(
        f"job {_name(job)} was stopped by its user",
        Sureness.CERTAIN,
        (_words(job),),
        _ns(job.ended_at),
        because_of=cut,
        subject=_name(job),
        is_intended=True,
    )


def failed_job_environment(job: JobOutcome, _: Situation) -> Explanation | None:
    if job.status != "FAILED" or job.error_type != _ENVIRONMENT:
        return None
    said = f"the runtime environment of job {_name(job)} failed: {headline(job.message or '')[:_TITLE_CHARS]}"
    return Explanation(said, Sureness.CERTAIN, (_words(job),), _ns(job.started_at), subject=_name(job))


def unstarted_driver(job: JobOutcome, _: Situation) -> Explanation | None:
    said = _NOT_STARTED.get(job.error_type or "")
    if job.status != "FAILED" or said is None:
        return None
    return Explanation(
        f"{said} ({_name(job)})", Sureness.CERTAIN, (_words(job),), _ns(job.ended_at), subject=_name(job)
    )


def failed_task_of_job(job: JobOutcome, situation: Situation) -> Explanation | None:
    """The exception that ended the driver is one that a task of it had failed with."""
    title = title_of(digest(_last_words(job)))
    if job.status != "FAILED" or not title:
        return None
    own = [one for one in situation.sets if one.first.job_id == job.job_id and one.title == title]
    root = min(own, key=lambda one: (one.first_ns, one.id), default=None)
    if root is None:
        return None
    return Explanation(root.title, Sureness.CERTAIN, (_words(job),), root.first_ns, because_of=root.id)


def failed_entrypoint(job: JobOutcome, _: Situation) -> Explanation | None:
    """The driver raised an exception of its own, or left with an exit code."""
    if job.status != "FAILED" or job.exit_code is None:
        return None
    raised = f": {headline(_last_words(job))}" if _last_words(job) else ""
    said = f"the entrypoint of job {_name(job)} exited with code {job.exit_code}{raised}"
    return Explanation(said, Sureness.CERTAIN, (_words(job),), _ns(job.ended_at), subject=_name(job))


def dead_supervisor(job: JobOutcome, situation: Situation) -> Explanation | None:
    """It goes with the node it ran on; where a node is known to be lost, that is why."""
    said = _DIED.get(job.error_type or "", "the job failed")
    if job.status != "FAILED":
        return None
    lost: FailureSet | None = next((one for one in situation.sets if one.lost_nodes), None)
    if lost is not None:
        return Explanation(said, Sureness.LIKELY, (_words(job),), lost.first_ns, because_of=lost.id)
    return Explanation(f"{said} ({_name(job)})", Sureness.GUESS, (_words(job),), _ns(job.ended_at), subject=_name(job))


JOB_RULES = (
    stopped_job,
    failed_job_environment,
    unstarted_driver,
    failed_task_of_job,
    failed_entrypoint,
    dead_supervisor,
)
"""The first that answers is believed; a new one stands before those that are less sure."""


def _name(job: JobOutcome) -> str:
    return job.submission_id or job.job_id or "of no name"


def _words(job: JobOutcome) -> Evidence:
    """The end of its message: Ray puts the last lines of the driver's log there."""
    return Evidence("job", (job.message or job.status)[-_MESSAGE_CHARS:], job.ended_at)


def _last_words(job: JobOutcome) -> str:
    """The traceback at the end of the driver's log, if that is how it ended."""
    _, mark, trace = (job.message or "").rpartition("Traceback (most recent call last):")
    return trace if mark else ""


def _ns(time: datetime | None) -> int | None:
    return None if time is None else int(time.timestamp() * 1000) * 1_000_000
