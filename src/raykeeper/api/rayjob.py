"""RayJob: a job that runs on a Ray cluster of its own, or on one that is there."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec

from raykeeper.api.conditions import Condition
from raykeeper.api.fields import Float32, Int32, Int64, ManagedBy, PodTemplate, Resources, Time
from raykeeper.api.markers import AtomicList, MapList, Rule, ServerDefault
from raykeeper.api.meta import Object, Resource
from raykeeper.api.raycluster import RayClusterSpec, RayClusterStatus
from raykeeper.api.structs import ApiStruct, RayObject, parse_part

DeletionPolicyType = Literal["DeleteCluster", "DeleteWorkers", "DeleteSelf", "DeleteNone"]


class SubmitterConfig(ApiStruct, frozen=True):
    """The Kubernetes Job that submits the Ray job."""

    backoff_limit: Int32 | None = None
    """How often submitting is tried again; 2 when unset."""
    resources: Resources | None = None
    """Resources of the submitting container where no `submitterPodTemplate` is given. Raykeeper only."""


class DeletionPolicy(ApiStruct, frozen=True):
    """What is deleted after the job's end."""

    policy: DeletionPolicyType | None = None
    """The cluster, its workers only, the RayJob itself with all it made, or nothing."""


class DeletionCondition(ApiStruct, frozen=True):
    """When a deletion rule applies."""

    job_status: Literal["SUCCEEDED", "FAILED"] | None = None
    """How the Ray job ended."""
    job_deployment_status: Literal["Failed"] | None = None
    """How the RayJob ended, whether or not its Ray job ever ran."""
    ttl_seconds: Annotated[Int32, msgspec.Meta(ge=0), ServerDefault()] = 0
    """Seconds to wait from then on."""


class DeletionRule(ApiStruct, frozen=True):
    """One step of the clean-up."""

    policy: DeletionPolicyType
    """The cluster, its workers only, the RayJob itself with all it made, or nothing."""
    condition: Annotated[
        DeletionCondition,
        Rule(
            "!(has(self.jobStatus) && has(self.jobDeploymentStatus))",
            "jobStatus and jobDeploymentStatus cannot both be set in one condition",
        ),
        Rule(
            "has(self.jobStatus) || has(self.jobDeploymentStatus)",
            "one of jobStatus and jobDeploymentStatus must be set in a condition",
        ),
    ]
    """When."""


class DeletionStrategy(ApiStruct, frozen=True):
    """What is deleted after the job's end: either `deletionRules`, or the older pair of `onSuccess` and `onFailure`."""

    on_success: DeletionPolicy | None = None
    """What is deleted after a success. Deprecated: use `deletionRules`."""
    on_failure: DeletionPolicy | None = None
    """What is deleted after a failure. Deprecated: use `deletionRules`."""
    deletion_rules: Annotated[tuple[DeletionRule, ...], msgspec.Meta(min_length=1), AtomicList()] | None = None
    """The steps of the clean-up; of several that are due, the one that deletes most is taken."""


class RayJobSpec(ApiStruct, frozen=True):
    """The job that should run."""

    entrypoint: str = ""
    """The command that is the job."""
    ray_cluster_spec: RayClusterSpec | None = None
    """The Ray cluster made for the job; this or `clusterSelector` must be given."""
    cluster_selector: dict[str, str] = msgspec.field(default_factory=dict)
    """Names the Ray cluster that is used instead, under the key `ray.io/cluster`."""
    submission_mode: Annotated[str, ServerDefault()] = "K8sJobMode"
    """How the job is submitted: by a Kubernetes Job (`K8sJobMode`), by the operator (`HTTPMode`), by the user
    (`InteractiveMode`) or by a container beside the head (`SidecarMode`)."""
    submitter_pod_template: PodTemplate | None = None
    """The pod that submits the job in `K8sJobMode`."""
    submitter_config: SubmitterConfig | None = None
    """The Kubernetes Job that submits the job."""
    job_id: str = ""
    """Submission id of the Ray job; made up when unset."""
    metadata: dict[str, str] = msgspec.field(default_factory=dict)
    """Data kept with the Ray job."""
    runtime_env_yaml: str = ""
    """Ray's runtime environment of the job, as YAML."""
    entrypoint_num_cpus: Float32 = 0.0
    """CPUs reserved for the entrypoint."""
    entrypoint_num_gpus: Float32 = 0.0
    """GPUs reserved for the entrypoint."""
    entrypoint_resources: str = ""
    """Other resources reserved for the entrypoint, as JSON."""
    backoff_limit: Annotated[Int32, ServerDefault()] = 0
    """How often the whole job is tried again, each time on a new Ray cluster."""
    retry_ray_cluster_strategy: Literal["RecreateRayCluster", "ReuseRayCluster"] | None = None
    """Whether another attempt gets a new Ray cluster (`RecreateRayCluster`, also when unset) or the one that is there.
    Raykeeper only."""
    active_deadline_seconds: Int32 | None = None
    """Seconds the job may take in all before it is stopped and fails."""
    pre_running_deadline_seconds: Annotated[Int32, msgspec.Meta(ge=1)] | None = None
    """Seconds the job may take until it runs before it is stopped and fails."""
    shutdown_after_job_finishes: bool = False
    """Whether the Ray cluster is deleted after the job's end."""
    ttl_seconds_after_finished: Annotated[Int32, ServerDefault()] = 0
    """Seconds to wait with that."""
    suspend: bool = False
    """Whether there is no Ray cluster for now; back to `false`, the job starts anew."""
    managed_by: ManagedBy | None = None
    """Who looks after this object: `ray.io/kuberay-operator`, which is also meant when unset, or
    `kueue.x-k8s.io/multikueue`. It cannot be changed."""
    deletion_strategy: (
        Annotated[
            DeletionStrategy,
            Rule(
                "!((has(self.onSuccess) || has(self.onFailure)) && has(self.deletionRules))",
                "deletionRules cannot be used together with onSuccess or onFailure",
            ),
            Rule(
                "(has(self.onSuccess) && has(self.onFailure)) || has(self.deletionRules)",
                "deletionStrategy needs either deletionRules, or both onSuccess and onFailure",
            ),
        ]
        | None
    ) = None
    """What is deleted after the job's end. Needs the feature gate RayJobDeletionPolicy."""


