# ruff: noqa: S608 - statements are made of constants; values are bound
"""What the tabs of a job list one by one: attempts of its tasks, its actors, the nodes it ran on."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from raykeeper.history.entities import cluster_end
from raykeeper.history.entities.actors import exit_detail
from raykeeper.history.entities.nodes import state_message
from raykeeper.history.entities.ray_json import amounts, json_object
from raykeeper.history.entities.tasks import IN_SCOPE
from raykeeper.history.overview.lanes import died_unasked
from raykeeper.history.overview.resources import node_rows
from raykeeper.history.overview.sql import FUNCTION, JOB_NODES
from raykeeper.history.query.context import Row, SessionContext
from raykeeper.history.text import without_ansi
from raykeeper.times import NS, from_ns

ATTEMPTS_OF_PAGE = 100
_TRACEBACK = "Traceback (most recent call last)"
ACTORS_LIMIT = 300
NODES_LIMIT = 1000
_ATTEMPTS_OF_TASK = 20
_MESSAGE_CHARS = 20_000
_COLUMNS = f"""task_id, attempt_number, {FUNCTION} AS function, type, state, error_type, job_id, actor_id, node_id,
    worker_id, worker_pid, required_resources, creation_ns, start_ns, end_ns"""

ATTEMPTS = f"""
    SELECT {_COLUMNS}, count(*) OVER () AS number FROM task_list
    WHERE {IN_SCOPE} AND ($state = '' OR state = $state) AND ($words = '' OR contains(lower({FUNCTION}), $words))
    ORDER BY state = 'FAILED' DESC, coalesce(start_ns, creation_ns), task_id, attempt_number
    LIMIT $row_limit OFFSET $row_start
"""
"""Those that failed first, each in the order of time."""

ATTEMPTS_OF_TASK = f"""
    SELECT {_COLUMNS}, left(error_message, {_MESSAGE_CHARS}) AS error_message
    FROM tasks WHERE task_id = $task_id ORDER BY attempt_number LIMIT {_ATTEMPTS_OF_TASK}
"""

ACTORS = f"""
    SELECT actor_id, class_name, name, repr_name, state, num_restarts, start_ns, node_id, pid, required_resources,
           coalesce(end_ns, closed_ns) AS end_ns, death_cause, count(*) OVER () AS number
    FROM {cluster_end.ACTORS} WHERE job_id = $job_id
    ORDER BY start_ns NULLS LAST, actor_id LIMIT $row_limit
"""


WORKER_NAMES = """
    SELECT worker_id, coalesce(nullif(repr_name, ''), nullif(name, ''), class_name) AS actor
    FROM actors WHERE job_id = $job_id AND worker_id IS NOT NULL LIMIT 5000
"""


@dataclass(frozen=True)
class AttemptRow:
    """One attempt of a task."""

    task_id: str
    attempt_number: int
    function: str
    kind: str
    state: str
    error_type: str
    actor_id: str
    node_id: str
    pid: int | None
    started_at: datetime | None
    took: timedelta | None
    """How long it ran; None while it does, and of one that never began."""
    resources: dict[str, float] = field(default_factory=dict)
    message: str = ""
    """What it failed with; only where one task is asked for."""


@dataclass(frozen=True)
class AttemptsRequest:
    """Which attempts a page is about."""

    state: str = ""
    words: str = ""
    """In the name of the function; case does not matter."""
    start: int = 0


@dataclass(frozen=True)
class Attempts:
    rows: tuple[AttemptRow, ...]
    number: int
    """Of all that match, also those on other pages."""


@dataclass(frozen=True)
class ActorRow:
    actor_id: str
    class_name: str
    name: str
    """By which its user knows it; empty for one without."""
    state: str
    restarts: int
    node_id: str
    pid: int | None
    started_at: datetime | None
    lived: timedelta | None
    death: str
    """Why it ended, in Ray's words."""
    died_unasked: bool


@dataclass(frozen=True)
class Actors:
    rows: tuple[ActorRow, ...]
    left_out: int


@dataclass(frozen=True)
class JobNode:
    """A node, and what it ran of a job."""

    node_id: str
    name: str
    ip: str
    is_head: bool
    attempts: int
    failed: int
    resources: dict[str, float]
    started_at: datetime | None
    ended_at: datetime | None
    death: str


