"""A part of a log around a place in it, as it is linked from a hit."""

from __future__ import annotations

from dataclasses import dataclass

from raykeeper.history.keeper.problems import NotThere
from raykeeper.history.logs.logstore import LogStore
from raykeeper.history.search.passages import ShownLine, excerpt, masked_lines, read_around, split_lines
from raykeeper.layout.keys import SessionId

_BEFORE_BYTES, _BEHIND_BYTES = 8 * 1024, 24 * 1024  # some hundred lines
LINES_LIMIT = 300
"""Of very short ones, so that a page keeps its size."""


@dataclass(frozen=True)
class LogPart:
    """Some lines of a file."""

    node_id: str
    file: str
    generation: str
    is_newest: bool
    """No other file has this path by now, so that Ray's own API means this one by it."""
    size: int
    lines: tuple[ShownLine, ...]
    earlier: int | None
    """A place before these lines; None at the beginning."""
    later: int | None
    """The place behind these lines; None at the end."""


async def read_part(logs: LogStore, session: SessionId, node_id: str, file: str, generation: str, at: int) -> LogPart:
    """The lines around an offset. Raises NotThere for a file that the store does not have."""
    files = await logs.files(session, node_id)
    newest = files.by_path.get(file)
    stored = files.by_generation.get(generation) if generation else newest
    if stored is None:
        raise NotThere(f"there is no log {file} of node {node_id} in session {session}")
    size = stored.size
    at = min(at, max(0, size - 1))
    begin, end = max(0, at - _BEFORE_BYTES), min(size, at + _BEHIND_BYTES)
    start, text = await read_around(logs.reader, stored, begin, end, (at, at))
    cut = text.find(b"\n", 0, max(0, at - start)) + 1 if start == begin > 0 else 0
    lines, stop = _shown(text[cut:], start + cut, at, end)
    earlier = max(0, start + cut - _BEHIND_BYTES) if start + cut > 0 else None
    later = stop if stop < size else None
    return LogPart(node_id, stored.path, stored.generation, stored is newest, size, lines, earlier, later)


def _shown(text: bytes, start: int, at: int, end: int) -> tuple[tuple[ShownLine, ...], int]:
    """The lines, the one at the place marked, and where they stop."""
    lines = split_lines(text, start)
    marked = sum(line.offset <= at for line in lines) - 1
    first = max(0, marked - LINES_LIMIT // 3)
    some = lines[first : first + LINES_LIMIT]
    is_all = first + LINES_LIMIT >= len(lines)
    stop = max(end, at + 1) if is_all else lines[first + LINES_LIMIT].offset
    texts = masked_lines([line.text for line in some])
    shown = (
        ShownLine(line.offset, excerpt(words, 0), is_hit=number + first == marked)
        for number, (line, words) in enumerate(zip(some, texts, strict=True))
    )
    return tuple(shown), stop
