"""`/events`, and `/api/v0/cluster_events`: the same events as a state list.

Ray 2.60 answers 500 as soon as both C++ and Python wrote events, since it sorts numbers among texts; we sort numbers.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from raykeeper.history.entities.event_files import by_job, local_time, read_events
from raykeeper.history.entities.ray_json import camel_keys
from raykeeper.history.http.ray_api.cluster import utc_offset
from raykeeper.history.http.ray_api.listing import list_answer, list_rows
from raykeeper.history.http.ray_api.state_query import Columns, FilterColumn, StateQuery, parse_state_query
from raykeeper.history.http.responses import Listed, dashboard_response
from raykeeper.history.query.context import SessionContext


async def get_events(request: Request, context: SessionContext) -> Response:
    events = by_job(await read_events(context))
    job_id = request.query_params.get("job_id")
    if job_id is None:
        return dashboard_response("All events fetched.", {"events": {job: camel_keys(events[job]) for job in events}})
    return dashboard_response("Job events fetched.", {"jobId": job_id, "events": camel_keys(events.get(job_id, []))})


COLUMNS: Columns = {name: FilterColumn(is_absent_if_null=True) for name in ("severity", "source_type", "event_id")}

LISTED = ("severity", "time", "source_type", "message", "event_id")
DETAILED = (*LISTED, "custom_fields")


async def list_cluster_events(request: Request, context: SessionContext) -> Response:
    query = parse_state_query(request.query_params)
    return await list_answer(context, await _cluster_event_page(context, query))


async def _cluster_event_page(context: SessionContext, query: StateQuery) -> Listed:
    shown = DETAILED if query.is_detailed else LISTED
    offset = await utc_offset(context)
    events = [{**event, "time": local_time(event, offset)} for event in await read_events(context)]
    return list_rows(events, query, COLUMNS, shown, key=lambda event: int(event["timestamp"]))
