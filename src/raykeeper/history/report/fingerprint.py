"""What makes two failures the same: their error without the ids, paths, numbers, addresses and values in it. Pure.

A message is reduced in two steps. The first, a digest, is so plain that the database does it for millions of rows; the
second turns the few different digests that are left into titles.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from enum import StrEnum

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

_TITLE_CHARS = 240
_ID_BYTES = 6  # few fingerprints are ever compared: those of one report
_COLLAPSED = re.compile(COLLAPSED, re.ASCII)
_COLOUR = re.compile(r"\x1b[^m]*m")
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
    return fingerprint_of(error_type, wrapping_of(message), digest(message))


def fingerprint_of(error_type: str, wrapping: Wrapping, digested: str) -> Fingerprint:
    """The second step, for a message that was digested already."""
    title = title_of(digested) or error_type
    named = "\0".join((error_type, wrapping, title)).encode()
    return Fingerprint(hashlib.blake2b(named, digest_size=_ID_BYTES).hexdigest(), title)


def digest(message: str) -> str:
    """The two ends of a message, with ids and numbers as zeros."""
    is_long = len(message) > HEAD_CHARS + TAIL_CHARS + len(CUT)
    ends = f"{message[:HEAD_CHARS]}{CUT}{message[-TAIL_CHARS:]}" if is_long else message
    return _COLLAPSED.sub("0", ends)


def wrapping_of(message: str) -> Wrapping:
    if ARGUMENT_MARK in message:
        return Wrapping.ARGUMENT
    return Wrapping.NESTED if NESTED_MARK in message else Wrapping.OWN


def title_of(digested: str) -> str:
    """The line that says what went wrong, without what differs from one failure to the next."""
    line = headline(digested)
    for pattern, replacement in _REMOVED:
        line = pattern.sub(replacement, line)
    return line.strip()[:_TITLE_CHARS]


def headline(message: str) -> str:
    """The exception under the last frame of a traceback; of any other text its first line."""
    lines = [line for line in _COLOUR.sub("", message).splitlines() if line.strip()]
    frames = [number for number, line in enumerate(lines) if line.startswith('  File "')]
    below = lines[frames[-1] + 1 :] if frames else lines
    return next((line.strip() for line in below if not line[0].isspace()), lines[0].strip() if lines else "")


_CALLED = re.compile(r"ray::([\w.<>]+?)\(")


def innermost_function(message: str) -> str | None:
    """The task that raised what others passed on, as Ray names it in their errors."""
    called = _CALLED.findall(_COLOUR.sub("", message))
    return called[-1] if called else None
