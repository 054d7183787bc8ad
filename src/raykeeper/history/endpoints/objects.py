"""`/api/v0/objects` and its summary: known only while a cluster runs, unless somebody had them polled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from raykeeper.history.answers import InvalidQuery, Listed, Unanswerable, summary_response
from raykeeper.history.asked import Asked
from raykeeper.history.endpoints.filters import Columns, FilterColumn
from raykeeper.history.endpoints.listing import answer_list, list_rows
from raykeeper.history.endpoints.polledrows import polled_rows
from raykeeper.history.endpoints.statequery import MAX_LIMIT, StateQuery, parse_filters

COLUMNS: Columns = {
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

NOT_KEPT = (
    "Ray knows its objects only while the cluster runs. To keep a list of them, add "
    "/api/v0/objects?limit=10000 to RAY_COLLECTOR_ADDITIONAL_ENDPOINTS of the collector."
)

_BYTES_PER_MB = 1024**2
_UNKNOWN_SIZE = -1


async def list_objects(request: Request, asked: Asked) -> Response:
    return await answer_list(request, asked, object_page)


async def summarize_objects(request: Request, asked: Asked) -> Response:
    try:
        query = StateQuery(filters=parse_filters(request.query_params), limit=MAX_LIMIT)
        listed = await object_page(asked, query)
    except InvalidQuery as exc:
        raise Unanswerable(str(exc)) from exc  # Ray catches nothing here
    return summary_response(listed, object_summary(listed.rows))


async def object_page(asked: Asked, query: StateQuery) -> Listed:
    rows = polled_rows(asked.session, "objects", ["object_id", "pid", "ip", "reference_type"])
    listed = list_rows(rows or [], query, COLUMNS, tuple(COLUMNS), key=lambda row: row["object_id"])
    return replace(listed, warnings=(NOT_KEPT,) if rows is None else (), partial_failure=None)


def object_summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
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
