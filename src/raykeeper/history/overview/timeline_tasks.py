# ruff: noqa: S608 - statements are made of constants of this file and of paths of our own; values are bound
"""What a timeline opens: one task with its error and log lines, or all tasks of a part of it with exactly theirs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from raykeeper.history.entities.log_files import FoundLog, LogTarget, find_log, find_part
from raykeeper.history.entities.ray_json import amounts
from raykeeper.history.errors import LogUnknown, NotFound
from raykeeper.history.logs.query import LogQuery
from raykeeper.history.overview.sql import FUNCTION
from raykeeper.history.overview.timeline import INTERNALS, INTERNALS_NUMBER, TimelineQuery, range_of, seen
from raykeeper.history.overview.timeline_index import FAILED, TimelineIndex, timeline_index
from raykeeper.history.query.context import Row, SessionContext
from raykeeper.history.text import cut_at_word, without_ansi
from raykeeper.history.urls import log_path
from raykeeper.masking import CONTEXT_BYTES, masked_between, masked_text
from raykeeper.times import from_ns

BRUSHED_TASKS = 100
"""Tasks of a part of a timeline that are listed; the others are counted."""
_BRUSHED_BYTES = 128 * 1024
"""Of their log lines together, and of one of them the eighth."""
_CARD_BYTES = 16 * 1024
_LINE_CHARS = 400
_ERROR_CHARS, _SHORT_ERROR_CHARS = 8000, 200

Stream = Literal["out", "err"]
_STREAMS: tuple[Stream, ...] = ("err", "out")


@dataclass(frozen=True)
class TaskLog:
    """The end of what a task wrote to one stream."""

    stream: Stream
    file: str
    href: str
    """The page that shows the file at these lines."""
    lines: tuple[str, ...]
    left_out_bytes: int
    """Of the task's own output, before these lines."""
    is_own: bool
    """Exactly what the task wrote; else the end of what its worker wrote, because Ray did not say which part is its."""


@dataclass(frozen=True)
class TaskCard:
    """One attempt of a task. Secrets are masked."""

    task_id: str
    attempt_number: int
    attempts: tuple[int, ...]
    """The numbers of all attempts of this task."""
    name: str
    type: str
    state: str
    job_id: str
    actor_id: str | None
    node_id: str | None
    worker_id: str | None
    worker_pid: int | None
    created_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    error_type: str | None
    error_message: str | None
    resources: dict[str, float]
    """What it asked for."""
    call_site: str | None
    logs: tuple[TaskLog, ...]


_CARD = f"""
    SELECT task_id, attempt_number, coalesce({FUNCTION}, '') AS name, type, state, job_id, actor_id, node_id, worker_id,
           worker_pid, creation_ns, start_ns, end_ns, error_type, error_message, required_resources, call_site
    FROM tasks WHERE task_id = $task_id AND has_definition ORDER BY attempt_number
"""


async def task_card(context: SessionContext, task_id: str, attempt: int | None) -> TaskCard:
    """One attempt, or the last one. Raises NotFound."""
    rows = await context.rows(_CARD, {"task_id": task_id}, (task_id, task_id))
    row = next((row for row in reversed(rows) if attempt in (None, row["attempt_number"])), None)
    if row is None:
        which = "" if attempt is None else f" with an attempt {attempt}"
        raise NotFound(f"there is no task {task_id}{which} in session {context.session.id}")
    logs = await asyncio.gather(*(_log_of(context, row, stream) for stream in _STREAMS))
    error = row["error_message"]
    return TaskCard(
        task_id=row["task_id"],
        attempt_number=row["attempt_number"],
        attempts=tuple(one["attempt_number"] for one in rows),
        name=row["name"],
        type=row["type"] or "",
        state=row["state"] or "",
        job_id=row["job_id"] or "",
        actor_id=row["actor_id"],
        node_id=row["node_id"],
        worker_id=row["worker_id"],
        worker_pid=row["worker_pid"] or None,
        created_at=from_ns(row["creation_ns"]),
        started_at=from_ns(row["start_ns"]),
        ended_at=from_ns(row["end_ns"]),
        error_type=row["error_type"],
        error_message=masked_text(without_ansi(error))[-_ERROR_CHARS:] if error else None,
        resources=amounts(row["required_resources"]),
        call_site=row["call_site"] or None,
        logs=tuple(log for log in logs if log is not None and log.lines),
    )


