"""The last lines around a failure, out of the session's log packs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from raykeeper.history.entities.log_files import FoundLog, find_log
from raykeeper.history.errors import LogUnknown
from raykeeper.history.logs.query import LogQuery, Suffix
from raykeeper.history.logs.store import LogStore
from raykeeper.history.query.context import SessionContext
from raykeeper.history.report.failures import FailedAttempt
from raykeeper.history.report.model import LogSlice

LINES = 60
"""As many as a traceback through Ray has, or what Ray writes about a signal behind a process's own last words."""
DRIVER_LINES = 150
"""Of a driver: its traceback, and what Ray relayed of others before it."""
_BYTES_LIMIT = 16 * 1024
_MARKER = re.compile(r":(?:job_id|actor_name|task_name):")
"""Lines by which Ray's log monitor knows whose output follows; its own pages hide them too."""
_SUFFIXES: tuple[Suffix, ...] = ("out", "err")


async def log_slices(context: SessionContext, failed: FailedAttempt) -> tuple[LogSlice, ...]:
    """The end of what the attempt wrote; where nobody knows which part that is, of what its worker wrote."""
    slices = []
    for suffix in _SUFFIXES:
        for query in _queries(failed, suffix):
            found = await _find(context, query)
            if found is not None:
                slices.append(await _last_lines(context.logs, found))
                break
    return tuple(one for one in slices if one.text)


async def worker_logs(context: SessionContext, node_id: str, pid: int) -> tuple[LogSlice, ...]:
    """The ends of what a worker process wrote."""
    found = [await _find(context, LogQuery(node_id=node_id, pid=pid, suffix=suffix)) for suffix in _SUFFIXES]
    slices = [await _last_lines(context.logs, one) for one in found if one is not None]
    return tuple(one for one in slices if one.text)


async def driver_log(context: SessionContext, submission_id: str) -> LogSlice | None:
    """The end of what a submitted job's driver wrote."""
    found = await _find(context, LogQuery(submission_id=submission_id))
    return await _last_lines(context.logs, found, DRIVER_LINES) if found else None


def _queries(failed: FailedAttempt, suffix: Suffix) -> Iterator[LogQuery]:
    """Ever less exact ways to say which file is meant."""
    yield LogQuery(task_id=failed.task_id, attempt_number=failed.attempt_number, suffix=suffix)
    if failed.node_id and failed.pid:
        yield LogQuery(node_id=failed.node_id, pid=failed.pid, suffix=suffix)
    if failed.actor_id:
        yield LogQuery(actor_id=failed.actor_id, suffix=suffix)


async def _find(context: SessionContext, query: LogQuery) -> FoundLog | None:
    try:
        return await find_log(context, query)
    except LogUnknown:
        return None


async def _last_lines(logs: LogStore, found: FoundLog, lines: int = LINES) -> LogSlice:
    floor = max(found.start, found.end - _BYTES_LIMIT)
    start = await logs.reader.tail_start(found.stored, floor, found.end, lines)
    text = b"".join([piece async for piece in logs.reader.stream(found.stored, start, found.end)])
    written = text.decode(errors="replace").splitlines(keepends=True)
    return LogSlice(found.node_id, found.stored.path, "".join(line for line in written if not _MARKER.match(line)))
