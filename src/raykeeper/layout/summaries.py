"""`.summary.json` in the catalog: what a list of jobs shows of a session that was read to its end. Pure data."""

from __future__ import annotations

from datetime import datetime

import msgspec

from raykeeper.layout.records import Record


class JobSummary(Record, frozen=True, kw_only=True, omit_defaults=True):
    """One job of the session."""

    job_id: str | None = None
    submission_id: str | None = None
    status: str
    """In Ray's words."""
    started_at: datetime | None = None
    ended_at: datetime | None = None
    entrypoint: str = ""
    metadata: dict[str, str] = msgspec.field(default_factory=dict)
    """As its user gave it."""
    outcome: str = ""
    """That of its report, where something failed in it; a job that Ray calls SUCCEEDED may be `with failures`."""
    failure: str = ""
    """Why it failed, in one line."""
    is_provisional: bool = False
    """That line is the job's own message: its report was not made."""
    tasks: dict[str, int] = msgspec.field(default_factory=dict)
    """Attempts by their state."""

    @property
    def name(self) -> str:
        """What people call it."""
        return self.submission_id or self.job_id or ""


class SessionSummary(Record, frozen=True, kw_only=True, omit_defaults=True):
    """All jobs of a session."""

    version: int
    """Of the rules by which it was made; another version is made anew."""
    as_of: datetime
    """What was stored later is not in it."""
    jobs: tuple[JobSummary, ...] = ()
    """The newest first."""
    left_out: int = 0
    """Older jobs, beyond what a summary holds."""
