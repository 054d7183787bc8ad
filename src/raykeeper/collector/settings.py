"""Everything about the collector that can be set, in one frozen value that `main.py` reads once and hands down."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from raykeeper.api.containers import COLLECTOR_EVENTS_PORT, COLLECTOR_SPOOL_FOLDER, DASHBOARD_PORT, RAY_LOGS_PATH
from raykeeper.layout.records import Role
from raykeeper.logs import LogSettings
from raykeeper.settings.values import MIB

OwnerKind = Literal["RayJob", "RayService"]

MAX_SEAL_BYTES = 32 * MIB
"""What is sealed is read whole, with one body of Ray's more: together they must stay below the sidecar's memory."""


@dataclass(frozen=True)
class ClusterSettings:
    """Whose history it is."""

    name: str
    """The Ray cluster (`--ray-cluster-name`, `RAY_CLUSTER_NAME`). Required: it is part of every key."""
    namespace: str = "default"
    """Its namespace (`--ray-cluster-namespace`, `RAY_CLUSTER_NAMESPACE`); `local` outside Kubernetes."""
    owner_kind: OwnerKind | None = None
    """What it was made for (`--owner-kind`, `OWNER_KIND`); None where it stands alone."""
    owner_name: str = ""
    """Name of that owner (`--owner-name`, `OWNER_NAME`); given together with its kind."""
    uid: str = ""
    """Uid of the RayCluster, for the record (`RAY_CLUSTER_UID`); empty where nobody says, as outside Kubernetes."""


@dataclass(frozen=True)
class BucketSettings:
    """Where the history goes, as the user said it: either a URL, or a backend with the rest. `storage/` reads it."""

    url: str = ""
    """The whole place in one (`--store-url`, `RAYKEEPER_STORE_URL`); then the other fields are empty."""
    backend: str = ""
    """Kind of store in lower case (`--storage-backend`, `STORAGE_BACKEND`)."""
    root_dir: str = ""
    """Prefix of all keys (`--storage-root-dir`, `STORAGE_ROOT_DIR`)."""
    config_file: Path | None = None
    """JSON file of KubeRay's (`--storage-backend-config-path`, `STORAGE_BACKEND_CONFIG_PATH`)."""


@dataclass(frozen=True)
class NodeSettings:
    """The Ray node beside the collector."""

    role: Role = "worker"
    """Head or worker (`--role`, `RAY_ROLE`). The head's collector writes about the session and asks the dashboard."""
    ray_tmp_root: Path = Path(RAY_LOGS_PATH)
    """Folder of Ray's sessions (`--ray-tmp-root`, `RAY_TMP_ROOT`)."""
    pod_name: str = ""
    """For the record (`POD_NAME`, `HOSTNAME`); empty where nobody says."""
    pod_ip: str = ""
    """For the record (`POD_IP`); not required, because the node is known by its session folder and its events."""


@dataclass(frozen=True)
class SinkSettings:
    """Where Ray sends its events."""

    is_on: bool = True
    """Receive events at all (`--enable-event-collector`, `ENABLE_EVENT_COLLECTOR`)."""
    hosts: tuple[str, ...] = ("127.0.0.1", "::1")
    """Addresses to listen at (`--events-bind`, `RAYKEEPER_EVENTS_BIND`). Loopback, so that no other pod can invent
    events; both families, because Ray sends to `localhost`. The first must be there, others may be missing."""
    port: int = COLLECTOR_EVENTS_PORT
    """(`--events-port`, `EVENTS_PORT`); 0 means a free one."""


@dataclass(frozen=True)
class SpoolSettings:
    """How events wait on disk for the bucket."""

    folder: Path = Path(RAY_LOGS_PATH, COLLECTOR_SPOOL_FOLDER)
    """(`--event-data-dir`, `RAY_COLLECTOR_EVENT_DATA_DIR`); unlike KubeRay's, its default follows `ray_tmp_root`. The
    operator names a folder on a volume of the collector's own."""
    seal_seconds: float = 5.0
    """Age of a segment at which it is sealed under load (`--seal-age`, at most `--event-rotation-interval`): what is
    lost when the pod and its disk go at once."""
    idle_seal_seconds: float = 90.0
    """The same while few events come (`--idle-seal-age`, at most `--event-rotation-interval`): 40 objects an hour."""
    seal_bytes: int = 8 * MIB
    """Size at which a segment is sealed (`--seal-size-mb`, at most `--event-max-file-size-mb` and a quarter of
    `max_bytes`, so that one fills while others are sent)."""
    max_bytes: int = 200 * MIB
    """Above this, new events are refused with 503 (`--event-max-disk-mb`, `RAY_COLLECTOR_EVENT_MAX_DISK_MB`); protects
    the Ray pod's disk."""


