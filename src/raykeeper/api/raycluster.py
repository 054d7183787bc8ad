"""RayCluster: a head pod and groups of worker pods."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from raykeeper.api.conditions import Condition, find_condition
from raykeeper.api.fields import MAX_INT32, Int32, Int64, ManagedBy, PodTemplate, Quantity, Service, Time
from raykeeper.api.markers import MapList, Nullable, Required, ServerDefault
from raykeeper.api.meta import Object, Resource
from raykeeper.api.rayclusteroptions import (
    AuthOptions,
    AutoscalerOptions,
    GcsFaultToleranceOptions,
    HistoryServerOptions,
    IngressOptions,
    NetworkPolicyConfig,
    RayClusterUpgradeStrategy,
    TlsOptions,
)
from raykeeper.api.structs import ApiStruct, RayObject, parse_part


class HeadGroupSpec(ApiStruct, frozen=True):
    """The head pod and the ways to reach it."""

    template: PodTemplate
    """The head pod. Its first container runs Ray."""
    ray_start_params: dict[str, str] = msgspec.field(default_factory=dict)
    """Options of `ray start`, without the leading dashes."""
    service_type: str = ""
    """Type of the head service and of the serve service; `ClusterIP` when unset."""
    head_service: Service | None = None
    """The head service, to be completed by the operator."""
    enable_ingress: bool | None = None
    """Whether an Ingress (on OpenShift a Route) to the dashboard is made."""
    ingress_options: IngressOptions | None = None
    """How that Ingress looks."""
    resources: dict[str, str] = msgspec.field(default_factory=dict)
    """Ray's logical resources, instead of those in `rayStartParams`. They do not touch the pod's resources."""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    """Labels of the Ray node, which the pod gets too."""


class ScaleStrategy(ApiStruct, frozen=True):
    """Which pods are removed first."""

    workers_to_delete: tuple[str, ...] = ()
    """Names of pods of this group to be deleted; written by Ray's autoscaler."""


class WorkerGroupSpec(ApiStruct, frozen=True):
    """Worker pods that are alike."""

    group_name: str
    """Name of the group, different from those of the others."""
    template: PodTemplate
    """A worker pod. Its first container runs Ray."""
    replicas: Annotated[Int32, ServerDefault()] = 0
    """How many replicas there should be; held within `minReplicas` and `maxReplicas`. The autoscaler writes it."""
    min_replicas: Annotated[Int32, ServerDefault(), Required()] = 0
    """The least number of replicas."""
    max_replicas: Annotated[Int32, ServerDefault(), Required()] = MAX_INT32
    """The greatest number of replicas."""
    num_of_hosts: Annotated[Int32, ServerDefault()] = 1
    """Pods of one replica; more than one for accelerators that span hosts."""
    ray_start_params: dict[str, str] = msgspec.field(default_factory=dict)
    """Options of `ray start`, without the leading dashes."""
    scale_strategy: ScaleStrategy = ScaleStrategy()
    """Which pods are removed first."""
    idle_timeout_seconds: Int32 | None = None
    """Seconds after which a pod without work is removed, instead of the autoscaler's own. Needs autoscaler v2."""
    suspend: bool | None = None
    """Whether the group has no pods for now. Set by a RayJob that deletes its workers; not for users."""
    priority: Annotated[Int32, ServerDefault()] = 0
    """Where several groups could serve a demand, the higher is preferred. Needs autoscaler v2 and Ray 2.56."""
    resources: dict[str, str] = msgspec.field(default_factory=dict)
    """Ray's logical resources, instead of those in `rayStartParams`. They do not touch the pods' resources."""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    """Labels of the Ray nodes, which the pods get too."""


class RayClusterSpec(ApiStruct, frozen=True):
    """The Ray cluster that should be."""

    head_group_spec: HeadGroupSpec
    """The head pod."""
    worker_group_specs: tuple[WorkerGroupSpec, ...] = ()
    """The worker pods, in groups of equal ones."""
    ray_version: str = ""
    """Version of Ray in the images. Decides what can be used, such as HTTP probes (2.53) or tokens (2.52)."""
    enable_in_tree_autoscaling: bool | None = None
    """Whether Ray's autoscaler runs in the head pod and decides about the number of workers."""
    autoscaler_options: AutoscalerOptions | None = None
    """How that autoscaler runs."""
    head_service_annotations: dict[str, str] = msgspec.field(default_factory=dict)
    """Annotations of the head service."""
    suspend: bool | None = None
    """Whether the cluster has no pods for now. Back to `false`, they are made anew."""
    managed_by: ManagedBy | None = None
    """Who looks after this object: `ray.io/kuberay-operator`, which is also meant when unset, or
    `kueue.x-k8s.io/multikueue`. It cannot be changed."""
    gcs_fault_tolerance_options: GcsFaultToleranceOptions | None = None
    """Lets workers survive the loss of the head."""
    upgrade_strategy: RayClusterUpgradeStrategy | None = None
    """What happens to running pods when the spec changes. Not for clusters of a RayJob or RayService."""
    auth_options: AuthOptions | None = None
    """Who may talk to the Ray cluster."""
    history_server_options: HistoryServerOptions | None = None
    """What is kept of the cluster after its end."""
    network_policy: NetworkPolicyConfig | None = None
    """Network isolation of the pods. Needs the feature gate RayClusterNetworkPolicy."""
    tls_options: TlsOptions | None = None
    """Encryption between the pods. Needs the feature gate RayClusterMTLS."""

    @property
    def templates(self) -> tuple[PodTemplate, ...]:
        """Of all groups, the head's first."""
        return (self.head_group_spec.template, *(group.template for group in self.worker_group_specs))


