"""`/api/v0/nodes`."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from raykeeper.history.entities import cluster_end
from raykeeper.history.entities.nodes import state_message
from raykeeper.history.entities.ray_json import json_amounts, json_object
from raykeeper.history.errors import InvalidQuery
from raykeeper.history.http.ray_api.captured import CAPTURED_NODES, captured_page
from raykeeper.history.http.ray_api.listing import TableList, list_answer, list_table
from raykeeper.history.http.ray_api.state_query import FilterColumn, StateQuery, parse_state_query
from raykeeper.history.http.responses import Listed
from raykeeper.history.query.context import Row, SessionContext
from raykeeper.rayevents.ids import NODE_ID_BYTES

NODES = TableList(
    columns={
        "node_id": FilterColumn("id", id_bytes=NODE_ID_BYTES),
        "node_ip": FilterColumn(),
        "is_head_node": FilterColumn("bool"),
        "state": FilterColumn("word"),
        "node_name": FilterColumn(),
    },
    relation=cluster_end.NODES,
    order="node_id",
    source_columns=frozenset({"node_id", "state", "node_name"}),
)

_STATES = ("ALIVE", "DEAD")


async def list_nodes(request: Request, context: SessionContext) -> Response:
    query = parse_state_query(request.query_params)
    return await list_answer(context, await _node_page(context, query))


async def _node_page(context: SessionContext, query: StateQuery) -> Listed:
    for item in query.filters:
        if item.column == "state" and item.predicate == "=" and item.value.upper() not in _STATES:
            raise InvalidQuery(f"Invalid node state for filtering: {item.value.upper()}")
    if captured := await captured_page(context, query, CAPTURED_NODES, NODES.columns):
        return captured
    return await list_table(context, query, NODES, _detailed_node if query.is_detailed else _listed_node)


def _listed_node(row: Row) -> dict[str, Any]:
    return {
        "node_id": row["node_id"],
        "node_ip": row["node_ip"],
        "is_head_node": bool(row["is_head_node"]),
        "state": row["state"],
        "state_message": state_message(row["death_reason"], row["death_message"]),
        "node_name": row["node_name"],
        "resources_total": json_amounts(row["resources_total"]),
        "labels": json_object(row["labels"]),
    }


def _detailed_node(row: Row) -> dict[str, Any]:
    return {**_listed_node(row), "start_time_ms": to_ms(row["started_ns"]), "end_time_ms": to_ms(row["end_ns"])}


def to_ms(ns: int | None) -> int:
    """0 where there is no time, as Ray has it for nodes."""
    return (ns or 0) // 1_000_000
