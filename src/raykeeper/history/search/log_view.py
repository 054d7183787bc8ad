"""A log as its viewer shows it: a window of numbered lines, only those that hold some words, or the next error.

Whatever the size of the file, a bounded part of it is read. Secrets are masked before anything is compared or shown.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from raykeeper.history.logs.levels import Level, level_of, may_have_error
from raykeeper.history.logs.reader import LogReader, planned
from raykeeper.history.logs.store import FilePlace, LogStore
from raykeeper.history.search.match import AnyCaseMatcher
from raykeeper.history.text import StyledText, styled_texts, without_ansi
from raykeeper.layout.keys import SessionId
from raykeeper.layout.logs import Hole, StoredLog
from raykeeper.masking import CONTEXT_BYTES, KEY_LINE, MASK, masked_lines, masked_part

WINDOW_BYTES = 48 * 1024
"""Of a file that one page shows."""
WINDOW_LINES = 400
"""Of very short ones, so that a page keeps its size."""
LINE_CHARS = 2000
"""Of a line that is shown; the rest of a longer one is in the file."""
SCANNED_BYTES = 64 << 20
"""Of a file in which one request looks for words or for an error."""
_BEFORE_BYTES = 8 * 1024  # shown before the place that was asked for
_CHUNK_BYTES = 1 << 20
_NUMBER_SECONDS, _LINE_SECONDS = 0.15, 5.0  # how long a page waits for lines to be counted


@dataclass(frozen=True)
class ViewedLine:
    """One line without secrets, in parts that look alike."""

    offset: int
    """Of its first byte in the file."""
    end: int
    """Where the next one begins."""
    number: int | None
    """From 1; None where nobody has counted so far."""
    texts: tuple[StyledText, ...]
    level: Level = ""
    is_here: bool = False
    """It is what was asked for."""
    is_gap: bool = False
    """It stands for bytes that are not stored."""
    is_ended: bool = True
    """The next line is another one: this one is not cut."""

    @property
    def text(self) -> str:
        return "".join(text for text, _ in self.texts)


@dataclass(frozen=True)
class LogWindow:
    """A part of a file."""

    lines: tuple[ViewedLine, ...]
    begin: int
    """Where the first line begins."""
    end: int
    """Where the line behind the last one begins."""
    size: int
    next_number: int | None
    """Of the line at `end`."""
    is_counting: bool = False
    """The lines are still being counted, so they have no numbers."""
    scanned: int = 0
    """Bytes in which words were looked for."""


@dataclass(frozen=True)
class FoundError:
    """Where the next error is."""

    offset: int | None
    """None where there is none in what was looked at."""
    looked_until: int
    """Behind this nobody has looked."""


@dataclass(frozen=True)
class ViewedFile:
    """One file of one session, and the means to read it."""

    logs: LogStore
    session: SessionId
    stored: StoredLog

    async def around(self, at: int) -> LogWindow:
        """The lines around an offset; the one there is marked."""
        size = self.stored.size
        at = min(at, max(0, size - 1))
        first = max(0, min(at - _BEFORE_BYTES, size - WINDOW_BYTES))
        lines = await self._lines(first, min(size, first + WINDOW_BYTES))
        here = max(0, sum(line.offset <= at for line, _ in lines) - 1)
        begin = max(0, min(here - WINDOW_LINES // 3, len(lines) - WINDOW_LINES))
        return await self._window(lines[begin : begin + WINDOW_LINES], first, here - begin)

    async def at_line(self, line: int) -> LogWindow | None:
        """The lines around one of them, which is marked; None if that takes too long to find."""
        found = await self.logs.lines.offset_of(self.session, self.stored, line, _LINE_SECONDS)
        return None if found is None else await self.around(found)

    async def from_offset(self, start: int) -> LogWindow:
        """The lines from an offset on."""
        first = min(start, self.stored.size)
        lines = await self._lines(first, min(self.stored.size, first + WINDOW_BYTES))
        return await self._window(lines[:WINDOW_LINES], first)

    async def before_offset(self, end: int) -> LogWindow:
        """The lines before an offset."""
        end = min(end, self.stored.size)
        first = max(0, end - WINDOW_BYTES)
        return await self._window((await self._lines(first, end))[-WINDOW_LINES:], first)

    async def with_words(self, words: str, start: int) -> LogWindow:
        """The lines that hold the words, in whatever case, as many as a page shows, from an offset on."""
        start = min(start, self.stored.size)
        number = await self.logs.lines.line_at(self.session, self.stored, start, _NUMBER_SECONDS)
        matcher, found, at = AnyCaseMatcher(words), list[ViewedLine](), start
        async with self.logs.searches:
            async for chunk in _chunks(self.logs.reader, self.stored, start, start + SCANNED_BYTES):
                found += await asyncio.to_thread(_first_hits, chunk, matcher, number, found)
                if _is_full(found):
                    return self._filtered(found, start, found[-1].end, number)
                number = None if number is None else number + chunk.text.count(b"\n")
                at = chunk.following
        return self._filtered(found, start, min(at, self.stored.size), number)

    async def next_error(self, start: int) -> FoundError:
        """The first line at or behind an offset that is an error."""
        at = start
        async with self.logs.searches:
            async for chunk in _chunks(self.logs.reader, self.stored, start, start + SCANNED_BYTES):
                at = chunk.following
                if may_have_error(chunk.text):
                    found = await asyncio.to_thread(_first_error, chunk)
                    if found is not None:
                        return FoundError(found, at)
        return FoundError(None, at)

    def _filtered(self, found: Sequence[ViewedLine], start: int, end: int, number: int | None) -> LogWindow:
        return LogWindow(tuple(found), start, end, self.stored.size, None, number is None, end - start)

    async def _lines(self, first: int, end: int) -> list[_MaskedLine]:
        """The lines that begin in a range; the last one only if all of it is there, or nothing else is."""
        until = min(self.stored.size, end + CONTEXT_BYTES)
        read = await _read_lines(self.logs.reader, self.stored, max(0, first - CONTEXT_BYTES), until)
        begun = ((place, line) for place, line in enumerate(read) if line.offset < end)
        shown = [place for place, line in begun if line.offset >= first or line.gap_end > first]
        if len(shown) > 1 and read[shown[-1]].end > end and not read[shown[-1]].is_gap:
            shown.pop()
        if not shown:  # in the middle of a line that is longer than what is shown
            shown = [place for place, line in enumerate(read) if line.offset <= first < line.end]
        return await asyncio.to_thread(_masked_within, read, shown, first, end)

    async def _window(self, lines: Sequence[_MaskedLine], first: int, here: int | None = None) -> LogWindow:
        viewed = [replace(_viewed(*line), is_here=place == here) for place, line in enumerate(lines)]
        begin = viewed[0].offset if viewed else first
        number = await self.logs.lines.line_at(self.session, self.stored, begin, _NUMBER_SECONDS)
        numbered, following = _numbered(viewed, number)
        end = viewed[-1].end if viewed else first
        return LogWindow(numbered, begin, end, self.stored.size, following, number is None)


@dataclass(frozen=True)
class _RawLine:
    offset: int
    text: bytes
    is_ended: bool = True
    """The next line is another one."""
    is_gap: bool = False
    gap_end: int = 0

    @property
    def end(self) -> int:
        """Where the next one begins."""
        return self.gap_end if self.is_gap else self.offset + len(self.text) + self.is_ended


_MaskedLine = tuple[_RawLine, str]
"""A line, and its text without colours and secrets."""


def _masked_within(lines: Sequence[_RawLine], shown: Sequence[int], first: int, end: int) -> list[_MaskedLine]:
    """Of some lines what lies in a range. They are masked as a whole before they are cut."""
    masked = masked_lines([_plain(line.text) for line in lines])
    found = list[_MaskedLine]()
    for line, text in ((lines[place], masked[place]) for place in shown):
        begin, stop = max(first - line.offset, 0), end - line.offset
        if line.is_gap or (begin == 0 and stop >= len(line.text)):
            found.append((line, text))
            continue
        part = replace(
            line,
            offset=line.offset + begin,
            text=line.text[begin:stop],
            is_ended=line.is_ended and stop > len(line.text),
        )
        found.append((part, text if text == MASK else _masked_cut(line.text[:begin], part.text, line.text[stop:])))
    return found


def _masked_cut(before: bytes, text: bytes, after: bytes) -> str:
    """A part of a line without secrets, by what stands around it in the line."""
    shown, lead = _plain(text), _plain(before)
    return masked_part(f"{lead}{shown}{_plain(after)}", len(lead), len(lead) + len(shown))


async def _read_lines(reader: LogReader, stored: StoredLog, start: int, end: int) -> list[_RawLine]:
    """What is stored of a range, line by line; a gap is a line of its own."""
    lines, at, text, holes = list[_RawLine](), start, bytearray(), list[Hole]()
    async for piece in reader.exact(await planned(stored, start, end)):
        if isinstance(piece, bytes):
            text += piece
            continue
        holes = holes or await _holes(stored)
        whole = _whole_hole(holes, piece)
        words = f"{whole.end - whole.start:,} bytes of this log are missing here: {piece.reason or 'never stored'}"
        lines += _raw_lines(bytes(text), at)
        lines.append(_RawLine(whole.start, words.encode(), is_ended=False, is_gap=True, gap_end=whole.end))
        at, text = piece.end, bytearray()
    return lines + _raw_lines(bytes(text), at)


async def _holes(stored: StoredLog) -> list[Hole]:
    return [piece for piece in await planned(stored, 0, stored.size) if isinstance(piece, Hole)]


def _whole_hole(holes: Sequence[Hole], part: Hole) -> Hole:
    """All of a gap of which a part was met; a frame that cannot be read is one by itself."""
    place = bisect_right(holes, part.start, key=lambda hole: hole.start) - 1
    return holes[place] if place >= 0 and part.start < holes[place].end else part


def _raw_lines(text: bytes, start: int) -> list[_RawLine]:
    """The lines of a text that begins at this offset of its file."""
    lines, at = list[_RawLine](), start
    *ended, rest = text.split(b"\n")
    for part in ended:
        lines.append(_RawLine(at, part))
        at += len(part) + 1
    return [*lines, _RawLine(at, rest, is_ended=False)] if rest else lines


def _plain(line: bytes) -> str:
    return without_ansi(line.decode(errors="replace")).rstrip("\r")


def _viewed(line: _RawLine, masked: str, number: int | None = None) -> ViewedLine:
    """A line without its secrets; where there are some, without its colours too, which could hide others."""
    if line.is_gap:
        return ViewedLine(line.offset, line.end, None, ((masked, ""),), is_gap=True, is_ended=False)
    text = line.text.decode(errors="replace").rstrip("\r")
    texts = styled_texts(text) if without_ansi(text) == masked else [(masked, "")]
    return ViewedLine(line.offset, line.end, number, _cut(texts), level_of(masked), is_ended=line.is_ended)


def _cut(texts: Iterable[StyledText]) -> tuple[StyledText, ...]:
    kept, left = list[StyledText](), LINE_CHARS
    for text, style in texts:
        if len(text) > left:
            return (*kept, (text[:left], style), (" …", ""))
        kept.append((text, style))
        left -= len(text)
    return tuple(kept)


def _numbered(lines: Sequence[ViewedLine], first: int | None) -> tuple[tuple[ViewedLine, ...], int | None]:
    """The lines with their numbers, and the number behind them. A line that a gap cuts has one number."""
    if first is None:
        return tuple(lines), None
    shown, number, is_new = list[ViewedLine](), first, True
    for line in lines:
        shown.append(replace(line, number=number) if is_new and not line.is_gap else line)
        number, is_new = number + line.is_ended, line.is_ended
    return tuple(shown), number


@dataclass(frozen=True)
class _Chunk:
    """Whole lines, and some text before them; or a gap, without text."""

    offset: int
    text: bytes
    before: bytes
    following: int
    """Where the next one begins."""
    after: bytes = b""
    """What follows in a line that is cut."""

    def around(self, begin: int, end: int) -> tuple[bytes, bytes]:
        """What stands in the same line before and after a part of it."""
        before = self.text[max(0, begin - CONTEXT_BYTES) : begin] if begin else self.before
        after = self.text[end : end + CONTEXT_BYTES] if end < len(self.text) else self.after
        return before.rpartition(b"\n")[2], after.partition(b"\n")[0]


async def _chunks(reader: LogReader, stored: StoredLog, start: int, end: int) -> AsyncIterator[_Chunk]:
    """A range in pieces of whole lines; only what is longer than any line should be is cut.

    A line that goes on behind the range is left to whoever looks on from there.
    """
    at, text, before = start, b"", await _text_before(reader, stored, start)
    async for piece in reader.exact(await planned(stored, start, end)):
        if isinstance(piece, Hole):
            # A gap costs nothing to look at, so that one at the end is passed over as a whole.
            following = piece.end if piece.end < end else _whole_hole(await _holes(stored), piece).end
            yield _Chunk(at, text, before, following)
            at, text, before = following, b"", b""
            continue
        text += piece
        cut = text.rfind(b"\n") + 1
        if not cut and len(text) > _CHUNK_BYTES:
            cut = len(text) - CONTEXT_BYTES
        if cut:
            whole, text = text[:cut], text[cut:]
            yield _Chunk(at, whole, before, at + cut, b"" if whole.endswith(b"\n") else text)
            at, before = at + cut, whole[-CONTEXT_BYTES:]
    if text and end >= stored.size:
        yield _Chunk(at, text, before, at + len(text))


async def _text_before(reader: LogReader, stored: StoredLog, start: int) -> bytes:
    """What is stored directly before an offset, a bounded part of it."""
    text = b""
    if start > stored.size:
        return text
    async for piece in reader.exact(await planned(stored, max(0, start - CONTEXT_BYTES), start)):
        text = text + piece if isinstance(piece, bytes) else b""
    return text


def _first_error(chunk: _Chunk) -> int | None:
    """Where it begins. Takes a second where a chunk is full of what may be one: for a thread."""
    for line in _raw_lines(chunk.text, chunk.offset):
        if may_have_error(line.text) and level_of(_plain(line.text)) == "error":
            return line.offset
    return None


def _first_hits(
    chunk: _Chunk, matcher: AnyCaseMatcher, number: int | None, found: Sequence[ViewedLine]
) -> list[ViewedLine]:
    """Hits until a page has enough, with those that it has. One that is all hits takes seconds: for a thread."""
    hits, more = list[ViewedLine](), _hits(chunk, matcher, number)
    lines, chars = len(found), sum(len(one.text) for one in found)
    while lines < WINDOW_LINES and chars < WINDOW_BYTES and (line := next(more, None)):
        hits.append(line)
        lines, chars = lines + 1, chars + len(line.text)
    return hits


def _is_full(found: Sequence[ViewedLine]) -> bool:
    return len(found) >= WINDOW_LINES or sum(len(one.text) for one in found) >= WINDOW_BYTES


def _hits(chunk: _Chunk, matcher: AnyCaseMatcher, number: int | None) -> Iterator[ViewedLine]:
    """The lines of a chunk that hold the words; what was found in a secret is none, since nobody may guess at it."""
    masked, counted, at = _masking(chunk), number, 0
    for begin, end in matcher.each(chunk.text):
        text = masked(begin, end)
        if matcher.first_in(text) is not None:
            counted = None if counted is None else counted + chunk.text.count(b"\n", at, begin)
            at = begin
            yield _viewed(_RawLine(chunk.offset + begin, chunk.text[begin:end]), text, counted)


def _masking(chunk: _Chunk) -> Callable[[int, int], str]:
    """What gives a line of the chunk without secrets; only a private key is known by lines around."""
    if not any(KEY_LINE.encode() in text for text in (chunk.before, chunk.text, chunk.after)):
        return lambda begin, end: _masked_piece(chunk, begin, end)
    lines = _raw_lines(chunk.before + chunk.text, chunk.offset - len(chunk.before))
    texts = dict(zip((line.offset for line in lines), masked_lines([_plain(line.text) for line in lines]), strict=True))
    return lambda begin, end: MASK if any(chunk.around(begin, end)) else texts.get(chunk.offset + begin, MASK)


def _masked_piece(chunk: _Chunk, begin: int, end: int) -> str:
    before, after = chunk.around(begin, end)
    return _masked_cut(before, chunk.text[begin:end], after)


_KEY_LINES = 120  # of the longest private keys in use, with room


class GrowingLines:
    """The lines of a file that is being written, taken piece by piece. `before` is what it has directly before."""

    def __init__(self, start: int, number: int | None, before: bytes = b"") -> None:
        self._at = start
        self._number = number
        self._rest = b""
        *lines, self._begun = before.split(b"\n")
        self._before: deque[str] = deque(map(_plain, lines), maxlen=_KEY_LINES)

    def take(self, piece: bytes, *, is_last: bool = False) -> list[ViewedLine]:
        """The lines that are whole by now; at the end, and where one is too long to wait for, what there is of it."""
        text = self._rest + piece
        cut = len(text) if is_last else text.rfind(b"\n") + 1
        if not cut and len(text) > _CHUNK_BYTES:
            cut = len(text) - CONTEXT_BYTES
        whole, self._rest = text[:cut], text[cut:]
        lines = _raw_lines(whole, self._at)
        self._at += cut
        numbered, self._number = _numbered(self._masked(lines), self._number)
        return list(numbered)

    def _masked(self, lines: Sequence[_RawLine]) -> list[ViewedLine]:
        """Without secrets; of one that was cut before, or is now, by all that is known of it."""
        plain = [_plain(line.text) for line in lines]
        masked = masked_lines([*self._before, *plain])[len(self._before) :]
        self._before.extend(plain)
        viewed = list[ViewedLine]()
        for line, text in zip(lines, masked, strict=True):
            after = b"" if line.is_ended else self._rest
            is_cut = text != MASK and (self._begun or after)
            viewed.append(_viewed(line, _masked_cut(self._begun, line.text, after) if is_cut else text))
            self._begun = b"" if line.is_ended else (self._begun + line.text)[-CONTEXT_BYTES:]
        return viewed


async def growing_lines(logs: LogStore, place: FilePlace, start: int, number: int | None) -> GrowingLines:
    """What takes the lines of a file from an offset on, as they come."""
    stored = (await logs.files(place.session, place.node_id)).by_generation.get(place.generation)
    return GrowingLines(start, number, await _text_before(logs.reader, stored, start) if stored else b"")
