"""The lines that matter: of a traceback the user's frames and the error, with Ray's frames folded. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from raykeeper.history.report.model import NOWHERE, Address, Excerpt, LineKind, ShownLine
from raykeeper.history.report.tracebacks import HEADER, Raised, Traceback, bare_lines, frame_in, is_chain_line
from raykeeper.history.text import counted, shortened, without_ansi

TRACE_LINES = 30
"""Of one exception."""
_MESSAGE_LINES = 6
"""Of the message of an exception, after its first line."""
_HELP = ("To change ", "Some common causes", "If you see", "For more information", "See https://")
"""How the advice of libraries begins, which is no part of what happened."""


def trace_excerpt(title: str, text: str, raised: Raised, address: Address = NOWHERE) -> Excerpt:
    """One exception of a text."""
    lines = list(bare_lines(without_ansi(text).split("\n")))
    shown = [*frame_lines(lines[raised.first : raised.last]), *_message(lines, raised)]
    if len(shown) > TRACE_LINES:
        cut = ShownLine(f"  ... {counted(len(shown) - TRACE_LINES, 'line')}", LineKind.FOLDED)
        shown = [*shown[:2], cut, *shown[-(TRACE_LINES - 2) :]]
    return Excerpt(title, tuple(shown), address)


def traceback_excerpt(title: str, text: str, trace: Traceback, address: Address = NOWHERE) -> Excerpt:
    """The exception of a traceback that its user means."""
    return trace_excerpt(title, text, trace.users, address)


def frame_lines(lines: Sequence[str]) -> Iterator[ShownLine]:
    """Frames in the user's code with their source; runs of others as one line."""
    folded, is_own = 0, True
    for line in lines:
        frame = frame_in(line)
        if frame is not None:
            is_own = frame.is_users
            folded += not is_own
        if HEADER in line or not line.strip() or not is_own:
            continue
        if frame is None and not line.startswith((" ", "\t", "|")):
            continue
        if folded:
            yield _fold(folded)
            folded = 0
        if set(line.strip()) - set("^~"):
            yield ShownLine(shortened(line.rstrip()), LineKind.OWN)
    if folded:
        yield _fold(folded)


def _fold(frames: int) -> ShownLine:
    return ShownLine(f"  ... {counted(frames, 'frame')} of Ray and other packages", LineKind.FOLDED)


def _message(lines: Sequence[str], raised: Raised) -> Iterator[ShownLine]:
    """The error, and the further lines of its message."""
    yield ShownLine(shortened(raised.error), LineKind.ERROR)
    for line in lines[raised.last + 1 : raised.last + 1 + _MESSAGE_LINES]:
        if not line.strip() or HEADER in line or is_chain_line(line) or line.startswith(_HELP) or frame_in(line):
            return
        yield ShownLine(shortened(line.rstrip()), LineKind.LOG)
