"""What a job's driver printed: the end of it, or the lines that hold some words."""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from raykeeper.history.asked import Asked
from raykeeper.history.endpoints.logs_jobs import LoggedJob, logged_job
from raykeeper.history.logs.ansi import without_codes
from raykeeper.history.logs.logstore import LogStore
from raykeeper.history.overview.linesearch import LINE_CHARS, LineSearch, LogLine, Passage
from raykeeper.history.secretpatterns import masked_text
from raykeeper.layout.logs import StoredLog

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


async def driver_log(asked: Asked, logs: LogStore, found: Mapping[str, Any], search: str = "") -> DriverLog:
    """`found` is the job as Ray's job API has it. Case does not matter to the search."""
    job = logged_job(dict(found))
    stored = await _stored(asked, logs, job)
    if isinstance(stored, str):
        return DriverLog("", job.driver_node_id, 0, stored, search, 0, 0, ())
    passages, hits, skipped = await (_searched(logs, stored, search) if search else _last_lines(logs, stored))
    return DriverLog(stored.path, job.driver_node_id, stored.size, "", search, hits, skipped, passages)


async def _stored(asked: Asked, logs: LogStore, job: LoggedJob) -> StoredLog | str:
    """The file, or why there is none."""
    if not job.submission_id:
        return NOT_SUBMITTED
    if not job.driver_node_id:
        return NOT_STARTED
    return (await logs.files(asked.session.id, job.driver_node_id)).by_path.get(job.log_name) or NOT_STORED


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
