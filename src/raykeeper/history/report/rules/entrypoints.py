"""Why a driver ended: by the failure of a task or a process of it, by what one of Ray's libraries gave up for, or by
itself.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from raykeeper.history.report.excerpts import trace_excerpt
from raykeeper.history.report.failures import FailureSet
from raykeeper.history.report.fingerprint import innermost_function
from raykeeper.history.report.input import Explanation, ReportInput
from raykeeper.history.report.last_words import line_address
from raykeeper.history.report.model import (
    Address,
    Confidence,
    Evidence,
    Excerpt,
    JobOutcome,
    LineKind,
    ShownLine,
    Step,
    Who,
    WhoKind,
)
from raykeeper.history.report.naming import called, phrase, short
from raykeeper.history.report.rules.deaths import unasked_death
from raykeeper.history.report.rules.drivers import (
    TIMED_OUT,
    DriverEnd,
    driver_end,
    failure_behind,
    is_of_job,
    named_in,
)
from raykeeper.history.report.rules.infrastructure import OF_WORKER_LOSS
from raykeeper.history.report.rules.intended import CANCELLED, were_open_at_end
from raykeeper.history.report.rules.start import NAMED, POINTED, UNNAMED, at
from raykeeper.history.report.rules.table import explain
from raykeeper.history.report.tracebacks import Raised, folded, is_wrapper
from raykeeper.history.report.written_before import is_of_command, points_elsewhere
from raykeeper.history.text import counted, end_of, shortened
from raykeeper.times import to_ns

_MESSAGE_CHARS = 4000
_CANCELLED = "ray.exceptions.TaskCancelledError"
_KINDS_SHOWN = 5
_LAST_LINES = 12
_RANK = re.compile(r"\[Rank (\d+)[^\]]*\]|\brank[ =](\d+)\b", re.IGNORECASE)
"""Before what a rank of Ray Train raised."""
DRIVER = Who(WhoKind.DRIVER, "")
ENVIRONMENT_FAILED = "RUNTIME_ENV_SETUP_FAILURE"
"""In Ray's words, why a job failed."""


def failed_task_of_job(job: JobOutcome, report_input: ReportInput) -> Explanation | None:
    """What ended the driver is what a task of it had failed with."""
    if job.status != "FAILED" or _gave_up_for_many(job, report_input):
        return None
    root = failure_behind(job, report_input.sets)
    if root is None:
        return None
    return Explanation(root.title, Confidence.CONFIRMED, (words_of(job),), root.first_ns, because_of=root.id)


def cancelled_task_of_job(job: JobOutcome, _: ReportInput) -> Explanation | None:
    """The driver asked for the result of a task that was cancelled; Ray may list such a task as one that finished."""
    end = driver_end(job)
    if job.status != "FAILED" or end.fatal is None or _CANCELLED not in end.raised:
        return None
    task = innermost_function(end.telling) or "a task"
    said = f"{task} was cancelled, and job {job_name(job)} needed its result"
    frame = end.fatal.last.users_frame
    return Explanation(
        said,
        Confidence.CONFIRMED,
        (words_of(job),),
        to_ns(job.ended_at),
        subject=job_name(job),
        who=called(task),
        what=f"task {task}, whose result the driver asked for",
        where=frame.location if frame else None,
        basis=CANCELLED,
        excerpts=_driver_excerpts(job, end.fatal.last),
    )


def failed_tasks_of_job(job: JobOutcome, report_input: ReportInput) -> Explanation | None:
    """The driver raised nothing of its own and left with an exit code, after tasks of it had failed for good in one
    way; or one of Ray's libraries gave up after that.
    """
    if job.status != "FAILED" or not job.exit_code:
        return None
    end = driver_end(job)
    if end.fatal is not None and not end.fatal.users.is_by_library:
        return None
    kinds = lasting_failures(job, report_input)
    if not kinds or _gave_up_for_many(job, report_input):
        return None
    root = min(kinds, key=lambda one: (one.first_ns, one.id))
    is_told = end.fatal is not None and len(kinds) == 1
    confidence = Confidence.CONFIRMED if is_told else Confidence.LIKELY
    evidence = (end_evidence(job), words_of(job))
    basis = "the driver left with an exit code after it, and does not say why"
    return Explanation(root.title, confidence, evidence, root.first_ns, because_of=root.id, basis=basis)


