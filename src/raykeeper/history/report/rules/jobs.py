"""Why a job itself ended as it did: from its own status and message, and from the failures of its tasks."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass

from raykeeper.history.report.fingerprint import headline, innermost_function, is_wrapper
from raykeeper.history.report.input import Explanation, ReportInput, in_words
from raykeeper.history.report.model import Confidence, Evidence, JobOutcome
from raykeeper.history.report.rules.deaths import unasked_death
from raykeeper.history.report.rules.drivers import (
    TIMED_OUT,
    failure_behind,
    is_of_job,
    last_line,
    named_in,
    raised_by_driver,
    relayed_trace,
    telling_words,
    trace_of,
)
from raykeeper.history.report.rules.intended import were_open_at_end
from raykeeper.history.report.rules.kubernetes import job_of_lost_head, job_with_lost_pod
from raykeeper.history.report.rules.memory import job_out_of_memory, out_of_memory
from raykeeper.history.report.rules.start import environment_words, never_scheduled
from raykeeper.history.report.rules.table import explain
from raykeeper.history.report.tracebacks import at_frame, folded, is_raised_by_library
from raykeeper.history.text import end_of, shortened
from raykeeper.times import to_ns

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
_SETS_SHOWN = 5
_RANK = re.compile(r"\[Rank (\d+) Error Snippet\]")
"""Before what a rank of Ray Train raised."""


@dataclass(frozen=True)
class JobExplanation:
    """Why one job ended."""

    rule: str
    job: JobOutcome
    explanation: Explanation


def explain_jobs(report_input: ReportInput) -> Iterator[JobExplanation]:
    """Every job that failed or was stopped, with the first rule that knows why; none that went with the cluster."""
    for job in report_input.jobs:
        if job.is_cut_off:
            continue
        for rule in JOB_RULES:
            found = rule(job, report_input)
            if found is not None:
                yield JobExplanation(found.rule or rule.__name__, job, found)
                break


def stalled_job(job: JobOutcome, report_input: ReportInput) -> Explanation | None:
    """Somebody lost patience: the job was stopped, killed or timed out while tasks waited for what never came."""
    is_given_up = job.status == "STOPPED" or is_out_of_time(job) or _signal_of(job.exit_code) is not None
    own = [one for one in report_input.sets if is_of_job(one, job)] if is_given_up else []
    root = next((one for one in own if explain(one, report_input)[0] == never_scheduled.__name__), None)
    if root is None:
        return None
    evidence = (_end_of(job), _words(job))
    return Explanation(root.title, Confidence.LIKELY, evidence, root.first_ns, because_of=root.id)


def _end_of(job: JobOutcome) -> Evidence:
    said = f"job {_name(job)} is {job.status}" if job.exit_code is None else f"exit code {job.exit_code}"
    return Evidence("job", f"{said}: {job.entrypoint}", job.ended_at)


def stopped_job(job: JobOutcome, report_input: ReportInput) -> Explanation | None:
    if job.status != "STOPPED":
        return None
    cut = next((one.id for one in report_input.sets if is_of_job(one, job) and were_open_at_end(one)), None)
    return Explanation(
        f"job {_name(job)} was stopped by its user",
        Confidence.CERTAIN,
        (_words(job),),
        to_ns(job.ended_at),
        because_of=cut,
        subject=_name(job),
        is_intended=True,
    )


def failed_job_environment(job: JobOutcome, _: ReportInput) -> Explanation | None:
    if job.status != "FAILED" or job.error_type != _ENVIRONMENT:
        return None
    said = f"the runtime environment of job {_name(job)} failed: {environment_words(job.message or '')}"
    return Explanation(said, Confidence.CERTAIN, (_words(job),), to_ns(job.started_at), subject=_name(job))


def unstarted_driver(job: JobOutcome, _: ReportInput) -> Explanation | None:
    said = _NOT_STARTED.get(job.error_type or "")
    if job.status != "FAILED" or said is None:
        return None
    return Explanation(
        f"{said} ({_name(job)})", Confidence.CERTAIN, (_words(job),), to_ns(job.ended_at), subject=_name(job)
    )


def failed_task_of_job(job: JobOutcome, report_input: ReportInput) -> Explanation | None:
    """What ended the driver is what a task of it had failed with."""
    root = failure_behind(job, report_input.sets) if job.status == "FAILED" else None
    if root is None:
        return None
    return Explanation(root.title, Confidence.CERTAIN, (_words(job),), root.first_ns, because_of=root.id)


def cancelled_task_of_job(job: JobOutcome, _: ReportInput) -> Explanation | None:
    """The driver asked for the result of a task that was cancelled; Ray may list such a task as one that finished."""
    raised = raised_by_driver(job)
    if job.status != "FAILED" or _CANCELLED not in raised:
        return None
    said = f"{innermost_function(telling_words(job)) or 'a task'} was cancelled, and job {_name(job)} needed its result"
    return Explanation(said, Confidence.CERTAIN, (_words(job),), to_ns(job.ended_at), subject=_name(job))


def timed_out_entrypoint(job: JobOutcome, _: ReportInput) -> Explanation | None:
    """`timeout` says by its exit code that it ended the command."""
    if job.status != "FAILED" or job.exit_code != _TIMEOUT_CODE:
        return None
    confidence = Confidence.CERTAIN if "timeout" in job.entrypoint.split() else Confidence.LIKELY
    said = f"the entrypoint of job {_name(job)} ran out of time and was ended by `timeout`"
    evidence = (Evidence("job", f"exit code {_TIMEOUT_CODE} of: {job.entrypoint}", job.ended_at), _words(job))
    return Explanation(said, confidence, evidence, to_ns(job.ended_at), subject=_name(job))


def killed_entrypoint(job: JobOutcome, _: ReportInput) -> Explanation | None:
    """The driver was ended by a signal. That it was is certain; by whom, nobody says."""
    number = _signal_of(job.exit_code)
    if job.status != "FAILED" or number is None:
        return None
    said = f"the entrypoint of job {_name(job)} was ended by {number.name}"
    return Explanation(said, Confidence.CERTAIN, (_words(job),), to_ns(job.ended_at), subject=_name(job))


def failed_tasks_of_job(job: JobOutcome, report_input: ReportInput) -> Explanation | None:
    """The driver raised nothing and left with an exit code, after tasks of it had failed for good."""
    if job.status != "FAILED" or not job.exit_code or raised_by_driver(job):
        return None
    own = [one for one in report_input.sets if is_of_job(one, job) and one.failures > one.recovered]
    lasting = [one for one in own if not explain(one, report_input)[1].is_intended]
    root = min(lasting, key=lambda one: (one.first_ns, one.id), default=None)
    if root is None:
        return None
    evidence = (_end_of(job), _words(job))
    return Explanation(root.title, Confidence.LIKELY, evidence, root.first_ns, because_of=root.id)


def missing_placement_group(job: JobOutcome, report_input: ReportInput) -> Explanation | None:
    """The job waited in vain, and a placement group of it was never made."""
    has_waited = named_in(raised_by_driver(job)) == TIMED_OUT or job.status == "STOPPED" or is_out_of_time(job)
    group = next((one for one in report_input.unmade_groups if one.job_id and one.job_id == job.job_id), None)
    if group is None or not has_waited:
        return None
    short = [short for bundle in group.bundles if (short := report_input.capacity.shortage(bundle))]
    asked = "; ".join(map(in_words, group.bundles[:_BUNDLES_SHOWN]))
    said = f"placement group {group.id} was never made, its bundles asked for {asked}"
    missing = [Evidence("placement group", said), *(Evidence("node", text) for text in short[:1])]
    evidence = (*missing, _end_of(job), _words(job))
    title = f"job {_name(job)} waited for a placement group that never came: {asked}"
    return Explanation(shortened(title), Confidence.LIKELY, evidence, to_ns(job.started_at), subject=group.id)


def is_out_of_time(job: JobOutcome) -> bool:
    return job.exit_code == _TIMEOUT_CODE


def failed_entrypoint(job: JobOutcome, report_input: ReportInput) -> Explanation | None:
    """The driver raised an exception of its own, or left with an exit code."""
    if job.status != "FAILED" or job.exit_code is None:
        return None
    raised, words = raised_by_driver(job), last_line(job)
    rank = _RANK.findall(telling_words(job))
    said = f"the entrypoint of job {_name(job)} exited with code {job.exit_code}{words and f': {words}'}"
    if raised:
        who = f"rank {rank[-1]} of job {_name(job)}" if rank else f"the driver of job {_name(job)}"
        said = f"{who} raised {shortened(raised)}{at_frame(trace_of(job))}"
    confidence = Confidence.LIKELY if is_wrapper(raised) else Confidence.CERTAIN
    evidence = (_words(job), *_failures_before(job, report_input))
    return Explanation(said, confidence, evidence, to_ns(job.ended_at), subject=_name(job))


def _failures_before(job: JobOutcome, report_input: ReportInput) -> Iterator[Evidence]:
    """What had failed in it for good, which is mostly why a driver gives up."""
    own = [one for one in report_input.sets if is_of_job(one, job) and one.failures > one.recovered]
    lasting = [one for one in own if not explain(one, report_input)[1].is_intended][:_SETS_SHOWN]
    if lasting:
        said = "\n".join(f"{one.failures:,} x {one.first.called}: {one.words}" for one in lasting)
        yield Evidence("task", f"failed for good in this job:\n{said}")


def dead_process_of_job(job: JobOutcome, report_input: ReportInput) -> Explanation | None:
    """The driver's last words name an actor that died without being asked to."""
    if job.status != "FAILED" or job.exit_code is None:
        return None
    words = telling_words(job)
    death = next((one for one in report_input.deaths if one.actor_id and one.actor_id in words), None)
    told = unasked_death(death, report_input) if death else None
    if death is None or told is None:
        return None
    return Explanation(told.title, told.confidence, (_words(job),), told.at_ns, because_of=death.id)


