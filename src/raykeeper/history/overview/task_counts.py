"""Tasks over time and by function, for a session or for one of its jobs; time is cut into bins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from raykeeper.history.overview.model import FunctionRow, Functions, TaskCounts, TaskSeries
from raykeeper.history.overview.sql import FUNCTIONS, TASK_EDGES
from raykeeper.history.query.context import Row, SessionContext
from raykeeper.times import NS, from_ns

BINS = 96
"""About what a chart can show: ten pixels each in a page of usual width."""
_LEAST_WIDTH_NS = 1_000_000  # Ray's own times are no finer


@dataclass(frozen=True)
class Bins:
    """`number` parts of `width_ns` each, the first at `begin_ns`."""

    begin_ns: int
    width_ns: int
    number: int = BINS

    @property
    def end_ns(self) -> int:
        return self.begin_ns + self.width_ns * self.number

    @property
    def params(self) -> dict[str, int]:
        """As statements name them."""
        return {
            "begin_ns": self.begin_ns,
            "end_ns": self.end_ns,
            "width_ns": self.width_ns,
            "last_bin": self.number - 1,
        }


def bins_over(begin_ns: int, end_ns: int, number: int = BINS) -> Bins:
    """Parts that cover a stretch, however short it is."""
    width = -(-max(0, end_ns - begin_ns) // number)
    return Bins(begin_ns, max(width, _LEAST_WIDTH_NS), number)


@dataclass(frozen=True)
class Edges:
    """What came, or went, in each part."""

    numbers: Mapping[int, int] = field(default_factory=dict)
    tails_ns: Mapping[int, float] = field(default_factory=dict)
    """The time from each of them to the end of its part, added up."""


def edges_of(rows: Iterable[Row]) -> dict[str, Edges]:
    """Edges by their name, out of rows of `edge`, `bin`, `number` and `tail_ns`."""
    numbers: dict[str, dict[int, int]] = {}
    tails: dict[str, dict[int, float]] = {}
    for row in rows:
        numbers.setdefault(row["edge"], {})[row["bin"]] = row["number"]
        tails.setdefault(row["edge"], {})[row["bin"]] = row["tail_ns"]
    return {name: Edges(numbers[name], tails[name]) for name in numbers}


def mean_levels(bins: Bins, came: Edges, went: Edges) -> tuple[float, ...]:
    """How many were there on average in each part: exact, also of what came and went within one part."""
    levels, level = [], 0
    for part in range(bins.number):
        within = (came.tails_ns.get(part, 0.0) - went.tails_ns.get(part, 0.0)) / bins.width_ns
        levels.append(round(max(0.0, level + within), 3))
        level += came.numbers.get(part, 0) - went.numbers.get(part, 0)
    return tuple(levels)


def counts(bins: Bins, edges: Edges) -> tuple[int, ...]:
    """How many there were in each part."""
    return tuple(edges.numbers.get(part, 0) for part in range(bins.number))


def spans_levels(bins: Bins, spans: Iterable[tuple[int, int]]) -> tuple[float, ...]:
    """`mean_levels` of a few stretches, given by their begin and end."""
    totals = [0] * bins.number
    for begin, end in spans:
        first = max(0, (begin - bins.begin_ns) // bins.width_ns)
        last = min(bins.number - 1, (end - bins.begin_ns) // bins.width_ns)
        for part in range(first, last + 1):
            start = bins.begin_ns + part * bins.width_ns
            totals[part] += max(0, min(end, start + bins.width_ns) - max(begin, start))
    return tuple(round(total / bins.width_ns, 3) for total in totals)


def spans_peaks(bins: Bins, spans: Iterable[tuple[int, int]]) -> tuple[int, ...]:
    """The most of a few stretches that there were at once in each part."""
    edges = sorted(edge for begin, end in spans for edge in ((begin, 1), (end, -1)))
    peaks, level, place = [], 0, 0
    for part in range(bins.number):
        peak, end = level, bins.begin_ns + (part + 1) * bins.width_ns
        while place < len(edges) and edges[place][0] < end:
            level += edges[place][1]
            peak = max(peak, level)
            place += 1
        peaks.append(peak)
    return tuple(peaks)


FUNCTIONS_LIMIT = 100
"""Rows of a table that a person still reads; a row is some 300 bytes of a page."""


async def task_series(context: SessionContext, job_id: str | None, bins: Bins) -> TaskSeries:
    """What waited, ran and ended in each part of the time."""
    rows = await context.rows(TASK_EDGES, {"job_id": job_id, **bins.params})
    return _series_of(edges_of(rows), bins)


def _series_of(edges: dict[str, Edges], bins: Bins) -> TaskSeries:
    none = Edges()
    return TaskSeries(
        begin=from_ns(bins.begin_ns),
        width_seconds=bins.width_ns / NS,
        pending=mean_levels(bins, edges.get("created", none), edges.get("left_queue", none)),
        running=mean_levels(bins, edges.get("started", none), edges.get("stopped", none)),
        finished=counts(bins, edges.get("finished", none)),
        failed=counts(bins, edges.get("failed", none)),
    )


async def functions_of(context: SessionContext, job_id: str | None) -> Functions:
    return _to_functions(await context.rows(FUNCTIONS, {"job_id": job_id, "row_limit": FUNCTIONS_LIMIT}))


def _to_functions(rows: Iterable[Row]) -> Functions:
    found = list(rows)
    total = found[0]["functions"] if found else 0
    return Functions(tuple(map(_function, found)), total - len(found))


def to_counts(row: Row) -> TaskCounts:
    return TaskCounts(row["attempts"], row["finished"], row["failed"], row["pending"])


def _function(row: Row) -> FunctionRow:
    p50, p95 = row["quantiles"] or (None, None)
    return FunctionRow(
        row["function"] or "", row["type"] or "", row["attempts"], row["failed"], p50, p95, row["total_seconds"]
    )
