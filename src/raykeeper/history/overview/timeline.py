# ruff: noqa: S608 - statements are made of constants of this file and of paths of our own; values are bound
"""A timeline for a visible range: lanes with what ran in each bin of it, or with single tasks where they are few."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from raykeeper.history.overview.resources import node_rows
from raykeeper.history.overview.task_counts import Bins, Edges, mean_levels
from raykeeper.history.overview.timeline_index import (
    END_NS,
    FAILED,
    FINISHED,
    US,
    Cells,
    Grouping,
    Stretch,
    TimelineIndex,
    timeline_cells,
    timeline_index,
)
from raykeeper.history.overview.timeline_marks import LineMark, line_marks
from raykeeper.history.query.context import Row, SessionContext
from raykeeper.times import NS, from_ns, to_ns

LANES_LIMIT = 100
DEFAULT_LANES = 24
WIDTHS = (60, 4000)
"""Pixels that somebody may have for a timeline, from a phone to a wall."""
DEFAULT_WIDTH = 1200
_PIXELS_OF_BIN = 3
_BINS_LIMIT = 480
"""With as many lanes as a page has by default, an answer stays below 150 kB."""
_SINGLES_OF_LANE, _SINGLES = 150, 900
"""Tasks that are shown one by one: more of them in a lane would be a solid bar."""
_LEAST_RANGE_NS = 1000 * 20  # twenty microseconds: finer than any clock of Ray's
_FAR_NS = 2**62  # the year 2116: what is asked for beyond it is as empty, and would not fit into 64 bits
INTERNALS = "internals"
"""The id of the lane in which Ray's own tasks are folded."""
INTERNALS_NUMBER = 2**32 - 1  # behind all others


@dataclass(frozen=True)
class TimelineQuery:
    """What somebody looks at."""

    start: datetime | None = None
    end: datetime | None = None
    """Without them: from the first sign of the job, or of all jobs, to the last."""
    width: int = DEFAULT_WIDTH
    group: Grouping = "actor"
    folds_internals: bool = True
    job_id: str | None = None
    """Only tasks of one job; None: of all."""
    limit: int = DEFAULT_LANES
    offset: int = 0


@dataclass(frozen=True)
class LaneBins:
    """Of one lane, a number for each bin."""

    running: tuple[float, ...]
    """How many attempts ran at a time, on average."""
    finished: tuple[int, ...]
    """How many ended well."""
    failed: tuple[int, ...]


@dataclass(frozen=True)
class LaneTasks:
    """Of one lane, every attempt in the range; the n-th value of each list is about the n-th attempt."""

    ids: tuple[str, ...] = ()
    attempts: tuple[int, ...] = ()
    functions: tuple[int, ...] = ()
    """Places in the answer's `functions`."""
    kinds: tuple[int, ...] = ()
    """0: finished, 1: failed, 2: did not end."""
    begins_ms: tuple[float, ...] = ()
    """Milliseconds after the answer's `begin`; negative where it began before."""
    ends_ms: tuple[float, ...] = ()


@dataclass(frozen=True)
class TimelineLane:
    """One lane and what is in the range of it: bins, or tasks where they are few."""

    id: str
    label: str
    note: str
    attempts: int
    """That were in the range, also those that began before it or ended after it."""
    finished: int
    """That ended well within the range."""
    failed: int
    """That failed within the range."""
    busy_seconds: float
    """How long they ran within the range, all together."""
    bins: LaneBins | None = None
    tasks: LaneTasks | None = None


@dataclass(frozen=True)
class TimelineView:
    """What a timeline shows for a range."""

    begin: datetime
    end: datetime
    bin_seconds: float
    bins: int
    first: datetime
    """When all of it began: of the job, or of all jobs."""
    last: datetime
    group: Grouping
    lanes: tuple[TimelineLane, ...] = ()
    """The busiest of the whole session first, so that their order stays; what Ray does for itself comes last."""
    lanes_before: int = 0
    lanes_left_out: int = 0
    """Further lanes with something in the range, behind these."""
    functions: tuple[str, ...] = ()
    attempts: int = 0
    """In the range, in all lanes."""
    outside: int = 0
    """Of the job, or of all jobs, before or after the range."""
    waiting: int = 0
    """That never began nor ended, so that they have no place in time."""
    marks: tuple[LineMark, ...] = field(default=())
    """What Kubernetes said and nodes that died, in the range."""
    marks_left_out: int = 0
    unread_bytes: int = 0
    """Of the session's events; their tasks are not here yet."""


