"""What a driver said last, and which failure of its tasks that was about. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from raykeeper.history.report.failures import FailureSet
from raykeeper.history.report.fingerprint import digest, headline, title_of
from raykeeper.history.report.model import JobOutcome

_FRAME = '  File "'
_TRACEBACK = "Traceback (most recent call last):"
_HEADING = "Job entrypoint command failed with exit code"
"""How Ray begins the message of a job, before the driver's last lines."""
_RELAYED = re.compile(r"\n(?=\((?:raylet|[^()\n]{0,200}\bpid=))")
"""Where a line begins that Ray wrote into the driver's log for others: `(raylet) Task fetch failed`, `(step pid=7)`."""
_LEAST_CHARS = 8  # shorter words may stand in any log
_RAY_ERROR = re.compile(r"ray\.exceptions\.(\w+)")
_RAY_ERRORS = {
    "WorkerCrashedError": ("WORKER_DIED",),
    "OutOfMemoryError": ("OUT_OF_MEMORY", "WORKER_DIED"),
    "NodeDiedError": ("NODE_DIED",),
    "ActorDiedError": ("ACTOR_DIED",),
    "ActorUnavailableError": ("ACTOR_UNAVAILABLE",),
    "TaskCancelledError": ("TASK_CANCELLED",),
    "RuntimeEnvSetupError": ("RUNTIME_ENV_SETUP_FAILED",),
    "LocalRayletDiedError": ("LOCAL_RAYLET_DIED",),
    "TaskUnschedulableError": ("TASK_UNSCHEDULABLE_ERROR",),
    "ActorUnschedulableError": ("ACTOR_UNSCHEDULABLE_ERROR",),
}
"""Exceptions that `ray.get` raises, and the errors of tasks that they tell."""
_TIMED_OUT = "GetTimeoutError"


def last_words(job: JobOutcome) -> str:
    """The end of its driver's log; where that is not there, the lines of it that Ray put into the job's message."""
    return job.log.text if job.log and job.log.text.strip() else job.message or ""


def raised_by_driver(job: JobOutcome) -> str:
    """The exception at the end of the driver's log, or nothing."""
    trace = _trace(last_words(job))
    return headline(trace) if _FRAME in trace else ""


def _trace(words: str) -> str:
    """The driver's last traceback, also one whose beginning was cut off; not those that Ray relays of its tasks."""
    _, mark, trace = words.rpartition(_TRACEBACK)
    if not mark:
        rest = words.partition("\n")[2] if words.startswith(_HEADING) else words
        trace = rest if rest[:1].isspace() else ""
    return _RELAYED.split(trace, maxsplit=1)[0]


def telling_words(job: JobOutcome) -> str:
    """Its last words up to the exception, if it ended by one: what came behind it was written by others."""
    words, raised = last_words(job), raised_by_driver(job)
    end = words.rfind(raised) + len(raised) if raised else len(words)
    return words[:end]


def failure_behind(job: JobOutcome, sets: Iterable[FailureSet]) -> FailureSet | None:
    """The failure that ended the driver: raised again by it, told by Ray's exception, or named by its last lines."""
    own = sorted((one for one in sets if one.first.job_id == job.job_id), key=lambda one: (one.first_ns, one.id))
    raised = raised_by_driver(job)
    if not raised:
        return _named(own, last_words(job))
    title = title_of(digest(raised))
    return next((one for one in own if one.title == title), None) or _told_by_ray(own, last_words(job))


def _told_by_ray(own: Sequence[FailureSet], words: str) -> FailureSet | None:
    """Ray's last exception names the kind of failure."""
    errors = _RAY_ERROR.findall(words)
    if not errors:
        return None
    if errors[-1] == _TIMED_OUT:
        return next((one for one in own if one.never_ran == one.failures), None)
    kinds = _RAY_ERRORS.get(errors[-1], ())
    return next((one for one in own if one.error_type in kinds), None)


def _named(own: Sequence[FailureSet], words: str) -> FailureSet | None:
    """A driver that caught errors and told them at its end: the first that lasted."""
    lasting = (one for one in own if one.failures > one.recovered and len(one.words) >= _LEAST_CHARS)
    return next((one for one in lasting if one.words in words), None)
