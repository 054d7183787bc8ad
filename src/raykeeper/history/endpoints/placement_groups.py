"""`/api/v0/placement_groups`: from the collector's polls, since events do not carry them."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from raykeeper.history.answers import Listed
from raykeeper.history.asked import Asked
from raykeeper.history.endpoints.filters import Columns, FilterColumn
from raykeeper.history.endpoints.listing import answer_list, list_rows
from raykeeper.history.endpoints.polledrows import polled_rows
from raykeeper.history.endpoints.statequery import StateQuery

COLUMNS: Columns = {
    "placement_group_id": FilterColumn("id"),
    "name": FilterColumn(),
    "creator_job_id": FilterColumn("id"),
    "state": FilterColumn("word"),
    "is_detached": FilterColumn("bool", is_optional=True),
}

LISTED = ("placement_group_id", "name", "creator_job_id", "state")
DETAILED = (*LISTED, "bundles", "is_detached", "stats", "topology_strategy", "topology_assignments")


async def list_placement_groups(request: Request, asked: Asked) -> Response:
    return await answer_list(request, asked, placement_group_page)


async def placement_group_page(asked: Asked, query: StateQuery) -> Listed:
    rows = polled_rows(asked.session, "placement_groups", ["placement_group_id"]) or []
    shown = DETAILED if query.is_detailed else LISTED
    return list_rows(rows, query, COLUMNS, shown, key=lambda row: row["placement_group_id"])
