# ruff: noqa: S608 - statements are made of constants of this file; values are bound
"""Curves of some nodes over some time: from the samples, else from what the head was asked once a minute."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from raykeeper.history.curves.model import Curve, CurveName, Curves, GpuCurve, Numbers, Source
from raykeeper.history.curves.polled import METRICS_OFF, NO_SAMPLES, PolledCurves, polled_curves
from raykeeper.history.curves.scope import IN_SCOPE, Parts, Scope, node_count, parts_of
from raykeeper.history.query.context import Row, SessionContext
from raykeeper.history.samples.builder import TABLE_OF, Level
from raykeeper.history.samples.store import SampleTables
from raykeeper.history.samples.table import COARSE_SECONDS, HUNDREDTHS, MEASURES, VALUES
from raykeeper.history.text import counted
from raykeeper.layout.samples import STEP_SECONDS
from raykeeper.times import NS, from_ns

MIB = 1 << 20
GPUS_SHOWN = 64
_CURVES: Mapping[CurveName, tuple[str, str, float]] = {
    "cpu": ("cpu", "CPUs", 1 / HUNDREDTHS),
    "memory": ("memory", "bytes", MIB),
    "gpu": ("gpu_used", "GPUs", 1 / HUNDREDTHS),
    "gpu_memory": ("gpu_memory", "bytes", MIB),
    "object_store": ("object_store", "bytes", MIB),
    "disk": ("disk", "bytes", MIB),
    "network_received": ("received", "bytes/s", 1.0),
    "network_sent": ("sent", "bytes/s", 1.0),
}
"""By name: the column, the unit, and what one of the column is in it."""
_TOTALS: Mapping[CurveName, str] = {
    "cpu": "cpu_total",
    "memory": "memory_total",
    "gpu": "gpu_total",
    "gpu_memory": "gpu_memory_total",
    "object_store": "object_store_total",
    "disk": "disk_total",
}
_RESERVED: Mapping[CurveName, str] = {"cpu": "cpu_reserved", "gpu": "gpu_reserved"}
_FROM_RAY: tuple[CurveName, ...] = ("cpu", "memory", "gpu", "gpu_memory", "object_store")
"""What the collector has from Ray's agent, and the head's statistics have too."""


async def read_curves(context: SessionContext, scope: Scope, points: int, *, of_one_node: bool = False) -> Curves:
    """The curves of a scope in at most so many parts."""
    parts = parts_of(scope, node_count(context, scope.node_ids), points)
    if context.samples is None:
        return await _with_polled(context, scope, _curves(scope, parts, [], ()))
    async with context.samples.opened(context.session, scope.begin, scope.end, parts.level) as opened:
        shown = replace(scope, end=min(scope.end, opened.complete_until or scope.end))
        rows = await context.database.query(_slots(parts.level), opened.tables, _params(shown, parts))
        gpus = (
            await context.database.query(_gpus(parts.level), opened.tables, _params(shown, parts))
            if of_one_node
            else []
        )
    found = _curves(scope, parts, rows, _gpu_curves(gpus, parts))
    found = replace(found, unread_hours=opened.unread_hours, notes=tuple(_notes(opened)))
    return await _with_polled(context, scope, found)


def _params(scope: Scope, parts: Parts) -> dict[str, object]:
    return {**scope.params, "first": parts.begin, "width": parts.width}


def _slots(level: Level) -> str:
    """All nodes added up at each moment; then the moments of each part together.

    A node that was there for a part of the five minutes counts for that part of them. Of a single node the extremes of
    five minutes are known; of several, only those of their sum's means.
    """
    if level == "fine":
        sums = [f"sum({value}) AS {value}" for value in VALUES]
        extremes = [f"{end}({value}) AS {value}_{end}" for value in MEASURES for end in ("min", "max")]
    else:
        sums = [f"sum({value} * n) / max(n) AS {value}" for value in VALUES] + [
            f"CASE WHEN count(*) = 1 THEN {end}({value}_{end}) ELSE sum({value}) END AS {value}_{end}"
            for value in MEASURES
            for end in ("min", "max")
        ]
        extremes = [f"{end}({value}_{end}) AS {value}_{end}" for value in MEASURES for end in ("min", "max")]
    means = [f"avg({value}) AS {value}" for value in VALUES]
    return f"""
        SELECT (ts - $first) // $width AS part, max(nodes) AS nodes, {", ".join(means + extremes)} FROM (
            SELECT ts, count(*) AS nodes, {", ".join(sums)}
            FROM {TABLE_OF[level]} WHERE gpu IS NULL AND {IN_SCOPE} GROUP BY ts
        ) GROUP BY part ORDER BY part
    """


def _gpus(level: Level) -> str:
    values = ("gpu_used", "gpu_memory", "gpu_memory_total")
    means = ", ".join(f"sum({value} * n) / sum(n) FILTER ({value} IS NOT NULL) AS {value}" for value in values)
    return f"""
        SELECT gpu, coalesce(gpu_name, '') AS gpu_name, (ts - $first) // $width AS part, {means}
        FROM {TABLE_OF[level]} WHERE gpu IS NOT NULL AND {IN_SCOPE} GROUP BY ALL ORDER BY gpu, gpu_name, part
    """


def _curves(scope: Scope, parts: Parts, rows: Sequence[Row], gpus: tuple[GpuCurve, ...]) -> Curves:
    by_part = {row["part"]: row for row in rows if 0 <= row["part"] < parts.number}

    def column(name: str, scale: float) -> Numbers:
        values = [by_part[part].get(name) if part in by_part else None for part in range(parts.number)]
        return tuple(_number(value, scale) for value in values)

    def known(name: str | None, scale: float) -> Numbers | None:
        numbers = column(name, scale) if name else ()
        return numbers if any(number is not None for number in numbers) else None

    return Curves(
        begin=from_ns(scope.begin * NS),
        end=from_ns(scope.end * NS),
        width_seconds=parts.width,
        resolution_seconds=STEP_SECONDS if parts.level == "fine" else COARSE_SECONDS,
        at=parts.at,
        nodes=tuple(by_part[part]["nodes"] if part in by_part else 0 for part in range(parts.number)),
        curves=tuple(
            Curve(
                name,
                unit,
                column(value, scale),
                column(f"{value}_min", scale),
                column(f"{value}_max", scale),
                known(_TOTALS.get(name), scale),
                known(_RESERVED.get(name), scale),
            )
            for name, (value, unit, scale) in _CURVES.items()
            if known(value, scale)
        ),
        gpus=gpus,
        source="sampled" if by_part else "none",
        notes=(),
        unread_hours=0,
    )


def _gpu_curves(rows: Sequence[Row], parts: Parts) -> tuple[GpuCurve, ...]:
    found: dict[tuple[int, str], dict[int, Row]] = {}
    for row in rows:
        found.setdefault((row["gpu"], row["gpu_name"]), {})[row["part"]] = row

    def column(rows: Mapping[int, Row], name: str, scale: float) -> Numbers:
        return tuple(_number(rows[part][name], scale) if part in rows else None for part in range(parts.number))

    return tuple(
        GpuCurve(
            index,
            name,
            column(by_part, "gpu_used", 1 / HUNDREDTHS),
            column(by_part, "gpu_memory", MIB),
            column(by_part, "gpu_memory_total", MIB),
        )
        for (index, name), by_part in list(found.items())[:GPUS_SHOWN]
    )


def _number(value: Any, scale: float) -> float | None:
    """To five digits that count, before it is scaled: a chart shows three."""
    return None if value is None else float(f"{float(f'{value:.5g}') * scale:.12g}")


def _notes(opened: SampleTables) -> Iterator[str]:
    if opened.unread_hours:
        yield f"{counted(opened.unread_hours, 'hour')} of samples are still being read; ask again."
    if opened.unreadable:
        yield f"{counted(opened.unreadable, 'block')} of samples could not be read and are missing."
    if opened.hours_left_out:
        yield f"The {counted(opened.hours_left_out, 'oldest hour')} are left out."


async def _with_polled(context: SessionContext, scope: Scope, sampled: Curves) -> Curves:
    """What the head's statistics tell where no samples do."""
    if any(number is not None for curve in sampled.curves if curve.name == "cpu" for number in curve.mean):
        return sampled
    if sampled.unread_hours:
        return sampled
    polled = await polled_curves(context, scope, sampled)
    if polled is None:
        notes = (*sampled.notes, *(() if sampled.source == "sampled" else (NO_SAMPLES,)))
        return replace(sampled, notes=notes)
    return _merged(sampled, polled)


def _merged(sampled: Curves, polled: PolledCurves) -> Curves:
    """Samples of disk and network stay; the rest comes from the head."""
    kept = {
        curve.name: curve for curve in sampled.curves if sampled.source == "sampled" and curve.name not in _FROM_RAY
    }
    by_name = {curve.name: curve for curve in polled.curves} | kept
    source: Source = "sampled" if kept else "polled"
    told = METRICS_OFF if kept else f"{NO_SAMPLES} The curves are from the head's statistics, once a minute."
    return replace(
        sampled,
        curves=tuple(by_name[name] for name in _CURVES if name in by_name),
        nodes=polled.nodes if source == "polled" else sampled.nodes,
        resolution_seconds=polled.every_seconds,
        source=source,
        notes=(*sampled.notes, told, *polled.notes),
    )
