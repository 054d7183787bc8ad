"""What a session or a job had, was given and used, in hours and in money."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from raykeeper.history.curves.model import MeasuredHours, NodeUsage, Source
from raykeeper.history.curves.scope import Scope, job_scope, session_scope
from raykeeper.history.curves.usage import Measured, NodeHours, measured_usage
from raykeeper.history.entities.job_list import find_job
from raykeeper.history.entities.ray_json import json_object
from raykeeper.history.overview.resources import amounts_of, asked_hours
from raykeeper.history.prices import NodeFacts, NodeHoursUsed, Price, PriceList
from raykeeper.history.query.context import Row, SessionContext
from raykeeper.layout.samples import HOUR_SECONDS
from raykeeper.times import NS, from_ns

NODES_LIMIT = 100
_NODES_READ = 20_000
_ACCELERATOR = "accelerator_type:"
_NODES = """
    SELECT node_id, labels, instance_type_name, resources_total, coalesce(started_ns, transitions[1].ns) AS started_ns,
        coalesce(end_ns, closed_ns) AS end_ns
    FROM nodes ORDER BY node_id LIMIT $row_limit
"""
SHARED = "Other jobs ran on the same nodes at the same time: what was used is theirs, too."


@dataclass(frozen=True)
class UsageHours:
    """One resource over the whole time. Memory is in GiB, everything else in Ray's own unit."""

    name: str
    available: float | None
    """What the nodes had, times the hours they were there."""
    reserved: float | None
    """What Ray had given to tasks and actors of any job, by its own account every ten seconds."""
    asked: float | None
    """What tasks and actors of this job, or of the session, required, times the hours they ran."""
    used: float | None
    """What the machines were measured to use."""


@dataclass(frozen=True)
class CostRow:
    name: str
    """`node`, `CPU`, `memory`, or `GPU` with its type."""
    available: float
    used: float | None


@dataclass(frozen=True)
class Cost:
    """By the price list of this server."""

    currency: str
    available: float
    """Of all that the nodes had, used or not: what is paid."""
    used: float | None
    """Of what was used of it; whole nodes count by their CPU. None where nobody measured."""
    rows: tuple[CostRow, ...]
    unpriced_nodes: int
    """Nodes that no rule of the price list fits."""


@dataclass(frozen=True)
class Usage:
    """Of a session, or of a job: of the nodes it ran on, while it ran."""

    begin: datetime
    end: datetime
    hours: tuple[UsageHours, ...]
    nodes: tuple[NodeUsage, ...]
    """Those with the highest peak of memory first."""
    nodes_left_out: int
    other_jobs: int
    """Of a job: how many others had tasks on the same nodes at the same time."""
    cost: Cost | None
    """None without a price list."""
    source: Source
    notes: tuple[str, ...]
    unread_hours: int


async def session_usage(context: SessionContext, prices: PriceList | None) -> Usage:
    scope = await session_scope(context)
    asked = await asked_hours(context, None, scope.end * NS)
    return await _usage(context, scope, asked, prices)


async def job_usage(context: SessionContext, wanted: str, prices: PriceList | None) -> Usage:
    """Raises JobUnknown."""
    job = await find_job(context, wanted)
    scope = await job_scope(context, wanted)
    return await _usage(context, scope, await asked_hours(context, job.job_id or "", scope.end * NS), prices)


async def _usage(context: SessionContext, scope: Scope, asked: Mapping[str, float], prices: PriceList | None) -> Usage:
    measured = await measured_usage(context, scope)
    rows = await context.rows(_NODES, {"row_limit": _NODES_READ})
    nodes = [row for row in rows if scope.node_ids is None or row["node_id"] in scope.node_ids]
    lives = {row["node_id"]: _life_hours(row, scope) for row in nodes}
    return Usage(
        begin=from_ns(scope.begin * NS),
        end=from_ns(scope.end * NS),
        hours=_hours(measured, asked, [(row, lives[row["node_id"]]) for row in nodes]),
        nodes=tuple(node.usage for node in measured.nodes[:NODES_LIMIT]),
        nodes_left_out=max(0, len(measured.nodes) - NODES_LIMIT),
        other_jobs=scope.other_jobs,
        cost=_cost(context, prices, measured, nodes, lives) if prices else None,
        source=measured.source,
        notes=(*measured.notes, *((SHARED,) if scope.other_jobs else ())),
        unread_hours=measured.unread_hours,
    )


