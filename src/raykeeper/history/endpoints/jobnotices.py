"""How submitted jobs began and ended by Ray's own event file, for what no poll saw.

A head that is killed takes along how its jobs ended since the last look, and a session left on a disk was never looked
at. Ray's job manager writes a line when it starts a job and one when the job has ended; the log of events outlives it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from raykeeper.history.asked import Asked
from raykeeper.history.endpoints.ended import OPEN_JOBS
from raykeeper.history.endpoints.eventfiles import LIMIT_BYTES_PER_FILE, parse_event_files

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


async def read_notices(asked: Asked) -> dict[str, JobNotice]:
    """By submission id."""
    return job_notices(parse_event_files(await asked.logs.read_matching(asked.session, FILE, LIMIT_BYTES_PER_FILE)))


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
        noticed_job(submission_id, notice, head_node_id)
        for submission_id, notice in notices.items()
        if submission_id not in seen
    ]
    return [*(_ended(job, notices.get(job.get("submission_id") or "")) for job in jobs), *unseen]


def noticed_job(submission_id: str, notice: JobNotice, head_node_id: str) -> dict[str, Any]:
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
    if notice is None or not notice.status or job.get("status") not in OPEN_JOBS:
        return job
    message = notice.reason or _MESSAGES[notice.status]
    return {**job, "status": notice.status, "message": message, "end_time": notice.ended_ms}