async def attempts_of_job(context: SessionContext, job_id: str, wanted: AttemptsRequest) -> Attempts:
    """One page of a job's attempts."""
    params = {
        "job_id": job_id,
        "state": wanted.state,
        "words": wanted.words.lower(),
        "row_limit": ATTEMPTS_OF_PAGE,
        "row_start": wanted.start,
    }
    rows = await context.rows(ATTEMPTS, params)
    return Attempts(tuple(map(_attempt, rows)), rows[0]["number"] if rows else 0)


async def attempts_of_task(context: SessionContext, task_id: str) -> tuple[AttemptRow, ...]:
    """Every attempt of one task with what it failed with; none of a task that nobody knows."""
    rows = await context.rows(ATTEMPTS_OF_TASK, {"task_id": task_id}, (task_id, task_id))
    return tuple(map(_attempt, rows))


def _attempt(row: Row) -> AttemptRow:
    start, end = row["start_ns"], row["end_ns"]
    return AttemptRow(
        task_id=row["task_id"],
        attempt_number=row["attempt_number"],
        function=row["function"] or "",
        kind=row["type"] or "",
        state=row["state"] or "",
        error_type=row["error_type"] or "",
        actor_id=row["actor_id"] or "",
        node_id=row["node_id"] or "",
        pid=row["worker_pid"] or None,
        started_at=from_ns(start) if start is not None else None,
        took=_length(start, end),
        resources=amounts(row["required_resources"]),
        message=without_ansi(row.get("error_message") or ""),
    )


async def actors_of_job(context: SessionContext, job_id: str) -> Actors:
    rows = await context.rows(ACTORS, {"job_id": job_id, "row_limit": ACTORS_LIMIT})
    number = rows[0]["number"] if rows else 0
    return Actors(tuple(map(_actor, rows)), number - len(rows))


def _actor(row: Row) -> ActorRow:
    cause = json_object(row["death_cause"])
    return ActorRow(
        actor_id=row["actor_id"],
        class_name=row["class_name"] or "",
        name=row["name"] or row["repr_name"] or "",
        state=row["state"] or "",
        restarts=row["num_restarts"] or 0,
        node_id=row["node_id"] or "",
        pid=row["pid"] or None,
        started_at=from_ns(row["start_ns"]) if row["start_ns"] is not None else None,
        lived=_length(row["start_ns"], row["end_ns"]),
        death=_in_short(exit_detail(cause)) if cause else "",
        died_unasked=bool(cause) and died_unasked(cause),
    )


def _in_short(death: str) -> str:
    """Of a traceback, its last line: that is the error."""
    lines = [line for line in without_ansi(death).splitlines() if line.strip()]
    return lines[-1].strip() if lines and _TRACEBACK in death else death


async def worker_names(context: SessionContext, job_id: str) -> dict[str, str]:
    """By worker: what its actor is called."""
    rows = await context.rows(WORKER_NAMES, {"job_id": job_id})
    return {row["worker_id"]: row["actor"] for row in rows if row["actor"]}


async def nodes_of_job(context: SessionContext, job_id: str) -> tuple[JobNode, ...]:
    """Those that ran most of it first."""
    known = {row["node_id"]: row for row in await node_rows(context)}
    used = await context.rows(JOB_NODES, {"job_id": job_id, "row_limit": NODES_LIMIT})
    return tuple(_node(row, known.get(row["node_id"])) for row in used)


def _node(ran: Row, row: Row | None) -> JobNode:
    row = row or {}
    started, ended = row.get("started_ns"), row.get("end_ns")
    return JobNode(
        node_id=ran["node_id"],
        name=row.get("hostname") or row.get("node_name") or "",
        ip=row.get("node_ip") or "",
        is_head=bool(row.get("is_head_node")),
        attempts=ran["attempts"],
        failed=ran["failed"],
        resources=amounts(row.get("resources_total")),
        started_at=from_ns(started) if started is not None else None,
        ended_at=from_ns(ended) if ended is not None else None,
        death=state_message(row.get("death_reason"), row.get("death_message")) or "",
    )


def _length(start: int | None, end: int | None) -> timedelta | None:
    return timedelta(seconds=max(0, end - start) / NS) if start is not None and end is not None else None
