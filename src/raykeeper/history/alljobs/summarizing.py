"""Makes the summary of a session: its jobs, how many tasks each had, and why it failed in one line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from raykeeper.history.asked import Asked, Row
from raykeeper.history.endpoints.jobs import known_jobs
from raykeeper.history.report.oneline import causes_of_jobs, why_in_one_line
from raykeeper.layout.summaries import JobSummary, SessionSummary

SUMMARY_VERSION = 2
JOBS_LIMIT = 1000
"""Jobs of one session, half a megabyte; a cluster that runs more of them shows the older ones on its own pages."""
_ENTRYPOINT_CHARS, _FAILURE_CHARS = 500, 300
_METADATA_PAIRS, _METADATA_CHARS = 20, 200

COUNTED_TASKS = """
    SELECT job_id, state, sum(number)::BIGINT AS number
    FROM task_summary WHERE type <> 'DRIVER_TASK'   -- a driver is no task to its user: all pages count alike
    GROUP BY ALL HAVING sum(number) > 0
"""


async def summarize(asked: Asked) -> SessionSummary:
    """What there is to say about the session's jobs."""
    jobs = newest_first(await known_jobs(asked))
    shown = jobs[:JOBS_LIMIT]
    causes = await causes_of_jobs(asked, {_name(job): job.get("status") or "" for job in shown})
    tasks = tasks_by_job(await asked.rows(COUNTED_TASKS))
    return SessionSummary(
        version=SUMMARY_VERSION,
        as_of=asked.session.as_of,
        jobs=tuple(job_summary(job, causes.get(_name(job), ""), tasks.get(job.get("job_id"), {})) for job in shown),
        left_out=len(jobs) - len(shown),
    )


def newest_first(jobs: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return sorted(jobs, key=lambda job: (job.get("start_time") or 0, _name(job)), reverse=True)


def tasks_by_job(rows: Sequence[Row]) -> dict[str | None, dict[str, int]]:
    """How many attempts of each job are in which state."""
    counted: dict[str | None, dict[str, int]] = {}
    for row in rows:
        counted.setdefault(row["job_id"], {})[row["state"]] = row["number"]
    return counted


def job_summary(job: Mapping[str, Any], cause: str = "", tasks: Mapping[str, int] | None = None) -> JobSummary:
    """A job of Ray's job API in a few words."""
    status = job.get("status") or "UNKNOWN"
    failure = why_in_one_line(status, job.get("message"), cause)
    return JobSummary(
        job_id=job.get("job_id"),
        submission_id=job.get("submission_id"),
        status=status,
        started_at=_time(job.get("start_time")),
        ended_at=_time(job.get("end_time")),
        entrypoint=(job.get("entrypoint") or "")[:_ENTRYPOINT_CHARS],
        metadata=_metadata(job.get("metadata")),
        failure=failure[:_FAILURE_CHARS],
        tasks=dict(sorted((tasks or {}).items())),
    )


def _name(job: Mapping[str, Any]) -> str:
    return job.get("submission_id") or job.get("job_id") or ""


def _metadata(given: object) -> dict[str, str]:
    pairs = list(given.items())[:_METADATA_PAIRS] if isinstance(given, dict) else []
    return {str(name)[:_METADATA_CHARS]: str(value)[:_METADATA_CHARS] for name, value in pairs}


def _time(unix_ms: object) -> datetime | None:
    return datetime.fromtimestamp(unix_ms / 1000, UTC) if isinstance(unix_ms, int) and unix_ms > 0 else None
