"""Why a job itself ended as it did: from its own status and message, and from the failures of its tasks."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import dataclass

from raykeeper.history.report.input import Explanation, ReportInput
from raykeeper.history.report.last_words import LastWords, crash_excerpt, last_words
from raykeeper.history.report.model import (
    Confidence,
    Evidence,
    Excerpt,
    JobOutcome,
    LineKind,
    LogSlice,
    ShownLine,
    Who,
    WhoKind,
)
from raykeeper.history.report.rules.drivers import TIMED_OUT, DriverEnd, driver_end, is_of_job, named_in
from raykeeper.history.report.rules.entrypoints import (
    DRIVER,
    ENVIRONMENT_FAILED,
    cancelled_task_of_job,
    dead_process_of_job,
    driver_address,
    end_evidence,
    failed_entrypoint,
    failed_task_of_job,
    failed_tasks_of_job,
    job_name,
    relayed_exception,
    words_of,
)
from raykeeper.history.report.rules.intended import STOPPED, were_open_at_end
from raykeeper.history.report.rules.kubernetes import job_of_lost_head, job_with_lost_pod
from raykeeper.history.report.rules.memory import job_out_of_memory, out_of_memory
from raykeeper.history.report.rules.missing_results import missing_result_of_job
from raykeeper.history.report.rules.serve import failed_application_of_job
from raykeeper.history.report.rules.start import UNMADE_ENVIRONMENT, environment_words, never_scheduled
from raykeeper.history.report.rules.table import explain
from raykeeper.history.report.rules.train import failed_run_of_job
from raykeeper.history.report.tracebacks import crash_frame, crash_words
from raykeeper.history.text import shortened
from raykeeper.times import to_ns

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
_TIMEOUT_CODE = 124  # of coreutils' `timeout`
_SHELL_SIGNALS = 128
_CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)
"""Signals that a process gets for what it did itself."""
_CRASHED = "Ray only says that the driver crashed; these are its last words"
_LAST_LINES = 8


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
    evidence = (end_evidence(job), words_of(job))
    return Explanation(root.title, Confidence.LIKELY, evidence, root.first_ns, because_of=root.id)


def stopped_job(job: JobOutcome, report_input: ReportInput) -> Explanation | None:
    if job.status != "STOPPED":
        return None
    cut = next((one.id for one in report_input.sets if is_of_job(one, job) and were_open_at_end(one)), None)
    return Explanation(
        f"job {job_name(job)} was stopped by its user",
        Confidence.CONFIRMED,
        (words_of(job),),
        to_ns(job.ended_at),
        because_of=cut,
        subject=job_name(job),
        is_intended=True,
        who=Who(WhoKind.JOB, job_name(job)),
        basis=STOPPED,
    )


def failed_job_environment(job: JobOutcome, _: ReportInput) -> Explanation | None:
    if job.status != "FAILED" or job.error_type != ENVIRONMENT_FAILED:
        return None
    error = environment_words(job.message or "")
    return Explanation(
        f"the runtime environment of job {job_name(job)} failed: {error}",
        Confidence.CONFIRMED,
        (words_of(job),),
        to_ns(job.started_at),
        subject=job_name(job),
        error=error,
        who=Who(WhoKind.JOB, job_name(job)),
        what=f"the runtime environment of job {job_name(job)} could not be made",
        basis=UNMADE_ENVIRONMENT,
    )


def unstarted_driver(job: JobOutcome, _: ReportInput) -> Explanation | None:
    said = _NOT_STARTED.get(job.error_type or "")
    if job.status != "FAILED" or said is None:
        return None
    return Explanation(
        f"{said} ({job_name(job)})",
        Confidence.CONFIRMED,
        (words_of(job),),
        to_ns(job.ended_at),
        subject=job_name(job),
        basis="Ray says why it did not start the driver",
    )


def timed_out_entrypoint(job: JobOutcome, _: ReportInput) -> Explanation | None:
    """`timeout` says by its exit code that it ended the command."""
    if job.status != "FAILED" or job.exit_code != _TIMEOUT_CODE:
        return None
    is_named = "timeout" in job.entrypoint.split()
    evidence = (Evidence("job", f"exit code {_TIMEOUT_CODE} of: {job.entrypoint}", job.ended_at), words_of(job))
    return Explanation(
        f"the entrypoint of job {job_name(job)} ran out of time and was ended by `timeout`",
        Confidence.CONFIRMED if is_named else Confidence.LIKELY,
        evidence,
        to_ns(job.ended_at),
        subject=job_name(job),
        who=DRIVER,
        what=f"exit code {_TIMEOUT_CODE} of `timeout`",
        basis="the entrypoint says so" if is_named else "its exit code is that of `timeout`",
        excerpts=_last_lines(job),
    )


def killed_entrypoint(job: JobOutcome, _: ReportInput) -> Explanation | None:
    """The driver was ended by a signal. That it was is certain; by whom, nobody says."""
    number = _signal_of(job.exit_code)
    if job.status != "FAILED" or number is None:
        return None
    end = driver_end(job)
    last = last_words((LogSlice("", "driver log", end.own),)) if number in _CRASHES else LastWords()
    error = last.text if last.is_error else ""
    return Explanation(
        f"the entrypoint of job {job_name(job)} was ended by {number.name}",
        Confidence.LIKELY,
        (words_of(job),),
        to_ns(job.ended_at),
        subject=job_name(job),
        error=error,
        where=last.where,
        who=DRIVER,
        what=f"the driver was ended by {number.name}" if error else "the driver",
        then=f"the last that it wrote: {end.last_line}" if end.last_line and not error else "",
        basis=_CRASHED if error else f"Ray says that the driver was ended by {number.name}; nobody says by whom",
        excerpts=_crash_lines(job, end) or _last_lines(job),
    )


def _crash_lines(job: JobOutcome, end: DriverEnd) -> tuple[Excerpt, ...]:
    """What Python's crash handler wrote, where it names a line of the user's code."""
    if crash_frame(end.own) is None:
        return ()
    return (crash_excerpt("driver log", end.own, driver_address(job, crash_words(end.own))),)


def _last_lines(job: JobOutcome) -> tuple[Excerpt, ...]:
    end = driver_end(job)
    lines = [line for line in end.own.split("\n") if line.strip()][-_LAST_LINES:]
    shown = tuple(ShownLine(shortened(line), LineKind.LOG) for line in lines)
    return (Excerpt("driver log", shown, driver_address(job, end.last_line)),) if shown else ()


def missing_placement_group(job: JobOutcome, report_input: ReportInput) -> Explanation | None:
    """The job waited in vain, and a placement group of it was never made."""
    raised = driver_end(job).raised
    has_waited = named_in(raised) == TIMED_OUT or job.status == "STOPPED" or is_out_of_time(job)
    group = next((one for one in report_input.unmade_groups if one.job_id and one.job_id == job.job_id), None)
    if group is None or not has_waited:
        return None
    short = group.shortage(report_input.capacity)
    said = f"placement group {group.id} was never made, its bundles asked for {group.asked}"
    missing = [Evidence("placement group", said), *([Evidence("node", short)] if short else [])]
    return Explanation(
        shortened(f"job {job_name(job)} waited for a placement group that never came: {group.asked}"),
        Confidence.LIKELY,
        (*missing, end_evidence(job), words_of(job)),
        to_ns(job.started_at),
        subject=group.id,
        who=Who(WhoKind.JOB, job_name(job)),
        then=short,
        basis="the placement group was asked for and never made",
    )


def is_out_of_time(job: JobOutcome) -> bool:
    return job.exit_code == _TIMEOUT_CODE


def dead_supervisor(job: JobOutcome, report_input: ReportInput) -> Explanation | None:
    """It goes with the node it ran on, or for the memory of others; where such a loss is known, that is why."""
    said = _DIED.get(job.error_type or "", "the job failed")
    if job.status != "FAILED":
        return None
    lost = next((one for one in report_input.sets if one.lost_nodes or out_of_memory(one, report_input)), None)
    if lost is not None:
        return Explanation(said, Confidence.LIKELY, (words_of(job),), lost.first_ns, because_of=lost.id)
    return Explanation(
        f"{said} ({job_name(job)})", Confidence.POSSIBLE, (words_of(job),), to_ns(job.ended_at), subject=job_name(job)
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
    failed_run_of_job,
    failed_application_of_job,
    relayed_exception,
    missing_result_of_job,
    failed_entrypoint,
    job_with_lost_pod,
    dead_supervisor,
)
"""The first that answers is believed; a new one stands before those that are less sure."""


def _signal_of(exit_code: int | None) -> signal.Signals | None:
    """A shell says it as 128 and the signal, Python as a negative code."""
    number = -exit_code if exit_code is not None and exit_code < 0 else (exit_code or 0) - _SHELL_SIGNALS
    try:
        return signal.Signals(number)
    except ValueError:
        return None
