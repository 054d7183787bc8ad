"""`/api/v0/objects`, `/api/v0/runtime_envs` and `/api/v0/placement_groups`: only what was polled is known of them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from raykeeper.history.entities.polled import polled_rows
from raykeeper.history.errors import InvalidQuery, Unanswerable
from raykeeper.history.http.ray_api.listing import list_answer, list_rows
from raykeeper.history.http.ray_api.state_query import (
    MAX_LIMIT,
    Columns,
    FilterColumn,
    StateQuery,
    parse_filters,
    parse_state_query,
)
from raykeeper.history.http.responses import Listed, summary_response
from raykeeper.history.query.context import SessionContext

GROUP_COLUMNS: Columns = {
    "placement_group_id": FilterColumn("id"),
    "name": FilterColumn(),
    "creator_job_id": FilterColumn("id"),
    "state": FilterColumn("word"),
    "is_detached": FilterColumn("bool", is_optional=True),
}

_GROUP_LISTED = ("placement_group_id", "name", "creator_job_id", "state")
_GROUP_DETAILED = (*_GROUP_LISTED, "bundles", "is_detached", "stats", "topology_strategy", "topology_assignments")


async def list_placement_groups(request: Request, context: SessionContext) -> Response:
    query = parse_state_query(request.query_params)
    return await list_answer(context, await _placement_group_page(context, query))


async def _placement_group_page(context: SessionContext, query: StateQuery) -> Listed:
    found = await asyncio.to_thread(polled_rows, context.session, "placement_groups", ["placement_group_id"])
    rows = found or []
    shown = _GROUP_DETAILED if query.is_detailed else _GROUP_LISTED
    return list_rows(rows, query, GROUP_COLUMNS, shown, key=lambda row: row["placement_group_id"])


ENV_COLUMNS: Columns = {
    "runtime_env": FilterColumn(),
    "success": FilterColumn("bool"),
    "node_id": FilterColumn("id"),
    "error": FilterColumn(is_absent_if_null=True),
}

_ENV_LISTED = ("runtime_env", "success", "creation_time_ms", "node_id")
_ENV_DETAILED = (*_ENV_LISTED, "ref_cnt", "error")

ENVS_NOT_STORED = (
    "Ray knows its runtime environments only while the cluster runs; those of jobs, actors and tasks are in their own "
    "lists. To keep this list, add /api/v0/runtime_envs?detail=1&limit=10000 to RAY_COLLECTOR_ADDITIONAL_ENDPOINTS of "
    "the collector."
)


async def list_runtime_envs(request: Request, context: SessionContext) -> Response:
    query = parse_state_query(request.query_params)
    return await list_answer(context, await _runtime_env_page(context, query))


async def _runtime_env_page(context: SessionContext, query: StateQuery) -> Listed:
    rows = await asyncio.to_thread(polled_rows, context.session, "runtime_envs", ["node_id", "runtime_env"])
    shown = _ENV_DETAILED if query.is_detailed else _ENV_LISTED
    listed = list_rows(rows or [], query, ENV_COLUMNS, shown, key=_slowest_first)
    return replace(listed, warnings=(ENVS_NOT_STORED,) if rows is None else (), partial_failure=None)


def _slowest_first(row: Mapping[str, Any]) -> float:
    """Those that never came to be stand first, as in Ray."""
    time = row.get("creation_time_ms")
    return -float("inf") if time is None else -float(time)


OBJECT_COLUMNS: Columns = {
    "object_id": FilterColumn("id"),
    "object_size": FilterColumn("int"),
    "task_status": FilterColumn("word"),
    "attempt_number": FilterColumn("int"),
    "reference_type": FilterColumn("word"),
    "call_site": FilterColumn(),
    "type": FilterColumn("word"),
    "pid": FilterColumn("int"),
    "ip": FilterColumn(),
}

OBJECTS_NOT_STORED = (
    "Ray knows its objects only while the cluster runs. To keep a list of them, add "
    "/api/v0/objects?limit=10000 to RAY_COLLECTOR_ADDITIONAL_ENDPOINTS of the collector."
)

_BYTES_PER_MB = 1024**2
_UNKNOWN_SIZE = -1


async def list_objects(request: Request, context: SessionContext) -> Response:
    query = parse_state_query(request.query_params)
    return await list_answer(context, await _object_page(context, query))


async def summarize_objects(request: Request, context: SessionContext) -> Response:
    try:
        query = StateQuery(filters=parse_filters(request.query_params), limit=MAX_LIMIT)
        listed = await _object_page(context, query)
    except InvalidQuery as exc:
        raise Unanswerable(str(exc)) from exc  # Ray catches nothing here
    return summary_response(listed, _object_summary(listed.rows))


async def _object_page(context: SessionContext, query: StateQuery) -> Listed:
    rows = await asyncio.to_thread(
        polled_rows, context.session, "objects", ["object_id", "pid", "ip", "reference_type"]
    )
    listed = list_rows(rows or [], query, OBJECT_COLUMNS, tuple(OBJECT_COLUMNS), key=lambda row: row["object_id"])
    return replace(listed, warnings=(OBJECTS_NOT_STORED,) if rows is None else (), partial_failure=None)


def _object_summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Objects counted by the place in the code that made them."""
    by_place: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        by_place.setdefault(row["call_site"], []).append(row)
    return {
        "summary": {place: _place_summary(members) for place, members in by_place.items()},
        "total_objects": len(rows),
        "total_size_mb": _megabytes(rows),
        "callsite_enabled": "disabled" not in by_place,
        "summary_by": "callsite",
    }


def _place_summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "total_objects": len(rows),
        "total_size_mb": _megabytes(rows),
        "total_num_workers": len({row["pid"] for row in rows}),
        "total_num_nodes": len({row["ip"] for row in rows}),
        "task_state_counts": Counter(row["task_status"] for row in rows),
        "task_attempt_number_counts": Counter(str(row["attempt_number"]) for row in rows),
        "ref_type_counts": Counter(row["reference_type"] for row in rows),
    }


def _megabytes(rows: Sequence[Mapping[str, Any]]) -> float:
    return float(sum(row["object_size"] / _BYTES_PER_MB for row in rows if row["object_size"] != _UNKNOWN_SIZE))
