"""What a process that died wrote last: its own words, not those of Ray or of a crash handler behind them. Pure.

The standard error comes before the standard output. An exception that the process itself wrote is better than its last
line, and a line that tells of trouble better than one about progress.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from raykeeper.history.report.excerpts import frame_lines
from raykeeper.history.report.model import Address, CodeLocation, Evidence, Excerpt, LineKind, LogSlice, ShownLine
from raykeeper.history.report.tracebacks import crash_frame, crash_stack, crash_words, tracebacks_in
from raykeeper.history.text import shortened

_CRASH_HANDLER = re.compile(r"\*\*\* SIG\w+ received|Fatal Python error:|\[[^\]]*\] logging\.cc:")
"""Where the dump begins that Ray and Python write about a signal."""
_OF_LOGGERS = re.compile(
    r"(?:DEBUG|INFO)\b.*\d{4}-\d\d-\d\d|\d{4}-\d\d-\d\d.*\b(?:DEBUG|INFO)\b|\[\d{4}-\d\d-\d\d [^\]]*\] \w+\.cc:"
    r"|Reporting training result \d"
)
"""Lines that loggers write when all is well, and those of Ray's core."""
NATIVE_FRAME = r"^frame #\d+: |^\s*@ +0x[0-9a-f]+"
"""A frame of C++, as torch and others write it."""
_AT_EXIT = re.compile(
    rf"{NATIVE_FRAME}|resource_tracker|leaked (?:semaphore|shared_memory)|^\s*warnings\.warn\(|\bUserWarning:"
)
"""What is added behind the words of a program that is at its end."""
_TROUBLE = re.compile(
    r"error|exception|fail|fatal|abort|corrupt|\blost\b|refuse|cannot|can't|could not|out of memory|oom\b|denied|kill"
    r"|invalid|panic|segv|segfault|signal|assert|time(?:d )?out|no space|not found|missing|overflow|\bnan\b|unable"
    r"|what\(\):|out of (?:range|bounds)|crash|giv(?:e|ing) up|illegal|exceed|leaving|broken|\bbad\b",
    re.IGNORECASE,
)
_NO_TROUBLE = re.compile(r"\b(?:0|no|without) (?:errors?|failures?|failed)\b", re.IGNORECASE)
MARKER = re.compile(r":(?:job_id|actor_name|task_name):")
"""Lines by which Ray's log monitor knows whose output follows; its own pages hide them too."""
_ACTOR = re.compile(r"^:actor_name:(?P<name>.+)$", re.MULTILINE)
_PROGRESS = re.compile(
    r"\d+%\||\bit/s\b|\d+(?:\.\d+)?%|^\s*(?:epoch|step|iter\w*|batch|load\w*|download\w*|start\w*|finish\w*|done)\b",
    re.IGNORECASE,
)
"""What programs write while all goes well, some of them to their standard error."""
_NEAR = 12
"""Lines before the last among which trouble is looked for."""
_LINES = 8
_BEFORE = 3
"""Lines before the one that tells most: of an exception that others followed from, the frame that raised it."""


@dataclass(frozen=True)
class LastWords:
    """The line that tells most, and where."""

    text: str = ""
    where: CodeLocation | None = None
    is_error: bool = False
    """It tells of trouble: else it is only the last that the process wrote."""
    excerpts: tuple[Excerpt, ...] = ()

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The excerpts as plain facts."""
        return tuple(
            Evidence("log", "\n".join([f"{one.address.file}:", *(line.text for line in one.lines)]), None, one.address)
            for one in self.excerpts
        )


def tells_trouble(line: str) -> bool:
    """Whether a line has one of the words that programs use when something is wrong."""
    return bool(_TROUBLE.search(_NO_TROUBLE.sub("", line)))


def last_words(logs: Sequence[LogSlice]) -> LastWords:
    """Of what a process wrote to its standard error and output."""
    errors = [log for log in logs if log.file.endswith(".err")]
    others = [log for log in logs if not log.file.endswith(".err")]
    said = [_said(log) for log in (*errors, *others)]
    found = next((one for one in said if one.is_error), None) or next((one for one in said if one.text), LastWords())
    crashed = next((log for log in (*errors, *others) if _parts(log)[1]), None)
    crash = _parts(crashed)[1] if crashed else ""
    frame = crash_frame(crash)
    if not found.text or not found.is_error:
        found = replace(
            found, text=crash_words(crash) or found.text, is_error=bool(crash_words(crash)) or found.is_error
        )
    where = found.where or (frame.location if frame else None)
    excerpts = (excerpt for one in said for excerpt in one.excerpts)
    stack = crash_excerpt(crashed.file, crash, _crash_address(crashed)) if crashed and frame else None
    return replace(found, where=where, excerpts=(*([stack] if stack else []), *excerpts))


def _crash_address(log: LogSlice) -> Address:
    lines = log.text.split("\n")
    words = crash_words(log.text)
    return line_address(log, next((number for number, line in enumerate(lines) if words in line), 0))


def crash_excerpt(title: str, text: str, address: Address) -> Excerpt:
    """Where a process was when a signal ended it, as Python's crash handler wrote it."""
    error = ShownLine(crash_words(text), LineKind.ERROR)
    return Excerpt(title, (error, *frame_lines(crash_stack(text))), address)


