"""The few facts about a job that its log needs: was it submitted, where did its driver run, has it ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from raykeeper.history.asked import Asked
from raykeeper.history.endpoints.joblist import all_jobs

_ENDED = frozenset({"SUCCEEDED", "FAILED", "STOPPED"})


@dataclass(frozen=True)
class LoggedJob:
    """A job as far as its log is concerned."""

    submission_id: str
    """Empty for a driver that was not submitted: it wrote to its own terminal."""
    driver_node_id: str
    """Empty where no driver ever started."""
    has_ended: bool

    @property
    def log_name(self) -> str:
        return f"job-driver-{self.submission_id}.log"


async def find_job(asked: Asked, job_or_submission_id: str) -> LoggedJob | None:
    """By either id; None for one nobody knows."""
    for job in await all_jobs(asked):
        if job_or_submission_id in (job.get("submission_id"), job.get("job_id")):
            return logged_job(job)
    return None


def logged_job(job: dict[str, Any]) -> LoggedJob:
    is_submission = job.get("type") == "SUBMISSION"
    return LoggedJob(
        submission_id=(job.get("submission_id") or "") if is_submission else "",
        driver_node_id=job.get("driver_node_id") or "",
        has_ended=job.get("status") in _ENDED,
    )