def dead_process_of_job(job: JobOutcome, report_input: ReportInput) -> Explanation | None:
    """The driver's last words name an actor that died without being asked to."""
    if job.status != "FAILED" or job.exit_code is None:
        return None
    words = driver_end(job).own
    death = next((one for one in report_input.deaths if one.actor_id and one.actor_id in words), None)
    told = unasked_death(death, report_input) if death else None
    if death is None or told is None:
        return None
    return Explanation(told.title, told.confidence, (words_of(job),), told.at_ns, because_of=death.id)


def relayed_exception(job: JobOutcome, _: ReportInput) -> Explanation | None:
    """A library of Ray's gave up with words of its own, or the driver's own words only say where to look, after Ray
    had relayed what the user's code raised, or another process had written it.
    """
    end = driver_end(job)
    points = points_elsewhere(end.raised)
    is_given_up = end.fatal is None or end.fatal.users.is_by_library or is_wrapper(end.raised) or points
    told = [trace for _, trace in end.relayed] or (end.earlier if points else [])
    if job.status != "FAILED" or not is_given_up or not told:
        return None
    trace = told[-1]
    raised, frame = trace.users, trace.users.users_frame
    where = frame.location if frame else None
    after = f", so that {end.raised}" if end.raised else ""
    who = called(raised.call) if raised.call else DRIVER
    excerpt = _plain_excerpt("traceback that Ray relayed", raised)
    return Explanation(
        shortened(f"{short(who, raised.call)} raised {raised.error}{at(where)}{after}"),
        Confidence.CONFIRMED if where and end.raised and not points else Confidence.LIKELY,
        (words_of(job),),
        to_ns(job.ended_at),
        subject=job_name(job),
        error=shortened(raised.error),
        where=where,
        who=who,
        what=phrase(who, raised.call),
        then=shortened(end.raised),
        basis=POINTED if points else NAMED if where else UNNAMED,
        excerpts=(excerpt, *_driver_excerpts(job, end.fatal.last if end.fatal else None)),
    )


def failed_entrypoint(job: JobOutcome, report_input: ReportInput) -> Explanation | None:
    """The driver raised an exception of its own, or left with an exit code."""
    if job.status != "FAILED" or job.exit_code is None:
        return None
    end = driver_end(job)
    if end.fatal is None:
        return _left_with_code(job, end, report_input)
    raised = end.fatal.users
    frame, who = raised.users_frame, _who(raised)
    where = frame.location if frame else None
    is_named = where is not None and not is_wrapper(raised.error)
    subject = f"{short(who)} of job {job_name(job)}"
    return Explanation(
        f"{subject} raised {shortened(raised.error)}{at(where)}",
        Confidence.CONFIRMED if is_named else Confidence.LIKELY,
        (words_of(job), *_failures_before(job, report_input)),
        to_ns(job.ended_at),
        subject=job_name(job),
        error=shortened(raised.error),
        where=where,
        who=who,
        what=who.text,
        then=_then(job, report_input),
        basis=NAMED if is_named else UNNAMED,
        excerpts=_driver_excerpts(job, raised),
    )


def _left_with_code(job: JobOutcome, end: DriverEnd, report_input: ReportInput) -> Explanation:
    """What it wrote last is all that tells why."""
    line = _heading(end) or end.last_line
    said = f"the entrypoint of job {job_name(job)} exited with code {job.exit_code}{line and f': {line}'}"
    shown = [one.strip() for one in end.own.split("\n") if one.strip()][-_LAST_LINES:]
    lines = tuple(ShownLine(shortened(one), LineKind.ERROR if one == line else LineKind.LOG) for one in shown)
    return Explanation(
        shortened(said),
        Confidence.LIKELY,
        (words_of(job), *_failures_before(job, report_input)),
        to_ns(job.ended_at),
        subject=job_name(job),
        error=shortened(line),
        who=DRIVER,
        what=f"the driver left with exit code {job.exit_code}",
        then=_then(job, report_input),
        basis="it is the last that the driver wrote" if line else "the driver wrote nothing",
        excerpts=(Excerpt("driver log", lines, driver_address(job, line)),) if lines else (),
    )


