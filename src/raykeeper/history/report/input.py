"""What rules decide from: all failures of the scope, its jobs, what was free in the cluster, and how the session ended.
Pure data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from raykeeper.history.entities.job import OPEN_STATUSES
from raykeeper.history.report.deaths import Death
from raykeeper.history.report.failures import FailureSet
from raykeeper.history.report.model import CodeLocation, Confidence, Evidence, Excerpt, JobOutcome, Who
from raykeeper.history.report.pod_failures import PodFailure
from raykeeper.history.report.serve_logs import ServeRecord
from raykeeper.history.report.train_logs import TrainError
from raykeeper.history.store.session_state import SessionState
from raykeeper.layout.rayjobs import RayJobRecord

Resources = Mapping[str, float]
_BUNDLES_SHOWN = 3


def parse_resources(text: str | None) -> Resources:
    """From Ray's JSON; empty where there is none that can be read."""
    try:
        return msgspec.json.decode(text or "{}", type=dict[str, float])
    except msgspec.DecodeError:
        return {}


def in_words(resources: Resources) -> str:
    """As people say them: `CPU 1, GPU 4`."""
    return ", ".join(f"{name} {number:g}" for name, number in resources.items())


@dataclass(frozen=True)
class Capacity:
    """What a session had for its tasks."""

    nodes: tuple[Resources, ...] = ()
    """What each node had in all; none where nothing is known of nodes."""
    given: frozenset[frozenset[tuple[str, float]]] = frozenset()
    """What attempts that ran had asked for."""

    def was_given(self, wanted: Resources) -> bool:
        """Whether something ran that had asked for the same: then it was a matter of time."""
        return frozenset(wanted.items()) in self.given

    def shortage(self, wanted: Resources) -> str:
        """What no node had enough of, in words; empty where one had all of it, or nothing is known of nodes."""
        if not self.nodes or any(_has(node, wanted) for node in self.nodes):
            return ""
        most = {name: max(node.get(name, 0.0) for node in self.nodes) for name in wanted}
        short = {name: number for name, number in wanted.items() if most[name] < number} or wanted
        had = in_words({name: most[name] for name in short})
        return f"no node had {in_words(short)}: the most that one had was {had}"


def capacity_of(nodes: Iterable[str], given: Iterable[str | None]) -> Capacity:
    """From Ray's JSON of each."""
    kinds = frozenset(frozenset(parse_resources(text).items()) for text in given)
    return Capacity(tuple(parse_resources(text) for text in nodes), kinds)


def _has(node: Resources, wanted: Resources) -> bool:
    return all(node.get(name, 0.0) >= number for name, number in wanted.items())


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

    @classmethod
    def of(cls, state: SessionState, cut_off: int = 0) -> Ending:
        if state.ended_at is None:
            return cls()
        return cls(state.ended_at, is_crash=state.is_crash, cut_off=cut_off, reason=state.reason)


@dataclass(frozen=True)
class Kubernetes:
    """What happened to the cluster's pods, where somebody recorded it."""

    failures: Sequence[PodFailure] = ()
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

    @property
    def asked(self) -> str:
        """What its bundles asked for, in words: `4 x GPU 1; CPU 8`."""
        kinds = Counter(map(in_words, self.bundles))
        shown = [f"{number} x {words}" if number > 1 else words for words, number in kinds.items()]
        more = f"; and {len(shown) - _BUNDLES_SHOWN} more" if len(shown) > _BUNDLES_SHOWN else ""
        return "; ".join(shown[:_BUNDLES_SHOWN]) + more

    def shortage(self, capacity: Capacity) -> str:
        """What no node had enough of for one of its bundles."""
        return next((short for bundle in self.bundles if (short := capacity.shortage(bundle))), "")

    def in_words(self, capacity: Capacity) -> str:
        short = self.shortage(capacity)
        return f"its placement group was never made: it asked for {self.asked}{short and f'; {short}'}"


@dataclass(frozen=True)
class ReportInput:
    sets: Sequence[FailureSet]
    jobs: Sequence[JobOutcome] = ()
    ending: Ending = Ending()
    kubernetes: Kubernetes = Kubernetes()
    capacity: Capacity = field(default_factory=Capacity)
    waiting: Sequence[Waiting] = ()
    unmade_groups: Sequence[UnmadeGroup] = ()
    lost_heads: Sequence[datetime] = ()
    """When heads crashed that the session went on without (GCS fault tolerance)."""
    rayjobs: Sequence[RayJobRecord] = ()
    """Those that the report is about."""
    deaths: Sequence[Death] = ()
    """Processes that died, of which no failed task tells."""
    serve: ServeRecord = field(default_factory=ServeRecord)
    """What Serve's logs tell."""
    train_errors: Sequence[TrainError] = ()
    """What ranks of Train raised, by its logs."""
    cluster: str = ""
    """The cluster on which their end is wanted; empty for the end of the RayJobs themselves."""

    @property
    def cut_off_jobs(self) -> Sequence[JobOutcome]:
        """Jobs that were at work when the cluster ended, or still are."""
        return [job for job in self.jobs if job.is_cut_off or job.status in OPEN_STATUSES]

    @property
    def jobs_by_id(self) -> Mapping[str, JobOutcome]:
        return {job.job_id: job for job in self.jobs if job.job_id}


@dataclass(frozen=True)
class Explanation:
    """What a rule found: a cause of its own, or another set of failures from which these follow."""

    title: str
    """One sentence with everything."""
    confidence: Confidence
    evidence: tuple[Evidence, ...]
    at_ns: int | None = None
    because_of: str | None = None
    """Fingerprint of the set they follow from; its cause is theirs."""
    subject: str = ""
    """What the cause is about; explanations by one rule with the same subject are one cause. Empty: these failures."""
    is_intended: bool = False
    rule: str = ""
    """The name of what was found, where one rule finds several kinds; empty: the rule's own."""
    error: str = ""
    """The error line in its original words."""
    where: CodeLocation | None = None
    who: Who | None = None
    what: str = ""
    """To whom it happened, in a few words; empty: `who` says enough."""
    then: str = ""
    """The next sentence."""
    basis: str = ""
    """What the confidence rests on."""
    excerpts: tuple[Excerpt, ...] = ()
    """The lines that matter."""
    requests: int = 0
    """Requests to Ray Serve that failed of it."""
