"""The nodes of a cluster over time."""

from __future__ import annotations

from collections.abc import Sequence

from raykeeper.history.asked import Asked, Row
from raykeeper.history.endpoints.nodes import state_message
from raykeeper.history.overview.bins import NS, Bins, optional_time, spans_levels, to_time
from raykeeper.history.overview.model import NodesOverTime, NodeSpan
from raykeeper.history.overview.resources import amounts_of
from raykeeper.history.overview.statements import NODES

NODES_SHOWN = 40
"""One by one; the others are in the number of those alive."""
_NODES_READ = 20_000  # more incarnations than Ray clusters of today have


async def node_rows(asked: Asked) -> list[Row]:
    """Every node there was: the head first, then by their start."""
    return await asked.rows(NODES, {"row_limit": _NODES_READ})


def nodes_over_time(rows: Sequence[Row], bins: Bins, until_ns: int) -> NodesOverTime:
    spans = [(row["started_ns"], row["end_ns"] or until_ns) for row in rows if row["started_ns"] is not None]
    return NodesOverTime(
        rows=tuple(node_span(row) for row in rows[:NODES_SHOWN]),
        left_out=max(0, len(rows) - NODES_SHOWN),
        begin=to_time(bins.begin_ns),
        width_seconds=bins.width_ns / NS,
        alive=spans_levels(bins, spans),
    )


def node_span(row: Row) -> NodeSpan:
    return NodeSpan(
        node_id=row["node_id"],
        name=row["hostname"] or row["node_name"] or row["node_ip"] or row["node_id"],
        is_head=bool(row["is_head_node"]),
        started_at=optional_time(row["started_ns"]),
        ended_at=optional_time(row["end_ns"]),
        death=state_message(row["death_reason"], row["death_message"]),
        resources=dict(amounts_of(row["resources_total"])),
    )