class HeadInfo(ApiStruct, frozen=True):
    """Where the head is."""

    pod_ip: str = ""
    """Address of the head pod."""
    pod_name: str = ""
    """Name of the head pod."""
    service_ip: str = ""
    """Address of the head service; that of the pod when the service has none."""
    service_name: str = ""
    """Name of the head service."""


class RayClusterStatus(ApiStruct, frozen=True):
    """The Ray cluster that is."""

    state: str = ""
    """`ready`, `suspended` or empty; the conditions say more."""
    reason: str = ""
    """Why the state is what it is."""
    desired_cpu: Quantity = ""
    """CPUs of all desired pods."""
    desired_memory: Quantity = ""
    """Memory of all desired pods."""
    desired_gpu: Quantity = ""
    """GPUs of all desired pods."""
    desired_tpu: Quantity = ""
    """TPUs of all desired pods."""
    last_update_time: Annotated[Time | None, Nullable()] = None
    """When this status was last written."""
    state_transition_times: dict[str, Time] = msgspec.field(default_factory=dict)
    """When each state was last entered."""
    endpoints: dict[str, str] = msgspec.field(default_factory=dict)
    """Ports of the head service by name."""
    head: HeadInfo = HeadInfo()
    """Where the head is."""
    conditions: Annotated[tuple[Condition, ...], MapList("type")] = ()
    """What is the case, and since when."""
    ready_worker_replicas: Int32 = 0
    """Worker pods that are ready."""
    available_worker_replicas: Int32 = 0
    """Worker pods that run."""
    desired_worker_replicas: Int32 = 0
    """Worker pods that should be."""
    min_worker_replicas: Int32 = 0
    """The least number of worker pods."""
    max_worker_replicas: Int32 = 0
    """The greatest number of worker pods."""
    observed_generation: Int64 = 0
    """The generation of the spec that this status is about."""


class RayCluster(RayObject, frozen=True):
    """A Ray cluster: one head pod and any number of worker pods."""

    spec: RayClusterSpec
    """The Ray cluster that should be."""
    status: RayClusterStatus = RayClusterStatus()
    """The Ray cluster that is."""

    @classmethod
    def from_object(cls, item: Object) -> RayCluster:
        """A cached object as a struct, made anew by each call; raises `msgspec.ValidationError` for a wrong spec."""
        return cls(item.metadata, parse_part(item.spec, RayClusterSpec), parse_part(item.status, RayClusterStatus))


HEAD_POD_READY: Final = "HeadPodReady"
PROVISIONED: Final = "RayClusterProvisioned"
REPLICA_FAILURE: Final = "ReplicaFailure"
SUSPENDING: Final = "RayClusterSuspending"
SUSPENDED: Final = "RayClusterSuspended"
"""Types of conditions that KubeRay writes."""
READY: Final = "Ready"
"""Ours, by the name that tools which wait for any kind of object know: all pods that should be are there and ready, and
else what is the matter. The `state` says `ready` once and for ever, as KubeRay's does."""
INVALID: Final = "RayClusterInvalid"
"""Ours: the spec cannot be worked on, and why. There only while that is so."""
SCHEDULED: Final = "Scheduled"
"""Ours, with a batch scheduler: all pods have nodes, and else which group waits for what."""
HEAD_POD_LOST: Final = "HeadPodLost"
"""Reason of `HeadPodReady`, ours: there was a head, and there will be no other."""
HISTORY_COLLECTED: Final = "HistoryCollected"
"""Ours, where an annotation asks for history: every pod has a collector, and else which have none and why. Also while
pods have one though it was switched off."""
CONDITION_TYPES: Final = frozenset(
    {HEAD_POD_READY, PROVISIONED, REPLICA_FAILURE, SUSPENDING, SUSPENDED, READY, INVALID, SCHEDULED, HISTORY_COLLECTED}
)


def has_lost_head(cluster: RayCluster) -> bool:
    """Whether its head is gone for good."""
    condition = find_condition(cluster.status.conditions, HEAD_POD_READY)
    return condition is not None and condition.reason == HEAD_POD_LOST


RAY_CLUSTERS: Final[Resource[Object]] = Resource("ray.io", "v1", "rayclusters", "RayCluster", Object)
"""Cached as bytes, a fifth of what structs with their templates would take; read with `RayCluster.from_object`."""
