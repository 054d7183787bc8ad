"""What is known about a RayService beside its own object, and what can be decided about it. Plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, auto

from raykeeper.api.raycluster import RayClusterStatus
from raykeeper.api.rayservice import AppStatus
from raykeeper.operator.rayservice.states import APPLICATION_RUNNING, BROKEN
from raykeeper.operator.rayservice.upgrade.failures import Failures
from raykeeper.operator.rayservice.upgrade.routes import RoutingFacts
from raykeeper.operator.rayservice.upgrade.steps import Pace, Shares
from raykeeper.operator.rayservice.versions import Marks, Match
from raykeeper.operator.shared.troubles import Trouble


@dataclass(frozen=True)
class HeadFacts:
    """The head pod of a cluster."""

    pod: str
    instance: str
    """Uid of the pod, and how often Ray was started in it."""
    is_ready: bool
    serve_label: str
    """Whether requests go there, as the pod says."""
    is_proxy_healthy: bool | None = None
    """Whether Serve's proxy beside the head takes requests; None while that is not known for sure."""
    known_at: datetime | None = None
    """When a proxy that does not answer counts as dead."""


@dataclass(frozen=True)
class ServeFacts:
    """What Serve last said, and what became of the config."""

    applications: Mapping[str, AppStatus] = field(default_factory=dict)
    is_current: bool = False
    """The last question was answered."""
    failure: str = ""
    """Why it was not."""
    has_goal: bool = False
    """It is known which config it should have."""
    has_config: bool = False
    """That config was taken by the present head."""
    was_sent: bool = False
    """It was taken just now, and that is not noted yet."""
    refusal: str = ""
    """Why it was not taken."""

    @property
    def is_running(self) -> bool:
        """Whether there are applications, and all of them run."""
        states = [application.status for application in self.applications.values()]
        return self.is_current and bool(states) and set(states) == {APPLICATION_RUNNING}

    @property
    def is_broken(self) -> bool:
        """Whether Serve says of some application that it does not work."""
        states = {application.status for application in self.applications.values()}
        return self.is_current and not states.isdisjoint(BROKEN)


@dataclass(frozen=True)
class ClusterFacts:
    """One RayCluster that the service made."""

    name: str
    uid: str
    is_going: bool
    """It is being deleted."""
    match: Match
    marks: Marks
    """Those it gets when it is taken over."""
    status: RayClusterStatus
    head: HeadFacts | None = None
    serve: ServeFacts = ServeFacts()
    ready_pods: int = 0
    """Pods that would take requests if traffic came here."""
    replaced_at: datetime | None = None
    """When another took its place."""
    needs_suspend: bool | None = None
    """What its `suspend` should be, where that differs."""
    trouble: Trouble | None = None
    """Why it is not ready."""
    rolled_back: str = ""
    """The goal (`Facts.goal`) that did not work, so that traffic came back here."""
    rolled_back_because: str = ""
    """Why."""
    failures: Failures = field(default_factory=Failures)
    """How its requests went, where that is asked."""


@dataclass(frozen=True)
class Facts:
    """All that a decision rests on."""

    clusters: Mapping[str, ClusterFacts] = field(default_factory=dict)
    """Those that the service made, by name."""
    services: Mapping[str, str] = field(default_factory=dict)
    """Those that the service made: uids by name."""
    serving: str = ""
    """The cluster that the serve service leads to."""
    endpoints: int = 0
    """Pods behind the serve service that are ready."""
    is_valid: bool = True
    """The spec can be worked on; else what runs goes on, and nothing new is begun."""
    upgrades: bool = True
    """A changed spec gets a new cluster."""
    has_applications: bool = True
    """serveConfigV2 names some."""
    random_end: str = ""
    """Five characters for a new name."""
    is_stepwise: bool = False
    """Traffic moves from one cluster to the next step by step, not all at once."""
    pace: Pace | None = None
    """How fast; None: that cannot be read, and nothing moves."""
    routing: RoutingFacts = field(default_factory=RoutingFacts)
    goal: str = ""
    """Tells the present spec and Serve config from others."""
    rolls_back_unhealthy: bool = False
    """Traffic goes back when Serve calls an application on the new cluster broken."""
    error_limit: float | None = None
    """Traffic goes back when more than so many percent of the requests to the new cluster fail."""


@dataclass(frozen=True)
class CreateCluster:
    name: str


@dataclass(frozen=True)
class AdoptCluster:
    """Put our marks on a cluster of another version; nothing else about it changes."""

    name: str
    marks: Marks


@dataclass(frozen=True)
class AppendGroups:
    """Add the worker groups that the spec has in addition."""

    name: str


@dataclass(frozen=True)
class SetSuspend:
    """Pass `rayClusterConfig.suspend` on, by which queues such as Kueue hold a service back."""

    name: str
    suspend: bool


@dataclass(frozen=True)
class NoteConfig:
    """Write down that the head has the config."""

    name: str


@dataclass(frozen=True)
class MarkReplaced:
    """Write down since when a cluster is not needed, so that its time goes on over a restart."""

    name: str
    moment: datetime


@dataclass(frozen=True)
class DeleteCluster:
    name: str
    uid: str


@dataclass(frozen=True)
class DeleteService:
    name: str
    uid: str


@dataclass(frozen=True)
class DeleteRouting:
    """Remove a Gateway or an HTTPRoute that we made."""

    kind: str
    name: str
    uid: str


@dataclass(frozen=True)
class MarkRolledBack:
    """Write down that a goal did not work, so that it is not tried again."""

    name: str
    goal: str
    cause: str


@dataclass(frozen=True)
class RouteTraffic:
    """Services of the clusters, Gateway and HTTPRoute are there, and traffic is divided so."""

    weights: tuple[tuple[str, int], ...]
    """Of clusters, in percent. None at all: the Gateway alone."""


@dataclass(frozen=True)
class LabelHead:
    """Let requests go to the head pod, or not."""

    cluster: str
    pod: str
    value: str


@dataclass(frozen=True)
class PointServices:
    """Head and serve service lead to this cluster."""

    cluster: str
    serve: str = ""
    """Where the serve service leads, if elsewhere."""


Action = (
    CreateCluster
    | AdoptCluster
    | AppendGroups
    | SetSuspend
    | NoteConfig
    | MarkReplaced
    | DeleteCluster
    | DeleteService
    | DeleteRouting
    | MarkRolledBack
    | RouteTraffic
    | LabelHead
    | PointServices
)


class Phase(Enum):
    """What a service is about."""

    WORKING = auto()
    RESUMING = auto()
    """Working again, from the start."""
    SUSPENDING = auto()
    SUSPENDED = auto()
    TIMED_OUT = auto()


@dataclass(frozen=True)
class Plan:
    """What to do, in this order, and which clusters the status names once that is done."""

    phase: Phase
    active: str = ""
    pending: str = ""
    actions: tuple[Action, ...] = ()
    look_at: datetime | None = None
    """When to look again although nothing happens."""
    told: str = ""
    """Why an upgrade waits."""
    shares: Shares | None = None
    """What each cluster should have; None where traffic does not move step by step."""
    is_rollback: bool = False
    """Traffic goes back to the active cluster."""
