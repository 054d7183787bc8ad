"""What comes after a failed attempt. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import msgspec

from raykeeper.api.rayjob import FailedAttempt, RayJob, RayJobStatus
from raykeeper.api.times import parse_time, to_time
from raykeeper.backoff import Backoff
from raykeeper.operator.rayjob.states import FAILED, FINAL_REASONS, RETRYING, Reason, SubmissionMode

PAUSES: Final = Backoff(base=10.0, limit=360.0)
"""Seconds between attempts, as between the pods of a Kubernetes Job."""
MOST_ATTEMPTS_KEPT: Final = 10
MAX_MESSAGE_LENGTH: Final = 4096
"""Characters of a message in the status; Ray may say a whole traceback."""


def failed_status(job: RayJob, status: RayJobStatus, reason: Reason, message: str, now: datetime) -> RayJobStatus:
    """The status after a failed attempt: of one that is tried again, or of a job that failed."""
    status = msgspec.structs.replace(
        status,
        reason=reason.value,
        message=clip_message(message),
        failed=status.failed + 1,
        end_time=to_time(now),
        job_deployment_status=FAILED,
    )
    if not may_retry(job, status.failed, reason):
        return status
    attempts = (*status.failed_attempts, _attempt(status))[-MOST_ATTEMPTS_KEPT:]
    return msgspec.structs.replace(status, job_deployment_status=RETRYING, end_time=None, failed_attempts=attempts)


def may_retry(job: RayJob, failed: int, reason: Reason) -> bool:
    """Whether there is another attempt after so many failed ones."""
    can_retry = job.spec.submission_mode != SubmissionMode.INTERACTIVE and not job.spec.cluster_selector
    return can_retry and reason not in FINAL_REASONS and failed <= job.spec.backoff_limit


def retry_at(status: RayJobStatus) -> datetime | None:
    """When the next attempt begins: later after each failure. None where that is not known, and so at once."""
    if not status.failed_attempts:
        return None
    ended = parse_time(status.failed_attempts[-1].end_time)
    if ended is None:
        return None
    return ended + timedelta(seconds=PAUSES.delay(max(status.failed, 1)))


def keeps_cluster(job: RayJob) -> bool:
    """Whether the next attempt runs on the Ray cluster of the last."""
    return job.spec.retry_ray_cluster_strategy == "ReuseRayCluster"


def clip_message(message: str) -> str:
    """The end of a long message, where an error says what it is."""
    return message if len(message) <= MAX_MESSAGE_LENGTH else f"…{message[1 - MAX_MESSAGE_LENGTH :]}"


def _attempt(status: RayJobStatus) -> FailedAttempt:
    return FailedAttempt(
        ray_cluster_name=status.ray_cluster_name,
        job_id=status.job_id,
        reason=status.reason,
        message=status.message,
        start_time=status.start_time,
        end_time=status.end_time,
    )
