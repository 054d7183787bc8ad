"""`/api/jobs/`, `/api/jobs/{job or submission id}` and the same jobs as a state list, `/api/v0/jobs`."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from raykeeper.history.entities.job import JobUnknown
from raykeeper.history.entities.job_list import find_job, session_jobs
from raykeeper.history.http.ray_api.listing import list_answer, list_rows
from raykeeper.history.http.ray_api.state_query import Columns, FilterColumn, StateQuery, parse_state_query
from raykeeper.history.http.responses import Listed, json_response, text_response
from raykeeper.history.query.context import SessionContext
from raykeeper.masking import masked

COLUMNS: Columns = {name: FilterColumn() for name in ("job_id", "type", "status", "submission_id")}

LISTED = ("job_id", "submission_id", "entrypoint", "type", "status", "message", "error_type", "driver_info")
DETAILED = (
    "type",
    "job_id",
    "submission_id",
    "driver_info",
    "status",
    "entrypoint",
    "message",
    "error_type",
    "start_time",
    "end_time",
    "metadata",
    "runtime_env",
    "driver_agent_http_address",
    "driver_node_id",
    "driver_exit_code",
)


async def list_jobs(_: Request, context: SessionContext) -> Response:
    return json_response(masked([job.ray_json for job in await session_jobs(context)]))


async def get_job(request: Request, context: SessionContext) -> Response:
    wanted = request.path_params["job_or_submission_id"]
    try:
        return json_response(masked((await find_job(context, wanted)).ray_json))
    except JobUnknown:
        return text_response(f"Job {wanted} does not exist", 404)


async def list_job_states(request: Request, context: SessionContext) -> Response:
    query = parse_state_query(request.query_params)
    return await list_answer(context, await job_page(context, query))


async def job_page(context: SessionContext, query: StateQuery) -> Listed:
    shown = DETAILED if query.is_detailed else LISTED
    return list_rows(
        [job.ray_json for job in await session_jobs(context)],
        query,
        COLUMNS,
        shown,
        key=lambda job: job["job_id"] or "",
    )
