"""The log of a job's driver: its end, or the lines that match a search."""

from __future__ import annotations

import asyncio
import codecs
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass

from raykeeper.history.entities.job import Job
from raykeeper.history.logs.query import without_codes
from raykeeper.history.logs.store import LogStore
from raykeeper.history.query.context import SessionContext
from raykeeper.layout.logs import StoredLog
from raykeeper.masking import MASK, KeyLines, masked_text

CONTEXT_LINES = 2
LINE_CHARS = 600
"""Of one line; the rest of a longer one is left out."""


@dataclass(frozen=True)
class LogLine:
    number: int | None
    """From 1; None where only the end of the file was read."""
    text: str
    is_hit: bool = False


@dataclass(frozen=True)
class Passage:
    """Lines that follow each other."""

    lines: tuple[LogLine, ...]


class LineSearch:
    """Takes a text line by line and keeps the passages around hits.

    What is kept is masked, and a hit counts only if the masked line is one: nobody may guess at a secret by searching.
    """

    def __init__(self, words: str, limit: int) -> None:
        self._words = words.casefold()
        self._limit = limit
        self._before: deque[tuple[int, str]] = deque(maxlen=CONTEXT_LINES)
        self._passages: list[list[LogLine]] = []
        self._after = 0
        self._key = KeyLines()
        self.hits = 0
        """All of them, also those beyond the limit."""

    def take(self, number: int, line: str) -> None:
        is_key = self._key.holds(line)
        is_hit = not is_key and self._words in line.casefold() and self._words in masked_text(line).casefold()
        self.hits += is_hit
        line = MASK if is_key else line
        if is_hit and self.hits <= self._limit:
            self._keep_hit(number, line)
        elif self._after:
            self._after -= 1
            self._passages[-1].append(_shown(number, line))
        else:
            self._before.append((number, line))

    @property
    def passages(self) -> tuple[Passage, ...]:
        return tuple(Passage(tuple(lines)) for lines in self._passages)

    def _keep_hit(self, number: int, line: str) -> None:
        first = self._before[0][0] if self._before else number
        if not self._passages or self._passages[-1][-1].number != first - 1:
            self._passages.append([])
        self._passages[-1] += [_shown(*before) for before in self._before]
        self._passages[-1].append(_shown(number, line, is_hit=True))
        self._before.clear()
        self._after = CONTEXT_LINES


def _shown(number: int, line: str, *, is_hit: bool = False) -> LogLine:
    return LogLine(number, masked_text(line)[:LINE_CHARS], is_hit)


LAST_LINES = 60
HITS_LIMIT = 100
SEARCHED_BYTES = 64 << 20
"""Of the file's end: a page may not read gigabytes. The session's own search reads everything."""
_TAIL_BYTES = 64 * 1024
_LINES_A_TURN = 2000  # other requests are served in between

NOT_SUBMITTED = "This driver was not submitted as a job, so it wrote to its own terminal."
NOT_STARTED = "This job never had a driver, so there is no log."
NOT_STORED = "The driver's log is not in the store."


@dataclass(frozen=True)
class DriverLog:
    """A part of what the driver printed."""

    file: str
    node_id: str
    size_bytes: int
    missing: str
    """Why there is no log; empty where there is."""
    search: str
    """What was looked for; empty: nothing, so the last lines are shown."""
    hits: int
    """Lines that hold it, also those beyond the first hundred."""
    skipped_bytes: int
    """At the beginning of the file, which were not searched because the file is too long."""
    passages: tuple[Passage, ...]


async def driver_log(context: SessionContext, job: Job, search: str = "") -> DriverLog:
    """Case does not matter to the search."""
    logs = context.logs
    stored = await _stored(context, job)
    if isinstance(stored, str):
        return DriverLog("", job.driver_node_id, 0, stored, search, 0, 0, ())
    passages, hits, skipped = await (_searched(logs, stored, search) if search else _last_lines(logs, stored))
    return DriverLog(stored.path, job.driver_node_id, stored.size, "", search, hits, skipped, passages)


async def _stored(context: SessionContext, job: Job) -> StoredLog | str:
    """The file, or why there is none."""
    if not job.is_submission:
        return NOT_SUBMITTED
    if not job.driver_node_id:
        return NOT_STARTED
    return (await context.logs.files(context.session.id, job.driver_node_id)).by_path.get(job.log_name) or NOT_STORED


async def _last_lines(logs: LogStore, stored: StoredLog) -> tuple[tuple[Passage, ...], int, int]:
    size = stored.size
    start = await logs.reader.tail_start(stored, max(0, size - _TAIL_BYTES), size, LAST_LINES)
    pieces = [piece async for piece in without_codes(logs.reader.stream(stored, start, size))]
    text = masked_text(b"".join(pieces).decode(errors="replace"))
    lines = tuple(LogLine(None, line[:LINE_CHARS]) for line in text.splitlines())
    return ((Passage(lines),) if lines else ()), 0, 0


async def _searched(logs: LogStore, stored: StoredLog, words: str) -> tuple[tuple[Passage, ...], int, int]:
    search, number, skipped = LineSearch(words, HITS_LIMIT), 0, max(0, stored.size - SEARCHED_BYTES)
    async for line in _lines(without_codes(logs.reader.stream(stored, skipped, stored.size))):
        number += 1
        search.take(number, line)
        if number % _LINES_A_TURN == 0:
            await asyncio.sleep(0)
    return search.passages, search.hits, skipped


async def _lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[str]:
    """Whole lines without their ends, also where a piece cuts one, or a character."""
    decoder, rest = codecs.getincrementaldecoder("utf-8")(errors="replace"), ""
    async for piece in pieces:
        *whole, rest = (rest + decoder.decode(piece)).split("\n")
        for line in whole:
            yield line
    if rest:
        yield rest
