"""`/api/jobs/`, `/api/jobs/{job or submission id}` and the same jobs as a state list, `/api/v0/jobs`."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from raykeeper.history.answers import Listed, json_response, text_response
from raykeeper.history.asked import Asked
from raykeeper.history.endpoints.ended import ended_at, ended_job
from raykeeper.history.endpoints.filters import Columns, FilterColumn
from raykeeper.history.endpoints.joblist import all_jobs
from raykeeper.history.endpoints.listing import answer_list, list_rows
from raykeeper.history.endpoints.statequery import StateQuery

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

FINISHED_DRIVERS = "SELECT job_id FROM jobs WHERE finished_ns IS NOT NULL"


async def known_jobs(asked: Asked) -> list[dict[str, Any]]:
    """All jobs; of a dead cluster's, those whose drivers were at work to the end failed with it.

    Where a driver ended by itself after the last poll, nobody knows how: its job stays as it was polled.
    """
    jobs, end = await all_jobs(asked), ended_at(asked.session)
    if end is None:
        return jobs
    over = {row["job_id"] for row in await asked.rows(FINISHED_DRIVERS)}
    return [job if job.get("job_id") in over else ended_job(job, end) for job in jobs]


async def list_jobs(_: Request, asked: Asked) -> Response:
    return json_response(await known_jobs(asked))


async def get_job(request: Request, asked: Asked) -> Response:
    wanted = request.path_params["job_or_submission_id"]
    for job in await known_jobs(asked):
        if wanted in (job.get("submission_id"), job.get("job_id")):
            return json_response(job)
    return text_response(f"Job {wanted} does not exist", 404)


async def list_job_states(request: Request, asked: Asked) -> Response:
    return await answer_list(request, asked, job_page)


async def job_page(asked: Asked, query: StateQuery) -> Listed:
    shown = DETAILED if query.is_detailed else LISTED
    return list_rows(await known_jobs(asked), query, COLUMNS, shown, key=lambda job: job["job_id"] or "")