def range_of(query: TimelineQuery, begin_ns: int, end_ns: int) -> tuple[int, int]:
    """The visible range, which is never empty: what is asked for, or all there is."""
    start = begin_ns if query.start is None else to_ns(query.start)
    stop = end_ns if query.end is None else to_ns(query.end)
    start, stop = (max(0, min(_FAR_NS, ns)) for ns in (start, stop))
    start -= start % US  # as the answer tells it
    return start, max(stop, start + _LEAST_RANGE_NS)


def lane_column(group: Grouping, *, folds_internals: bool) -> str:
    """The number of an attempt's lane."""
    return f"CASE WHEN is_rays THEN {INTERNALS_NUMBER} ELSE by_{group} END" if folds_internals else f"by_{group}"


def seen(index: TimelineIndex, group: Grouping, *, folds_internals: bool) -> str:
    """A query: the attempts that are in a range, with their lanes and their ends."""
    return f"""
        SELECT {lane_column(group, folds_internals=folds_internals)}::UINTEGER AS lane, begin_ns, kind,
               {END_NS} AS end_ns, by_function, task_id, attempt_number
        FROM {index.places.source}
        WHERE begin_ns < $stop_ns AND stop_ns >= $start_ns AND end_ns >= $start_ns
          AND ($job_id::VARCHAR IS NULL OR job_id = $job_id)
    """


_LANES = """
    SELECT lane, count(*) AS attempts,
           count(*) FILTER (WHERE kind = {finished} AND end_ns < $stop_ns) AS finished,
           count(*) FILTER (WHERE kind = {failed} AND end_ns < $stop_ns) AS failed,
           sum(least(end_ns, $stop_ns) - greatest(begin_ns, $start_ns)) AS busy_ns,
           count(*) OVER () AS lanes, sum(count(*)) OVER () AS all_attempts
    FROM ({seen}) GROUP BY lane ORDER BY lane LIMIT $lane_limit OFFSET $lane_offset
"""

_BINNED = """
    WITH seen AS MATERIALIZED (
        SELECT lane, kind, greatest(begin_ns, $start_ns) - $start_ns AS came,
               least(end_ns, $stop_ns) - $start_ns AS went
        FROM ({seen}) WHERE lane IN (SELECT unnest($lanes::UINTEGER[]))
    ),
    edges AS (
        SELECT lane, least($last_bin, came // $width_ns)::INTEGER AS bin, count(*) AS came,
               sum((bin + 1) * $width_ns::BIGINT - seen.came) AS came_tail, 0 AS went, 0 AS went_tail,
               0 AS finished, 0 AS failed
        FROM seen GROUP BY lane, bin
        UNION ALL
        SELECT lane, least($last_bin, went // $width_ns)::INTEGER AS bin, 0 AS came, 0 AS came_tail,
               count(*) AS went, sum((bin + 1) * $width_ns::BIGINT - seen.went) AS went_tail,
               count(*) FILTER (WHERE kind = {finished} AND seen.went < $stop_ns - $start_ns) AS finished,
               count(*) FILTER (WHERE kind = {failed} AND seen.went < $stop_ns - $start_ns) AS failed
        FROM seen GROUP BY lane, bin
    )
    {lists} FROM edges GROUP BY lane
"""

_CELLS = """
    SELECT {lane}::UINTEGER AS lane, cell, came, came_tail, went, went_tail, finished, failed FROM {rows}
    WHERE cell < $stop
"""

_CELL_LANES = """
    SELECT lane, (sum(came) - coalesce(sum(went) FILTER (WHERE cell < $start), 0))::BIGINT AS attempts,
           coalesce(sum(finished) FILTER (WHERE cell >= $start), 0)::BIGINT AS finished,
           coalesce(sum(failed) FILTER (WHERE cell >= $start), 0)::BIGINT AS failed,
           coalesce(sum((came - went) * ($stop - $start)::HUGEINT * $width_ns) FILTER (WHERE cell < $start), 0)
           + coalesce(sum((came - went) * ($stop - cell - 1)::HUGEINT * $width_ns + came_tail - went_tail)
                      FILTER (WHERE cell >= $start), 0) AS busy_ns,
           count(*) OVER () AS lanes, sum(attempts) OVER () AS all_attempts
    FROM ({cells}) GROUP BY lane HAVING attempts > 0 ORDER BY lane LIMIT $lane_limit OFFSET $lane_offset
"""

