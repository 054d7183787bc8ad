# ruff: noqa: S608 - statements are made of constants of this file and of paths of our own; values are bound
"""What a timeline is drawn from: every attempt of a session with its place in time and its lanes, sorted by time.

A session's own tables are sorted by task, and name lanes by long ids. Here a part of the time is a part of the file,
and a lane is a number: the busiest of each grouping is 0, so lanes keep their order while somebody looks around.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from raykeeper.history.entities.tasks import IN_SCOPE
from raykeeper.history.overview.facts import until_ns
from raykeeper.history.overview.sql import FUNCTION
from raykeeper.history.query.cache import tables_version
from raykeeper.history.query.context import SessionContext
from raykeeper.history.query.database import RowsCopy

Grouping = Literal["actor", "worker", "node", "function"]
GROUPINGS: tuple[Grouping, ...] = get_args(Grouping)

RAY_CLASSES = (
    "ActorLocationTracker",
    "AutoscalingRequester",
    "DatasetManager",
    "JobSupervisor",
    "LoggingStatsActor",
    "PlacementGroupCleaner",
    "PreemptionWatcher",
    "ProxyActor",
    "ServeController",
    "ServeControllerAvatar",
    "SplitCoordinator",
    "SynchronizationActor",
    "TrainController",
    "TrainStateActor",
    "TunerInternal",
    "_AutoscalingCoordinatorActor",
    "_StatsActor",
)
"""Actors that Ray and its libraries start for themselves; no code of a user runs in them."""

US = 1000
"""Nanoseconds of a microsecond: answers tell times no finer, so that ranges begin with one."""
OPEN_NS = 2**62
"""The end of an attempt that nobody saw end."""
FINISHED, FAILED, RUNNING = 0, 1, 2
"""Kinds of attempts, as the file has them."""

_CLASS = "split_part(coalesce(func_or_class_name, name, ''), '.', 1)"
_IS_RAYS = f"{_CLASS} IN ({', '.join(repr(name) for name in RAY_CLASSES)})"
# The name of a method's task begins with its actor's own name or repr: each actor would have functions of its own.
_NAME = f"CASE WHEN actor_id IS NULL THEN {FUNCTION} ELSE coalesce(nullif(func_or_class_name, ''), name) END"
_ATTEMPTS = f"""
    SELECT task_id, attempt_number, job_id, coalesce({_NAME}, '') AS function_key,
           coalesce('actor ' || actor_id, 'function ' || function_key) AS actor_key,
           coalesce(worker_id, '') AS worker_key, coalesce(node_id, '') AS node_key, worker_pid, {_IS_RAYS} AS is_rays,
           coalesce(start_ns, end_ns) AS begin_ns,
           CASE WHEN end_ns IS NULL THEN {OPEN_NS} ELSE greatest(end_ns, begin_ns) END AS stop_ns,
           CASE WHEN end_ns IS NULL THEN {RUNNING} WHEN state = 'FAILED' THEN {FAILED} ELSE {FINISHED} END AS kind
    FROM task_list WHERE {IN_SCOPE} AND begin_ns IS NOT NULL
"""
END_NS = f"CASE WHEN kind = {RUNNING} THEN greatest(begin_ns, $until_ns) ELSE stop_ns END"
"""What ended, ended when it says, also behind what is known of the session: clocks differ."""
_BUSY = f"sum({END_NS} - begin_ns)"


def _keys(grouping: Grouping) -> str:
    """The lanes of one grouping, numbered; a lane's id is the same in every version of the session."""
    return f"""
        SELECT '{grouping}' AS grouping, {grouping}_key AS key, md5('{grouping} ' || key)[:12] AS id,
               bool_and(is_rays) AS is_rays, any_value(worker_pid) AS pid, any_value(node_key) AS node_id,
               (row_number() OVER (ORDER BY {_BUSY} DESC, key) - 1)::UINTEGER AS number
        FROM attempts GROUP BY key
    """