def _said(log: LogSlice) -> LastWords:
    """Of one file."""
    own, _ = _parts(log)
    lines = [(number, line) for number, line in enumerate(own.split("\n")) if _is_own(line)]
    if not lines:
        return LastWords()
    trace = _trace(own)
    if trace is not None:
        number, text, where = trace
        return LastWords(
            shortened(text), where, is_error=True, excerpts=(_excerpt(log, lines, number, LineKind.ERROR),)
        )
    telling = [(number, line) for number, line in lines[-_NEAR:] if tells_trouble(line)]
    number, text = (telling or lines)[-1]
    is_error = bool(telling) or (log.file.endswith(".err") and not _PROGRESS.search(text))
    kind = LineKind.ERROR if is_error else LineKind.LOG
    return LastWords(shortened(text.strip()), None, is_error, (_excerpt(log, lines, number, kind),))


def _trace(own: str) -> tuple[int, str, CodeLocation | None] | None:
    """The exception that the process wrote at its end, the number of its line, and where it was raised."""
    found = [one for one in tracebacks_in(own) if not one.is_noise]
    if not found:
        return None
    raised = found[-1].users
    after = [line for line in own.split("\n")[found[-1].last.last + 1 :] if _is_own(line)]
    frame = raised.users_frame
    return (raised.last, raised.error, frame.location if frame else None) if len(after) <= _NEAR else None


def _excerpt(log: LogSlice, lines: Sequence[tuple[int, str]], telling: int, kind: LineKind) -> Excerpt:
    """The last lines, or those around the one that tells most, where that is before them."""
    place = next(place for place, (number, _) in enumerate(lines) if number == telling)
    begin = max(0, min(place - _BEFORE, len(lines) - _LINES))
    shown = lines[begin : begin + _LINES]
    first = log.line
    made = tuple(
        ShownLine(
            shortened(text.rstrip()),
            kind if number == telling else LineKind.LOG,
            None if first is None else first + number,
        )
        for number, text in shown
    )
    return Excerpt(log.file, made, line_address(log, telling))


def line_address(log: LogSlice, number: int) -> Address:
    """Of a line of what was read of a file, by its number there, from 0."""
    return Address(
        node_id=log.node_id,
        file=log.file,
        offset=log.offset,
        line=None if log.line is None else log.line + number,
    )


def _parts(log: LogSlice) -> tuple[str, str]:
    """What the process itself wrote, and the dump of a crash handler behind it."""
    crash = _CRASH_HANDLER.search(log.text)
    return (log.text[: crash.start()], log.text[crash.start() :]) if crash else (log.text, "")


def without_markers(log: LogSlice) -> LogSlice:
    """Without the lines by which Ray knows whose output follows."""
    lines = log.text.splitlines(keepends=True)
    return replace(log, text="".join(line for line in lines if not MARKER.match(line)))


def actor_in(text: str) -> str:
    """What the actor that wrote it called itself last; empty where no line says so."""
    names = [found["name"].strip() for found in _ACTOR.finditer(text)]
    return names[-1] if names else ""


def _is_own(line: str) -> bool:
    is_others = _OF_LOGGERS.match(line) or _AT_EXIT.search(line) or MARKER.match(line)
    return bool(line.strip()) and not is_others