_CELL_BINS = """
    WITH cells AS MATERIALIZED (SELECT * FROM ({cells}) WHERE lane IN (SELECT unnest($lanes::UINTEGER[]))),
    edges AS (
        SELECT lane, (cell - $start) // $of_bin AS bin, sum(came) AS came,
               sum(came_tail + came * (($of_bin - 1 - (cell - $start) % $of_bin) * $width_ns::BIGINT)) AS came_tail,
               sum(went) AS went,
               sum(went_tail + went * (($of_bin - 1 - (cell - $start) % $of_bin) * $width_ns::BIGINT)) AS went_tail,
               sum(finished) AS finished, sum(failed) AS failed
        FROM cells WHERE cell >= $start GROUP BY lane, bin
        UNION ALL
        SELECT lane, 0 AS bin, sum(came - went) AS came, sum(came - went) * $of_bin * $width_ns::BIGINT AS came_tail,
               0 AS went, 0 AS went_tail, 0 AS finished, 0 AS failed
        FROM cells WHERE cell < $start GROUP BY lane
    )
    {lists} FROM edges GROUP BY lane
"""
"""What ran before the range began counts as if it came with its first moment."""

_LISTS = """
    SELECT lane, list(bin::INTEGER) AS bins, list(came::BIGINT) AS came, list(came_tail::HUGEINT) AS came_tails,
           list(went::BIGINT) AS went, list(went_tail::HUGEINT) AS went_tails,
           list(finished::BIGINT) AS finished, list(failed::BIGINT) AS failed
"""
"""One row for a lane: ten thousand small ones would take Python longer than all the rest."""

_SINGLE = """
    SELECT lane, task_id, attempt_number, kind, begin_ns, end_ns, by_function
    FROM ({seen}) WHERE lane IN (SELECT unnest($lanes::UINTEGER[])) ORDER BY lane, begin_ns, task_id, attempt_number
"""

_NAMES = """
    SELECT grouping, number, id, label, note FROM {lanes}
    WHERE (grouping = $group AND number IN (SELECT unnest($lanes::UINTEGER[])))
       OR (grouping = 'function' AND number IN (SELECT unnest($functions::UINTEGER[])))
"""


_COUNT = "SELECT count(*) AS attempts FROM ({seen})"


async def timeline_view(context: SessionContext, query: TimelineQuery) -> TimelineView:
    """What somebody sees; an empty timeline for a session or job without tasks."""
    scene = await _scene(context, query)
    rows = await scene.lane_rows()
    singles, binned = _split(rows)
    tasks, levels, (marks, marks_left_out) = await asyncio.gather(
        scene.task_rows(singles), scene.lane_bins(binned), scene.marks()
    )
    functions = sorted({row["by_function"] for some in tasks.values() for row in some})
    names = await scene.names([row["lane"] for row in rows], functions)
    attempts = int(rows[0]["all_attempts"]) if rows else await scene.attempts()
    return TimelineView(
        begin=from_ns(scene.bins.begin_ns),
        end=from_ns(scene.bins.end_ns),
        bin_seconds=scene.bins.width_ns / NS,
        bins=scene.bins.number,
        first=from_ns(scene.first_ns),
        last=from_ns(scene.last_ns),
        group=query.group,
        lanes=tuple(_lane(row, scene, names, functions, tasks, levels) for row in rows),
        lanes_before=query.offset,
        lanes_left_out=rows[0]["lanes"] - query.offset - len(rows) if rows else 0,
        functions=tuple(names["function", number]["label"] for number in functions),
        attempts=attempts,
        outside=scene.whole.placed - attempts,
        waiting=scene.whole.attempts - scene.whole.placed,
        marks=tuple(marks),
        marks_left_out=marks_left_out,
        unread_bytes=max(0, context.session.progress.total_bytes - context.session.progress.done_bytes),
    )


