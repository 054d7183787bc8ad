"""What a driver said last, and which failure of its tasks that was about. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from raykeeper.history.report.failures import FailureSet
from raykeeper.history.report.fingerprint import digest, headline, title_of
from raykeeper.history.report.model import JobOutcome
from raykeeper.history.report.rules.rayexceptions import named_in, told_of

_FRAME = '  File "'
_TRACEBACK = "Traceback (most recent call last):"
_HEADING = "Job entrypoint command failed with exit code"
"""How Ray begins the message of a job, before the driver's last lines."""
_RELAYED = re.compile(r"\n(?=\((?:raylet|[^()\n]{0,200}\bpid=))")
"""Where a line begins that Ray wrote into the driver's log for others: `(raylet) Task fetch failed`, `(step pid=7)`."""
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
    own = _RELAYED.split("\n" + last_words(job), maxsplit=1)[0].partition(_HEADING)
    lines = (own[2].partition("\n")[2] if own[1] else own[0]).split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip() and not _OF_RAY.search(line)), "")


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
    own = sorted((one for one in sets if is_of_job(one, job)), key=lambda one: (one.first_ns, one.id))
    words = last_words(job)
    raised = list(_raised_in_turn(words))
    if not raised:
        return _named(own, words)
    titles = [title_of(digest(exception)) for exception in raised]
    again = (one for title in titles for one in own if one.title == title)
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
