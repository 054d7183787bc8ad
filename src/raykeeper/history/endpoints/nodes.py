"""`/api/v0/nodes`."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from raykeeper.history.answers import InvalidQuery, Listed
from raykeeper.history.asked import Asked, Row
from raykeeper.history.endpoints import ended
from raykeeper.history.endpoints.captured import CAPTURED_NODES, captured_page
from raykeeper.history.endpoints.filters import NODE_ID_BYTES, FilterColumn
from raykeeper.history.endpoints.listing import TableList, answer_list, list_table
from raykeeper.history.endpoints.rayjson import optional_json
from raykeeper.history.endpoints.statequery import StateQuery

NODES = TableList(
    columns={
        "node_id": FilterColumn("id", id_bytes=NODE_ID_BYTES),
        "node_ip": FilterColumn(),
        "is_head_node": FilterColumn("bool"),
        "state": FilterColumn("word"),
        "node_name": FilterColumn(),
    },
    relation=ended.NODES,
    order="node_id",
    source_columns=frozenset({"node_id", "state", "node_name"}),
)

_STATES = ("ALIVE", "DEAD")
_REASONS = {
    "EXPECTED_TERMINATION": "Expected termination",
    "UNEXPECTED_TERMINATION": "Unexpected termination",
    "AUTOSCALER_DRAIN_PREEMPTED": "Terminated due to preemption",
    "AUTOSCALER_DRAIN_IDLE": "Terminated due to idle (no Ray activity)",
}


async def list_nodes(request: Request, asked: Asked) -> Response:
    return await answer_list(request, asked, node_page)


async def node_page(asked: Asked, query: StateQuery) -> Listed:
    for item in query.filters:
        if item.column == "state" and item.predicate == "=" and item.value.upper() not in _STATES:
            raise InvalidQuery(f"Invalid node state for filtering: {item.value.upper()}")
    if captured := await captured_page(asked, query, CAPTURED_NODES, NODES.columns):
        return captured
    return await list_table(asked, query, NODES, detailed_node if query.is_detailed else listed_node)


def listed_node(row: Row) -> dict[str, Any]:
    return {
        "node_id": row["node_id"],
        "node_ip": row["node_ip"],
        "is_head_node": bool(row["is_head_node"]),
        "state": row["state"],
        "state_message": state_message(row["death_reason"], row["death_message"]),
        "node_name": row["node_name"],
        "resources_total": optional_json(row["resources_total"]) or {},
        "labels": optional_json(row["labels"]) or {},
    }


def detailed_node(row: Row) -> dict[str, Any]:
    return {**listed_node(row), "start_time_ms": to_ms(row["started_ns"]), "end_time_ms": to_ms(row["end_ns"])}


def state_message(reason: str | None, message: str | None) -> str | None:
    """Why a node died, in the words of Ray's dashboard."""
    known = _REASONS.get(reason or "")
    if message:
        return f"{known}: {message}" if known else message
    return known


def to_ms(ns: int | None) -> int:
    """0 where there is no time, as Ray has it for nodes."""
    return (ns or 0) // 1_000_000