LANES = f"""
    WITH attempts AS MATERIALIZED ({_ATTEMPTS}), keys AS ({" UNION ALL ".join(map(_keys, GROUPINGS))}),
    hosts AS (
        SELECT node_id, coalesce(nullif(hostname, ''), nullif(node_name, ''), nullif(node_ip, ''), node_id) AS host,
               coalesce(is_head_node, false) AS is_head
        FROM nodes
    ),
    names AS (
        SELECT actor_id, class_name,
               coalesce(nullif(name, ''), nullif(repr_name, ''), nullif(class_name, ''), actor_id) AS label
        FROM actors
    )
    SELECT grouping, number, id, key, is_rays,
           CASE grouping
               WHEN 'function' THEN key
               WHEN 'actor' THEN coalesce(names.label, regexp_replace(key, '^(actor|function) ', ''))
               WHEN 'worker' THEN
                   CASE WHEN key = '' THEN '' ELSE concat_ws(' on ', 'pid ' || coalesce(pid, 0), host) END
               ELSE coalesce(host, key) END AS label,
           CASE grouping
               WHEN 'actor' THEN coalesce(nullif(names.class_name, names.label), '')
               WHEN 'node' THEN CASE WHEN is_head THEN 'head' ELSE '' END ELSE '' END AS note
    FROM keys
    LEFT JOIN hosts ON hosts.node_id = CASE grouping WHEN 'worker' THEN keys.node_id WHEN 'node' THEN key END
    LEFT JOIN names ON grouping = 'actor' AND key = 'actor ' || names.actor_id
    ORDER BY grouping, number
"""

_JOINS = " ".join(
    f"JOIN lanes AS by_{one} ON by_{one}.grouping = '{one}' AND by_{one}.key = {one}_key" for one in GROUPINGS
)
PLACES = f"""
    WITH attempts AS ({_ATTEMPTS}), lanes AS MATERIALIZED (SELECT grouping, key, number FROM {{lanes}})
    SELECT begin_ns, stop_ns, kind::UTINYINT AS kind, attempts.is_rays,
           {", ".join(f"by_{one}.number AS by_{one}" for one in GROUPINGS)}, job_id, task_id, attempt_number
    FROM attempts {_JOINS} ORDER BY begin_ns, task_id, attempt_number
"""

JOBS = f"""
    SELECT job_id, count(*) AS attempts, count(coalesce(start_ns, end_ns)) AS placed,
           min(coalesce(start_ns, end_ns)) AS begin_ns, max(greatest(start_ns, end_ns)) AS end_ns,
           count(*) FILTER (WHERE start_ns IS NOT NULL AND end_ns IS NULL) AS open
    FROM task_list WHERE {IN_SCOPE} GROUP BY job_id
"""


@dataclass(frozen=True)
class Stretch:
    """The attempts of a job, or of all jobs, and when they were."""

    attempts: int = 0
    placed: int = 0
    """Those that began or ended; the others never left the queue, and have no place in time."""
    begin_ns: int | None = None
    end_ns: int | None = None
    open: int = 0
    """Began and never ended."""


@dataclass(frozen=True)
class TimelineIndex:
    """The files behind the timelines of one session and all its jobs."""

    places: RowsCopy
    lanes: RowsCopy
    by_job: Mapping[str, Stretch]
    until_ns: int
    """Until when it is known what ran: an attempt that nobody saw end runs so long."""
    key: Hashable
    """Differs from that of every other index."""

    @property
    def is_there(self) -> bool:
        return self.places.is_there and self.lanes.is_there

    def stretch_of(self, job_id: str | None) -> Stretch:
        if job_id is not None:
            return self.by_job.get(job_id, Stretch())
        all_jobs = list(self.by_job.values())
        return Stretch(
            sum(one.attempts for one in all_jobs),
            sum(one.placed for one in all_jobs),
            min((one.begin_ns for one in all_jobs if one.begin_ns is not None), default=None),
            max((one.end_ns for one in all_jobs if one.end_ns is not None), default=None),
            sum(one.open for one in all_jobs),
        )


_WEIGHT_OF_ATTEMPT = 4
"""Bytes of the cache that one attempt counts as: its 40 bytes are on disk, and a server shall have a few sessions'."""
_MOST_WEIGHT = 32 << 20  # half of the cache: a heavier value than all of it would be made anew for every answer


async def timeline_index(context: SessionContext) -> TimelineIndex:
    """Made when it is asked for the first time, a second or two for a million tasks, and while tables stay the same."""
    session = context.session
    version = tables_version(session, "task_list", "actors", "nodes")
    key = ("timeline index", session.id, version, session.ended_at)
    index = await context.cache.get(key, lambda: _make(context, key), _weight)
    if index.is_there:
        return index
    context.cache.drop(key)
    return await context.cache.get(key, lambda: _make(context, key), _weight)


def _weight(index: TimelineIndex) -> int:
    return min(_MOST_WEIGHT, 1000 + _WEIGHT_OF_ATTEMPT * index.stretch_of(None).attempts)


