"""Tasks on a time line, a lane for each function that failed or took long: one by one while few, else in sums."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from raykeeper.history.asked import Asked, Row
from raykeeper.history.overview.bins import NS, Bins, Edges, edges_of, mean_levels, to_time
from raykeeper.history.overview.model import FunctionRow, Functions, Lane, Mark, Span
from raykeeper.history.overview.statements import FEW_ATTEMPTS, FUNCTION_EDGES
from raykeeper.history.overview.words import counted

FEW = 150
"""Attempts that are shown one by one: more would be a solid bar."""
LANES = 12
_MARKS_OF_LANE = 24  # with twelve lanes the whole time line stays below a few hundred marks


async def task_lanes(asked: Asked, job_id: str, bins: Bins, functions: Functions, attempts: int) -> tuple[Lane, ...]:
    """A lane for each of the functions that failed most or took most time."""
    shown = telling_functions(functions.rows)
    if attempts <= FEW:
        return single_lanes(await asked.rows(FEW_ATTEMPTS, {"job_id": job_id, "row_limit": FEW}), shown, bins)
    names = [row.name for row in shown]
    rows = await asked.rows(FUNCTION_EDGES, {"job_id": job_id, "functions": names, **bins.params})
    return binned_lanes(rows, shown, bins)


def telling_functions(rows: Sequence[FunctionRow]) -> list[FunctionRow]:
    """As many as there are lanes, in their order: those that failed have up to half of them, however short they ran."""
    failed = sorted((row for row in rows if row.failed), key=lambda row: -row.failed)[: LANES // 2]
    names = {row.name for row in failed}
    others = [row for row in rows if row.name not in names][: LANES - len(failed)]
    names |= {row.name for row in others}
    return [row for row in rows if row.name in names]


def single_lanes(rows: Iterable[Row], shown: Sequence[FunctionRow], bins: Bins) -> tuple[Lane, ...]:
    """Every attempt as a span of its own; one that never began is a mark where it failed."""
    by_function: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_function[row["function"] or ""].append(row)
    return tuple(
        Lane(
            "tasks",
            function.name,
            _note(function),
            spans=tuple(_span(row, bins) for row in by_function[function.name] if row["start_ns"] is not None),
            marks=tuple(_failed_unstarted(by_function[function.name]))[:_MARKS_OF_LANE],
        )
        for function in shown
    )


def binned_lanes(rows: Iterable[Row], shown: Sequence[FunctionRow], bins: Bins) -> tuple[Lane, ...]:
    """How many attempts ran in each part of the time; parts in which some failed are marked."""
    by_function: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_function[row["function"] or ""].append(row)
    return tuple(_binned(function, edges_of(by_function[function.name]), bins) for function in shown)


def _binned(function: FunctionRow, edges: Mapping[str, Edges], bins: Bins) -> Lane:
    none = Edges()
    levels = mean_levels(bins, edges.get("started", none), edges.get("stopped", none))
    failures = edges.get("failed", none).numbers
    return Lane(
        "tasks",
        function.name,
        f"{_note(function)}, at most {max(levels):.3g} at a time",
        levels=levels,
        marks=tuple(_failure_marks(failures, bins)),
    )


def _failure_marks(failures: Mapping[int, int], bins: Bins) -> Iterable[Mark]:
    """The parts with most failures, where there are too many to mark all."""
    worst = sorted(failures, key=lambda part: (-failures[part], part))[:_MARKS_OF_LANE]
    for part in sorted(worst):
        middle = bins.begin_ns + part * bins.width_ns + bins.width_ns // 2
        yield Mark(to_time(middle), "failed", f"{failures[part]} failed within {bins.width_ns / NS:.3g} s")


def _failed_unstarted(rows: Iterable[Row]) -> Iterable[Mark]:
    for row in rows:
        if row["start_ns"] is None and row["end_ns"] is not None and row["state"] == "FAILED":
            yield Mark(to_time(row["end_ns"]), "failed", f"failed before it began: {row['error_type'] or 'no reason'}")


def _span(row: Row, bins: Bins) -> Span:
    has_failed = row["state"] == "FAILED"
    how = f"{row['state'].lower()} {row['error_type'] or ''}".strip()
    end_ns = row["end_ns"] or bins.end_ns
    seconds = max(0, end_ns - row["start_ns"]) / NS
    title = f"{row['task_id']} attempt {row['attempt_number']}: {how} after {seconds:.3g} s"
    return Span(to_time(row["start_ns"]), to_time(end_ns), "failed" if has_failed else "running", title)


def _note(function: FunctionRow) -> str:
    failed = f", {function.failed:,} failed" if function.failed else ""
    return f"{counted(function.attempts, 'attempt')}{failed}"
