"""A hit as people read it: its line and those around it, without colours and secrets."""

from __future__ import annotations

from dataclasses import dataclass

from raykeeper.history.logs.reader import LogReader
from raykeeper.history.search.match import Matcher, Span
from raykeeper.history.search.scan import Run
from raykeeper.history.text import without_ansi
from raykeeper.layout.logs import StoredLog, plan_read
from raykeeper.masking import KEY_LINE, masked_lines

LINE_CHARS = 400
"""Of a line that is shown: of a longer one, the part around the hit."""
_AROUND_BYTES = 8 * 1024  # more than a private key has: one that begins before what is shown is still known for one
_KEY_LINES = 120  # of the longest keys in use, 8192 bits, with room


@dataclass(frozen=True)
class ShownLine:
    """One line, as far as it is shown."""

    offset: int
    """Of its first byte in the file."""
    text: str
    is_hit: bool = False


async def passage_of(
    hit: Span, run: Run, reader: LogReader, matcher: Matcher, context: int
) -> tuple[ShownLine, ...] | None:
    """The hit with the lines around it; None if what was found is a secret, which nobody may guess at by searching."""
    start, text = await _surroundings(hit, run, reader)
    begin, end = hit[0] - start, hit[1] - start
    # Only a private key is known by lines that are not shown.
    reach = max(context, _KEY_LINES) if KEY_LINE.encode() in text else context
    before = _lines_before(text[:begin], start, reach)
    behind = _lines_behind(text[end:], start + end, reach)
    lines = [*before, ShownLine(hit[0], _readable(text[begin:end]), is_hit=True), *behind]
    shown = masked_lines([line.text for line in lines])
    place = matcher.first_in(shown[len(before)])
    if place is None:
        return None
    first = max(0, len(before) - context)
    return tuple(
        ShownLine(line.offset, excerpt(words, place if line.is_hit else 0), line.is_hit)
        for line, words in list(zip(lines, shown, strict=True))[first : len(before) + context + 1]
    )


def excerpt(text: str, place: int) -> str:
    """What is shown of a line: all of it, or the part where the hit is."""
    if len(text) <= LINE_CHARS:
        return text
    begin = max(0, min(place - LINE_CHARS // 4, len(text) - LINE_CHARS))
    part = text[begin : begin + LINE_CHARS]
    return f"{'…' if begin else ''}{part}{'…' if begin + LINE_CHARS < len(text) else ''}"


async def _surroundings(hit: Span, run: Run, reader: LogReader) -> tuple[int, bytes]:
    """The text around a hit, and where in the file it begins."""
    start, end = max(0, hit[0] - _AROUND_BYTES), min(run.stored.size, hit[1] + _AROUND_BYTES)
    if run.start <= start and end <= run.end:
        return start, run.text[start - run.start : end - run.start]
    return await _read_around(reader, run.stored, start, end, hit)


async def _read_around(reader: LogReader, stored: StoredLog, start: int, end: int, kept: Span) -> tuple[int, bytes]:
    """The bytes [start, end) as far as no gap lies between them and those kept, and where they begin."""
    parts, at = list[bytes](), start
    async for piece in reader.exact(plan_read(stored, start, end)):
        if isinstance(piece, bytes):
            parts.append(piece)
            at += len(piece)
            continue
        if piece.end > kept[0]:
            break
        parts, start, at = [], piece.end, piece.end
    return start, b"".join(parts)


def _lines_before(text: bytes, start: int, limit: int) -> list[ShownLine]:
    """The last whole lines of what ends where a hit begins. The text itself may begin in the middle of one."""
    *parts, begun = text.rsplit(b"\n", limit + 1)
    whole = parts if len(parts) <= limit and start == 0 else parts[1:]
    at = start + len(text) - len(begun) - sum(len(part) + 1 for part in whole)
    return _split_lines(b"".join(part + b"\n" for part in whole), at)


def _lines_behind(text: bytes, start: int, limit: int) -> list[ShownLine]:
    """The first whole lines of what begins where a hit ends."""
    rest, _, behind = text.partition(b"\n")
    lines = behind.split(b"\n", limit)[:limit]
    return _split_lines(b"\n".join(lines), start + len(rest) + 1)


def _split_lines(text: bytes, start: int) -> list[ShownLine]:
    """The lines of a text that begins at this offset of its file."""
    lines, at = list[ShownLine](), start
    parts = text.split(b"\n")
    for part in parts if parts[-1] else parts[:-1]:
        lines.append(ShownLine(at, _readable(part)))
        at += len(part) + 1
    return lines


def _readable(line: bytes) -> str:
    return without_ansi(line.decode(errors="replace")).rstrip("\r")
