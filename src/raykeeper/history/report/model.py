"""A report as it is answered: every class is an object of the JSON API, every field one of its members. Pure data."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Outcome(StrEnum):
    """How a job or a session went."""

    OK = "ok"
    FAILED = "failed"
    WITH_FAILURES = "with failures"
    """Every job succeeded with failures for good."""
    STOPPED = "stopped"
    """Ended by its user."""
    RUNNING = "running"
    """Nothing failed so far."""
    FAILING = "running with failures"
    """At work, although attempts failed for good."""

    @property
    def is_well(self) -> bool:
        return self in (Outcome.OK, Outcome.RUNNING)


class Confidence(StrEnum):
    """How sure a cause is, by the rule that found it."""

    CERTAIN = "certain"
    """Ray itself says so."""
    LIKELY = "likely"
    """It fits in place and time, and nothing else does."""
    GUESS = "guess"
    """Nothing better is known."""


@dataclass(frozen=True)
class Evidence:
    """One recorded fact that a cause rests on."""

    source: str
    """Where it is recorded: task, worker, node, actor, job, session, pod, rayjob or kubernetes (an Event)."""
    text: str
    at: datetime | None = None


@dataclass(frozen=True)
class Cause:
    """An event that explains failures."""

    rule: str
    title: str
    confidence: Confidence
    at: datetime | None
    evidence: tuple[Evidence, ...]
    explains: tuple[str, ...] = ()
    """Fingerprints of the failures that follow from it."""
    failures: int = 0
    """Attempts that failed of it."""
    deaths: int = 0
    """Processes that died of it, and of which no failed attempt tells."""
    is_intended: bool = False
    """The program or its user asked for it."""
    ends_job: bool = False
    """A job ended because of it."""


@dataclass(frozen=True)
class LogSlice:
    """The last lines that a failed attempt, or its worker, wrote."""

    node_id: str
    file: str
    text: str


@dataclass(frozen=True)
class Example:
    """One failed attempt in full."""

    task_id: str
    attempt_number: int
    job_id: str
    name: str
    at: datetime | None
    message: str
    node_id: str | None = None
    worker_id: str | None = None
    actor_id: str | None = None
    logs: tuple[LogSlice, ...] = ()


@dataclass(frozen=True)
class FunctionFailures:
    name: str
    failures: int


@dataclass(frozen=True)
class FailureGroup:
    """Failed attempts with the same fingerprint."""

    fingerprint: str
    error_type: str
    title: str
    failures: int
    recovered: int
    """Of these, attempts whose task finished after another try."""
    share: float
    """Of all attempts, failed or not."""
    first_at: datetime | None
    last_at: datetime | None
    functions: tuple[FunctionFailures, ...]
    nodes: tuple[str, ...]
    confidence: Confidence
    cause: int
    """Its place in the report's `causes`."""
    example: Example | None = None
    """The first one."""


@dataclass(frozen=True)
class JobOutcome:
    """A job in its own words."""

    job_id: str | None
    submission_id: str | None
    status: str
    error_type: str | None
    message: str | None
    exit_code: int | None
    entrypoint: str
    started_at: datetime | None
    ended_at: datetime | None
    log: LogSlice | None = None
    """The end of what its driver wrote, of a job that failed."""
    is_cut_off: bool = False
    """It was at work when its cluster ended."""

    @property
    def is_unjudged(self) -> bool:
        """A driver that somebody started by hand and that is over: Ray says SUCCEEDED, however it ended."""
        return self.submission_id is None and self.status == "SUCCEEDED"


@dataclass(frozen=True)
class Unknown:
    """Something that cannot be told because data is missing."""

    what: str
    text: str


@dataclass(frozen=True)
class Counts:
    attempts: int
    failures: int
    recovered: int
    """Failed attempts that a retry hid."""
    ungrouped: int = 0
    """Failures of kinds too rare to be listed."""


@dataclass(frozen=True)
class Report:
    """Why a job, or a whole session, failed."""

    namespace: str
    cluster: str
    session: str
    """`none` for a cluster that never had one."""
    job: str | None
    """The job's id, or its submission's; None for the whole session."""
    as_of: datetime
    outcome: Outcome
    counts: Counts
    root_cause: Cause | None
    causes: tuple[Cause, ...]
    """The root cause first, then what else failed."""
    groups: tuple[FailureGroup, ...]
    """The most frequent first."""
    jobs: tuple[JobOutcome, ...]
    unknown: tuple[Unknown, ...]

    @property
    def is_recovered(self) -> bool:
        """It went well, but not at the first try: nobody should say that nothing failed."""
        return self.outcome is Outcome.OK and any(not cause.is_intended for cause in self.causes)

    @property
    def is_blank(self) -> bool:
        """It is over, and nothing is recorded of it that could have failed: nobody should call that a success."""
        return self.outcome is Outcome.OK and not (self.counts.attempts or self.jobs or self.causes)
