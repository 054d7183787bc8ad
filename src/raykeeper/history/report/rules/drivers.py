"""How a driver ended: its last traceback, which failure of its tasks that was about, and what Ray relayed of others.
Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile

from raykeeper.history.report.closing_lines import closing_line, heads, is_advice, is_reason, telling_lines
from raykeeper.history.report.failures import FailureSet
from raykeeper.history.report.fingerprint import USER_MARK, Wrapping, digest, headline, is_end_alone, title_of
from raykeeper.history.report.model import JobOutcome
from raykeeper.history.report.tracebacks import (
    HEADER,
    Frame,
    Raised,
    Traceback,
    announces_noise,
    crash_words,
    frame_in,
    is_exception,
    is_wrapper,
    tracebacks_in,
    user_location,
)
from raykeeper.history.report.written_before import is_of_command, points_elsewhere
from raykeeper.history.text import without_ansi

_RAY_EXCEPTION = re.compile(r"ray\.exceptions\.(\w+)")
_LOST_OBJECTS = ("OBJECT_", "OWNER_DIED", "OUT_OF_DISK_ERROR")
_LOST_ACTORS = ("ACTOR_DIED", "ACTOR_UNAVAILABLE", "WORKER_DIED", "NODE_DIED", "OUT_OF_MEMORY")
"""A call of an actor may be told in another way than the actor's end."""
_TOLD: dict[str, tuple[str, ...]] = {
    "WorkerCrashedError": ("WORKER_DIED",),
    "OutOfMemoryError": ("OUT_OF_MEMORY", "WORKER_DIED"),
    "NodeDiedError": ("NODE_DIED",),
    "RayActorError": _LOST_ACTORS,
    "ActorDiedError": _LOST_ACTORS,
    "ActorUnavailableError": _LOST_ACTORS,
    "TaskCancelledError": ("TASK_CANCELLED",),
    "RuntimeEnvSetupError": ("RUNTIME_ENV_SETUP_FAILED",),
    "LocalRayletDiedError": ("LOCAL_RAYLET_DIED",),
    "TaskUnschedulableError": ("TASK_UNSCHEDULABLE_ERROR",),
    "ActorUnschedulableError": ("ACTOR_UNSCHEDULABLE_ERROR",),
    "TaskPlacementGroupRemoved": ("TASK_PLACEMENT_GROUP_REMOVED",),
    "ActorPlacementGroupRemoved": ("ACTOR_PLACEMENT_GROUP_REMOVED",),
    "ObjectLostError": _LOST_OBJECTS,
    "ObjectFetchTimedOutError": _LOST_OBJECTS,
    "ObjectReconstructionFailedError": _LOST_OBJECTS,
    "ObjectFreedError": ("OBJECT_FREED",),
    "OwnerDiedError": ("OWNER_DIED",),
    "OutOfDiskError": ("OUT_OF_DISK_ERROR",),
}
"""By the exception's name, the beginnings of the error types."""
TIMED_OUT = "GetTimeoutError"


def named_in(exception: str) -> str | None:
    """The name of an exception of Ray's that tells of a failure; None for any other exception."""
    found = _RAY_EXCEPTION.match(exception)
    return found[1] if found and (found[1] in _TOLD or found[1] == TIMED_OUT) else None


def told_of(name: str | None, sets: Sequence[FailureSet], words: str = "") -> list[FailureSet]:
    """The failures that an exception of this name tells of; of an actor that its words name, where they do.

    Who waited in vain, waited for what never ran.
    """
    if name == TIMED_OUT:
        return [one for one in sets if one.never_ran == one.failures]
    kinds = _TOLD.get(name or "", ())
    told = [one for one in sets if kinds and one.error_type.startswith(kinds)]
    if kinds is not _LOST_ACTORS:
        return told
    of_actors = [one for one in told if one.first.actor_id]
    return [one for one in of_actors if (one.first.actor_id or "") in words] or of_actors


