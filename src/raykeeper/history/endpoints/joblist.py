"""All jobs of a session: as the dashboard listed them last, brought up to date by what events say of their drivers.

How a job ended after the last poll, and what jobs there were where nobody polled, is told by Ray's own event file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from raykeeper.history.asked import Asked, Row
from raykeeper.history.endpoints.ended import OPEN_JOBS, ended_at
from raykeeper.history.endpoints.jobnotices import read_notices, with_notices
from raykeeper.history.endpoints.rayjson import optional_json
from raykeeper.history.endpoints.redaction import masked_row

POLLED = "/api/jobs/"

DRIVERS = """
    SELECT job_id, submission_id, driver_pid, driver_node_id, nodes.node_ip AS driver_ip, entrypoint,
           jobs.serialized_runtime_env, metadata, created_ns // 1000000 AS created_ms,
           finished_ns // 1000000 AS finished_ms
    FROM jobs LEFT JOIN nodes ON nodes.node_id = jobs.driver_node_id
    WHERE jobs.has_definition ORDER BY job_id
"""


async def all_jobs(asked: Asked) -> list[dict[str, Any]]:
    """Every job in the shape of Ray's job API, secrets masked."""
    polled = asked.polled_body(POLLED, list[dict[str, Any]])
    jobs = merged_jobs(polled or [], await asked.rows(DRIVERS))
    if polled is None or (ended_at(asked.session) and any(map(_is_left_open, jobs))):
        record = asked.session.record
        jobs = with_notices(jobs, await read_notices(asked), record.head_node_id if record else "")
    return [masked_row(job) for job in jobs]


def merged_jobs(polled: Sequence[dict[str, Any]], drivers: Iterable[Row]) -> list[dict[str, Any]]:
    """Polled jobs first. Events add drivers that the last poll missed, and the end of those it saw running."""
    jobs = list(polled)
    by_id = {job.get("job_id"): place for place, job in enumerate(jobs) if job.get("job_id")}
    by_submission = {job.get("submission_id"): place for place, job in enumerate(jobs) if job.get("submission_id")}
    for driver in drivers:
        place = by_id.get(driver["job_id"], by_submission.get(driver["submission_id"]))
        if place is None:
            jobs.append(driver_job(driver))
        else:
            jobs[place] = updated_job(jobs[place], driver)
    return jobs


def driver_job(driver: Row) -> dict[str, Any]:
    """A job of which only its driver's events are known. Ray calls a driver that ended SUCCEEDED, however it ended."""
    submission_id = driver["submission_id"]
    is_over = driver["finished_ms"] is not None and submission_id is None
    return {
        "type": "DRIVER" if submission_id is None else "SUBMISSION",
        "job_id": driver["job_id"],
        "submission_id": submission_id,
        "driver_info": driver_info(driver),
        "status": "SUCCEEDED" if is_over else "RUNNING",
        "entrypoint": driver["entrypoint"] or "",
        "message": None,
        "error_type": None,
        "start_time": driver["created_ms"],
        "end_time": driver["finished_ms"] if is_over else None,
        "metadata": optional_json(driver["metadata"]) or {},
        "runtime_env": optional_json(driver["serialized_runtime_env"]) or {},
        "driver_agent_http_address": None,
        "driver_node_id": None if submission_id is None else driver["driver_node_id"],
        "driver_exit_code": None,
    }


def updated_job(job: dict[str, Any], driver: Row) -> dict[str, Any]:
    """The polled job, with its driver if that came later, and over if it is a plain driver that ended since."""
    known = {**job, "job_id": driver["job_id"], "driver_info": job.get("driver_info") or driver_info(driver)}
    if job.get("type") == "DRIVER" and job.get("status") == "RUNNING" and driver["finished_ms"] is not None:
        known |= {"status": "SUCCEEDED", "end_time": driver["finished_ms"]}
    return known


def driver_info(driver: Row) -> dict[str, Any]:
    return {"id": driver["job_id"], "node_ip_address": driver["driver_ip"], "pid": str(driver["driver_pid"])}


def _is_left_open(job: dict[str, Any]) -> bool:
    """Whether nobody saw how a submitted job ended; of other drivers, the event file tells nothing."""
    return job.get("type") == "SUBMISSION" and job.get("status") in OPEN_JOBS
