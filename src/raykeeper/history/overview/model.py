"""Sessions and jobs as they are answered: every class is an object of the JSON API, every field one of its members.

Pure data. Lists are bounded; beside each stands how much was left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

Topic = Literal["outcome", "entrypoint", "arguments", "env vars", "packages", "runtime env", "versions", "resources"]
Change = Literal["same", "added", "removed", "changed"]
"""From the first run to the second."""
FailureChange = Literal["same", "new", "gone", "more", "fewer"]
Verdict = Literal["", "better", "worse"]
"""Of the second run beside the first; empty where neither can be said."""


@dataclass(frozen=True)
class RunRef:
    """A whole session, or one of its jobs."""

    namespace: str
    cluster: str
    session: str
    job: str | None = None
    """The job's id, or its submission's."""

    def __str__(self) -> str:
        return "/".join(name for name in (self.namespace, self.cluster, self.session, self.job) if name)


@dataclass(frozen=True)
class ComparedRun:
    ref: RunRef
    status: str
    started_at: datetime | None
    ended_at: datetime | None


@dataclass(frozen=True)
class ComparedFact:
    """One fact of both runs; empty where a run has no such thing."""

    topic: Topic
    name: str
    a: str
    b: str
    change: Change = "same"
    delta: str = ""
    """By how much a number or a time differs, with its sign."""
    verdict: Verdict = ""


@dataclass(frozen=True)
class ComparedFunction:
    """One function of both runs; None where a run never called it."""

    name: str
    a: FunctionRow | None
    b: FunctionRow | None
    change: float | None = None
    """Of the median time, as a share: 0.25 is a quarter slower. None where there is none to compare."""
    verdict: Verdict = ""
    """Of that change; empty for less than a twentieth."""


@dataclass(frozen=True)
class ComparedFailure:
    """Failed attempts with the same fingerprint; 0 where a run had none."""

    fingerprint: str
    error_type: str
    title: str
    a: int
    b: int
    change: FailureChange = "same"
    verdict: Verdict = ""


@dataclass(frozen=True)
class Comparison:
    """What is the same and what differs in two runs. The first is the base: changes are from it to the second."""

    a: ComparedRun
    b: ComparedRun
    differing: tuple[ComparedFact, ...]
    same: tuple[ComparedFact, ...]
    functions: tuple[ComparedFunction, ...]
    """Those whose time changed most first."""
    functions_left_out: int
    failures: tuple[ComparedFailure, ...]
    """Those of one run alone first, then those of both."""


SessionState = Literal["running", "ended", "crashed", "unknown"]


@dataclass(frozen=True)
class TaskCounts:
    """Attempts by what became of them."""

    attempts: int
    finished: int
    failed: int
    pending: int
    """Neither ended nor begun."""

    @property
    def running(self) -> int:
        return self.attempts - self.finished - self.failed - self.pending


@dataclass(frozen=True)
class TaskSeries:
    """Attempts in equal parts of the time, the first of which begins at `begin`."""

    begin: datetime
    width_seconds: float
    pending: tuple[float, ...]
    """How many waited, on average over the part."""
    running: tuple[float, ...]
    """How many ran, on average over the part."""
    finished: tuple[int, ...]
    """How many finished within it."""
    failed: tuple[int, ...]


@dataclass(frozen=True)
class FunctionRow:
    """All attempts of one function or method, by the name that Ray's own summary goes by."""

    name: str
    type: str
    attempts: int
    failed: int
    p50_seconds: float | None
    """Of those that began and ended; None where none did."""
    p95_seconds: float | None
    total_seconds: float


@dataclass(frozen=True)
class Functions:
    rows: tuple[FunctionRow, ...]
    """Those that took most time first."""
    left_out: int


@dataclass(frozen=True)
class NodeSpan:
    """One node of the cluster while it was there."""

    node_id: str
    name: str
    is_head: bool
    started_at: datetime | None
    ended_at: datetime | None
    """None while it is alive."""
    death: str | None
    """Why it ended, in Ray's words."""
    resources: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class NodesOverTime:
    rows: tuple[NodeSpan, ...]
    left_out: int
    begin: datetime
    width_seconds: float
    alive: tuple[int, ...]
    """The most nodes at once in each part of the time."""


@dataclass(frozen=True)
class ResourceHours:
    """One resource over the whole time. Memory is in GiB, everything else in Ray's own unit."""

    name: str
    available: float
    """What the nodes had, times the hours they were there."""
    asked: float
    """What tasks and actors required, times the hours they ran."""
    used: float | None
    """What the machines were measured to use; None where nobody measured."""


@dataclass(frozen=True)
class Resources:
    rows: tuple[ResourceHours, ...]
    samples: int
    """Measurements that `used` rests on."""
    unread_hours: int = 0
    """Hours of measurements that are still being read, and are missing in `used`."""


@dataclass(frozen=True)
class Loss:
    """Data that is missing or late."""

    what: str
    text: str


@dataclass(frozen=True)
class JobRow:
    """A job of the session."""

    id: str
    """Of its submission, or its own where it was not submitted."""
    job_id: str | None
    status: str
    entrypoint: str
    started_at: datetime | None
    ended_at: datetime | None
    message: str | None
    metadata: dict[str, str] = field(default_factory=dict)
    failure: str = ""
    """Why it failed, in one line."""


@dataclass(frozen=True)
class SessionFacts:
    namespace: str
    cluster: str
    session: str
    state: SessionState
    is_doubtful: bool
    """It counts as running, but its head missed a heartbeat."""
    started_at: datetime | None
    ended_at: datetime | None
    as_of: datetime
    """What happened later is not in it."""
    ray_version: str
    python_version: str
    owner_kind: str
    owner_name: str
    cluster_uid: str
    unread_bytes: int
    """Of events that are still being read: until this is 0, numbers are too low."""
    total_bytes: int


@dataclass(frozen=True)
class SessionOverview:
    """One session at a glance."""

    facts: SessionFacts
    counts: TaskCounts
    tasks: TaskSeries
    functions: Functions
    nodes: NodesOverTime
    resources: Resources
    jobs: tuple[JobRow, ...]
    jobs_left_out: int
    losses: tuple[Loss, ...]


@dataclass(frozen=True)
class Span:
    """Something that lasted."""

    begin: datetime
    end: datetime
    kind: str
    """`running`, `failed`, `alive` or `lost`."""
    title: str


@dataclass(frozen=True)
class Mark:
    """Something that happened at a moment."""

    at: datetime
    kind: str
    """`failed`, `warning` or `normal`."""
    title: str


LaneGroup = Literal["tasks", "actors", "nodes", "kubernetes"]


@dataclass(frozen=True)
class Lane:
    """One line of a timeline."""

    group: LaneGroup
    label: str
    note: str
    """What the line shows, in words."""
    levels: tuple[float, ...] = ()
    """How many ran in each equal part of the time, where they are too many to be shown one by one."""
    spans: tuple[Span, ...] = ()
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True)
class Timeline:
    """Lanes over one common stretch of time."""

    begin: datetime
    end: datetime
    lanes: tuple[Lane, ...]
    left_out: dict[LaneGroup, int]
    """Lanes that were too many."""
    kubernetes: str
    """Why there are no Kubernetes events; empty where they were recorded."""


@dataclass(frozen=True)
class JobOverview:
    """One job at a glance; why it failed is in its report."""

    facts: SessionFacts
    job: JobRow
    runtime_env: dict[str, Any]
    """Values of `env_vars` are masked."""
    counts: TaskCounts
    tasks: TaskSeries
    functions: Functions
    resources: Resources
    timeline: Timeline
