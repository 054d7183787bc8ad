"""What rules decide from: all failures of the scope, its jobs, and how the session ended. Pure data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from raykeeper.history.report.capacity import Capacity, Resources
from raykeeper.history.report.failures import FailureSet
from raykeeper.history.report.model import Evidence, JobOutcome, Sureness
from raykeeper.history.report.troubles import Trouble

_NS = 1_000_000_000
_OPEN = ("PENDING", "RUNNING")


@dataclass(frozen=True)
class Ending:
    """How the session ended, as far as its nodes said so."""

    ended_at: datetime | None = None
    """None while it runs."""
    is_crash: bool = False
    """Its head fell silent without a word."""
    cut_off: int = 0
    """Attempts that were open when the cluster ended."""
    reason: str = ""
    """Why it ended, in the words of whoever wrote that down."""


@dataclass(frozen=True)
class Kubernetes:
    """What happened to the cluster's pods, where somebody recorded it."""

    troubles: Sequence[Trouble] = ()
    pods_by_node: Mapping[str, str] = field(default_factory=dict)
    """Names of pods by the ids of the Ray nodes in them."""


@dataclass(frozen=True)
class Waiting:
    """Attempts of one function that waited for a node when the cluster ended."""

    job_id: str
    function: str
    required_resources: str | None
    attempts: int
    since_ns: int


@dataclass(frozen=True)
class UnmadeGroup:
    """A placement group that was asked for and never made."""

    id: str
    job_id: str
    bundles: tuple[Resources, ...]


@dataclass(frozen=True)
class Situation:
    sets: Sequence[FailureSet]
    jobs: Sequence[JobOutcome] = ()
    ending: Ending = Ending()
    kubernetes: Kubernetes = Kubernetes()
    capacity: Capacity = field(default_factory=Capacity)
    waiting: Sequence[Waiting] = ()
    unmade_groups: Sequence[UnmadeGroup] = ()

    @property
    def cut_off_jobs(self) -> Sequence[JobOutcome]:
        """Jobs that were at work when the cluster ended, or still are."""
        return [job for job in self.jobs if job.is_cut_off or job.status in _OPEN]

    @property
    def jobs_by_id(self) -> Mapping[str, JobOutcome]:
        return {job.job_id: job for job in self.jobs if job.job_id}


@dataclass(frozen=True)
class Explanation:
    """What a rule found: a cause of its own, or another set of failures from which these follow."""

    title: str
    sureness: Sureness
    evidence: tuple[Evidence, ...]
    at_ns: int | None = None
    because_of: str | None = None
    """Fingerprint of the set they follow from; its cause is theirs."""
    subject: str = ""
    """What the cause is about; explanations by one rule with the same subject are one cause. Empty: these failures."""
    is_intended: bool = False
    rule: str = ""
    """The name of what was found, where one rule finds several kinds; empty: the rule's own."""


def moment(ns: int | None) -> datetime | None:
    return None if ns is None else datetime.fromtimestamp(ns // _NS, UTC).replace(microsecond=ns % _NS // 1000)


def to_ns(time: datetime | None) -> int | None:
    """In whole milliseconds, as Ray tells the times of jobs."""
    return None if time is None else int(time.timestamp() * 1000) * 1_000_000
