"""Why a driver ended: by the failure of a task or a process of it, by what one of Ray's libraries gave up for, or by
itself.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from raykeeper.history.report.closing_lines import heads, message_of
from raykeeper.history.report.excerpts import trace_excerpt
from raykeeper.history.report.failures import FailureSet
from raykeeper.history.report.fingerprint import innermost_function
from raykeeper.history.report.input import Explanation, ReportInput
from raykeeper.history.report.last_words import line_address
from raykeeper.history.report.model import (
    Address,
    CodeLocation,
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
LEFT_AFTER = "it is the last exception that the driver wrote; it caught it, or went on after it"
_COUNT = re.compile(r"(?<![\d.])\d+(?: (?:of|out of|/) \d+)?(?: [\w-]+){0,3} (?:failed|errored|died|crashed)\b")
"""`3 of 9 items failed`: such a line is about the tasks, and says no more than that."""
_SIGNALLED = re.compile(r"Signal \d+ \(SIG\w+\) received by PID \d+")
"""How torchrun tells that a process of its own was killed."""
ENVIRONMENT_FAILED = "RUNTIME_ENV_SETUP_FAILURE"
"""In Ray's words, why a job failed."""


def failed_task_of_job(job: JobOutcome, report_input: ReportInput) -> Explanation | None:
    """What ended the driver is what a task of it had failed with."""
    if job.status != "FAILED" or _gave_up_for_many(job, report_input):
        return None
    root = failure_behind(job, report_input.sets)
    if root is None:
        return None
    end = driver_end(job)
    is_certain = end.fatal is None or end.is_fatal_certain
    confidence = Confidence.CONFIRMED if is_certain else Confidence.LIKELY
    basis = "" if is_certain else LEFT_AFTER
    return Explanation(root.title, confidence, (words_of(job),), root.first_ns, because_of=root.id, basis=basis)


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
    """The driver raised nothing of its own and left with an exit code, after tasks of it had failed for good; or one of
    Ray's libraries gave up after that. Not if the driver gives a reason of its own.
    """
    if job.status != "FAILED" or not job.exit_code:
        return None
    end = driver_end(job)
    kinds = lasting_failures(job, report_input)
    if not kinds or (end.fatal is not None and not end.fatal.users.is_by_library):
        return None
    named = _named_kinds(kinds, end)
    has_own_reason = end.fatal is None and not named and end.has_reason
    if has_own_reason or (_gave_up_for_many(job, report_input) and not named):
        return None
    return _left_for_tasks(job, report_input, kinds, named)


def _left_for_tasks(
    job: JobOutcome, report_input: ReportInput, kinds: Sequence[FailureSet], named: Sequence[FailureSet]
) -> Explanation:
    """By the earliest of them; of several that its last lines name, by the most frequent."""
    if len(named) > 1:
        root = max(named, key=lambda one: (one.lost_tasks, -one.first_ns, one.id))
        basis, then = "the driver left over several failures, and this is the most frequent", _then(job, report_input)
    else:
        root = min(named or kinds, key=lambda one: (one.first_ns, one.id))
        basis, then = "the driver left with an exit code after it, and gives no other reason", ""
    is_told = driver_end(job).fatal is not None and len(kinds) == 1
    return Explanation(
        root.title,
        Confidence.CONFIRMED if is_told else Confidence.LIKELY,
        (end_evidence(job), words_of(job)),
        root.first_ns,
        because_of=root.id,
        then=then,
        basis=basis,
    )


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
    """A library of Ray's gave up with words of its own, or the driver's own words only say where to look or that a
    program failed which it had called: after Ray had relayed what the user's code raised, or that was written before.
    """
    end = driver_end(job)
    if job.status != "FAILED" or not _is_given_up(end):
        return None
    written = end.written_before
    told = [trace for _, trace in end.relayed] or ([written] if written else [])
    if not told:
        return None
    trace = told[-1]
    points = trace is written or points_elsewhere(end.raised)
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


def _is_given_up(end: DriverEnd) -> bool:
    """Whether its end says too little."""
    if end.fatal is None:
        return not end.has_reason
    is_said_elsewhere = points_elsewhere(end.raised) or is_of_command(end.raised)
    return end.fatal.users.is_by_library or is_wrapper(end.raised) or is_said_elsewhere