def _heading(end: DriverEnd) -> str:
    """The line above a list that the driver ended with: `4 tasks failed:`."""
    lines = [line.strip() for line in end.own.split("\n") if line.strip()][-_LAST_LINES:]
    return next((line for line in reversed(lines[:-1]) if line.endswith(":") and not line.startswith("Traceback")), "")


def _who(raised: Raised) -> Who:
    if raised.call:
        return called(raised.call)
    rank = _RANK.search(raised.heading)
    return Who(WhoKind.RANK, rank[1] or rank[2]) if rank else DRIVER


def lasting_failures(job: JobOutcome, report_input: ReportInput) -> list[FailureSet]:
    """What failed in it for good, neither asked for nor following from another failure."""
    own = [one for one in report_input.sets if is_of_job(one, job) and one.lost_tasks]
    told = [(one, explain(one, report_input)[1]) for one in own]
    return [one for one, why in told if not why.is_intended and why.because_of is None]


def _gave_up_for_many(job: JobOutcome, report_input: ReportInput) -> bool:
    """Whether the driver left without an exception after failures of several kinds: none of them alone is why.

    Of those that its last words name, if they do.
    """
    end = driver_end(job)
    if end.fatal is not None or not job.exit_code:
        return False
    kinds = lasting_failures(job, report_input)
    told = [one for one in kinds if one.words in end.own]
    functions = {one.first.function for one in told}
    named = [one for one in kinds if one.first.function not in functions and _is_named(one, end.own)]
    return len(told + named or kinds) > 1


def _is_named(one: FailureSet, words: str) -> bool:
    return (
        bool(one.first.function) and re.search(rf"(?<![\w.]){re.escape(one.first.function)}(?!\w)", words) is not None
    )


def _then(job: JobOutcome, report_input: ReportInput) -> str:
    """What had failed in it for good, counted by kind: mostly why a driver gives up."""
    kinds = lasting_failures(job, report_input)
    if not kinds:
        return _unmade(job, report_input) or _still_running(job, report_input) or _of_command(driver_end(job))
    names = {short(one.first.who, one.first.function) for one in kinds}
    tasks = counted(sum(one.lost_tasks for one in kinds), f"{next(iter(names))} task" if len(names) == 1 else "task")
    numbers = _by_words(kinds, report_input, with_name=len(names) > 1).most_common()
    shown = [f"{number:,} x {words}" for words, number in numbers[:_KINDS_SHOWN]]
    more = [f"and {len(numbers) - _KINDS_SHOWN} more kinds"] if len(numbers) > _KINDS_SHOWN else []
    return f"{tasks} had failed for good: {'; '.join([*shown, *more])}"


def _by_words(kinds: Iterable[FailureSet], report_input: ReportInput, *, with_name: bool) -> Counter[str]:
    """How many tasks were lost by what was said last: by the task, or by the process that died with it."""
    numbers: Counter[str] = Counter()
    for one in kinds:
        name = f"{short(one.first.who, one.first.function)}: " if with_name else ""
        why = explain(one, report_input)[1]
        numbers[name + (why.error or (why.title if one.error_type in OF_WORKER_LOSS else one.words))] += one.lost_tasks
    return numbers


def _unmade(job: JobOutcome, report_input: ReportInput) -> str:
    """A placement group that the job asked for and never got."""
    group = next((one for one in report_input.unmade_groups if one.job_id and one.job_id == job.job_id), None)
    return group.in_words(report_input.capacity) if group else ""


