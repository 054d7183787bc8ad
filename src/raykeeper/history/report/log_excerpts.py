"""The last lines around a failure, out of the session's log packs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from raykeeper.history.entities.log_files import FoundLog, find_log
from raykeeper.history.errors import LogUnknown
from raykeeper.history.logs.query import LogQuery, Suffix
from raykeeper.history.logs.store import LogStore
from raykeeper.history.query.context import SessionContext
from raykeeper.history.report.failures import FailedAttempt
from raykeeper.history.report.last_words import actor_in, without_markers
from raykeeper.history.report.model import LogSlice
from raykeeper.history.text import without_ansi
from raykeeper.layout.logs import StoredLog
from raykeeper.masking import masked_text

LINES = 60
"""As many as a traceback through Ray has, or what Ray writes about a signal behind a process's own last words."""
DRIVER_LINES = 500
"""Of a driver: its traceback, and what Ray relayed of others before and behind it."""
_BYTES_LIMIT, _DRIVER_BYTES_LIMIT = 16 * 1024, 128 * 1024
_HEAD_BYTES = 4096
_NUMBERED_BYTES = 4 << 20
"""Of a file before its last lines: they are numbered where no more than this has to be counted."""
_LIBRARY_FILES = 500
"""Files of a library: each replica of Serve has one."""
_SUFFIXES: tuple[Suffix, ...] = ("out", "err")


async def log_slices(context: SessionContext, failed: FailedAttempt) -> tuple[LogSlice, ...]:
    """The end of what the attempt wrote; where nobody knows which part that is, of what its worker wrote."""
    slices = []
    nodes = [] if failed.node_id or not failed.pid else await context.logs.node_ids(context.session.id)
    for suffix in _SUFFIXES:
        for query in (*_queries(failed, suffix), *_queries_anywhere(failed, nodes, suffix)):
            found = await _find(context, query)
            if found is not None:
                slices.append(await _last_lines(context.logs, found))
                break
    return tuple(one for one in slices if without_markers(one).text.strip())


async def worker_logs(context: SessionContext, node_id: str, pid: int) -> tuple[LogSlice, ...]:
    """The ends of what a worker process wrote."""
    found = [await _find(context, LogQuery(node_id=node_id, pid=pid, suffix=suffix)) for suffix in _SUFFIXES]
    slices = [await _last_lines(context.logs, one) for one in found if one is not None]
    return tuple(one for one in slices if without_markers(one).text.strip())


async def actor_name(context: SessionContext, failed: FailedAttempt) -> str:
    """What the actor called itself in the first lines of its log; empty where it did not."""
    nodes = await context.logs.node_ids(context.session.id)
    for node_id in [failed.node_id] if failed.node_id else nodes if len(nodes) == 1 else []:
        found = await _find(context, LogQuery(node_id=node_id, pid=failed.pid, suffix="err")) if failed.pid else None
        if found is not None:
            head = context.logs.reader.stream(found.stored, 0, min(_HEAD_BYTES, found.stored.size))
            return actor_in(b"".join([piece async for piece in head]).decode(errors="replace"))
    return ""


async def driver_log(context: SessionContext, submission_id: str) -> LogSlice | None:
    """The end of what a submitted job's driver wrote."""
    found = await _find(context, LogQuery(submission_id=submission_id))
    return await _last_lines(context.logs, found, DRIVER_LINES, _DRIVER_BYTES_LIMIT) if found else None


@dataclass(frozen=True)
class LibraryLog:
    """The end of a log file of one of Ray's libraries, as it was written."""

    kind: str
    """What its pattern calls `kind`: which component wrote it."""
    node_id: str
    file: str
    text: str
    offset: int = 0
    is_whole: bool = True


async def library_logs(
    context: SessionContext, pattern: re.Pattern[str], limits: Mapping[str, int], all_bytes: int
) -> list[LibraryLog]:
    """The ends of all files whose path matches, the newest first: of each kind at most so many bytes, and of all."""
    found: list[tuple[str, str, StoredLog]] = []
    for node_id in await context.logs.node_ids(context.session.id):
        files = await context.logs.files(context.session.id, node_id)
        found += [(node_id, path, stored) for path, stored in files.by_path.items() if pattern.fullmatch(path)]
    found.sort(key=lambda one: (-one[2].last_read_ns, one[1]))
    read, left = [], all_bytes
    for node_id, path, stored in found[:_LIBRARY_FILES]:
        matched = pattern.fullmatch(path)
        kind = matched["kind"] if matched else ""
        start = max(0, stored.size - min(left, limits[kind]))
        data = b"".join([piece async for piece in context.logs.reader.stream(stored, start, stored.size)])
        left -= len(data)
        read.append(LibraryLog(kind, node_id, path, data.decode(errors="replace"), start, is_whole=start == 0))
    return read


_DATA_FILE = re.compile(r"ray-data/(?P<kind>ray-data).*?\.log(?:\.\d+)?")
_DATA_BYTES = 1 << 20


async def data_texts(context: SessionContext) -> list[str]:
    """The ends of Ray Data's logs: it writes whole errors there, of which Ray keeps the last 500 characters."""
    logs = await library_logs(context, _DATA_FILE, {"ray-data": _DATA_BYTES}, 4 * _DATA_BYTES)
    return [masked_text(without_ansi(log.text), keeps_lines=True) for log in logs]


def _queries(failed: FailedAttempt, suffix: Suffix) -> Iterator[LogQuery]:
    """Ever less exact ways to say which file is meant."""
    yield LogQuery(task_id=failed.task_id, attempt_number=failed.attempt_number, suffix=suffix)
    if failed.node_id and failed.pid:
        yield LogQuery(node_id=failed.node_id, pid=failed.pid, suffix=suffix)
    if failed.actor_id:
        yield LogQuery(actor_id=failed.actor_id, suffix=suffix)


def _queries_anywhere(failed: FailedAttempt, nodes: Sequence[str], suffix: Suffix) -> Iterator[LogQuery]:
    """By the process alone, where nobody knows its node and there is but one."""
    if len(nodes) == 1:
        yield LogQuery(node_id=nodes[0], pid=failed.pid, suffix=suffix)


async def _find(context: SessionContext, query: LogQuery) -> FoundLog | None:
    try:
        return await find_log(context, query)
    except LogUnknown:
        return None


async def _last_lines(logs: LogStore, found: FoundLog, lines: int = LINES, limit: int = _BYTES_LIMIT) -> LogSlice:
    floor = max(found.start, found.end - limit)
    start = await logs.reader.tail_start(found.stored, floor, found.end, lines)
    text = b"".join([piece async for piece in logs.reader.stream(found.stored, start, found.end)])
    number = await _line_number(logs, found, start)
    shown = masked_text(without_ansi(text.decode(errors="replace")), keeps_lines=True)
    return LogSlice(found.node_id, found.stored.path, shown, start, number)


async def _line_number(logs: LogStore, found: FoundLog, start: int) -> int | None:
    """Of the line that begins there, from 1."""
    if start > _NUMBERED_BYTES:
        return None
    return 1 + sum([piece.count(b"\n") async for piece in logs.reader.stream(found.stored, 0, start)])