async def _log_of(context: SessionContext, row: Row, stream: Stream) -> TaskLog | None:
    """What the attempt wrote; where nobody knows which part that is, the end of what its worker wrote."""
    own = LogQuery(task_id=row["task_id"], attempt_number=row["attempt_number"], suffix=stream)
    try:
        return await _read(context, await find_log(context, own), stream, _CARD_BYTES)
    except LogUnknown:
        pass
    try:
        its_worker = LogQuery(node_id=row["node_id"] or "", pid=row["worker_pid"] or None, suffix=stream)
        return replace(await _read(context, await find_log(context, its_worker), stream, _CARD_BYTES), is_own=False)
    except LogUnknown:
        return None


async def _read(context: SessionContext, found: FoundLog, stream: Stream, limit: int) -> TaskLog:
    """The last bytes of a part of a file, from the beginning of a line on where one begins there."""
    start = max(found.start, found.end - limit)
    before, data, after = [
        b"".join([piece async for piece in context.logs.reader.stream(found.stored, first, end)])
        for first, end in (
            (max(0, start - CONTEXT_BYTES), start),
            (start, found.end),
            (found.end, min(found.stored.size, found.end + CONTEXT_BYTES)),
        )
    ]
    if start > found.start:
        cut = data.find(b"\n") + 1
        start, before, data = start + cut, before + data[:cut], data[cut:]
    path = log_path(context.session.id, found.node_id, found.stored.path, found.stored.generation, start)
    return TaskLog(stream, found.stored.path, path, _lines(before, data, after), start - found.start, found.is_range)


def _lines(before: bytes, data: bytes, after: bytes) -> tuple[str, ...]:
    lines = [line.rstrip("\r") for line in masked_between(*map(_plain, (before, data, after)))]
    return tuple(line[:_LINE_CHARS] for line in (lines if lines[-1] else lines[:-1]))


def _plain(data: bytes) -> str:
    return without_ansi(data.decode(errors="replace"))


@dataclass(frozen=True)
class BrushedTask:
    """One attempt in a part of a timeline, with the lines that it wrote."""

    task_id: str
    attempt_number: int
    name: str
    state: str
    begin: datetime
    end: datetime | None
    error: str
    """Its type and the line that says what was wrong; empty where it did not fail."""
    logs: tuple[TaskLog, ...]


@dataclass(frozen=True)
class Brushed:
    """The tasks in a part of a timeline: those that failed first, then in the order of their beginning."""

    begin: datetime
    end: datetime
    total: int
    """Attempts that have something in this part."""
    failed: int
    """Of them, those that failed, then or later."""
    left_out: int
    """Of the total, those that are not listed."""
    tasks: tuple[BrushedTask, ...]
    log_bytes_left_out: int
    """Of the output of the tasks that are listed."""
    without_output: int
    """Tasks of which Ray did not say what they wrote, as for methods of actors, or which wrote nothing."""


_BRUSHED = """
    SELECT task_id, attempt_number, kind, begin_ns, end_ns, count(*) OVER () AS total,
           count(*) FILTER (WHERE kind = {failed}) OVER () AS failed
    FROM ({seen}) WHERE $lanes::UINTEGER[] IS NULL OR lane IN (SELECT unnest($lanes::UINTEGER[]))
    ORDER BY kind <> {failed}, begin_ns, task_id, attempt_number LIMIT $row_limit
"""
_LANE_NUMBERS = "SELECT number FROM {lanes} WHERE grouping = $group AND id IN (SELECT unnest($ids::VARCHAR[]))"
_WRITTEN = f"""
    SELECT task_id, attempt_number, coalesce({FUNCTION}, '') AS name, state, end_ns, node_id, error_type, error_message,
           stdout_file, stdout_start, stdout_end, stderr_file, stderr_start, stderr_end
    FROM tasks WHERE task_id IN (SELECT unnest($task_ids::VARCHAR[]))
"""


