"""All jobs of a session: as the dashboard listed them last, brought up to date by what events say of their drivers.

How a job ended after the last poll, and what jobs there were where nobody polled, is told by Ray's own event file.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from raykeeper.history.entities.event_files import LIMIT_BYTES_PER_FILE, parse_event_files
from raykeeper.history.entities.job import (
    OPEN_STATUSES,
    Job,
    JobUnknown,
    ended_with_cluster,
    is_made_for,
    job_named,
    job_of_id,
    newest_first,
    rays_jobs,
)
from raykeeper.history.entities.ray_json import json_object
from raykeeper.history.query.cache import session_version
from raykeeper.history.query.context import Row, SessionContext
from raykeeper.masking import masked_value

FILE = "events/event_JOBS.log"
NO_REASON = "Job failed; Ray's message was not stored, its log may tell why."

_MESSAGES = {
    "SUCCEEDED": "Job finished successfully.",
    "STOPPED": "Job was intentionally stopped.",
    "FAILED": NO_REASON,
}
"""What Ray's job API says with each end; it has many words for failures, of which the event file has a few."""


@dataclass(frozen=True)
class JobNotice:
    """What the event file says of one submitted job; what it does not say is empty."""

    started_ms: int | None = None
    ended_ms: int | None = None
    status: str = ""
    reason: str = ""


async def _read_notices(context: SessionContext) -> dict[str, JobNotice]:
    """By submission id."""
    return job_notices(parse_event_files(await context.logs.read_matching(context.session, FILE, LIMIT_BYTES_PER_FILE)))


def job_notices(events: Iterable[Mapping[str, Any]]) -> dict[str, JobNotice]:
    """Of events in the order of time; a submission id that was used again counts with its last job."""
    notices: dict[str, JobNotice] = {}
    for event in events:
        fields, message = event.get("custom_fields"), event.get("message")
        submission_id = fields.get("submission_id") if isinstance(fields, dict) else None
        if isinstance(submission_id, str) and isinstance(message, str):
            known = notices.get(submission_id, JobNotice())
            notices[submission_id] = _noticed(known, submission_id, message, int(event["timestamp"]) * 1000)
    return notices


def with_notices(
    jobs: Sequence[dict[str, Any]], notices: Mapping[str, JobNotice], head_node_id: str
) -> list[dict[str, Any]]:
    """Jobs that were last seen open and have ended, and after them those that nobody saw."""
    seen = {job.get("submission_id") for job in jobs}
    unseen = [
        _noticed_job(submission_id, notice, head_node_id)
        for submission_id, notice in notices.items()
        if submission_id not in seen
    ]
    return [*(_ended(job, notices.get(job.get("submission_id") or "")) for job in jobs), *unseen]


def _noticed_job(submission_id: str, notice: JobNotice, head_node_id: str) -> dict[str, Any]:
    """A job of which nothing else is known. Ray runs drivers on the head unless it is told otherwise."""
    job: dict[str, Any] = {
        "type": "SUBMISSION",
        "job_id": None,
        "submission_id": submission_id,
        "driver_info": None,
        "status": "RUNNING",
        "entrypoint": "",
        "message": None,
        "error_type": None,
        "start_time": notice.started_ms,
        "end_time": None,
        "metadata": {},
        "runtime_env": {},
        "driver_agent_http_address": None,
        "driver_node_id": head_node_id or None,
        "driver_exit_code": None,
    }
    return _ended(job, notice)


def _noticed(known: JobNotice, submission_id: str, message: str, at_ms: int) -> JobNotice:
    if message == f"Started a ray job {submission_id}.":
        return JobNotice(started_ms=at_ms)
    ending = f"Completed a ray job {submission_id} with a status "
    status, _, reason = message.removeprefix(ending).partition(".")
    if not message.startswith(ending) or status not in _MESSAGES:
        return known
    return replace(known, ended_ms=at_ms, status=status, reason=reason.strip())


def _ended(job: dict[str, Any], notice: JobNotice | None) -> dict[str, Any]:
    if notice is None or not notice.status or job.get("status") not in OPEN_STATUSES:
        return job
    message = notice.reason or _MESSAGES[notice.status]
    return {**job, "status": notice.status, "message": message, "end_time": notice.ended_ms}


POLLED = "/api/jobs/"

DRIVERS = """
    SELECT job_id, submission_id, driver_pid, driver_node_id, nodes.node_ip AS driver_ip, entrypoint,
           jobs.serialized_runtime_env, metadata, created_ns // 1000000 AS created_ms,
           finished_ns // 1000000 AS finished_ms
    FROM jobs LEFT JOIN nodes ON nodes.node_id = jobs.driver_node_id
    WHERE jobs.has_definition ORDER BY job_id
"""


