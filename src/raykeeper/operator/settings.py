"""Everything about the operator that can be set, in one frozen value that `main.py` reads once and hands down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from raykeeper.api.meta import JSON
from raykeeper.kube.leader.installations import Coverage
from raykeeper.kube.leader.lease import ElectionSettings
from raykeeper.kube.serving.server import ServingSettings
from raykeeper.logs import LogSettings
from raykeeper.operator.gates import FeatureGates


@dataclass(frozen=True)
class ClientSettings:
    """How the operator talks to the API server. The defaults are what a server with two cores bears."""

    kubeconfig: Path | None = None
    """File to read the connection from (`--kubeconfig`); else $KUBECONFIG, the service account, ~/.kube/config."""
    qps: float = 500.0
    """Requests per second in the long run (`--qps`, file `qps`); negative means no limit, 0 the default."""
    burst: int = 1000
    """Requests at once (`--burst`, file `burst`); 0 means the default."""
    use_kubernetes_proxy: bool = False
    """Reach Ray heads through the API server (`--use-kubernetes-proxy`, file `useKubernetesProxy`)."""


@dataclass(frozen=True)
class LeadershipSettings:
    """Which replica works, and where."""

    is_elected: bool = True
    """Agree on one replica through a Lease (`--enable-leader-election`, file `enableLeaderElection`)."""
    lease_namespace: str | None = None
    """Where that Lease is (`--leader-election-namespace`, file `leaderElectionNamespace`); None is the pod's own."""
    election: ElectionSettings = field(default_factory=ElectionSettings)
    """How it is held (`--leader-elect-lease-duration`, `...-renew-deadline`, `...-retry-period`)."""
    covers: Coverage = field(default_factory=Coverage)
    """Namespaces whose objects are worked on (`--watch-namespace`, file `watchNamespace`); none named means all."""
    others: Mapping[str, Coverage] = field(default_factory=dict)
    """What other installations that do not say so cover, by the namespace of their Lease (`--other-installations`)."""


@dataclass(frozen=True)
class PodSettings:
    """What the operator puts into every Ray pod that it makes, beside what the RayCluster says."""

    head_sidecars: tuple[JSON, ...] = ()
    """Containers added to every head pod (file `headSidecarContainers`)."""
    worker_sidecars: tuple[JSON, ...] = ()
    """Containers added to every worker pod (file `workerSidecarContainers`)."""
    default_env: tuple[JSON, ...] = ()
    """Environment variables of all Ray containers (file `defaultContainerEnvs`)."""
    default_annotations: Mapping[str, str] = field(default_factory=dict)
    """Annotations of Ray pods; those of the RayCluster win (file `defaultPodAnnotations`)."""
    default_labels: Mapping[str, str] = field(default_factory=dict)
    """Labels of Ray pods; those of the RayCluster win (file `defaultPodLabels`)."""
    injects_init_container: bool = True
    """Workers wait for the GCS in an init container (variable `ENABLE_INIT_CONTAINER_INJECTION`)."""
    injects_probes: bool = True
    """Ray containers without probes get some (variable `ENABLE_PROBES_INJECTION`)."""
    uses_login_shell: bool = False
    """Ray is started by a login shell (variable `ENABLE_LOGIN_SHELL`)."""
    has_fixed_head_name: bool = False
    """The head pod is named after its cluster, without a random end (variable `ENABLE_DETERMINISTIC_HEAD_POD_NAME`)."""
    cluster_domain: str = "cluster.local"
    """DNS suffix of Services (variable `CLUSTER_DOMAIN`)."""


@dataclass(frozen=True)
class HistorySettings:
    """What RayClusters get that ask for history by an annotation. Nothing here is needed where none does."""

    collector_image: str = ""
    """Image of the collectors (`--history-collector-image`, file `history.collectorImage`, variable
    `RAYKEEPER_COLLECTOR_IMAGE`). Required."""
    collector_image_pull_policy: str = ""
    """When it is pulled (`--history-collector-image-pull-policy`); `IfNotPresent` when empty."""
    collector_resources: JSON | None = None
    """Limits and requests of a collector (`--history-collector-resources`); None means KubeRay's."""
    store_url: str = ""
    """Where the history goes (`--history-store-url`), unless `env` or the fields of OSS say it."""
    store_volume: JSON | None = None
    """Volume that holds the folder of a `file://` URL (`--history-store-volume`): the source, such as `{"nfs": …}`."""
    env: tuple[JSON, ...] = ()
    """Variables of the collectors, such as `S3_ENDPOINT` or `STORAGE_BACKEND` (`--history-env`)."""
    secret_name: str = ""
    """Secret in the namespace of each cluster whose keys are variables with credentials (`--history-secret-name`)."""
    service_account_prefix: str = ""
    """Pods run as the ServiceAccount `<prefix>-<cluster>`, which is made (`--service-account-prefix`). When empty they
    keep their own, unless there is a role or an annotation to give: then it is `ray-historyserver`."""
    service_account_annotations: Mapping[str, str] = field(default_factory=dict)
    """Annotations of that ServiceAccount, such as those of a cloud identity (`--service-account-annotations`)."""
    url: str = ""
    """Where people open the history server, for links (`--history-url`, file `history.url`, variable
    `RAYKEEPER_HISTORY_URL`)."""
    callback_service_name: str = ""
    """The same as host and port (`--callback-service-name`), where `url` is empty."""
    cloud_role_name: str = ""
    """RAM role of the collectors (RRSA) in Alibaba Cloud (`--cloud-role-name`)."""
    oidc_provider_arn: str = ""
    """The cluster's OIDC provider in Alibaba Cloud (`--oidc-provider-arn`): with it the operator mounts the token for
    the role itself; without it ACK's pod identity webhook does."""
    oss_bucket: str = ""
    """Bucket in Alibaba OSS (`--oss-bucket`)."""
    oss_endpoint: str = ""
    """Its endpoint (`--oss-endpoint`); when empty, the public one of the region."""
    oss_region: str = ""
    """Its region, such as cn-hangzhou (`--oss-region`)."""
    oss_root_dir: str = ""
    """Folder in the bucket (`--oss-history-server-root-dir`)."""

    @property
    def server_url(self) -> str:
        """Where links to the history begin; empty where nobody said."""
        host = self.url or self.callback_service_name.rstrip("/")
        return host if not host or "://" in host else f"http://{host}"


