"""Tasks over time and by function, for a session or for one of its jobs."""

from __future__ import annotations

from collections.abc import Iterable

from raykeeper.history.asked import Asked, Row
from raykeeper.history.overview.bins import NS, Bins, Edges, counts, edges_of, mean_levels, to_time
from raykeeper.history.overview.model import FunctionRow, Functions, TaskCounts, TaskSeries
from raykeeper.history.overview.statements import FUNCTIONS, TASK_EDGES

FUNCTIONS_LIMIT = 100
"""Rows of a table that a person still reads; a row is some 300 bytes of a page."""


async def task_series(asked: Asked, job_id: str | None, bins: Bins) -> TaskSeries:
    """What waited, ran and ended in each part of the time."""
    rows = await asked.rows(TASK_EDGES, {"job_id": job_id, **bins.params})
    return series_of(edges_of(rows), bins)


def series_of(edges: dict[str, Edges], bins: Bins) -> TaskSeries:
    none = Edges()
    return TaskSeries(
        begin=to_time(bins.begin_ns),
        width_seconds=bins.width_ns / NS,
        pending=mean_levels(bins, edges.get("created", none), edges.get("left_queue", none)),
        running=mean_levels(bins, edges.get("started", none), edges.get("stopped", none)),
        finished=counts(bins, edges.get("finished", none)),
        failed=counts(bins, edges.get("failed", none)),
    )


async def functions_of(asked: Asked, job_id: str | None) -> Functions:
    return to_functions(await asked.rows(FUNCTIONS, {"job_id": job_id, "row_limit": FUNCTIONS_LIMIT}))


def to_functions(rows: Iterable[Row]) -> Functions:
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
