"""Why a job itself ended as it did: from its own status and message, and from the failures of its tasks."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import dataclass

from raykeeper.history.report.capacity import in_words
from raykeeper.history.report.fingerprint import innermost_function
from raykeeper.history.report.model import Evidence, JobOutcome, Sureness
from raykeeper.history.report.rules.asked_for import were_open_at_end
from raykeeper.history.report.rules.drivers import failure_behind, is_of_job, last_line, raised_by_driver, telling_words
from raykeeper.history.report.rules.kubernetes import job_with_lost_pod
from raykeeper.history.report.rules.memory import job_out_of_memory, out_of_memory
from raykeeper.history.report.rules.rayexceptions import TIMED_OUT, named_in
from raykeeper.history.report.rules.starting import environment_words, never_scheduled
from raykeeper.history.report.rules.table import explain
from raykeeper.history.report.situation import Explanation, Situation, to_ns
from raykeeper.history.report.wording import shortened

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
_MESSAGE_CHARS = 4000
_CANCELLED = "ray.exceptions.TaskCancelledError"
_TIMEOUT_CODE = 124  # of coreutils' `timeout`
_SHELL_SIGNALS = 128
_BUNDLES_SHOWN = 3


@dataclass(frozen=True)
class JobExplanation:
    """Why one job ended."""

    rule: str
    job: JobOutcome
    explanation: Explanation


def explain_jobs(situation: Situation) -> Iterator[JobExplanation]:
    """Every job that failed or was stopped, with the first rule that knows why; none that went with the cluster."""
    for job in situation.jobs:
        if job.is_cut_off:
            continue
        for rule in JOB_RULES:
            found = rule(job, situation)
            if found is not None:
                yield JobExplanation(found.rule or rule.__name__, job, found)
                break


def stalled_job(job: JobOutcome, situation: Situation) -> Explanation | None:
    """Somebody lost patience: the job was stopped, killed or timed out while tasks waited for what never came."""
    is_given_up = job.status == "STOPPED" or is_out_of_time(job) or _signal_of(job.exit_code) is not None
    own = [one for one in situation.sets if is_of_job(one, job)] if is_given_up else []
    root = next((one for one in own if explain(one, situation)[0] == never_scheduled.__name__), None)
    if root is None:
        return None
    evidence = (_end_of(job), _words(job))
    return Explanation(root.title, Sureness.LIKELY, evidence, root.first_ns, because_of=root.id)


def _end_of(job: JobOutcome) -> Evidence:
    said = f"job {_name(job)} is {job.status}" if job.exit_code is None else f"exit code {job.exit_code}"
    return Evidence("job", f"{said}: {job.entrypoint}", job.ended_at)


def stopped_job(job: JobOutcome, situation: Situation) -> Explanation | None:
    if job.status != "STOPPED":
        return None
    cut = next((one.id for one in situation.sets if is_of_job(one, job) and were_open_at_end(one)), None)
    return Explanation(
        f"job {_name(job)} was stopped by its user",
        Sureness.CERTAIN,
        (_words(job),),
        to_ns(job.ended_at),
        because_of=cut,
        subject=_name(job),
        is_intended=True,
    )


def failed_job_environment(job: JobOutcome, _: Situation) -> Explanation | None:
    if job.status != "FAILED" or job.error_type != _ENVIRONMENT:
        return None
    said = f"the runtime environment of job {_name(job)} failed: {environment_words(job.message or '')}"
    return Explanation(said, Sureness.CERTAIN, (_words(job),), to_ns(job.started_at), subject=_name(job))


def unstarted_driver(job: JobOutcome, _: Situation) -> Explanation | None:
    said = _NOT_STARTED.get(job.error_type or "")
    if job.status != "FAILED" or said is None:
        return None
    return Explanation(
        f"{said} ({_name(job)})", Sureness.CERTAIN, (_words(job),), to_ns(job.ended_at), subject=_name(job)
    )


def failed_task_of_job(job: JobOutcome, situation: Situation) -> Explanation | None:
    """What ended the driver is what a task of it had failed with."""
    root = failure_behind(job, situation.sets) if job.status == "FAILED" else None
    if root is None:
        return None
    return Explanation(root.title, Sureness.CERTAIN, (_words(job),), root.first_ns, because_of=root.id)


def cancelled_task_of_job(job: JobOutcome, _: Situation) -> Explanation | None:
    """The driver asked for the result of a task that was cancelled; Ray may list such a task as one that finished."""
    raised = raised_by_driver(job)
    if job.status != "FAILED" or _CANCELLED not in raised:
        return None
    said = f"{innermost_function(telling_words(job)) or 'a task'} was cancelled, and job {_name(job)} needed its result"
    return Explanation(said, Sureness.CERTAIN, (_words(job),), to_ns(job.ended_at), subject=_name(job))


def timed_out_entrypoint(job: JobOutcome, _: Situation) -> Explanation | None:
    """`timeout` says by its exit code that it ended the command."""
    if job.status != "FAILED" or job.exit_code != _TIMEOUT_CODE:
        return None
    sureness = Sureness.CERTAIN if "timeout" in job.entrypoint.split() else Sureness.LIKELY
    said = f"the entrypoint of job {_name(job)} ran out of time and was ended by `timeout`"
    evidence = (Evidence("job", f"exit code {_TIMEOUT_CODE} of: {job.entrypoint}", job.ended_at), _words(job))
    return Explanation(said, sureness, evidence, to_ns(job.ended_at), subject=_name(job))


def killed_entrypoint(job: JobOutcome, _: Situation) -> Explanation | None:
    """The driver was ended by a signal. That it was is certain; by whom, nobody says."""
    number = _signal_of(job.exit_code)
    if job.status != "FAILED" or number is None:
        return None
    said = f"the entrypoint of job {_name(job)} was ended by {number.name}"
    return Explanation(said, Sureness.CERTAIN, (_words(job),), to_ns(job.ended_at), subject=_name(job))


def failed_tasks_of_job(job: JobOutcome, situation: Situation) -> Explanation | None:
    """The driver raised nothing and left with an exit code, after tasks of it had failed for good."""
    if job.status != "FAILED" or not job.exit_code or raised_by_driver(job):
        return None
    own = [one for one in situation.sets if is_of_job(one, job) and one.failures > one.recovered]
    lasting = [one for one in own if not explain(one, situation)[1].is_intended]
    root = min(lasting, key=lambda one: (one.first_ns, one.id), default=None)
    if root is None:
        return None
    evidence = (_end_of(job), _words(job))
    return Explanation(root.title, Sureness.LIKELY, evidence, root.first_ns, because_of=root.id)


def missing_placement_group(job: JobOutcome, situation: Situation) -> Explanation | None:
    """The job waited in vain, and a placement group of it was never made."""
    has_waited = named_in(raised_by_driver(job)) == TIMED_OUT or job.status == "STOPPED" or is_out_of_time(job)
    group = next((one for one in situation.unmade_groups if one.job_id and one.job_id == job.job_id), None)
    if group is None or not has_waited:
        return None
    short = [short for bundle in group.bundles if (short := situation.capacity.shortage(bundle))]
    asked = "; ".join(map(in_words, group.bundles[:_BUNDLES_SHOWN]))
    said = f"placement group {group.id} was never made, its bundles asked for {asked}"
    missing = [Evidence("placement group", said), *(Evidence("node", text) for text in short[:1])]
    evidence = (*missing, _end_of(job), _words(job))
    title = f"job {_name(job)} waited for a placement group that never came: {asked}"
    return Explanation(shortened(title), Sureness.LIKELY, evidence, to_ns(job.started_at), subject=group.id)


def is_out_of_time(job: JobOutcome) -> bool:
    return job.exit_code == _TIMEOUT_CODE


def failed_entrypoint(job: JobOutcome, _: Situation) -> Explanation | None:
    """The driver raised an exception of its own, or left with an exit code."""
    if job.status != "FAILED" or job.exit_code is None:
        return None
    words = raised_by_driver(job) or last_line(job)
    said = f"the entrypoint of job {_name(job)} exited with code {job.exit_code}{words and f': {words}'}"
    return Explanation(shortened(said), Sureness.CERTAIN, (_words(job),), to_ns(job.ended_at), subject=_name(job))


def dead_supervisor(job: JobOutcome, situation: Situation) -> Explanation | None:
    """It goes with the node it ran on, or for the memory of others; where such a loss is known, that is why."""
    said = _DIED.get(job.error_type or "", "the job failed")
    if job.status != "FAILED":
        return None
    lost = next((one for one in situation.sets if one.lost_nodes or out_of_memory(one, situation)), None)
    if lost is not None:
        return Explanation(said, Sureness.LIKELY, (_words(job),), lost.first_ns, because_of=lost.id)
    return Explanation(
        f"{said} ({_name(job)})", Sureness.GUESS, (_words(job),), to_ns(job.ended_at), subject=_name(job)
    )


JOB_RULES = (
    stalled_job,
    missing_placement_group,
    stopped_job,
    failed_job_environment,
    job_out_of_memory,
    unstarted_driver,
    failed_task_of_job,
    cancelled_task_of_job,
    timed_out_entrypoint,
    killed_entrypoint,
    failed_tasks_of_job,
    failed_entrypoint,
    job_with_lost_pod,
    dead_supervisor,
)
"""The first that answers is believed; a new one stands before those that are less sure."""


def _name(job: JobOutcome) -> str:
    return job.submission_id or job.job_id or "of no name"


def _words(job: JobOutcome) -> Evidence:
    """The end of what its driver wrote, or of what Ray says about it."""
    said = job.message or job.status
    return Evidence("job", (telling_words(job) if job.exit_code is not None else said)[-_MESSAGE_CHARS:], job.ended_at)


def _signal_of(exit_code: int | None) -> signal.Signals | None:
    """A shell says it as 128 and the signal, Python as a negative code."""
    number = -exit_code if exit_code is not None and exit_code < 0 else (exit_code or 0) - _SHELL_SIGNALS
    try:
        return signal.Signals(number)
    except ValueError:
        return None