async def _make(context: SessionContext, key: Hashable) -> TimelineIndex:
    tables, until = context.session.tables, until_ns(context.session)
    all_jobs = {"job_id": None}
    params = {**all_jobs, "until_ns": until}
    lanes = await context.database.copy(LANES, tables, params)
    places = await context.database.copy(PLACES.format(lanes=lanes.source), tables, all_jobs)
    rows = await context.rows(JOBS, all_jobs)
    by_job = {row.pop("job_id") or "": Stretch(**row) for row in rows}
    return TimelineIndex(places, lanes, by_job, until, (key, places.path.name))


CELLED_ATTEMPTS = 50_000
"""Fewer are counted anew for every look: that takes some ten milliseconds."""
_CELLS = 2048
"""Of the whole time of a session. A bin of a wide look is some of them; a narrow look reads few attempts anyway."""

_WORTH = 2  # attempts for each row of cells, at least


@dataclass(frozen=True)
class Cells:
    """What began and ended in each cell of a session's time, by lanes of one grouping, for one job or for all."""

    rows: RowsCopy
    origin_ns: int
    width_ns: int
    is_worth: bool
    """Whether they are far fewer than the attempts: there may be so many lanes that they are not."""


_TAIL = "sum($origin_ns + (cell + 1) * $width_ns::BIGINT - {at})"
_CELL = "(({at} - $origin_ns) // $width_ns)::INTEGER"
_EDGES = f"""
    WITH attempts AS (
        SELECT by_{{group}} AS lane, is_rays, kind, begin_ns, {END_NS} AS end_ns
        FROM {{places}} WHERE $job_id::VARCHAR IS NULL OR job_id = $job_id
    ),
    edges AS (
        SELECT lane, is_rays, {_CELL.format(at="begin_ns")} AS cell, count(*) AS came,
               {_TAIL.format(at="begin_ns")} AS came_tail, 0 AS went, 0 AS went_tail, 0 AS finished, 0 AS failed
        FROM attempts GROUP BY lane, is_rays, cell
        UNION ALL
        SELECT lane, is_rays, {_CELL.format(at="end_ns")} AS cell, 0 AS came, 0 AS came_tail, count(*) AS went,
               {_TAIL.format(at="end_ns")} AS went_tail, count(*) FILTER (WHERE kind = {FINISHED}) AS finished,
               count(*) FILTER (WHERE kind = {FAILED}) AS failed
        FROM attempts GROUP BY lane, is_rays, cell
    )
    SELECT lane, is_rays, cell, sum(came)::BIGINT AS came, sum(came_tail) AS came_tail, sum(went)::BIGINT AS went,
           sum(went_tail) AS went_tail, sum(finished)::BIGINT AS finished, sum(failed)::BIGINT AS failed
    FROM edges GROUP BY lane, is_rays, cell ORDER BY cell, lane
"""


async def timeline_cells(
    context: SessionContext, index: TimelineIndex, group: Grouping, job_id: str | None
) -> Cells | None:
    """The cells of one grouping, made when somebody first wants to see much of it; None where there is no need."""
    whole = index.stretch_of(None)
    if whole.placed < CELLED_ATTEMPTS:
        return None
    key = ("timeline cells", index.key, group, job_id)

    async def make() -> Cells:
        return await _make_cells(context, index, group, job_id)

    cells = await context.cache.get(key, make, _weight_of_cells)
    if not cells.rows.is_there:
        context.cache.drop(key)
        cells = await context.cache.get(key, make, _weight_of_cells)
    return cells if cells.is_worth else None


def _weight_of_cells(cells: Cells) -> int:
    return min(_MOST_WEIGHT, 1000 + _WEIGHT_OF_ATTEMPT * cells.rows.rows)


async def _make_cells(context: SessionContext, index: TimelineIndex, group: Grouping, job_id: str | None) -> Cells:
    whole = index.stretch_of(None)
    origin = (whole.begin_ns or 0) // US * US
    last = max(whole.end_ns or origin, index.until_ns if whole.open else origin)
    width = -(-(last - origin + 1) // (_CELLS * US)) * US
    params = {"origin_ns": origin, "width_ns": width, "until_ns": index.until_ns, "job_id": job_id}
    statement = _EDGES.format(group=group, places=index.places.source)
    rows = await context.database.copy(statement, context.session.tables, params)
    return Cells(rows, origin, width, is_worth=rows.rows * _WORTH <= whole.placed)
