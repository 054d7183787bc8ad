"""Which of the last lines of a program that left by itself says why it did. Pure.

Programs that leave with an exit code mostly write why as their last line: `train.py: error: ...`, the text of
`sys.exit`. Advice, rules and word that they leave may follow it; a list may, too, whose heading says what it is about.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from raykeeper.history.report.last_words import NATIVE_FRAME, tells_trouble

_NEAR = 12
"""Lines before the last among which the reason is looked for."""
_DRAWN = re.compile(r"^[\s│╭╰├─╮╯┤|+=-]*$|^[│|].*[│|]\s*$|^[╭┌].*[╮┐]\s*$|^={3,} .* ={3,}$")
"""Tables and rules, which libraries print for people."""
_PANEL = re.compile(r"^╭─+ Error ─*╮\s*$")
"""Where the box begins in which typer says what is wrong."""
_OF_RAY = re.compile(r"^Running entrypoint for job |^\d{4}-\d\d-\d\d .*\bINFO\b|^INFO \d{4}-\d\d-\d\d ")
"""What Ray itself writes into a driver's log when all is well."""
_LOGGED_BY_RAY = r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+\s+[A-Z]+ \w+\.py:\d+ -- "
_ADVICE = re.compile(
    r"^Try '.*' for help|^(?:For|See) (?:more|further|full) |^See https?:|^hint: |^note: |^\[notice\]|^wandb: |^Usage: "
    r"|^Set the environment variable \w+=|^For debugging consider|^Compile with |^run with `RUST_BACKTRACE"
    r"|resource_tracker|leaked (?:semaphore|shared_memory)|^\s*warnings\.warn\(|\bUserWarning:"
    rf"|{NATIVE_FRAME}|{_LOGGED_BY_RAY}|^(?:DEBUG|INFO)\b|^\S* ?\S* ?\[?(?:DEBUG|INFO)\b",
)
"""What is written beside the reason: where to read more, frames of native code, what goes on at any exit."""
_BARE = re.compile(
    r"^\W*(?:[\w.-]+\W+){0,3}?(?:exit(?:ing|ed)?|abort(?:ing|ed)?|terminat(?:ing|ed)|stopp(?:ing|ed)|shutting down|quit"
    r"|quitting|leaving)\b(?:\W+[\w-]+){0,4}\W*$|\bexit (?:code|status) -?\d+\W*$|^make(?:\[\d+\])?: \*\*\* ",
    re.IGNORECASE,
)
"""It says that the program ends, and not why."""
_WARNING = re.compile(r"^.{0,60}?\bWARN(?:ING)?\b")
_ERROR = re.compile(
    r"^.{0,60}?\b(?:ERROR|CRITICAL|FATAL)\b|^(?:[\w./-]+: )*(?:[Ee]rror|[Ff]atal(?: error)?|panic): ",
)
"""The program itself calls it an error."""
_ITEM = re.compile(r"^\s+\S|^[-*•] |^\d+[.)] |^\S+$|^[\w.()-]+: ")
"""What may stand in a list."""


_MESSAGES = ("msg", "message", "event")
"""Names under which loggers write what they have to say."""


def telling_lines(lines: Sequence[str]) -> list[str]:
    """Without rules, tables and what Ray writes; what stands in a panel about an error as one line."""
    return [line for line in _unboxed(lines) if line.strip() and not _OF_RAY.search(line) and not _DRAWN.match(line)]


def _unboxed(lines: Sequence[str]) -> Iterator[str]:
    panel: list[str] | None = None
    for line in lines:
        if _PANEL.match(line):
            panel = []
        elif panel is not None and line.startswith("│"):
            panel.append(line.strip("│ "))
        elif panel:
            yield f"Error: {' '.join(panel)}"
            panel = None
        else:
            yield line


def is_advice(line: str) -> bool:
    """Whether it is no part of what the program itself says."""
    return bool(_ADVICE.search(line))


def is_reason(line: str) -> bool:
    """Whether it tells of trouble, and not only that the program ends."""
    return tells_trouble(line) and not _BARE.search(line) and not is_advice(line)


def closing_line(lines: Sequence[str]) -> str:
    """The line that says why; where none tells of trouble, the last."""
    own = telling_lines(lines)
    near = ([line for line in own if not is_advice(line)] or own)[-_NEAR:]
    if heading := _heading(near):
        return heading
    told = [line for line in near if is_reason(line) and not _WARNING.match(line)]
    reasons = [line for line in told if not line[0].isspace()] or told  # what is indented belongs to a line before
    if near and near[-1] in reasons:
        return near[-1].strip()
    errors = [line for line in reasons if _ERROR.match(line)]
    return (errors or reasons or near or [""])[-1].strip()


def message_of(line: str) -> str:
    """What a line says; of an entry of a log that is JSON, its message."""
    if not line.startswith("{"):
        return line
    try:
        entry = msgspec.json.decode(line, type=dict[str, object])
    except msgspec.DecodeError:
        return line
    return next((text for name in _MESSAGES if isinstance(text := entry.get(name), str) and text), line)


def heads(line: str, closing: str) -> bool:
    """Whether the closing line is made of this one, which ends with a colon, and of what stands below it."""
    return line.rstrip().endswith(":") and closing.startswith(f"{line.strip()} ")


def _heading(lines: Sequence[str]) -> str:
    """The line above the list that they end with, if it tells of trouble, with the first of it: `2 are missing: a`."""
    for place in reversed(range(len(lines) - 1)):
        line, items = lines[place].strip(), lines[place + 1 :]
        if line.endswith(":") and is_reason(line) and not _WARNING.match(line):
            is_list = all(_ITEM.match(item) and not _ERROR.match(item) for item in items)
            return f"{line} {items[0].strip()}" if is_list else ""
    return ""