FINISHED_DRIVERS = "SELECT job_id FROM jobs WHERE finished_ns IS NOT NULL"


async def session_jobs(context: SessionContext) -> tuple[Job, ...]:
    """Every job, secrets masked; of a dead cluster's, those whose drivers were at work to the end failed with it.

    Where a driver ended by itself after the last poll, nobody knows how: its job stays as it was polled.
    """
    return await context.cache.get(("job list", session_version(context.session)), lambda: _read_jobs(context), _weight)


async def named_job(context: SessionContext, wanted: str) -> Job | None:
    """By its id, its submission's or the name of its RayJob; only for a name Kubernetes' words are looked for."""
    jobs = await session_jobs(context)
    return job_of_id(jobs, wanted) or job_named(jobs, wanted, (await context.kube_facts()).rayjobs)


async def find_job(context: SessionContext, wanted: str) -> Job:
    """The same; else the newest one of a cluster that was made for the RayJob of that name. Raises JobUnknown."""
    job = await named_job(context, wanted)
    if job is None and is_made_for(context.session.record, wanted):
        job = next((job for job in newest_first(await session_jobs(context)) if job.is_submission), None)
    if job is None:
        raise JobUnknown(f"there is no job {wanted} in session {context.session.id}")
    return job


async def _read_jobs(context: SessionContext) -> tuple[Job, ...]:
    jobs = await _ray_jobs(context)
    end = context.session.ended_at
    if end is not None:
        over = {row["job_id"] for row in await context.rows(FINISHED_DRIVERS)}
        jobs = [job if job.get("job_id") in over else ended_with_cluster(job, end) for job in jobs]
    return tuple(map(Job, jobs))


async def _ray_jobs(context: SessionContext) -> list[dict[str, Any]]:
    """In the shape of Ray's job API, secrets masked."""
    told = await context.polled_body(POLLED, list[dict[str, Any]])
    polled = None if told is None else rays_jobs(told)
    jobs = merged_jobs(polled or [], await context.rows(DRIVERS))
    # A job that was deleted is in no later poll, and only the event file tells how it ended.
    unpolled = jobs[len(polled or ()) :]
    to_close = jobs if context.session.ended_at else unpolled
    if polled is None or any(map(_is_left_open, to_close)):
        record = context.session.record
        jobs = with_notices(jobs, await _read_notices(context), record.head_node_id if record else "")
    return await asyncio.to_thread(masked_value, jobs)


def merged_jobs(polled: Sequence[dict[str, Any]], drivers: Iterable[Row]) -> list[dict[str, Any]]:
    """Polled jobs first. Events add drivers that the last poll missed, and the end of those it saw running."""
    jobs = list(polled)
    by_id = {job.get("job_id"): place for place, job in enumerate(jobs) if job.get("job_id")}
    by_submission = {job.get("submission_id"): place for place, job in enumerate(jobs) if job.get("submission_id")}
    for driver in drivers:
        place = by_id.get(driver["job_id"], by_submission.get(driver["submission_id"]))
        if place is None:
            jobs.append(_driver_job(driver))
        else:
            jobs[place] = _updated_job(jobs[place], driver)
    return jobs


def _driver_job(driver: Row) -> dict[str, Any]:
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
        "metadata": json_object(driver["metadata"]),
        "runtime_env": json_object(driver["serialized_runtime_env"]),
        "driver_agent_http_address": None,
        "driver_node_id": None if submission_id is None else driver["driver_node_id"],
        "driver_exit_code": None,
    }


def _updated_job(job: dict[str, Any], driver: Row) -> dict[str, Any]:
    """The polled job, with its driver if that came later, and over if it is a plain driver that ended since."""
    known = {**job, "job_id": driver["job_id"], "driver_info": job.get("driver_info") or driver_info(driver)}
    if job.get("type") == "DRIVER" and job.get("status") == "RUNNING" and driver["finished_ms"] is not None:
        known |= {"status": "SUCCEEDED", "end_time": driver["finished_ms"]}
    return known


def driver_info(driver: Row) -> dict[str, Any]:
    return {"id": driver["job_id"], "node_ip_address": driver["driver_ip"], "pid": str(driver["driver_pid"])}


def _is_left_open(job: dict[str, Any]) -> bool:
    """Whether nobody saw how a submitted job ended; of other drivers, the event file tells nothing."""
    return job.get("type") == "SUBMISSION" and job.get("status") in OPEN_STATUSES


def _weight(jobs: Sequence[Job]) -> int:
    return sum(len(msgspec.json.encode(job.ray_json)) for job in jobs)