def failed_entrypoint(job: JobOutcome, report_input: ReportInput) -> Explanation | None:
    """The driver raised an exception of its own, or left with an exit code."""
    if job.status != "FAILED" or job.exit_code is None:
        return None
    end = driver_end(job)
    if end.fatal is None:
        return _left_with_code(job, end, report_input)
    raised = end.fatal.users
    who, where = _who(raised), _place(raised)
    is_named = where is not None and not is_wrapper(raised.error)
    is_certain = is_named and end.is_fatal_certain
    subject = f"{short(who)} of job {job_name(job)}"
    return Explanation(
        f"{subject} raised {shortened(raised.error)}{at(where)}",
        Confidence.CONFIRMED if is_certain else Confidence.LIKELY,
        (words_of(job), *_failures_before(job, report_input)),
        to_ns(job.ended_at),
        subject=job_name(job),
        error=shortened(raised.error),
        where=where,
        who=who,
        what=who.text,
        then=_then(job, report_input) or _said_after(end),
        basis=NAMED if is_certain else LEFT_AFTER if is_named else UNNAMED,
        excerpts=_driver_excerpts(job, raised),
    )


def _place(raised: Raised) -> CodeLocation | None:
    """Where it was raised. What only tells that another program failed says nothing by the line of its own package."""
    is_borrowed = not raised.is_users and (is_wrapper(raised.error) or is_of_command(raised.error))
    frame = None if is_borrowed else raised.users_frame
    return frame.location if frame else None


def _left_with_code(job: JobOutcome, end: DriverEnd, report_input: ReportInput) -> Explanation:
    """What it wrote last is all that tells why."""
    line = end.closing_line
    error = message_of(line)
    said = f"the entrypoint of job {job_name(job)} exited with code {job.exit_code}{error and f': {error}'}"
    shown = [one.strip() for one in end.own.split("\n") if one.strip()][-_LAST_LINES:]
    lines = tuple(_shown_line(one, is_reason=one == line or heads(one, line)) for one in shown)
    is_last = line == end.last_line
    return Explanation(
        shortened(said),
        Confidence.LIKELY,
        (words_of(job), *_failures_before(job, report_input)),
        to_ns(job.ended_at),
        subject=job_name(job),
        error=shortened(error),
        who=DRIVER,
        what=f"the driver left with exit code {job.exit_code}",
        then=_then(job, report_input) or _healed_before(end),
        basis=(_LAST if is_last else _LAST_REASON) if line else "the driver wrote nothing",
        excerpts=(Excerpt("driver log", lines, driver_address(job, line)),) if lines else (),
    )


def _shown_line(text: str, *, is_reason: bool) -> ShownLine:
    return ShownLine(shortened(text), LineKind.ERROR if is_reason else LineKind.LOG)


_LAST = "it is the last that the driver wrote"
_LAST_REASON = "of the last lines that the driver wrote, it tells why"


def _healed_before(end: DriverEnd) -> str:
    """An exception that the driver had caught, and went on after."""
    raised = end.healed.users if end.healed else None
    frame = raised.users_frame if raised else None
    return shortened(f"it had caught {raised.error}{at(frame.location if frame else None)}") if raised else ""


def _said_after(end: DriverEnd) -> str:
    """What else it said on its way out."""
    if signalled := _SIGNALLED.search(end.own if is_wrapper(end.raised) else ""):
        return signalled[0]
    line = "" if end.is_fatal_certain else end.said_after
    return line and shortened(f"the driver wrote after it: {line}")


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
    return len(_named_kinds(kinds, end) or kinds) > 1


def _named_kinds(kinds: Sequence[FailureSet], end: DriverEnd) -> list[FailureSet]:
    """Those that its last lines name: by what they said, by their functions, or by how many failed."""
    told = [one for one in kinds if one.words in end.last_words]
    functions = {one.first.function for one in told}
    named = [one for one in kinds if one.first.function not in functions and _is_named(one, end.last_words)]
    return told + named or (list(kinds) if _COUNT.search(end.closing_line) else [])


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
    end = driver_end(job)
    fatal = end.fatal
    has_driver = job.error_type != ENVIRONMENT_FAILED  # the environment is made before any driver
    if fatal is not None and origin != DRIVER and has_driver:
        own = next((one for one in fatal.raised if not one.call), fatal.raised[0])
        frame = own.users_frame
        place = f" at {frame.location.text}" if frame else ""
        kind = own.error.partition(":")[0].rpartition(".")[2]
        yield Step(f"the driver got {kind}{place}", job.ended_at, driver_address(job, fatal.last.error))
    if fatal is None and origin != DRIVER and has_driver and job.exit_code and end.has_reason:
        yield Step(
            shortened(f"the driver left: {end.closing_line}"), job.ended_at, driver_address(job, end.closing_line)
        )
    status = f"job {job_name(job)} {job.status}" + ("" if job.exit_code is None else f", exit code {job.exit_code}")
    yield Step(status, job.ended_at, Address(job=job_name(job)))


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
