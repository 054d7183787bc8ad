"""One alert as a webhook gets it: every class is an object of the JSON, every field a member (docs/job-alerts.md).
Pure data; changes that a receiver could stumble over get another `version`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

VERSION = 1


@dataclass(frozen=True)
class AlertJob:
    """The job that failed. A RayJob that never had a session has its own name here, and no ids."""

    name: str
    job_id: str | None
    submission_id: str | None
    entrypoint: str
    status: str
    """In Ray's words."""
    outcome: str
    """`failed`, `with failures` or `stopped`."""
    started_at: datetime | None
    ended_at: datetime
    duration_seconds: float | None


@dataclass(frozen=True)
class AlertCause:
    """Why, as far as it is known."""

    headline: str
    """The user's own error line; else one sentence."""
    what: str
    """To whom it happened."""
    where: str
    """`train.py:34`; empty where no line is known."""
    then: str
    """The next sentence; may be empty."""
    confidence: str
    """`confirmed`, `likely`, `possible`; empty where nothing is known."""
    kind: str
    """The rule that found it (docs/report.md); empty where nothing is known."""
    fingerprint: str
    """The same for the same failure in other jobs."""
    is_provisional: bool
    """More may become known: the alert did not wait for it any longer."""


@dataclass(frozen=True)
class SeenBefore:
    """Other jobs of the same namespace with the same root cause, among those of its latest sessions."""

    runs: int
    last_at: datetime | None


@dataclass(frozen=True)
class Alert:
    version: int
    id: str
    """The same in every attempt to tell the same receiver of the same job; also the header `Idempotency-Key`."""
    event: Literal["job_failed"]
    receiver: str
    namespace: str
    cluster: str
    session: str
    """`none` for a RayJob that never had one."""
    job: AlertJob
    cause: AlertCause
    seen_before: SeenBefore
    link: str
    """The page of the job; empty where the server does not know its own address."""
