"""What makes two failures the same: their error without the ids, paths, numbers, addresses and values in it. Pure.

A message is reduced in two steps. The first, a digest, is so plain that the database does it for millions of rows; the
second turns the few different digests that are left into titles.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from raykeeper.history.report.model import CodeLocation, Who
from raykeeper.history.report.tracebacks import is_exception, tracebacks_in
from raykeeper.history.text import without_ansi

HEAD_CHARS, TAIL_CHARS = 300, 900
"""Of a long message its two ends are looked at: who failed stands first, the exception of a traceback last."""
CUT = " [...] "

COLLAPSED = "|".join(
    (
        r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b",
        r"[0-9]+[eE][-+][0-9]+",
        r"\b(?:0x)?[0-9a-fA-F]{8,}\b",
        r"[0-9]+",
    )
)
"""UUIDs, numbers with an exponent, ids in hex, other numbers. Means the same to Python and to DuckDB."""

ARGUMENT_MARK = "At least one of the input arguments for this task could not be computed"
"""What Ray writes when a task could not start because an argument is the error of another."""
NESTED_MARK = "ray.exceptions.RayTaskError"
"""What a traceback shows where `ray.get` raised the error of another task."""

USER_MARK = "User exception:"
"""How Ray begins a user's exception; of a traceback of more than 500 characters it keeps the end."""
KEPT_END = "an exception of which Ray kept the end alone: ..."

_TITLE_CHARS = 240
_ID_BYTES = 8  # 100,000 kinds of failures over all sessions share one with a chance of 1 in 3,000 million
_COLLAPSED = re.compile(COLLAPSED, re.ASCII)
_REMOVED: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\b[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"]+"), "<url>"),
    (re.compile(r"(?<![\w])'[^'\n]*'(?!\w)|(?<![\w])\"[^\"\n]*\"(?!\w)"), "'...'"),
    (re.compile(r"(?<![\w<])(?:~|\.{1,2})?/[^\s:;,'\"()<>]+|\b[\w.-]+(?:/[\w.-]+)+"), "<path>"),
    (re.compile(r"\b0\.0\.0\.0(?::0)?\b"), "<address>"),
    (re.compile(r"(?<![A-Za-z_])[-+]?0(?:[.,]0)*(?:[eE][-+]?0)?(?![A-Za-z]*[0_])"), "#"),
    (re.compile(r"\b(?:0x)?(?=[a-fA-F]*0)[0-9a-fA-F]+\b"), "#"),
    (re.compile(r"\s+"), " "),
)
"""In this order: what holds others comes first. Numbers and ids are zeros by now."""


class Wrapping(StrEnum):
    """Whether an error is a task's own, or that of another which it was given."""

    OWN = ""
    ARGUMENT = "argument"
    NESTED = "nested"


@dataclass(frozen=True)
class Fingerprint:
    id: str
    title: str
    """What a person reads: the exception, with `#` and the like for what differs."""


def fingerprint(error_type: str, message: str) -> Fingerprint:
    """The same for every failure that differs in ids, paths, numbers, addresses or quoted values alone."""
    return fingerprint_of(error_type, _wrapping_of(message), digest(message))


def fingerprint_of(error_type: str, wrapping: Wrapping, digested: str) -> Fingerprint:
    """The second step, for a message that was digested already."""
    title = title_of(digested) or error_type
    named = "\0".join((error_type, wrapping, title)).encode()
    return Fingerprint(hashlib.blake2b(named, digest_size=_ID_BYTES).hexdigest(), title)


def cause_key(text: str, where: CodeLocation | None, who: Who | None) -> str:
    """The same for a cause that differs in ids, paths, numbers, addresses or quoted values alone, in any session.

    It goes by file and function, since lines move; where no line of code is known, by whom it happened to.
    """
    place = f"{where.file} {where.function}" if where else title_of(digest(who.text)) if who else ""
    named = "\0".join((title_of(digest(text)), place)).encode()
    return hashlib.blake2b(named, digest_size=_ID_BYTES).hexdigest()


def digest(message: str) -> str:
    """The two ends of a message, with ids and numbers as zeros."""
    is_long = len(message) > HEAD_CHARS + TAIL_CHARS + len(CUT)
    ends = f"{message[:HEAD_CHARS]}{CUT}{message[-TAIL_CHARS:]}" if is_long else message
    return _COLLAPSED.sub("0", ends)


def _wrapping_of(message: str) -> Wrapping:
    if ARGUMENT_MARK in message:
        return Wrapping.ARGUMENT
    return Wrapping.NESTED if NESTED_MARK in message else Wrapping.OWN


def title_of(digested: str) -> str:
    """The line that says what went wrong, without what differs from one failure to the next."""
    line = headline(digested)
    for pattern, replacement in _REMOVED:
        line = pattern.sub(replacement, line)
    return line.strip()[:_TITLE_CHARS]


_RAY_WORDS = {
    "The object's owner has exited": "OwnerDiedError",
    "have been lost due to node failure": "ObjectLostError",
    "timed out because no locations were found": "ObjectFetchTimedOutError",
    "The object cannot be reconstructed": "ObjectReconstructionFailedError",
    "The worker died unexpectedly while executing this task": "WorkerCrashedError",
}
"""Within long exceptions of Ray's own, whose names may be gone."""
_CHAINED = re.compile(
    r"\n(?:The above exception was the direct cause of the following exception"
    r"|During handling of the above exception, another exception occurred):\n"
)


def headline(message: str) -> str:
    """The exception that its user means, of the last traceback of a text; of any other text its first line."""
    found = tracebacks_in(message)
    if found:
        return found[-1].users.error
    lines = [line for line in without_ansi(message).splitlines() if line.strip()]
    if lines[1:] and lines[0] == USER_MARK:
        return _headline_of_end(lines[1:])
    return lines[0].strip() if lines else ""


def _headline_of_end(lines: Sequence[str]) -> str:
    """Of a traceback whose beginning is gone, with all its frames."""
    told = [line for line in lines if is_exception(line)]
    whole = " ".join(lines)
    known = [f"ray.exceptions.{name}: {words}" for words, name in _RAY_WORDS.items() if words in whole]
    told += known if not told else []
    return told[-1].strip() if told else KEPT_END + lines[-1].strip()


def is_end_alone(message: str) -> bool:
    """Whether Ray cut away what the exception was."""
    return headline(message).startswith(KEPT_END)


def passed_on_part(message: str) -> str:
    """Of exceptions that followed from each other, the first that was another task's; else all of the message."""
    parts = _CHAINED.split(message)
    return next((part for part in parts if _wrapping_of(part) is not Wrapping.OWN), message)


_CALLED = re.compile(r"ray::(.+?)\(\) \(pid=")


def innermost_function(message: str) -> str | None:
    """The task that raised what others passed on, as Ray names it in their errors."""
    called = _CALLED.findall(without_ansi(message))
    return called[-1] if called else None
