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

    @property
    def is_open(self) -> bool:
        """At work."""
        return self in (Outcome.RUNNING, Outcome.FAILING)


class Confidence(StrEnum):
    """How sure a cause is, by the rule that found it."""

    CONFIRMED = "confirmed"
    """Somebody who knows says so: an exception with its line, Ray of its own deeds, Kubernetes of its pods."""
    LIKELY = "likely"
    """It fits in place and time, and nothing else does; such are the last words of a process that died."""
    POSSIBLE = "possible"
    """Nothing better is known."""


@dataclass(frozen=True)
class CodeLocation:
    """A line of code."""

    file: str
    """Its name without folders."""
    line: int
    function: str = ""
    path: str = ""
    """As the traceback has it, on the machine where it ran."""

    @property
    def text(self) -> str:
        """`train.py:34`."""
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Address:
    """Where a piece of evidence can be looked at. Members that say nothing are empty."""

    job: str = ""
    """The job's submission id, or its job id."""
    task_id: str = ""
    attempt_number: int | None = None
    actor_id: str = ""
    worker_id: str = ""
    node_id: str = ""
    file: str = ""
    """A log file of that node, below Ray's `logs/`."""
    offset: int | None = None
    """A byte of that file where a line begins, at most some kilobytes before."""
    line: int | None = None
    """Its number in that file, from 1; None in a file so long that nobody counted: then see `offset`."""
    pod: str = ""


NOWHERE = Address()


@dataclass(frozen=True)
class Evidence:
    """One recorded fact that a cause rests on."""

    source: str
    """Where it is recorded: task, worker, node, actor, job, log, session, pod, rayjob or kubernetes (an Event)."""
    text: str
    at: datetime | None = None
    address: Address = NOWHERE


class WhoKind(StrEnum):
    """What failed, by the words of whoever wrote the program."""

    TASK = "task"
    ACTOR = "actor"
    OPERATOR = "operator"
    """Of Ray Data."""
    RANK = "rank"
    """Of Ray Train."""
    TRIAL = "trial"
    """Of Ray Tune."""
    DEPLOYMENT = "deployment"
    """Of Ray Serve."""
    APPLICATION = "application"
    """Of Ray Serve."""
    DRIVER = "driver"
    PROCESS = "process"
    NODE = "node"
    POD = "pod"
    JOB = "job"
    CLUSTER = "cluster"


@dataclass(frozen=True)
class Who:
    """What failed, by the name that its user knows."""

    kind: WhoKind
    name: str
    """`parse`, `trainer-2 (Trainer)`, `Map(parse)`, `1`, `objective`, `Model`."""

    @property
    def text(self) -> str:
        """`actor trainer-2 (Trainer)`."""
        return f"{_KIND_WORDS.get(self.kind, self.kind.value)} {self.name}".strip()


_KIND_WORDS = {
    WhoKind.OPERATOR: "Ray Data operator",
    WhoKind.RANK: "Ray Train rank",
    WhoKind.TRIAL: "Ray Tune trial of",
    WhoKind.DEPLOYMENT: "Ray Serve deployment",
    WhoKind.APPLICATION: "Ray Serve application",
    WhoKind.DRIVER: "the driver",
    WhoKind.CLUSTER: "the cluster",
}


class LineKind(StrEnum):
    """What a line that matters is."""

    ERROR = "error"
    """The one that the headline is made of."""
    OWN = "own"
    """A frame of the user's code, or its source."""
    FOLDED = "folded"
    """Stands for frames of Ray and other packages."""
    LOG = "log"


@dataclass(frozen=True)
class ShownLine:
    text: str
    kind: LineKind = LineKind.LOG
    number: int | None = None
    """In its file, from 1; None where it is no line of a file, or nobody counted."""


@dataclass(frozen=True)
class Excerpt:
    """Lines that matter, out of one place."""

    title: str
    """`traceback of parse`, `last words of actor trainer-2`, `driver log`."""
    lines: tuple[ShownLine, ...]
    address: Address = NOWHERE
    """Of its first line."""


@dataclass(frozen=True)
class Step:
    """One step from the cause to the end of the job."""

    text: str
    at: datetime | None = None
    address: Address = NOWHERE


@dataclass(frozen=True)
class Headline:
    """What a person reads first."""

    text: str
    """The user's own error line in its original words; else what happened, in one sentence."""
    what: str
    """To whom it happened, in a few words: `Ray Data operator Map(parse)`, `actor trainer-2 died in Trainer.step`."""
    where: CodeLocation | None
    """The line of the user's code that raised it."""
    who: Who | None
    then: str
    """The next sentence: what the driver gave up for, how many requests failed; empty where there is none."""
    confidence: Confidence
    basis: str
    """What the confidence rests on, in one sentence."""
    fingerprint: str
    """That of the cause: the same for the same failure in other jobs and sessions."""


@dataclass(frozen=True)
class Cause:
    """An event that explains failures."""

    rule: str
    title: str
    """One sentence with everything: who, what, where."""
    confidence: Confidence
    at: datetime | None
    evidence: tuple[Evidence, ...]
    fingerprint: str = ""
    """A key: the same for the same failure in other jobs and sessions."""
    error: str = ""
    """The error line in its original words; empty where there is none."""
    where: CodeLocation | None = None
    who: Who | None = None
    explains: tuple[str, ...] = ()
    """Fingerprints of the groups of failed attempts that follow from it."""
    failures: int = 0
    """Attempts that failed of it."""
    recovered: int = 0
    """Of these, attempts whose task finished after another try."""
    deaths: int = 0
    """Processes that died of it, and of which no failed attempt tells."""
    requests: int = 0
    """Requests to Ray Serve that failed of it."""
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
    offset: int | None = None
    """Of its first byte in the file."""
    line: int | None = None
    """Number of its first line, from 1; None in a file so long that nobody counted."""


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
    headline: Headline | None
    """What a person reads first; None where nothing failed."""
    excerpts: tuple[Excerpt, ...]
    """The lines that matter for it: the user's frames, the last words of a process, the driver's log."""
    steps: tuple[Step, ...]
    """From the root cause to the end of the job."""
    root_cause: Cause | None
    causes: tuple[Cause, ...]
    """The root cause first, then what else failed."""
    groups: tuple[FailureGroup, ...]
    """The most frequent first."""
    jobs: tuple[JobOutcome, ...]
    unknown: tuple[Unknown, ...]
    is_doubtful: bool = False
    """It counts as running, but the head of its session missed a heartbeat."""

    @property
    def is_recovered(self) -> bool:
        """It went well, but not at the first try: nobody should say that nothing failed."""
        return self.outcome is Outcome.OK and any(not cause.is_intended for cause in self.causes)

    @property
    def is_blank(self) -> bool:
        """It is over, and nothing is recorded of it that could have failed: nobody should call that a success."""
        return self.outcome is Outcome.OK and not (self.counts.attempts or self.jobs or self.causes)
