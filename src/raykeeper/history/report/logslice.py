"""The last lines around a failure, out of the session's log packs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from raykeeper.history.answers import LogUnknown
from raykeeper.history.asked import Asked
from raykeeper.history.endpoints.logs_resolve import Found, find_log
from raykeeper.history.logs.logquery import LogQuery, Suffix
from raykeeper.history.logs.logstore import LogStore
from raykeeper.history.report.failures import FailedAttempt
from raykeeper.history.report.model import LogSlice

LINES = 20
"""Of each of its two files: what a person reads before opening the whole log."""
DRIVER_LINES = 60
"""Of a driver: as many as a traceback through Ray has."""
_BYTES_LIMIT = 8 * 1024
_MARKER = re.compile(r":(?:job_id|actor_name|task_name):")
"""Lines by which Ray's log monitor knows whose output follows; its own pages hide them too."""
_SUFFIXES: tuple[Suffix, ...] = ("out", "err")


async def log_slices(asked: Asked, failed: FailedAttempt) -> tuple[LogSlice, ...]:
    """The end of what the attempt wrote; where nobody knows which part that is, of what its worker wrote."""
    if not isinstance(asked.logs, LogStore):
        return ()
    slices = []
    for suffix in _SUFFIXES:
        for query in _queries(failed, suffix):
            found = await _find(asked, asked.logs, query)
            if found is not None:
                slices.append(await _last_lines(asked.logs, found))
                break
    return tuple(one for one in slices if one.text)


async def driver_log(asked: Asked, submission_id: str) -> LogSlice | None:
    """The end of what a submitted job's driver wrote."""
    if not isinstance(asked.logs, LogStore):
        return None
    found = await _find(asked, asked.logs, LogQuery(submission_id=submission_id))
    return await _last_lines(asked.logs, found, DRIVER_LINES) if found else None


def _queries(failed: FailedAttempt, suffix: Suffix) -> Iterator[LogQuery]:
    """Ever less exact ways to say which file is meant."""
    yield LogQuery(task_id=failed.task_id, attempt_number=failed.attempt_number, suffix=suffix)
    if failed.node_id and failed.pid:
        yield LogQuery(node_id=failed.node_id, pid=failed.pid, suffix=suffix)
    if failed.actor_id:
        yield LogQuery(actor_id=failed.actor_id, suffix=suffix)


async def _find(asked: Asked, logs: LogStore, query: LogQuery) -> Found | None:
    try:
        return await find_log(asked, logs, query)
    except LogUnknown:
        return None


async def _last_lines(logs: LogStore, found: Found, lines: int = LINES) -> LogSlice:
    floor = max(found.start, found.end - _BYTES_LIMIT)
    start = await logs.reader.tail_start(found.stored, floor, found.end, lines)
    text = b"".join([piece async for piece in logs.reader.stream(found.stored, start, found.end)])
    written = text.decode(errors="replace").splitlines(keepends=True)
    return LogSlice(found.node_id, found.stored.path, "".join(line for line in written if not _MARKER.match(line)))