@dataclass(frozen=True)
class LogFileSettings:
    """How Ray's log files are shipped."""

    is_on: bool = True
    """Ship them at all, and ask the dashboard (`--enable-log-collector`, `ENABLE_LOG_COLLECTOR`), as in KubeRay."""
    user_seconds: float = 5.0
    """Between two looks at the output of users' code (`--user-log-interval`): it should be readable within 10 s."""
    component_seconds: float = 60.0
    """Between two looks at Ray's own logs (`--component-log-interval`): nobody waits for them, and objects cost."""
    max_held_bytes: int = 512 * MIB
    """Bytes of deleted files kept open until they are shipped (`--held-log-mb`); beyond that they are given up and
    counted. One of Ray's files at its default size of rotation."""


@dataclass(frozen=True)
class SampleSettings:
    """What the node uses, every ten seconds."""

    is_on: bool = True
    """Take samples at all (`--enable-resource-collector`, `ENABLE_RESOURCE_COLLECTOR`)."""


@dataclass(frozen=True)
class RayTokenSettings:
    """What the collector shows a dashboard that asks for tokens."""

    mode: str = ""
    """Ray's mode (`RAY_AUTH_MODE`); `token` without a token stops the collector at start."""
    token: str = field(default="", repr=False)
    """The token itself (`RAY_AUTH_TOKEN`); used whenever it is there, whatever the mode, as in KubeRay."""
    token_file: Path | None = None
    """File to read at every request instead (`RAY_ENABLE_K8S_TOKEN_AUTH`, else `RAY_AUTH_TOKEN_PATH`): Kubernetes
    renews a projected token. Where it is set, `token` is empty."""


@dataclass(frozen=True)
class HeadSettings:
    """The Ray head, which only its own collector asks."""

    dashboard_address: str = f"http://localhost:{DASHBOARD_PORT}"
    """Base URL of the dashboard (`--ray-dashboard-address`, `RAY_DASHBOARD_ADDRESS`), without a slash at its end."""
    head_address: str = ""
    """Base URL made of `FQ_RAY_IP` and `RAY_DASHBOARD_PORT`; empty where not given. Nothing here needs it."""
    poll_seconds: float = 30.0
    """Between two looks at the dashboard (`--poll-interval`, `RAY_COLLECTOR_POLL_INTERVAL`)."""
    additional_endpoints: tuple[str, ...] = ()
    """Further paths to ask, with their query (`--additional-endpoints`, `RAY_COLLECTOR_ADDITIONAL_ENDPOINTS`)."""
    auth: RayTokenSettings = field(default_factory=RayTokenSettings)
    """Tokens."""


@dataclass(frozen=True)
class CollectorSettings:
    """Everything that can be set, in groups."""

    cluster: ClusterSettings
    """Whose history it is."""
    bucket: BucketSettings
    """Where the history goes."""
    node: NodeSettings = field(default_factory=NodeSettings)
    """The Ray node beside it."""
    sink: SinkSettings = field(default_factory=SinkSettings)
    """Where Ray sends its events."""
    spool: SpoolSettings = field(default_factory=SpoolSettings)
    """Events on disk."""
    log_files: LogFileSettings = field(default_factory=LogFileSettings)
    """Ray's log files."""
    samples: SampleSettings = field(default_factory=SampleSettings)
    """Resource samples."""
    head: HeadSettings = field(default_factory=HeadSettings)
    """The dashboard."""
    metrics_address: str = ":8085"
    """Where `/metrics` and `/healthz` are served (`--metrics-addr`, `RAYKEEPER_METRICS_ADDR`): read-only, so any
    interface may ask; 0 for nowhere. Where the default is taken, a warning says so and it goes on without."""
    grace_seconds: float = 25.0
    """For shipping the rest after SIGTERM (`--grace-period`, `RAYKEEPER_GRACE_PERIOD`); the kubelet kills at 30 s
    unless the pod says otherwise."""
    runs_once: bool = False
    """Capture what is there and end (`--once`)."""
    logs: LogSettings = field(default_factory=LogSettings)
    """The collector's own log lines; the level is `--log-level` or the variable `RAYKEEPER_LOG_LEVEL`."""
    ignored: tuple[str, ...] = ()
    """Flags and variables that were given and have no effect; they are named in a warning at start."""

    @property
    def polls_head(self) -> bool:
        """Whether this collector asks the dashboard: the head's does, unless it ships no logs either."""
        return self.node.role == "head" and self.log_files.is_on