def _life_hours(row: Row, scope: Scope) -> float:
    """For how much of the time the node was there, by Ray's events."""
    if row["started_ns"] is None:
        return 0.0
    begin: float = max(scope.begin, row["started_ns"] / NS)
    end: float = scope.end if row["end_ns"] is None else min(scope.end, row["end_ns"] / NS)
    return max(0.0, end - begin) / HOUR_SECONDS


def _hours(
    measured: Measured, asked: Mapping[str, float], nodes: Iterable[tuple[Row, float]]
) -> tuple[UsageHours, ...]:
    """One row for each resource that anybody had, asked for or used: CPU, GPU and memory first."""
    by_name: dict[str, MeasuredHours] = {row.name: row for row in measured.hours}
    by_ray: defaultdict[str, float] = defaultdict(float)
    for row, hours in nodes:
        for name, amount in amounts_of(row["resources_total"]).items():
            by_ray[name] += amount * hours
    first = {"CPU": 0, "GPU": 1, "memory": 2, "gpu_memory": 3, "object_store_memory": 4}
    names = sorted({*by_name, *by_ray, *asked}, key=lambda name: (first.get(name, 5), name))
    return tuple(_row(name, by_name.get(name), by_ray.get(name), asked.get(name)) for name in names)


def _row(name: str, measured: MeasuredHours | None, by_ray: float | None, asked: float | None) -> UsageHours:
    if measured is None:
        return UsageHours(name, by_ray, None, asked, None)
    available = by_ray if measured.available is None else measured.available
    return UsageHours(name, available, measured.reserved, asked, measured.used)


def _cost(
    context: SessionContext,
    prices: PriceList,
    measured: Measured,
    nodes: Sequence[Row],
    lives: Mapping[str, float],
) -> Cost:
    sampled = {node.usage.node_id: node for node in measured.nodes}
    facts = {row["node_id"]: _facts(context, row) for row in nodes}
    available: defaultdict[str, float] = defaultdict(float)
    used: defaultdict[str, float] = defaultdict(float)
    unpriced, are_all_measured = 0, True
    resources = {row["node_id"]: row["resources_total"] for row in nodes}
    for node_id in sorted({*sampled, *facts}):
        price = prices.of_node(facts.get(node_id) or _facts(context, {}))
        if price is None:
            unpriced += 1
            continue
        node = sampled.get(node_id)
        for name, amount in price.cost(_had(node, lives.get(node_id, 0.0), resources.get(node_id))).items():
            available[name] += amount
        are_all_measured = are_all_measured and node is not None and "CPU" in node.used
        for name, amount in (_cost_of_use(price, node) if node else {}).items():
            used[name] += amount
    is_measured = bool(sampled) and are_all_measured
    rows = tuple(CostRow(name, cost, used.get(name, 0.0) if is_measured else None) for name, cost in available.items())
    total_used = sum(used.values()) if is_measured else None
    return Cost(prices.currency, sum(available.values()), total_used, rows, unpriced)


def _had(node: NodeHours | None, life_hours: float, resources: str | None) -> NodeHoursUsed:
    """What a node had: by its samples, else by Ray's own account of it."""
    if node is not None and node.available:
        gpus = {name: has for name, (has, _) in node.gpu_hours.items()}
        return NodeHoursUsed(node.usage.hours, node.available.get("CPU", 0.0), node.available.get("memory", 0.0), gpus)
    amounts = amounts_of(resources)
    kind = next((name.removeprefix(_ACCELERATOR) for name in amounts if name.startswith(_ACCELERATOR)), "")
    gpus = {kind: amounts["GPU"] * life_hours} if "GPU" in amounts else {}
    return NodeHoursUsed(
        life_hours, amounts.get("CPU", 0.0) * life_hours, amounts.get("memory", 0.0) * life_hours, gpus
    )


def _cost_of_use(price: Price, node: NodeHours) -> dict[str, float]:
    cpus, used = node.available.get("CPU", 0.0), node.used.get("CPU", 0.0)
    share = used / cpus if cpus else 0.0
    gpus = {name: busy for name, (_, busy) in node.gpu_hours.items()}
    return price.cost(NodeHoursUsed(node.usage.hours * share, used, node.used.get("memory", 0.0), gpus))


def _facts(context: SessionContext, row: Mapping[str, str | None]) -> NodeFacts:
    session = context.session.id
    return NodeFacts(
        session.namespace,
        session.cluster,
        {name: str(value) for name, value in json_object(row.get("labels")).items()},
        row.get("instance_type_name") or "",
    )