_HEADING = re.compile(r"Job entrypoint command failed with exit code (?P<code>-?\d+)[^\n]*(?:\n|$)")
"""How Ray begins the message of a job, before the driver's last lines."""
_UNCAUGHT_CODES = (None, 1)
"""With which Python leaves over an exception that nobody caught; None where nobody says."""
_OF_OTHERS = re.compile(r"(?:Unhandled e|E)xception in thread |Process \S+:$")
"""Before the traceback of a thread or a process that the driver had started."""
_ROOTS = ("<module>", "_run_module_as_main", "")
"""Functions where the traceback of an exception begins that nobody caught. Of a SyntaxError there is none."""
_GOES_ON = re.compile(
    r"^.{0,60}?\b(?:DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL)\b|^\d{4}-\d\d-\d\d"
    r"|^\s*(?:epoch|step|iter\w*|batch|retry\w*|attempt|done)\b"
)
"""Lines of programs that are at work, which stand in no message of an exception."""
_RELAYED_LINE = re.compile(r"\((?P<label>(?:raylet|autoscaler)\b|[^\n]{0,300}?\bpid=\d+)[^)\n]*\) ?(?P<text>.*)")
"""A line that Ray wrote into the driver's log for others: `(raylet) Task fetch failed`, `(step pid=7) ...`."""
_REPEATED = re.compile(r" \[repeated \d+x across cluster\].*$")
_CALL = re.compile(r"\(pid=\d+, ip=[^\n]*\)(?=\n)")
"""Which process of a task an error is about, as Ray writes it above the frames."""
_FOLLOWED_BY = re.compile(r"\n\n(?:The above exception was|During handling of|Traceback )")
_END_CHARS = 300
_KEPT_CHARS = 100
"""Of an error, to tell it from others by its end."""
_LEAST_CHARS = 8  # shorter words may stand in any log


