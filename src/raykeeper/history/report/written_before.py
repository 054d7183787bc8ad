"""What a process had written before it raised an exception that says too little. Pure.

Some exceptions only point to a log (`See root cause above`). One about a command names its exit code, while the command
itself had said why.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from raykeeper.history.report.excerpts import traceback_excerpt
from raykeeper.history.report.last_words import last_words, line_address
from raykeeper.history.report.model import Excerpt, LogSlice
from raykeeper.history.report.tracebacks import Raised, tracebacks_in

_POINTS = re.compile(
    r"\broot cause above\b"
    r"|\b(?:see|check|inspect|consult)\b.{0,80}?\b(?:above|below|logs?|stderr|output|stack ?trace)\b",
    re.IGNORECASE,
)
_COMMAND = re.compile(r"(?:\w+\.)*CalledProcessError\b|.*\breturned (?:a )?non-zero (?:exit )?(?:status|code)\b")


def points_elsewhere(error: str) -> bool:
    """Whether an exception only says where to look."""
    return bool(_POINTS.search(error))


def is_of_command(error: str) -> bool:
    """Whether an exception tells that a command failed, by its exit code."""
    return bool(_COMMAND.match(error))


@dataclass(frozen=True)
class WrittenException:
    """An exception in a log, and the lines of it that matter."""

    raised: Raised
    excerpt: Excerpt


def exception_above(error: str, logs: Sequence[LogSlice]) -> WrittenException | None:
    """What the error points to: the last exception through the user's code that the process, or one that it had
    started, had written; None for an error that says enough by itself.
    """
    if not points_elsewhere(error):
        return None
    for log in sorted(logs, key=lambda log: not log.file.endswith(".err")):
        found = [one for one in tracebacks_in(log.text) if one.users.users_frame and one.users.error != error]
        if found:
            address = line_address(log, found[-1].users.last)
            return WrittenException(found[-1].users, traceback_excerpt(log.file, log.text, found[-1], address))
    return None


def words_of_command(error: str, logs: Sequence[LogSlice]) -> str:
    """The last that was written before a command failed; empty where nothing was, and for any other error."""
    return last_words(logs).text if is_of_command(error) else ""
