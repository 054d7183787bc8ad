"""The optional parts of a RayCluster's spec, each about one feature."""

from __future__ import annotations

from typing import Annotated, Literal

from raykeeper.api.fields import (
    EnvFromSource,
    EnvVar,
    EnvVarSource,
    IngressTls,
    Int32,
    NetworkPolicyEgressRule,
    NetworkPolicyIngressRule,
    Quantity,
    Resources,
    SecurityContext,
    VolumeMount,
)
from raykeeper.api.markers import MapList, Rule, ServerDefault
from raykeeper.api.structs import ApiStruct


class IngressOptions(ApiStruct, frozen=True):
    """How the Ingress to the head's dashboard looks."""

    host: str | None = None
    """Host name the Ingress answers to; any when unset."""
    path: str | None = None
    """HTTP path that leads to the dashboard; `/` when unset."""
    path_type: Literal["Exact", "Prefix", "ImplementationSpecific"] | None = None
    """How the path is matched; `Prefix` when unset, which needs no rewriting by the ingress controller."""
    tls: tuple[IngressTls, ...] = ()
    """TLS termination, as in an Ingress."""


class AutoscalerOptions(ApiStruct, frozen=True):
    """The autoscaler that runs beside Ray in the head pod."""

    resources: Resources | None = None
    """Resources of the autoscaler's container; 500m CPU and 512Mi memory when unset."""
    image: str | None = None
    """Image of the autoscaler's container; that of the head when unset."""
    image_pull_policy: str | None = None
    """When the image is pulled; `IfNotPresent` when unset."""
    security_context: SecurityContext | None = None
    """Security options of the autoscaler's container."""
    idle_timeout_seconds: Int32 | None = None
    """Seconds after which a worker without work is removed. Read by Ray, which takes 60 when unset."""
    upscaling_mode: Literal["Default", "Aggressive", "Conservative"] | None = None
    """How fast workers are added. Read by Ray: `Conservative` keeps no more pods pending than the cluster has, the
    others do not limit the rate."""
    version: Literal["v1", "v2"] | None = None
    """Which of Ray's autoscalers runs; unset leaves it to Ray, which takes v2 from 2.47 on."""
    env: tuple[EnvVar, ...] = ()
    """Environment variables added to the autoscaler's container."""
    env_from: tuple[EnvFromSource, ...] = ()
    """Sources of environment variables added to the autoscaler's container."""
    volume_mounts: tuple[VolumeMount, ...] = ()
    """Volume mounts added to the autoscaler's container, for instance of certificates."""
    command: tuple[str, ...] = ()
    """Replaces the command of the autoscaler's container."""
    args: tuple[str, ...] = ()
    """Replaces the arguments of the autoscaler's container."""


class RedisCredential(ApiStruct, frozen=True):
    """A user name or password of Redis, or where it is to be found."""

    value: str = ""
    """The credential itself."""
    value_from: EnvVarSource | None = None
    """Where it comes from, such as a key of a Secret."""


class GcsEmbeddedStorage(ApiStruct, frozen=True):
    """The volume that holds the state of Ray's control service (GCS) in RocksDB. Only one pod may write to it."""

    claim_name: str = ""
    """An existing PersistentVolumeClaim to use, which is never changed or deleted by the operator. Excludes `size`,
    `storageClassName` and `accessModes`, which describe the claim that is made otherwise."""
    size: Quantity | None = None
    """Size of the claim to be made; 1Gi when unset. A claim that exists is not resized."""
    storage_class_name: str | None = None
    """Storage class of the claim to be made; the cluster's default when unset."""
    access_modes: tuple[str, ...] = ()
    """Access modes of the claim to be made; `ReadWriteOnce` when unset."""
    sub_path: str = ""
    """A folder of the volume to mount instead of its root."""
    deletion_policy: Literal["DeleteWithCluster", "Retain"] | None = None
    """Whether the claim that was made goes with the RayCluster; `DeleteWithCluster` when unset."""