@dataclass(frozen=True)
class RayClusterSettings:
    """How RayClusters are reconciled."""

    requeue_seconds: int = 300
    """Each cluster is looked at this often though nothing happened, give or take a tenth; with 0, never
    (`RAYCLUSTER_DEFAULT_REQUEUE_SECONDS_ENV`)."""
    head_service_has_ip: bool = False
    """The head Service gets a cluster IP instead of being headless (`ENABLE_RAY_HEAD_CLUSTER_IP_SERVICE`)."""
    may_shrink_autoscaled_groups: bool = False
    """Surplus pods go though the autoscaler did not name them (`ENABLE_RANDOM_POD_DELETE`)."""
    cleans_up_redis: bool = True
    """Deleting a cluster with Redis fault tolerance empties its part of Redis (`ENABLE_GCS_FT_REDIS_CLEANUP`)."""
    uses_ingress_on_openshift: bool = False
    """An Ingress is made also where Routes are served (`USE_INGRESS_ON_OPENSHIFT`)."""


@dataclass(frozen=True)
class RayJobSettings:
    """How RayJobs are reconciled."""

    transition_grace_seconds: int = 300
    """A finished job has this long to be seen as such (`RAYJOB_DEPLOYMENT_STATUS_TRANSITION_GRACE_PERIOD_SECONDS`)."""
    status_check_timeout_seconds: int = 300
    """A job whose head does not answer for this long has failed (`RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS`)."""
    deletes_finished: bool = False
    """The RayJob goes with its cluster (`DELETE_RAYJOB_CR_AFTER_JOB_FINISHES`, file `deleteRayJobAfterJobFinishes`)."""
    submitter_image: str = ""
    """Image with the program `/submitter` for RayJobs without a `submitterPodTemplate` (`RAYKEEPER_SUBMITTER_IMAGE`);
    when empty the head's own."""


@dataclass(frozen=True)
class RayServiceSettings:
    """How RayServices are reconciled."""

    has_zero_downtime: bool = True
    """Unless it says otherwise, a changed RayService gets its new cluster first (`ENABLE_ZERO_DOWNTIME`)."""


@dataclass(frozen=True)
class OperatorSettings:
    """Everything that can be set, in groups."""

    logs: LogSettings = field(default_factory=LogSettings)
    """Log lines; the level is `--zap-log-level` or the variable `RAYKEEPER_LOG_LEVEL`."""
    serving: ServingSettings = field(default_factory=lambda: ServingSettings(":8080", ":8082"))
    """Listeners (`--metrics-addr`, `--health-probe-bind-address`; file `metricsAddr`, `probeAddr`)."""
    client: ClientSettings = field(default_factory=ClientSettings)
    """The API server."""
    leadership: LeadershipSettings = field(default_factory=LeadershipSettings)
    """Replicas and namespaces."""
    gates: FeatureGates = field(default_factory=FeatureGates)
    """Features switched on and off (`--feature-gates`)."""
    reconcile_concurrency: int = 16
    """Objects of a kind reconciled at once (`--reconcile-concurrency`, file `reconcileConcurrency`); 0 means 16. Those
    of one namespace that take longer than a second do not keep other namespaces waiting."""
    has_object_metrics: bool = False
    """Serve the kuberay_* metrics about Ray objects (`--enable-metrics`, file `enableMetrics`)."""
    batch_scheduler: str = ""
    """What starts the pods of a cluster together (`--batch-scheduler`, file `batchScheduler`); none when empty."""
    pods: PodSettings = field(default_factory=PodSettings)
    """Ray pods."""
    history: HistorySettings = field(default_factory=HistorySettings)
    """History by annotation."""
    raycluster: RayClusterSettings = field(default_factory=RayClusterSettings)
    """RayClusters."""
    rayjob: RayJobSettings = field(default_factory=RayJobSettings)
    """RayJobs."""
    rayservice: RayServiceSettings = field(default_factory=RayServiceSettings)
    """RayServices."""
    ignored: tuple[str, ...] = ()
    """Flags that were given and have no effect; they are named in a warning at start."""