def relayed_exception(job: JobOutcome, _: ReportInput) -> Explanation | None:
    """A library of Ray's gave up with words of its own, after Ray had relayed what the user's code raised."""
    trace = relayed_trace(job) if job.status == "FAILED" and is_raised_by_library(trace_of(job)) else ""
    if not trace:
        return None
    said = f"{headline(trace)}{at_frame(trace)}, so that {raised_by_driver(job)}"
    evidence = (Evidence("job", folded(trace), job.ended_at), _words(job))
    return Explanation(shortened(said), Confidence.LIKELY, evidence, to_ns(job.ended_at), subject=_name(job))


def dead_supervisor(job: JobOutcome, report_input: ReportInput) -> Explanation | None:
    """It goes with the node it ran on, or for the memory of others; where such a loss is known, that is why."""
    said = _DIED.get(job.error_type or "", "the job failed")
    if job.status != "FAILED":
        return None
    lost = next((one for one in report_input.sets if one.lost_nodes or out_of_memory(one, report_input)), None)
    if lost is not None:
        return Explanation(said, Confidence.LIKELY, (_words(job),), lost.first_ns, because_of=lost.id)
    return Explanation(
        f"{said} ({_name(job)})", Confidence.GUESS, (_words(job),), to_ns(job.ended_at), subject=_name(job)
    )


JOB_RULES = (
    stalled_job,
    missing_placement_group,
    stopped_job,
    failed_job_environment,
    job_out_of_memory,
    job_of_lost_head,
    unstarted_driver,
    failed_task_of_job,
    cancelled_task_of_job,
    timed_out_entrypoint,
    killed_entrypoint,
    failed_tasks_of_job,
    dead_process_of_job,
    relayed_exception,
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
    words = folded(telling_words(job)) if job.exit_code is not None else said
    return Evidence("job", end_of(words, _MESSAGE_CHARS), job.ended_at)


def _signal_of(exit_code: int | None) -> signal.Signals | None:
    """A shell says it as 128 and the signal, Python as a negative code."""
    number = -exit_code if exit_code is not None and exit_code < 0 else (exit_code or 0) - _SHELL_SIGNALS
    try:
        return signal.Signals(number)
    except ValueError:
        return None