class GcsFaultToleranceOptions(ApiStruct, frozen=True):
    """Where Ray's control service (GCS) keeps its state, so that workers survive the loss of the head."""

    backend: (
        Annotated[Literal["redis", "rocksdb"], Rule("self == oldSelf", "gcsFaultToleranceOptions.backend is immutable")]
        | None
    ) = None
    """`redis` outside the cluster, or `rocksdb` on a volume of the head pod (needs the feature gate
    GCSFaultToleranceEmbeddedStorage); `redis` when unset."""
    redis_username: RedisCredential | None = None
    """User name for Redis."""
    redis_password: RedisCredential | None = None
    """Password for Redis."""
    external_storage_namespace: str = ""
    """Prefix of this cluster's keys in Redis; the RayCluster's uid when unset."""
    redis_address: str = ""
    """Address of Redis, as `host:port` or as a URL."""
    storage: GcsEmbeddedStorage | None = None
    """The volume of the `rocksdb` backend."""


class RayClusterUpgradeStrategy(ApiStruct, frozen=True):
    """What happens to running pods when the spec changes."""

    type: Literal["Recreate", "None"] | None = None
    """`Recreate` deletes all pods at once and makes them anew; `None`, or unset, leaves them as they are."""


class AuthOptions(ApiStruct, frozen=True):
    """Who may talk to the Ray cluster."""

    mode: Literal["disabled", "token"] | None = None
    """`token` lets only callers with the token in."""
    secret_name: str | None = None
    """A Secret with the token under the key `auth_token`; the operator makes one when unset."""
    enable_k8s_token_auth: bool | None = None
    """Let Kubernetes decide about each caller's own token instead. Needs mode `token` and Ray 2.55; not for clusters
    of a RayJob or RayService."""


class CollectorOptions(ApiStruct, frozen=True):
    """The sidecar that ships events and logs of a Ray pod to the history server's storage."""

    image: str | None = None
    """Image of the collector; must be set."""
    image_pull_policy: str | None = None
    """When the image is pulled."""
    resources: Resources | None = None
    """Resources of the collector's container."""
    env: tuple[EnvVar, ...] = ()
    """Environment of the collector: `STORAGE_BACKEND` and what that backend needs."""


class HistoryServerOptions(ApiStruct, frozen=True):
    """What is kept of the cluster after its end."""

    collector_options: CollectorOptions | None = None
    """The collector in each Ray pod."""


class NetworkPolicyRules(ApiStruct, frozen=True):
    """Rules added to those that let the pods of the cluster talk to each other."""

    ingress_rules: tuple[NetworkPolicyIngressRule, ...] = ()
    """Who else may connect; only where the mode denies ingress."""
    egress_rules: tuple[NetworkPolicyEgressRule, ...] = ()
    """Where else to connect; only where the mode denies egress. DNS is not allowed by itself, and workers need it."""


class WorkerGroupNetworkPolicyRules(NetworkPolicyRules, frozen=True, kw_only=True):
    """The rules of one worker group."""

    group_name: str
    """The worker group."""


class NetworkPolicyConfig(ApiStruct, frozen=True):
    """Network isolation of the Ray pods by NetworkPolicies. Pods of one cluster may always talk to each other."""

    mode: Annotated[Literal["DenyAll", "DenyAllIngress", "DenyAllEgress"], ServerDefault()] = "DenyAll"
    """What is denied unless a rule allows it."""
    head: NetworkPolicyRules | None = None
    """Rules for the head pod."""
    worker: NetworkPolicyRules | None = None
    """Rules for the worker groups that have none of their own."""
    worker_groups: Annotated[tuple[WorkerGroupNetworkPolicyRules, ...], MapList("groupName")] = ()
    """Rules for single worker groups; they replace those of `worker`."""


class TlsOptions(ApiStruct, frozen=True):
    """Encryption between the Ray pods, with certificates from cert-manager."""

    enabled: bool | None = None
    """Whether the pods use mutual TLS; they do not when unset. Needs the feature gate RayClusterMTLS."""