@dataclass(frozen=True)
class Scene:
    """A range of a session's time, and the means to ask what is in it."""

    context: SessionContext
    index: TimelineIndex
    query: TimelineQuery
    whole: Stretch
    first_ns: int
    last_ns: int
    bins: Bins
    cells: Cells | None
    """From which lanes and bins are added up, where much is seen; else from the attempts themselves."""

    async def rows(self, statement: str, **more: object) -> list[Row]:
        """Rows of a statement over `{seen}`."""
        query = self.query
        params = {
            "start_ns": self.bins.begin_ns,
            "stop_ns": self.bins.end_ns,
            "until_ns": self.index.until_ns,
            "job_id": query.job_id,
        }
        attempts = seen(self.index, query.group, folds_internals=query.folds_internals)
        sql = statement.format(seen=attempts, finished=FINISHED, failed=FAILED, lists=_LISTS)
        return await self.context.rows(sql, {**params, **more})

    async def lane_rows(self) -> list[Row]:
        page = {"lane_limit": self.query.limit, "lane_offset": self.query.offset}
        if self.cells is None:
            return await self.rows(_LANES, **page)
        return await self._cell_rows(_CELL_LANES, **page)

    async def _cell_rows(self, statement: str, **more: object) -> list[Row]:
        """Rows of a statement over `{cells}`, whose bins are whole cells."""
        cells, query = self.cells, self.query
        if cells is None:
            return []
        start = (self.bins.begin_ns - cells.origin_ns) // cells.width_ns
        params = {
            "start": start,
            "stop": (self.bins.end_ns - cells.origin_ns) // cells.width_ns,
            "width_ns": cells.width_ns,
        }
        lane = f"CASE WHEN is_rays THEN {INTERNALS_NUMBER} ELSE lane END" if query.folds_internals else "lane"
        source = _CELLS.format(lane=lane, rows=cells.rows.source)
        return await self.context.rows(statement.format(cells=source, lists=_LISTS), {**params, **more})

    async def attempts(self) -> int:
        [row] = await self.rows(_COUNT)
        return int(row["attempts"])

    async def task_rows(self, lanes: Sequence[int]) -> dict[int, list[Row]]:
        found: dict[int, list[Row]] = {lane: [] for lane in lanes}
        for row in await self.rows(_SINGLE, lanes=lanes) if lanes else ():
            found[row["lane"]].append(row)
        return found

    async def lane_bins(self, lanes: Sequence[int]) -> dict[int, LaneBins]:
        if not lanes:
            return {}
        if self.cells is not None:
            of_bin = self.bins.width_ns // self.cells.width_ns
            rows = await self._cell_rows(_CELL_BINS, lanes=lanes, of_bin=of_bin)
        else:
            numbers = {"last_bin": self.bins.number - 1, "width_ns": self.bins.width_ns}
            rows = await self.rows(_BINNED, lanes=lanes, **numbers)
        return {row["lane"]: _bins(self.bins, row) for row in rows}

    async def marks(self) -> tuple[list[LineMark], int]:
        facts, nodes = await self.context.kube_facts(), await node_rows(self.context)
        return line_marks(facts, nodes, from_ns(self.bins.begin_ns), from_ns(self.bins.end_ns))

    async def names(self, lanes: Sequence[int], functions: Sequence[int]) -> dict[tuple[str, int], Row]:
        """The names of lanes, and of functions, by their numbers."""
        params = {"group": self.query.group, "lanes": lanes, "functions": functions}
        rows = await self.context.rows(_NAMES.format(lanes=self.index.lanes.source), params)
        return {(row["grouping"], row["number"]): row for row in rows}


async def _scene(context: SessionContext, query: TimelineQuery) -> Scene:
    index = await timeline_index(context)
    until, whole = index.until_ns, index.stretch_of(query.job_id)
    first = until if whole.begin_ns is None else whole.begin_ns
    last = max(first, whole.end_ns or first, until if whole.open else first)
    start_ns, stop_ns = range_of(query, first, last + 1)
    cells = await timeline_cells(context, index, query.group, query.job_id)
    number = bins_number(query.width)
    if cells is None or (stop_ns - start_ns) // cells.width_ns < number // 2:
        return Scene(context, index, query, whole, first, last, bins_for(start_ns, stop_ns, number), None)
    bins = bins_of_cells(start_ns, stop_ns, number, cells.origin_ns, cells.width_ns)
    return Scene(context, index, query, whole, first, last, bins, cells)


