"""What is known about a RayJob beside its own object, and what can be decided about it. Plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from raykeeper.api.raycluster import RayClusterSpec, RayClusterStatus
from raykeeper.api.rayjob import RayJobStatus
from raykeeper.operator.settings import RayJobSettings
from raykeeper.operator.shared.troubles import Trouble


@dataclass(frozen=True)
class SubmitterFacts:
    """The Kubernetes Job, or the container beside the head, that gives the job to Ray."""

    has_finished: bool = False
    has_failed: bool = False
    finished_at: datetime | None = None
    message: str = ""
    """Why it failed."""
    trouble: Trouble | None = None
    """Why it does not run yet."""
    ray_status: str = ""
    """How the job ended, where the submitter heard it from Ray and left word."""


@dataclass(frozen=True)
class ClusterFacts:
    """The RayCluster that the status names."""

    name: str
    uid: str
    is_owned: bool
    """This RayJob made it."""
    is_going: bool
    """It is being deleted."""
    going_since: datetime | None = field(default=None, kw_only=True)
    spec: RayClusterSpec
    status: RayClusterStatus
    dashboard_url: str = ""
    """Host and port; empty while the head service is unknown."""
    head_instance: str = ""
    """Uid of the head pod, and how often Ray was started in it; empty without a head pod."""
    has_lost_head: bool = False
    """Its head is gone and gets no successor, since that would submit the job again."""
    is_head_ready: bool = True
    """There is a head, and nobody says that it is not ready. `state` stays `ready` while a head is replaced."""
    sidecar: SubmitterFacts | None = None
    """The submitter beside the head, in SidecarMode."""
    trouble: Trouble | None = None
    """Why it is not ready."""
    keeps_jobs: bool = False
    """What Ray knows of jobs outlives its head (GCS fault tolerance)."""
    submission_mode: str = ""
    """How the RayJob that made it meant to submit its job; empty for a cluster of somebody else."""


@dataclass(frozen=True)
class JobInfo:
    """Ray knows the job."""

    status: str
    message: str = ""
    start_time: datetime | None = None
    end_time: datetime | None = None


@dataclass(frozen=True)
class NoSuchJob:
    """Ray answers, and does not know the job."""


@dataclass(frozen=True)
class Silence:
    """Ray does not answer, or not in a way that can be understood."""

    cause: str


RayAnswer = JobInfo | NoSuchJob | Silence


@dataclass(frozen=True)
class Facts:
    """All that a decision rests on."""

    cluster: ClusterFacts | None = None
    submitter: SubmitterFacts | None = None
    """The Kubernetes Job of K8sJobMode, if it is there."""
    ray: RayAnswer | None = None
    """What Ray last said about the job of the present attempt; None while it was not asked."""
    settings: RayJobSettings = field(default_factory=RayJobSettings)
    random_end: str = ""
    """Five characters for new names."""
    cluster_missing: str = ""
    """Why the cluster that `clusterSelector` names cannot be used."""
    namesake: str = ""
    """An older RayJob whose job has the same id on the same cluster of somebody else."""


@dataclass(frozen=True)
class AddFinalizer:
    """Before anything is made, so that a job is stopped before its RayJob is gone."""


@dataclass(frozen=True)
class CreateCluster:
    name: str


@dataclass(frozen=True)
class CreateSubmitter:
    """The Kubernetes Job that gives the job to Ray."""


@dataclass(frozen=True)
class KeepHeadService:
    """The service that leads to the head of the present attempt."""


@dataclass(frozen=True)
class SubmitJob:
    """Give the job to Ray; harmless where Ray has it already."""

    job_id: str


@dataclass(frozen=True)
class StopJob:
    """Ask Ray to stop the job. Nothing depends on the answer."""

    job_id: str


@dataclass(frozen=True)
class DeleteCluster:
    name: str
    uid: str
    waits_for_pods: bool = False
    """It is gone only when its pods are."""


@dataclass(frozen=True)
class SuspendWorkers:
    """Leave the cluster its head alone."""

    name: str


@dataclass(frozen=True)
class DeleteSubmitter:
    """The Kubernetes Job with its pods."""

    waits_for_pods: bool = False
    """It is gone only when they are."""


@dataclass(frozen=True)
class DeleteSelf:
    """The RayJob, and with it all that it made."""


Action = (
    AddFinalizer
    | CreateCluster
    | CreateSubmitter
    | KeepHeadService
    | SubmitJob
    | StopJob
    | DeleteCluster
    | SuspendWorkers
    | DeleteSubmitter
    | DeleteSelf
)


@dataclass(frozen=True)
class Warned:
    """A Warning event."""

    reason: str
    message: str


@dataclass(frozen=True)
class Step:
    """What to do, in this order, then what to say, and when to look again although nothing happened."""

    status: RayJobStatus
    actions: tuple[Action, ...] = ()
    look_at: datetime | None = None
    trouble: Trouble | None = None
    """What the job waits for, for its conditions."""
    warnings: tuple[Warned, ...] = ()
