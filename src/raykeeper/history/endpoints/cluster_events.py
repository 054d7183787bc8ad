"""`/api/v0/cluster_events`: the same events as a state list.

Ray 2.60 answers 500 as soon as both C++ and Python wrote events, since it sorts numbers among texts; we sort numbers.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from raykeeper.history.answers import Listed
from raykeeper.history.asked import Asked
from raykeeper.history.endpoints.eventfiles import local_time, read_events
from raykeeper.history.endpoints.filters import Columns, FilterColumn
from raykeeper.history.endpoints.listing import answer_list, list_rows
from raykeeper.history.endpoints.statequery import StateQuery
from raykeeper.history.endpoints.timezone import utc_offset

COLUMNS: Columns = {name: FilterColumn(is_absent_if_null=True) for name in ("severity", "source_type", "event_id")}

LISTED = ("severity", "time", "source_type", "message", "event_id")
DETAILED = (*LISTED, "custom_fields")


async def list_cluster_events(request: Request, asked: Asked) -> Response:
    return await answer_list(request, asked, cluster_event_page)


async def cluster_event_page(asked: Asked, query: StateQuery) -> Listed:
    shown = DETAILED if query.is_detailed else LISTED
    offset = utc_offset(asked)
    events = [{**event, "time": local_time(event, offset)} for event in await read_events(asked)]
    return list_rows(events, query, COLUMNS, shown, key=lambda event: int(event["timestamp"]))
