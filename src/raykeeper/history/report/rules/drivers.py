"""What a driver said last, which failure of its tasks that was about, and the names of Ray's own exceptions. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from raykeeper.history.report.failures import FailureSet
from raykeeper.history.report.fingerprint import (
    USER_MARK,
    Wrapping,
    digest,
    headline,
    is_exception,
    is_wrapper,
    title_of,
)
from raykeeper.history.report.model import JobOutcome
from raykeeper.history.report.tracebacks import user_frame

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


_FRAME = '  File "'
_TRACEBACK = "Traceback (most recent call last):"
_HEADING = "Job entrypoint command failed with exit code"
"""How Ray begins the message of a job, before the driver's last lines."""
_RELAYED_LINE = re.compile(r"\((?:raylet\b|[^\n]{1,300}?\bpid=\d)[^)\n]*\) ?(?P<text>.*)")
"""A line that Ray wrote into the driver's log for others: `(raylet) Task fetch failed`, `(step pid=7) ...`."""
_CALL = re.compile(r"\(pid=\d+, ip=[^\n]*\)(?=\n)")
"""Which process of a task an error is about, as Ray writes it above the frames."""
_FOLLOWED_BY = re.compile(r"\n\n(?:The above exception was|During handling of|Traceback )")
_END_CHARS = 300
_OF_RAY = re.compile(r"^Running entrypoint for job |^\d{4}-\d\d-\d\d .*\bINFO\b")
"""What Ray itself writes into a driver's log when all is well."""
_LEAST_CHARS = 8  # shorter words may stand in any log
_FOLLOWED = ("direct cause of the following exception:", "another exception occurred:")
"""What stands between a traceback and that of an exception which followed from it."""


def last_words(job: JobOutcome) -> str:
    """The end of its driver's log; where that is not there, the lines of it that Ray put into the job's message."""
    return job.log.text if job.log and job.log.text.strip() else job.message or ""


def last_line(job: JobOutcome) -> str:
    """The last that the driver itself wrote."""
    return _last_own_line(last_words(job))


def _last_own_line(words: str) -> str:
    own = _own(words).partition(_HEADING)
    lines = (own[2].partition("\n")[2] if own[1] else own[0]).split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip() and not _OF_RAY.search(line)), "")


def raised_by_driver(job: JobOutcome) -> str:
    """The exception at the end of the driver's log, or nothing."""
    trace = trace_of(job)
    return headline(trace) if _FRAME in trace else ""


def trace_of(job: JobOutcome) -> str:
    """The driver's last traceback."""
    return _trace(last_words(job))


def _own(words: str) -> str:
    """Without the lines that Ray relayed of others, which stand anywhere between the driver's own.

    Of an error that a raylet tells, only the first line is marked; it ends with the exception.
    """
    own, is_in_error = [], False
    for line in words.split("\n"):
        if _RELAYED_LINE.match(line):
            is_in_error = USER_MARK in line
        elif is_in_error:
            is_in_error = not is_exception(line)
        else:
            own.append(line)
    return "\n".join(own)


def relayed_trace(job: JobOutcome) -> str:
    """The last traceback into a user's code that Ray relayed of another process."""
    lines = (_RELAYED_LINE.match(line) for line in last_words(job).split("\n"))
    text = "\n".join(found["text"] for found in lines if found)
    traces = [part for part in text.split(_TRACEBACK)[1:] if user_frame(part)]
    return traces[-1] if traces else ""


def with_driver_words(one: FailureSet, jobs: Iterable[JobOutcome]) -> FailureSet:
    """With the whole of its first error where a driver wrote it: Ray keeps the last 500 characters alone."""
    called = _CALL.findall(one.first.message)
    if not called or one.wrapping is not Wrapping.OWN or user_frame(one.first.message):
        return one
    for job in jobs:
        _, mark, rest = _own(last_words(job)).partition(called[-1]) if is_of_job(one, job) else ("", "", "")
        trace = _FOLLOWED_BY.split(f"{called[-1]}{rest}", maxsplit=1)[0]
        if mark and user_frame(trace) and (is_wrapper(headline(one.first.message)) or one.words in trace):
            return replace(one, first=replace(one.first, message=f"{trace.rstrip()}\n"))
    return one


def _trace(text: str) -> str:
    """The driver's last traceback, also one whose beginning was cut off; not those that Ray relays of its tasks."""
    words = _own(text)
    _, mark, trace = words.rpartition(_TRACEBACK)
    if not mark:
        rest = words.partition("\n")[2] if words.startswith(_HEADING) else words
        trace = rest if rest[:1].isspace() else ""
    return trace


def told_by_message(message: str) -> str:
    """What a job's message says in one line, before its log was read: what its driver raised, or wrote last."""
    raised = _trace(message)
    if _FRAME in raised and not is_wrapper(headline(raised)):
        return headline(raised)
    told = [line for line in _own(message).split("\n") if is_exception(line) and not is_wrapper(line)]
    return told[-1].strip() if told else _last_own_line(message)


def telling_words(job: JobOutcome) -> str:
    """Its last words up to the exception, if it ended by one: what came behind it was written by others.

    A wrapper says behind its own line what it is about.
    """
    words, raised = _own(last_words(job)), raised_by_driver(job)
    end = words.rfind(raised) + len(raised) if raised and not is_wrapper(raised) else len(words)
    return words[:end]


def failure_behind(job: JobOutcome, sets: Iterable[FailureSet]) -> FailureSet | None:
    """The failure that ended the driver: raised again by it, told by Ray's exception, or named by its last lines."""
    own = sorted((one for one in sets if is_of_job(one, job)), key=lambda one: (one.first_ns, one.id))
    words = last_words(job)
    raised = list(_raised_in_turn(_own(words)))
    if not raised:
        return _named(own, words)
    titles = [title_of(digest(exception)) for exception in raised]
    again = (
        one
        for title, said in zip(titles, raised, strict=True)
        for one in own
        if title == one.title or said == one.words
    )
    told = (one for exception in raised for one in told_of(named_in(exception), own, words))
    return next(again, None) or next(told, None) or _ended_alike(own, words)


def is_of_job(one: FailureSet, job: JobOutcome) -> bool:
    return job.job_id in one.jobs


def _raised_in_turn(words: str) -> Iterator[str]:
    """The exception of the driver's last traceback, and those that it followed from."""
    while _FRAME in (trace := _trace(words)):
        yield headline(trace)
        words = words.rpartition(_TRACEBACK)[0]
        if not words.rstrip().endswith(_FOLLOWED):
            return


def _named(own: Sequence[FailureSet], words: str) -> FailureSet | None:
    """A driver that caught errors and told them at its end: the first that lasted."""
    lasting = (one for one in own if one.failures > one.recovered and len(one.words) >= _LEAST_CHARS)
    return next((one for one in lasting if one.words in words), None)


def _ended_alike(own: Sequence[FailureSet], words: str) -> FailureSet | None:
    """Ray keeps the end of a long exception; the driver has all of it."""
    long = (one for one in own if len(one.first.message) >= _END_CHARS)
    return next((one for one in long if one.first.message[-_END_CHARS:].strip() in words), None)
