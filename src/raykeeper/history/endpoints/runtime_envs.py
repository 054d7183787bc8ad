"""`/api/v0/runtime_envs`: known only while a cluster runs, unless somebody had them polled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from raykeeper.history.answers import Listed
from raykeeper.history.asked import Asked
from raykeeper.history.endpoints.filters import Columns, FilterColumn
from raykeeper.history.endpoints.listing import answer_list, list_rows
from raykeeper.history.endpoints.polledrows import polled_rows
from raykeeper.history.endpoints.statequery import StateQuery

COLUMNS: Columns = {
    "runtime_env": FilterColumn(),
    "success": FilterColumn("bool"),
    "node_id": FilterColumn("id"),
    "error": FilterColumn(is_absent_if_null=True),
}

LISTED = ("runtime_env", "success", "creation_time_ms", "node_id")
DETAILED = (*LISTED, "ref_cnt", "error")

NOT_KEPT = (
    "Ray knows its runtime environments only while the cluster runs; those of jobs, actors and tasks are in their own "
    "lists. To keep this list, add /api/v0/runtime_envs?detail=1&limit=10000 to RAY_COLLECTOR_ADDITIONAL_ENDPOINTS of "
    "the collector."
)


async def list_runtime_envs(request: Request, asked: Asked) -> Response:
    return await answer_list(request, asked, runtime_env_page)


async def runtime_env_page(asked: Asked, query: StateQuery) -> Listed:
    rows = polled_rows(asked.session, "runtime_envs", ["node_id", "runtime_env"])
    shown = DETAILED if query.is_detailed else LISTED
    listed = list_rows(rows or [], query, COLUMNS, shown, key=_slowest_first)
    return replace(listed, warnings=(NOT_KEPT,) if rows is None else (), partial_failure=None)


def _slowest_first(row: Mapping[str, Any]) -> float:
    """Those that never came to be stand first, as in Ray."""
    time = row.get("creation_time_ms")
    return -float("inf") if time is None else -float(time)
