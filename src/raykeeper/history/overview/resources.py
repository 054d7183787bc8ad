"""Resource-hours: what the nodes of a cluster had, what was requested, and what was measured."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from raykeeper.history.curves.scope import session_scope
from raykeeper.history.curves.usage import measured_usage
from raykeeper.history.entities.nodes import state_message
from raykeeper.history.entities.ray_json import json_amounts
from raykeeper.history.overview.model import NodesOverTime, NodeSpan, ResourceHours, Resources
from raykeeper.history.overview.sql import ACTOR_RESOURCES, NODES, TASK_RESOURCES
from raykeeper.history.overview.task_counts import Bins, spans_peaks
from raykeeper.history.query.context import Row, SessionContext
from raykeeper.times import NS, from_ns

NODES_SHOWN = 40
"""One by one; the others are in the number of those alive."""
_NODES_READ = 20_000  # more incarnations than Ray clusters of today have


async def node_rows(context: SessionContext) -> list[Row]:
    """Every node there was: the head first, then by their start."""
    return await context.rows(NODES, {"row_limit": _NODES_READ})


def nodes_over_time(rows: Sequence[Row], bins: Bins, until_ns: int) -> NodesOverTime:
    spans = [(row["started_ns"], row["end_ns"] or until_ns) for row in rows if row["started_ns"] is not None]
    return NodesOverTime(
        rows=tuple(_node_span(row) for row in rows[:NODES_SHOWN]),
        left_out=max(0, len(rows) - NODES_SHOWN),
        begin=from_ns(bins.begin_ns),
        width_seconds=bins.width_ns / NS,
        alive=spans_peaks(bins, spans),
    )


def _node_span(row: Row) -> NodeSpan:
    return NodeSpan(
        node_id=row["node_id"],
        name=row["hostname"] or row["node_name"] or row["node_ip"] or row["node_id"],
        is_head=bool(row["is_head_node"]),
        started_at=from_ns(row["started_ns"]),
        ended_at=from_ns(row["end_ns"]),
        death=state_message(row["death_reason"], row["death_message"]),
        resources=dict(amounts_of(row["resources_total"])),
    )


_PATIENCE_SECONDS = 1.0  # a page does not wait longer for measurements that nobody has read yet
_SHAPES_LIMIT = 1000  # different requirements; programs have a handful
_NS_PER_HOUR = 3600 * NS
_GIB = 1 << 30
_LEAST_HOURS = 0.001  # four seconds of one CPU
_IN_BYTES = ("memory", "object_store_memory")
_GROUPED = re.compile(r"_group_[0-9a-f]{36}\Z")  # the id of a placement group has 18 bytes
_OF_PLACE = re.compile(r"node:|bundle\Z|.+_group_\d+_[0-9a-f]{36}\Z")

Amounts = Mapping[str, float]


async def resource_hours(context: SessionContext, nodes: Sequence[Row], until_ns: int) -> Resources:
    """Of a whole session."""
    measured = await measured_usage(context, await session_scope(context), patience_seconds=_PATIENCE_SECONDS)
    hours = merged_hours(available_hours(nodes, until_ns), await asked_hours(context, None, until_ns), measured.used())
    return Resources(hours, measured.measurements, measured.unread_hours)


async def job_resources(context: SessionContext, job_id: str, until_ns: int) -> Resources:
    """What one job asked for; nobody measures by job."""
    return Resources(merged_hours({}, await asked_hours(context, job_id, until_ns), {}), 0)


async def asked_hours(context: SessionContext, job_id: str | None, until_ns: int) -> Amounts:
    params = {"job_id": job_id, "until_ns": until_ns, "row_limit": _SHAPES_LIMIT}
    rows = [*await context.rows(TASK_RESOURCES, params), *await context.rows(ACTOR_RESOURCES, params)]
    return added((amounts_of(row["required_resources"]), row["held_ns"]) for row in rows)


def available_hours(nodes: Iterable[Row], until_ns: int) -> Amounts:
    """What the nodes had, times how long they were there."""
    return added(
        (amounts_of(node["resources_total"]), (node["end_ns"] or until_ns) - node["started_ns"])
        for node in nodes
        if node["started_ns"] is not None
    )


def added(parts: Iterable[tuple[Amounts, float]]) -> Amounts:
    """Amounts times nanoseconds, as hours."""
    hours: defaultdict[str, float] = defaultdict(float)
    for amounts, held_ns in parts:
        for name, amount in amounts.items():
            hours[name] += amount * max(0.0, held_ns) / _NS_PER_HOUR
    return dict(hours)


def amounts_of(text: str | None) -> Amounts:
    """Resources as people ask for them; bytes become GiB.

    Left out is what only names a node. In a placement group Ray asks for `CPU_group_<id>`, which counts as CPU, and
    again for the same in one bundle and for the bundle itself, which do not.
    """
    found: defaultdict[str, float] = defaultdict(float)
    for spelled, amount in json_amounts(text).items():
        name = _GROUPED.sub("", spelled)
        if not _OF_PLACE.match(name):
            found[name] += amount / _GIB if name in _IN_BYTES else amount
    return dict(found)


def hours_in_words(hours: float) -> str:
    """To three digits: what differs less is the same to people."""
    if 0 < hours < _LEAST_HOURS:
        return f"less than {_LEAST_HOURS}"
    return f"{hours:,.0f}" if hours >= 100 else f"{hours:.3g}"


def merged_hours(available: Amounts, wanted: Amounts, used: Amounts) -> tuple[ResourceHours, ...]:
    """One row for each resource that anybody had, asked for or used: CPU, GPU and memory first."""
    first = {"CPU": 0, "GPU": 1, "memory": 2}
    names = sorted({*available, *wanted, *used}, key=lambda name: (first.get(name, 3), name))
    return tuple(ResourceHours(name, available.get(name, 0.0), wanted.get(name, 0.0), used.get(name)) for name in names)
