# ruff: noqa: S608 - statements are made of constants of this file; values are bound
"""What some nodes used over some time, in hours: from the samples, else from what the head was asked once a minute."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from raykeeper.history.curves.model import MeasuredHours, NodeUsage, Source
from raykeeper.history.curves.polled import METRICS_OFF, NO_SAMPLES, PolledSample, polled_samples
from raykeeper.history.curves.scope import FINE_NODE_HOURS, IN_SCOPE, Scope, node_count
from raykeeper.history.query.context import Row, SessionContext
from raykeeper.history.samples.builder import TABLE_OF, Level
from raykeeper.history.samples.table import HUNDREDTHS, MEASURES, VALUES
from raykeeper.layout.samples import HOUR_SECONDS, STEP_SECONDS
from raykeeper.times import NS

_MIB, _GIB = 1 << 20, 1 << 30
_ROW_HOURS = STEP_SECONDS / HOUR_SECONDS
_HOURS = {
    "CPU": ("cpu", "cpu_total", "cpu_reserved", 1 / HUNDREDTHS),
    "GPU": ("gpu_used", "gpu_total", "gpu_reserved", 1 / HUNDREDTHS),
    "memory": ("memory", "memory_total", None, _MIB / _GIB),
    "gpu_memory": ("gpu_memory", "gpu_memory_total", None, _MIB / _GIB),
    "object_store_memory": ("object_store", "object_store_total", None, _MIB / _GIB),
}
"""By name: the columns of what is used, there and reserved, and what one of them is in the unit of hours."""
_POLLED = {
    "CPU": ("cpu", 1.0),
    "GPU": ("gpu", 1.0),
    "memory": ("memory", 1 / _GIB),
    "gpu_memory": ("gpu_memory", 1 / _GIB),
}


@dataclass(frozen=True)
class NodeHours:
    """One node over the time."""

    usage: NodeUsage
    available: Mapping[str, float]
    """Hours by resource, GiB-hours for memory: what it had."""
    used: Mapping[str, float]
    reserved: Mapping[str, float]
    gpu_hours: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """What it had and used of each type of GPU."""


@dataclass(frozen=True)
class Measured:
    """What was measured of a scope."""

    hours: tuple[MeasuredHours, ...] = ()
    nodes: tuple[NodeHours, ...] = ()
    """Those with the highest peak of memory first; none where only the head was asked."""
    source: Source = "none"
    notes: tuple[str, ...] = ()
    measurements: int = 0
    """That all of it rests on."""
    unread_hours: int = 0

    def used(self) -> dict[str, float]:
        """Hours by resource."""
        return {row.name: row.used for row in self.hours if row.used is not None}


async def measured_usage(context: SessionContext, scope: Scope, patience_seconds: float | None = None) -> Measured:
    """All that is known of what the nodes of a scope used."""
    sampled = await _sampled(context, scope, patience_seconds)
    if sampled.unread_hours or "CPU" in sampled.used():
        return sampled
    samples, _ = await polled_samples(context, scope)
    hours = polled_hours(samples)
    if not hours:
        return sampled if sampled.nodes else Measured(notes=(NO_SAMPLES,))
    told = METRICS_OFF if sampled.nodes else f"{NO_SAMPLES} The figures are from the head's statistics, once a minute."
    return Measured(hours, sampled.nodes, "polled", (told,), len(samples))


async def _sampled(context: SessionContext, scope: Scope, patience_seconds: float | None) -> Measured:
    if context.samples is None:
        return Measured()
    span_hours = (scope.end - scope.begin) / HOUR_SECONDS
    level: Level = "fine" if node_count(context, scope.node_ids) * span_hours <= FINE_NODE_HOURS else "coarse"
    within = (scope.begin, scope.end, level, patience_seconds)
    async with context.samples.opened(context.session, *within) as opened:
        rows = await context.database.query(_by_node(level), opened.tables, scope.params)
        gpus = await context.database.query(_by_gpu(level), opened.tables, scope.params)
    by_type: dict[str, dict[str, tuple[float, float]]] = {}
    for row in gpus:
        has, used = (row[name] * _ROW_HOURS / HUNDREDTHS for name in ("gpu_total", "gpu_used"))
        by_type.setdefault(row["node_id"], {})[row["gpu_name"]] = (has, used)
    nodes = [_node_hours(row, by_type.get(row["node_id"], {})) for row in rows]
    nodes.sort(key=lambda node: (-(node.usage.memory_peak or 0.0), node.usage.node_id))
    notes = (f"{opened.unreadable} blocks of samples could not be read and are missing.",) if opened.unreadable else ()
    return Measured(
        hours=_added(nodes),
        nodes=tuple(nodes),
        source="sampled" if nodes else "none",
        notes=notes,
        measurements=sum(row["rows"] for row in rows),
        unread_hours=opened.unread_hours,
    )


def _by_node(level: Level) -> str:
    sums = [f"sum({value} * n) AS {value}" for value in VALUES]
    peaks = [f"max({value}{'' if level == 'fine' else '_max'}) AS {value}_peak" for value in MEASURES]
    known = [f"sum(n) FILTER ({value} IS NOT NULL) AS {value}_rows" for value in VALUES]
    return f"""
        SELECT node_id, sum(n) AS rows, {", ".join(sums + peaks + known)}
        FROM {TABLE_OF[level]} WHERE gpu IS NULL AND {IN_SCOPE} GROUP BY node_id
    """


def _by_gpu(level: Level) -> str:
    return f"""
        SELECT node_id, coalesce(gpu_name, '') AS gpu_name,
            coalesce(sum(gpu_total * n), 0) AS gpu_total, coalesce(sum(gpu_used * n), 0) AS gpu_used
        FROM {TABLE_OF[level]} WHERE gpu IS NOT NULL AND {IN_SCOPE} GROUP BY ALL
    """


def _node_hours(row: Row, gpu_hours: Mapping[str, tuple[float, float]]) -> NodeHours:
    parts: dict[str, dict[str, float]] = {"used": {}, "available": {}, "reserved": {}}
    for name, (used, available, reserved, scale) in _HOURS.items():
        for part, column in (("used", used), ("available", available), ("reserved", reserved)):
            if column and row[column] is not None:
                parts[part][name] = row[column] * scale * _ROW_HOURS
    return NodeHours(_node_usage(row, gpu_hours), parts["available"], parts["used"], parts["reserved"], gpu_hours)


def _node_usage(row: Row, gpu_hours: Mapping[str, object]) -> NodeUsage:
    def mean(column: str, scale: float) -> float | None:
        return row[column] / row[f"{column}_rows"] * scale if row[f"{column}_rows"] else None

    def peak(column: str, scale: float) -> float | None:
        value = row[f"{column}_peak"]
        return None if value is None else value * scale

    return NodeUsage(
        node_id=row["node_id"],
        hours=row["rows"] * _ROW_HOURS,
        cpus=mean("cpu_total", 1 / HUNDREDTHS),
        cpu_mean=mean("cpu", 1 / HUNDREDTHS),
        cpu_peak=peak("cpu", 1 / HUNDREDTHS),
        memory_total=mean("memory_total", _MIB),
        memory_mean=mean("memory", _MIB),
        memory_peak=peak("memory", _MIB),
        gpus=mean("gpu_total", 1 / HUNDREDTHS),
        gpu_mean=mean("gpu_used", 1 / HUNDREDTHS),
        gpu_memory_peak=peak("gpu_memory", _MIB),
        gpu_type=", ".join(sorted(name for name in gpu_hours if name)),
    )


def _added(nodes: Iterable[NodeHours]) -> tuple[MeasuredHours, ...]:
    """Of all nodes together; resources that no node has are left out."""
    known = list(nodes)

    def total(parts: Sequence[Mapping[str, float]], name: str) -> float | None:
        found = [part[name] for part in parts if name in part]
        return sum(found) if found else None

    rows = (
        MeasuredHours(
            name,
            total([node.available for node in known], name),
            total([node.reserved for node in known], name),
            total([node.used for node in known], name),
        )
        for name in _HOURS
    )
    return tuple(row for row in rows if row.available or row.used)


def polled_hours(samples: Sequence[PolledSample]) -> tuple[MeasuredHours, ...]:
    """Each stretch between two samples counts with the mean of both; a single one says nothing about hours. Pure."""
    rows = []
    for name, (column, scale) in _POLLED.items():
        used = available = 0.0
        for first, second in pairwise(samples):
            hours = (second.at_ns - first.at_ns) / NS / HOUR_SECONDS
            used += (first.used.get(column, 0.0) + second.used.get(column, 0.0)) / 2 * hours
            available += (first.total.get(column, 0.0) + second.total.get(column, 0.0)) / 2 * hours
        if available:
            rows.append(MeasuredHours(name, available * scale, None, used * scale))
    return tuple(rows)