class RayJobInfo(ApiStruct, frozen=True):
    """What Ray says about the job."""

    start_time: Time | None = None
    """When it started."""
    end_time: Time | None = None
    """When it ended."""


class FailedAttempt(ApiStruct, frozen=True):
    """An attempt that failed, so that its history can be found."""

    ray_cluster_name: str = ""
    """The Ray cluster it ran on."""
    job_id: str = ""
    """Submission id of its Ray job."""
    reason: str = ""
    """Why it failed, in one word."""
    message: str = ""
    """Why it failed, in a sentence."""
    start_time: Time | None = None
    """When it began."""
    end_time: Time | None = None
    """When it had failed."""


class RayJobStatus(ApiStruct, frozen=True):
    """The job that runs."""

    job_id: str = ""
    """Submission id of the Ray job."""
    ray_cluster_name: str = ""
    """The Ray cluster it runs on."""
    dashboard_url: str = ""
    """Host and port of that cluster's dashboard."""
    job_status: str = ""
    """What Ray says: `PENDING`, `RUNNING`, `STOPPED`, `SUCCEEDED`, `FAILED`, or nothing yet."""
    job_deployment_status: str = ""
    """How far the RayJob is, from `Initializing` to `Complete` or `Failed`."""
    reason: str = ""
    """Why it failed, in one word."""
    message: str = ""
    """Why it failed, in a sentence."""
    start_time: Time | None = None
    """When the RayJob began to be worked on."""
    end_time: Time | None = None
    """When the Ray job, or the attempt to submit it, had ended."""
    succeeded: Annotated[Int32, ServerDefault()] = 0
    """How often it succeeded."""
    failed: Annotated[Int32, ServerDefault()] = 0
    """How often it failed."""
    ray_job_info: RayJobInfo = RayJobInfo()
    """What Ray says about the job."""
    ray_cluster_status: RayClusterStatus = RayClusterStatus()
    """Status of the Ray cluster it runs on."""
    job_status_check_failure_start_time: Time | None = None
    """Since when Ray could not be asked about the job."""
    observed_generation: Int64 = 0
    """The generation of the spec that this status is about."""
    head_instance: str = ""
    """The head that the attempt was given to: uid of its pod, and how often Ray was started in it. Raykeeper only."""
    failed_attempts: Annotated[tuple[FailedAttempt, ...], AtomicList()] = ()
    """The last attempts that failed and were followed by another, oldest first. Raykeeper only."""
    history_url: str = ""
    """Where the history of the job, and of its failed attempts, can be opened. Raykeeper only."""
    conditions: Annotated[tuple[Condition, ...], MapList("type")] = ()
    """What is the case, and since when: `Ready`, `Reconciling`, `Stalled`. Raykeeper only."""


class RayJob(RayObject, frozen=True):
    """A job on a Ray cluster of its own, or on one that is there."""

    spec: RayJobSpec = RayJobSpec()
    """The job that should run."""
    status: RayJobStatus = RayJobStatus()
    """The job that runs."""

    @classmethod
    def from_object(cls, item: Object) -> RayJob:
        """A cached object as a struct, made anew by each call; raises `msgspec.ValidationError` for a wrong spec."""
        return cls(item.metadata, parse_part(item.spec, RayJobSpec), parse_part(item.status, RayJobStatus))


RAY_JOBS: Final[Resource[Object]] = Resource("ray.io", "v1", "rayjobs", "RayJob", Object)
"""Cached as bytes; read with `RayJob.from_object`."""