@dataclass(frozen=True)
class DriverEnd:
    """The end of what a driver wrote, and of what Ray wrote into its log for others."""

    text: str
    exit_code: int | None = None

    @cached_property
    def _parted(self) -> tuple[tuple[tuple[int, str], ...], dict[str, list[str]]]:
        """The driver's own lines by their numbers, and by whom they are of those that Ray relayed.

        Of an error that a raylet tells, only the first line is marked; it ends with the exception.
        """
        own: list[tuple[int, str]] = []
        relayed: dict[str, list[str]] = {}
        is_in_error = False
        for number, written in enumerate(self.text.split("\n")):
            line = written.rstrip("\r").rpartition("\r")[2]  # a bar of progress writes over itself
            if number == 0 and _HEADING.match(line):
                continue
            found = _RELAYED_LINE.match(line)
            if found:
                is_in_error = USER_MARK in line
                relayed.setdefault(found["label"], []).append(_REPEATED.sub("", found["text"]))
            elif is_in_error:
                is_in_error = not is_exception(line)
            else:
                own.append((number, line))
        return tuple(own), relayed

    @cached_property
    def own(self) -> str:
        """What the driver itself wrote."""
        return "\n".join(line for _, line in self._parted[0])

    @cached_property
    def _tracebacks(self) -> list[Traceback]:
        """Of its own lines, before those of Python's crash handler."""
        return tracebacks_in(self.own.partition(crash_words(self.own) or "\0")[0])

    @cached_property
    def _awaited(self) -> list[Traceback]:
        """But for those of what nobody waits for, unless a thread died and nothing else is known."""
        awaited = [one for one in self._tracebacks if not one.is_noise]
        return awaited or [one for one in self._tracebacks if _OF_OTHERS.match(one.raised[0].heading)]

    @cached_property
    def _behind(self) -> tuple[str, ...]:
        """Its own lines behind its last traceback: all where there is none."""
        lines = self.own.split("\n")
        begin = max(raised.last for raised in self._awaited[-1].raised) + 1 if self._awaited else 0
        others = [one for one in self._tracebacks if one.is_noise and one not in self._awaited]
        noise = [(one.raised[0].first, one.last.last) for one in others]
        kept = (line for number, line in enumerate(lines) if number >= begin and not _is_within(number, noise))
        return tuple(line for line in kept if not announces_noise(line))

    @cached_property
    def _said_behind(self) -> tuple[str, ...]:
        """Those of them that the program, not one of its libraries, wrote about how it went on."""
        return tuple(line for line in telling_lines(self._behind) if not is_advice(line))

    @cached_property
    def _is_uncaught(self) -> bool:
        """Whether nobody can be seen to have caught its last exception."""
        lines = self.own.split("\n")
        own = [one for trace in self._awaited[-1:] for one in trace.raised if one.frames and not one.call]
        is_from_root = any(one.frames[0].function in _ROOTS or HEADER not in lines[one.first] for one in own)
        return self.exit_code in _UNCAUGHT_CODES and (is_from_root or not own)

    @property
    def _is_healed(self) -> bool:
        """Whether it caught its last exception, went on, and told of other trouble at its end."""
        if not self._said_behind or self._is_uncaught:
            return False
        line = closing_line(self._said_behind)
        return is_reason(line) and not self._said_behind[0].strip().startswith(line) and not points_elsewhere(line)

    @property
    def fatal(self) -> Traceback | None:
        """The traceback that it ended by: its last, unless it went on and told of something else."""
        return self._awaited[-1] if self._awaited and not self._is_healed else None

    @property
    def is_fatal_certain(self) -> bool:
        """Whether nothing speaks against it: the exit code is that of an exception, and no word is behind it.

        The message of an exception may have several lines.
        """
        is_others = self.fatal is not None and _OF_OTHERS.match(self.fatal.raised[0].heading)
        if self.fatal is None or is_others or self.exit_code not in _UNCAUGHT_CODES:
            return False
        return not self._said_behind or (self._is_uncaught and self._is_message(self._behind))

    @staticmethod
    def _is_message(behind: Sequence[str]) -> bool:
        """Whether lines behind the first of an exception are the rest of its message: mostly all up to an empty one."""
        lines = [line for line in behind if not line[:1].isspace()]
        message = list(takewhile(str.strip, lines))
        rest = telling_lines(lines[len(message) :])
        return not any(map(_GOES_ON.search, (*message, *rest))) and not any(map(is_reason, rest))

    @property
    def healed(self) -> Traceback | None:
        """The exception that it caught before it went on and ended for another reason."""
        return self._awaited[-1] if self._awaited and self._is_healed else None

    @property
    def earlier(self) -> list[Traceback]:
        """Those before its last that came through the user's code."""
        return [one for one in self._awaited[:-1] if one.users.users_frame is not None]

    @property
    def first_uncaught(self) -> Traceback | None:
        """Of those before its last, the first that ended a process; else the one nearest to the end."""
        roots = (
            one
            for one in self.earlier
            if any(raised.frames[0].function in _ROOTS for raised in one.raised if raised.frames)
        )
        return next(roots, self.earlier[-1] if self.earlier else None)

    @property
    def above(self) -> Traceback | None:
        """The traceback right above the last: of a program that it had called."""
        if not self.earlier or self.fatal is None or self.earlier[-1] is not self._awaited[-2]:
            return None
        lines = self.own.split("\n")[self.earlier[-1].last.last + 1 : self.fatal.raised[0].first]
        return None if [line for line in telling_lines(lines) if not is_advice(line)] else self.earlier[-1]

    @property
    def raised(self) -> str:
        """The exception that it ended by, or nothing."""
        return self.fatal.users.error if self.fatal else ""

    @property
    def written_before(self) -> Traceback | None:
        """What its last exception is about, where that only tells of another program, or where to look."""
        if is_of_command(self.raised):
            return self.above
        return self.first_uncaught if points_elsewhere(self.raised) or is_wrapper(self.raised) else None

    @cached_property
    def closing_line(self) -> str:
        """The line that says why it left; of several that tell of trouble, the last."""
        return closing_line(self._behind if self._is_healed else self.own.split("\n"))

    @property
    def has_reason(self) -> bool:
        """Whether a line at its end tells of trouble."""
        return is_reason(self.closing_line)

    @property
    def said_after(self) -> str:
        """Of what it wrote behind its last exception, the line that tells of trouble."""
        line = closing_line(self._said_behind) if self._awaited else ""
        return line if is_reason(line) else ""

    @property
    def last_words(self) -> str:
        """What it wrote after all that it had caught."""
        return "\n".join(self._behind) if self._is_healed else self.own

    @property
    def last_line(self) -> str:
        """The last that the driver itself wrote."""
        return next((line.strip() for line in reversed(telling_lines(self.own.split("\n")))), "")

    @property
    def telling(self) -> str:
        """Its own words up to the exception, if it ended by one: what came behind it was written by others.

        A wrapper says behind its own line what it is about.
        """
        if self.fatal is None or is_wrapper(self.fatal.last.error):
            return self.own
        end = self.own.rfind(self.fatal.last.error) + len(self.fatal.last.error)
        return self.own[:end]

    def number_in_text(self, error: str) -> int | None:
        """The number, from 0, of the last line of its own that begins so, or that is the heading of it."""
        lines = reversed(self._parted[0])
        return next((number for number, line in lines if line.strip().startswith(error) or heads(line, error)), None)

    def source_of(self, frame: Frame) -> str:
        """The line of code that its last traceback shows below a frame; empty where it shows none."""
        lines = self.own.split("\n")
        found = (number for number in reversed(range(len(lines) - 1)) if frame_in(lines[number]) == frame)
        below = lines[number + 1] if (number := next(found, None)) is not None else ""
        return "" if frame_in(below) or not below.startswith(" ") else below.strip()

    @cached_property
    def relayed(self) -> tuple[tuple[str, Traceback], ...]:
        """Tracebacks into the user's code that Ray relayed, by whose they are."""
        return tuple(
            (label, trace)
            for label, lines in self._parted[1].items()
            for trace in tracebacks_in("\n".join(lines))
            if trace.users.users_frame is not None
        )