def _still_running(job: JobOutcome, report_input: ReportInput) -> str:
    """What a driver that lost patience had waited for."""
    if named_in(driver_end(job).raised) != TIMED_OUT:
        return ""
    cut = [one for one in report_input.sets if is_of_job(one, job) and were_open_at_end(one)]
    names = [f"{short(one.first.who, one.first.function)} ({one.failures:,})" for one in cut[:_KINDS_SHOWN]]
    return f"still running then: {', '.join(names)}" if names else ""


def _of_command(end: DriverEnd) -> str:
    """What was written before a command of the driver's failed."""
    before = end.fatal.raised[0].heading if end.fatal and is_of_command(end.raised) else ""
    return before and shortened(f"the command had written: {before}")


def _failures_before(job: JobOutcome, report_input: ReportInput) -> Iterator[Evidence]:
    kinds = lasting_failures(job, report_input)[:_KINDS_SHOWN]
    if kinds:
        numbers = _by_words(kinds, report_input, with_name=True)
        said = "\n".join(f"{number:,} x {words}" for words, number in numbers.most_common())
        yield Evidence("task", f"failed for good in this job:\n{said}", None, kinds[0].first.address)


def _driver_excerpts(job: JobOutcome, raised: Raised | None) -> tuple[Excerpt, ...]:
    if raised is None:
        return ()
    return (trace_excerpt("driver log", driver_end(job).own, raised, driver_address(job, raised.error)),)


def _plain_excerpt(title: str, raised: Raised) -> Excerpt:
    """Of an exception whose text is scattered between the lines of others."""
    own: Sequence[str] = [
        f'  File "{frame.path}", line {frame.line}, in {frame.function}' for frame in raised.frames if frame.is_users
    ]
    lines = (*(ShownLine(line, LineKind.OWN) for line in own), ShownLine(shortened(raised.error), LineKind.ERROR))
    return Excerpt(title, lines)


def driver_address(job: JobOutcome, line: str) -> Address:
    """Of that line in the driver's log; of the job where its log is not stored."""
    number = driver_end(job).number_in_text(line) if line else None
    if job.log is None or not job.log.text.strip() or number is None:
        return Address(
            job=job_name(job), node_id=job.log.node_id if job.log else "", file=job.log.file if job.log else ""
        )
    found = line_address(job.log, number)
    return Address(job=job_name(job), node_id=found.node_id, file=found.file, offset=found.offset, line=found.line)


def driver_steps(job: JobOutcome, origin: Who | None) -> Iterator[Step]:
    """How a driver got what happened, unless it happened to itself; and how its job ended."""
    fatal = driver_end(job).fatal
    has_driver = job.error_type != ENVIRONMENT_FAILED  # the environment is made before any driver
    if fatal is not None and origin != DRIVER and has_driver:
        own = next((one for one in fatal.raised if not one.call), fatal.raised[0])
        frame = own.users_frame
        place = f" at {frame.location.text}" if frame else ""
        kind = own.error.partition(":")[0].rpartition(".")[2]
        yield Step(f"the driver got {kind}{place}", job.ended_at, driver_address(job, fatal.last.error))
    end = f"job {job_name(job)} {job.status}" + ("" if job.exit_code is None else f", exit code {job.exit_code}")
    yield Step(end, job.ended_at, Address(job=job_name(job)))


def job_name(job: JobOutcome) -> str:
    return job.submission_id or job.job_id or "of no name"


def words_of(job: JobOutcome) -> Evidence:
    """The end of what its driver wrote, or of what Ray says about it."""
    said = job.message or job.status
    end = driver_end(job)
    words = folded(end.telling) if job.exit_code is not None else said
    address = driver_address(job, end.fatal.last.error if end.fatal else "")
    return Evidence("job", end_of(words, _MESSAGE_CHARS), job.ended_at, address)


def end_evidence(job: JobOutcome) -> Evidence:
    said = f"job {job_name(job)} is {job.status}" if job.exit_code is None else f"exit code {job.exit_code}"
    return Evidence("job", f"{said}: {job.entrypoint}", job.ended_at, Address(job=job_name(job)))
