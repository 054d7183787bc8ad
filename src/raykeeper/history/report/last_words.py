"""What a process that died wrote last: its own words, not those of Ray or of a crash handler behind them. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from raykeeper.history.report.model import Evidence, LogSlice
from raykeeper.history.text import shortened, without_ansi

_CRASH_HANDLER = re.compile(r"\*\*\* SIG\w+ received|Fatal Python error:|\[[^\]]*\] logging\.cc:")
"""Where the dump begins that Ray and Python write about a signal."""
_FATAL = re.compile(r"Fatal Python error: .*")
_OF_LOGGERS = re.compile(
    r"(?:DEBUG|INFO)\b.*\d{4}-\d\d-\d\d|\d{4}-\d\d-\d\d.*\b(?:DEBUG|INFO)\b|\[\d{4}-\d\d-\d\d [^\]]*\] \w+\.cc:"
)
"""Lines that loggers write when all is well, and those of Ray's core."""
_LINES = 8


def last_line_of(logs: Sequence[LogSlice]) -> str:
    """The last line that the process wrote to its standard error; of a bare crash, what Python calls it."""
    own, dump = _parts(logs)
    fatal = _FATAL.search(dump)
    return shortened(own[-1].strip()) if own else fatal[0] if fatal else ""


def last_words_of(logs: Sequence[LogSlice]) -> tuple[Evidence, ...]:
    """The last lines of the process, those of its standard error first."""
    own, _ = _parts(logs)
    errors = [Evidence("log", "\n".join([f"{_errors(logs)[0].file}:", *own[-_LINES:]]))] if own else []
    output = [(log.file, _lines(log.text)[-_LINES:]) for log in logs if not log.file.endswith(".err")]
    return (*errors, *(Evidence("log", "\n".join([f"{file}:", *lines])) for file, lines in output if lines))


def _parts(logs: Sequence[LogSlice]) -> tuple[list[str], str]:
    """The lines of the process's standard error that are its own, and the dump of a crash handler behind them."""
    text = "\n".join(log.text for log in _errors(logs))
    crash = _CRASH_HANDLER.search(text)
    own, dump = (text[: crash.start()], text[crash.start() :]) if crash else (text, "")
    return _lines(own), dump


def _errors(logs: Sequence[LogSlice]) -> list[LogSlice]:
    return [log for log in logs if log.file.endswith(".err")]


def _lines(text: str) -> list[str]:
    lines = without_ansi(text).splitlines()
    return [line for line in lines if line.strip() and not _OF_LOGGERS.match(line)]