def _is_within(number: int, ranges: Iterable[tuple[int, int]]) -> bool:
    return any(first <= number <= last for first, last in ranges)


def driver_end(job: JobOutcome) -> DriverEnd:
    """By the end of its driver's log; without it, by the lines of it that Ray put into the job's message."""
    words = job.log.text if job.log and job.log.text.strip() else job.message or ""
    return DriverEnd(words, job.exit_code)


def with_whole_words(one: FailureSet, jobs: Iterable[JobOutcome], texts: Iterable[str] = ()) -> FailureSet:
    """With the whole of its first error where a driver or a log has it: Ray keeps the last 500 characters alone."""
    if one.wrapping is not Wrapping.OWN or user_location(one.first.message):
        return one
    calls = _CALL.findall(one.first.message)
    drivers = (driver_end(job).own for job in jobs if is_of_job(one, job))
    for words in (*drivers, *texts):
        trace = _of_call(words, calls[-1]) if calls else _ending_so(words, one.first.message)
        is_telling = user_location(trace) and (is_wrapper(headline(one.first.message)) or one.words in trace)
        if is_telling or (trace and is_end_alone(one.first.message)):
            return replace(one, first=replace(one.first, message=f"{trace.rstrip()}\n"))
    return one


def _of_call(words: str, call: str) -> str:
    """The error of that call, by the process that is named above its frames; empty where it is not there."""
    _, mark, rest = words.partition(call)
    return _FOLLOWED_BY.split(f"{call}{rest}", maxsplit=1)[0] if mark else ""


def _ending_so(words: str, message: str) -> str:
    """The error of a call whose last lines are those of the message; empty where it is not there."""
    kept = message.partition(f"{USER_MARK}\n")[2].partition("\n")[2].strip()[-_END_CHARS:]
    place = words.find(kept) if len(kept) >= _KEPT_CHARS else -1
    told = words[: place + len(kept)] if place >= 0 else ""
    called = [raised for trace in tracebacks_in(told)[-1:] for raised in trace.raised if raised.call]
    return "\n".join(told.split("\n")[called[0].first :]) if called else ""


def told_by_message(message: str) -> str:
    """What a job's message says in one line, before its log was read: what its driver raised, or wrote last."""
    words = without_ansi(message)
    heading = _HEADING.match(words)
    end = DriverEnd(words, int(heading["code"]) if heading else None)
    if end.healed:
        return end.closing_line
    if end.written_before:
        return end.written_before.users.error
    if end.raised and not is_wrapper(end.raised):
        return end.raised
    if crash := crash_words(end.own):
        return crash
    told = [line for line in end.own.split("\n") if is_exception(line) and not is_wrapper(line)]
    return told[-1].strip() if told else end.closing_line


def failure_behind(job: JobOutcome, sets: Iterable[FailureSet]) -> FailureSet | None:
    """The failure that ended the driver: raised again by it, told by Ray's exception, or named by its last lines."""
    own = sorted((one for one in sets if is_of_job(one, job)), key=lambda one: (one.first_ns, one.id))
    end = driver_end(job)
    raised = list(reversed(end.fatal.raised)) if end.fatal else []
    if not raised:
        return _named(own, end.last_words)
    again = (one for exception in raised for one in _raised_again(exception, own))
    told = (one for exception in raised for one in told_of(named_in(exception.error), own, end.text))
    return next(again, None) or next(told, None) or _ended_alike(own, end.text)


def _raised_again(raised: Raised, own: Sequence[FailureSet]) -> Iterator[FailureSet]:
    """Failures of that error, those of the same call first."""
    title = title_of(digest(raised.error))
    alike = [one for one in own if title == one.title or raised.error == one.words]
    yield from sorted(alike, key=lambda one: raised.call not in one.functions and raised.call != one.first.name)


def is_of_job(one: FailureSet, job: JobOutcome) -> bool:
    return job.job_id in one.jobs


def _named(own: Sequence[FailureSet], words: str) -> FailureSet | None:
    """A driver that caught errors and told them at its end: the first that lasted."""
    lasting = (one for one in own if one.failures > one.recovered and len(one.words) >= _LEAST_CHARS)
    return next((one for one in lasting if one.words in words), None)


def _ended_alike(own: Sequence[FailureSet], words: str) -> FailureSet | None:
    """Ray keeps the end of a long exception; the driver has all of it."""
    long = (one for one in own if len(one.first.message) >= _END_CHARS)
    return next((one for one in long if one.first.message[-_END_CHARS:].strip() in words), None)