def bins_number(width: int) -> int:
    """Bins of some pixels each."""
    return max(1, min(_BINS_LIMIT, width // _PIXELS_OF_BIN))


def bins_for(start_ns: int, end_ns: int, number: int) -> Bins:
    """Bins that cover the range."""
    return Bins(start_ns, -(-(end_ns - start_ns) // number), number)


def bins_of_cells(start_ns: int, end_ns: int, number: int, origin_ns: int, cell_ns: int) -> Bins:
    """At most so many bins of whole cells, which cover the range and begin before it by less than a cell."""
    first, last = (start_ns - origin_ns) // cell_ns, -((origin_ns - end_ns) // cell_ns)
    of_bin = -(-(last - first) // number)
    return Bins(origin_ns + first * cell_ns, of_bin * cell_ns, -(-(last - first) // of_bin))


def _split(rows: Sequence[Row]) -> tuple[list[int], list[int]]:
    """The lanes whose tasks are shown one by one, and those with bins: the emptiest lanes are told apart first."""
    singles, left = set[int](), _SINGLES
    for row in sorted(rows, key=lambda row: row["attempts"]):
        if row["attempts"] <= min(_SINGLES_OF_LANE, left):
            singles.add(row["lane"])
            left -= row["attempts"]
    lanes = [row["lane"] for row in rows]
    return sorted(singles), [lane for lane in lanes if lane not in singles]


def _bins(bins: Bins, row: Row) -> LaneBins:
    places = row["bins"]
    came, went = (Edges(_summed(places, row[name]), _summed(places, row[f"{name}_tails"])) for name in ("came", "went"))
    return LaneBins(
        running=mean_levels(bins, came, went),
        finished=_dense(bins, places, row["finished"]),
        failed=_dense(bins, places, row["failed"]),
    )


def _summed(places: Sequence[int], numbers: Sequence[int]) -> dict[int, int]:
    """By place; one that is there several times has the sum."""
    found: dict[int, int] = {}
    for place, number in zip(places, numbers, strict=True):
        if number:
            found[place] = found.get(place, 0) + number
    return found


def _dense(bins: Bins, places: Sequence[int], numbers: Sequence[int]) -> tuple[int, ...]:
    found = _summed(places, numbers)
    return tuple(found.get(place, 0) for place in range(bins.number))


Names = Mapping[tuple[str, int], Row]


def _lane(
    row: Row,
    scene: Scene,
    names: Names,
    functions: Sequence[int],
    tasks: Mapping[int, Sequence[Row]],
    levels: Mapping[int, LaneBins],
) -> TimelineLane:
    lane = row["lane"]
    lane_id, label, note = lane_name(names, scene.query.group, lane)
    return TimelineLane(
        id=lane_id,
        label=label,
        note=note,
        attempts=row["attempts"],
        finished=row["finished"],
        failed=row["failed"],
        busy_seconds=round(float(row["busy_ns"]) / NS, 6),
        bins=levels.get(lane),
        tasks=_tasks(tasks[lane], functions, scene.bins.begin_ns) if lane in tasks else None,
    )


_NONE: dict[Grouping, str] = {
    "actor": "Without a name",
    "worker": "Without a worker",
    "node": "Without a node",
    "function": "Without a name",
}


def lane_name(names: Names, group: Grouping, lane: int) -> tuple[str, str, str]:
    """A lane's id, label and note."""
    if lane == INTERNALS_NUMBER:
        return INTERNALS, "Ray internals", "folded"
    row = names[group, lane]
    return row["id"], row["label"] or _NONE[group], row["note"]


def _tasks(rows: Iterable[Row], functions: Sequence[int], begin_ns: int) -> LaneTasks:
    found = list(rows)
    places = {number: place for place, number in enumerate(functions)}
    return LaneTasks(
        ids=tuple(row["task_id"] for row in found),
        attempts=tuple(row["attempt_number"] for row in found),
        functions=tuple(places[row["by_function"]] for row in found),
        kinds=tuple(row["kind"] for row in found),
        begins_ms=tuple((row["begin_ns"] - begin_ns) / 1e6 for row in found),
        ends_ms=tuple((row["end_ns"] - begin_ns) / 1e6 for row in found),
    )
