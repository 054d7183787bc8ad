"""Which nodes are looked at, over which time, and in parts of which width. Reads jobs and tasks, and decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from raykeeper.history.entities.job_list import find_job
from raykeeper.history.entities.nodes import POLLED
from raykeeper.history.query.context import SessionContext
from raykeeper.history.samples.builder import Level
from raykeeper.history.samples.table import COARSE_SECONDS
from raykeeper.layout.samples import HOUR_SECONDS, STEP_SECONDS
from raykeeper.times import NS, to_ns

POINTS, LEAST_POINTS, MOST_POINTS = 300, 10, 2000
FINE_NODE_HOURS = 5000
"""That are read row by row: 1.8 million rows, about a second. Beyond that, five minutes are the finest."""
IN_SCOPE = "ts >= $begin AND ts < $end AND ($nodes::VARCHAR[] IS NULL OR node_id IN (SELECT unnest($nodes::VARCHAR[])))"
"""Over tables of samples: the rows of a scope's nodes and time."""
_DAY = 24 * HOUR_SECONDS
_WIDTHS = (10, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, _DAY)
_NODES_LIMIT = 20_000

_JOB_NODES = """
    SELECT DISTINCT node_id FROM (
        SELECT node_id FROM task_list WHERE job_id = $job_id
        UNION ALL SELECT node_id FROM actors WHERE job_id = $job_id
        UNION ALL SELECT driver_node_id FROM jobs WHERE job_id = $job_id
    ) WHERE node_id <> '' ORDER BY node_id LIMIT $row_limit
"""
_JOB_TIMES = """
    SELECT min(creation_ns) AS first_ns, max(greatest(start_ns, end_ns)) AS last_ns
    FROM task_list WHERE job_id = $job_id
"""
_OTHER_JOBS = """
    SELECT count(DISTINCT job_id) AS jobs FROM task_list
    WHERE job_id <> $job_id AND type <> 'DRIVER_TASK' AND node_id IN (SELECT unnest($nodes::VARCHAR[]))
        AND start_ns < $end_ns AND coalesce(end_ns, $end_ns) > $begin_ns
"""


@dataclass(frozen=True)
class Scope:
    """Some nodes over some time."""

    begin: int
    """Seconds since 1970."""
    end: int
    node_ids: tuple[str, ...] | None = None
    """None for all."""
    other_jobs: int = 0
    """How many other jobs had tasks on the same nodes at the same time."""

    @property
    def params(self) -> dict[str, object]:
        """As statements name them."""
        return {"begin": self.begin, "end": self.end, "nodes": None if self.node_ids is None else list(self.node_ids)}

    def within(self, since: datetime | None, until: datetime | None) -> Scope:
        """What of it lies between these moments."""
        begin = self.begin if since is None else max(self.begin, int(since.timestamp()))
        end = self.end if until is None else min(self.end, int(until.timestamp()))
        return Scope(begin, max(begin, end), self.node_ids, self.other_jobs)


@dataclass(frozen=True)
class Parts:
    """The time in equal parts."""

    begin: int
    width: int
    number: int
    level: Level

    @property
    def at(self) -> tuple[int, ...]:
        return tuple(self.begin + self.width * place for place in range(self.number))


async def session_scope(context: SessionContext) -> Scope:
    """All nodes, from the session's first sign of life to its last."""
    session = context.session
    hours = await context.samples.hours(session) if context.samples else ()
    begins = [int(session.record.started_at.timestamp())] if session.record else hours[:1]
    begin = min([*begins, int(session.as_of.timestamp())])
    ends = [session.ended_at or session.as_of, *(node.beat_at for node in session.nodes if session.ended_at is None)]
    ends += [answer.polled_at for answer in (session.polled.get(POLLED),) if answer]
    end = int(max(ends).timestamp()) + STEP_SECONDS
    return Scope(begin, max(begin, end))


async def job_scope(context: SessionContext, wanted: str) -> Scope:
    """The nodes that a job had tasks, actors or its driver on, while it ran. Raises JobUnknown."""
    job = await find_job(context, wanted)
    whole, job_id = await session_scope(context), job.job_id or ""
    nodes = [row["node_id"] for row in await context.rows(_JOB_NODES, {"job_id": job_id, "row_limit": _NODES_LIMIT})]
    [times] = await context.rows(_JOB_TIMES, {"job_id": job_id})
    begins = [ns for ns in (to_ns(job.started_at), times["first_ns"]) if ns is not None]
    ends = [ns for ns in (to_ns(job.ended_at), times["last_ns"]) if ns is not None]
    begin = min(begins) // NS if begins else whole.begin
    end = -(-max(ends) // NS) if ends and not job.is_open else whole.end
    params = {"job_id": job_id, "nodes": nodes, "begin_ns": begin * NS, "end_ns": end * NS}
    [others] = await context.rows(_OTHER_JOBS, params) if nodes else [{"jobs": 0}]
    return Scope(begin, max(begin + STEP_SECONDS, end), tuple(nodes), others["jobs"])


def parts_of(scope: Scope, nodes: int, points: int) -> Parts:
    """At most so many parts, of a width that people count in; so many nodes are to be read. Pure."""
    span = max(scope.end - scope.begin, STEP_SECONDS)
    width = next((one for one in _WIDTHS if span <= one * (points - 1)), 0)
    if not width:
        width = -(-span // ((points - 1) * _DAY)) * _DAY
    if nodes * span / HOUR_SECONDS > FINE_NODE_HOURS:
        width = max(width, COARSE_SECONDS)
    begin = scope.begin - scope.begin % width
    number = max(1, -(-(scope.end - begin) // width))
    return Parts(begin, width, number, "coarse" if width >= COARSE_SECONDS else "fine")


def node_count(context: SessionContext, node_ids: Sequence[str] | None) -> int:
    """How many nodes are to be read, as far as is known."""
    return len(node_ids) if node_ids is not None else len(context.session.nodes)
