"""`/events`: the event cards of the overview page."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from raykeeper.history.answers import dashboard_response
from raykeeper.history.asked import Asked
from raykeeper.history.endpoints.eventfiles import by_job, read_events
from raykeeper.history.endpoints.rayjson import camel_keys


async def get_events(request: Request, asked: Asked) -> Response:
    events = by_job(await read_events(asked))
    job_id = request.query_params.get("job_id")
    if job_id is None:
        return dashboard_response("All events fetched.", {"events": {job: camel_keys(events[job]) for job in events}})
    return dashboard_response("Job events fetched.", {"jobId": job_id, "events": camel_keys(events.get(job_id, []))})