async def brushed_tasks(context: SessionContext, query: TimelineQuery, lanes: Sequence[str]) -> Brushed:
    """Exactly the attempts in the query's range and in these lanes; without lanes, in all of them."""
    index = await timeline_index(context)
    whole, until = index.stretch_of(query.job_id), index.until_ns
    start_ns, stop_ns = range_of(query, whole.begin_ns or until, max(whole.end_ns or until, until) + 1)
    statement = _BRUSHED.format(seen=seen(index, query.group, folds_internals=query.folds_internals), failed=FAILED)
    params = {
        "start_ns": start_ns,
        "stop_ns": stop_ns,
        "until_ns": until,
        "job_id": query.job_id,
        "lanes": await _numbers(context, index, query, lanes) if lanes else None,
        "row_limit": min(query.limit, BRUSHED_TASKS),
    }
    rows = await context.rows(statement, params)
    tasks, bytes_left_out = await _with_logs(context, rows)
    total = rows[0]["total"] if rows else 0
    return Brushed(
        begin=from_ns(start_ns),
        end=from_ns(stop_ns),
        total=total,
        failed=rows[0]["failed"] if rows else 0,
        left_out=total - len(rows),
        tasks=tuple(tasks),
        log_bytes_left_out=bytes_left_out,
        without_output=sum(not task.logs for task in tasks),
    )


async def _numbers(
    context: SessionContext, index: TimelineIndex, query: TimelineQuery, lanes: Sequence[str]
) -> list[int]:
    params = {"group": query.group, "ids": list(lanes)}
    rows = await context.rows(_LANE_NUMBERS.format(lanes=index.lanes.source), params)
    folded = [INTERNALS_NUMBER] if INTERNALS in lanes else []
    return [row["number"] for row in rows] + folded


async def _with_logs(context: SessionContext, rows: Sequence[Row]) -> tuple[list[BrushedTask], int]:
    """The tasks with what they wrote, up to a limit for all, and how many bytes were left out."""
    ids = sorted({row["task_id"] for row in rows})
    if not ids:
        return [], 0
    details = await context.rows(_WRITTEN, {"task_ids": ids}, (ids[0], ids[-1]))
    by_attempt = {(row["task_id"], row["attempt_number"]): row for row in details}
    tasks, left, left_out = list[BrushedTask](), _BRUSHED_BYTES, 0
    for row in rows:
        detail = by_attempt[row["task_id"], row["attempt_number"]]
        logs = list[TaskLog]()
        async for found, stream in _parts(context, detail):
            log = await _read(context, found, stream, min(left, _BRUSHED_BYTES // 8))
            left -= found.end - found.start - log.left_out_bytes
            left_out += log.left_out_bytes
            logs += [log] if log.lines else []
        tasks.append(_task(row, detail, logs))
    return tasks, left_out


async def _parts(context: SessionContext, row: Row) -> Any:
    """The parts of files that an attempt itself wrote; those that the store does not have are left out."""
    for stream in _STREAMS:
        file, start, end = (row[f"std{stream}_{part}"] for part in ("file", "start", "end"))
        if not (file and row["node_id"]) or (end is not None and end <= (start or 0)):
            continue
        try:
            yield await find_part(context, LogTarget(row["node_id"], file, start or 0, end)), stream
        except LogUnknown:
            continue


def _task(row: Row, detail: Row, logs: Iterable[TaskLog]) -> BrushedTask:
    words = [detail["error_type"] or "", _error_line(detail["error_message"])]
    return BrushedTask(
        task_id=row["task_id"],
        attempt_number=row["attempt_number"],
        name=detail["name"],
        state=detail["state"] or "",
        begin=from_ns(row["begin_ns"]),
        end=from_ns(detail["end_ns"]),
        error=cut_at_word(masked_text(": ".join(word for word in words if word)), _SHORT_ERROR_CHARS),
        logs=tuple(logs),
    )


def _error_line(message: str | None) -> str:
    """Below a traceback stands what was raised; any other error begins with what matters."""
    lines = [line.strip() for line in without_ansi(message or "").splitlines() if line.strip()]
    if not lines:
        return ""
    return lines[-1] if any(line.startswith("File ") for line in lines) else lines[0]
