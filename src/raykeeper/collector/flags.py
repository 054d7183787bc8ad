"""The collector's flags: KubeRay's, ours, and other spellings. Cheap to import, since `--help` shows them."""

from __future__ import annotations

from raykeeper.settings.flags import Flag, other_spelling
from raykeeper.settings.log_flags import LOG_FLAGS
from raykeeper.settings.values import parse_switch

_KUBERAY = (
    Flag(
        "role",
        "Role of this Ray node: head or worker. The head's collector also records the session and polls the "
        "dashboard. Default with --once: head.",
        default="worker",
        variable="RAY_ROLE",
    ),
    Flag(
        "storage-backend",
        "Kind of store the history goes to: s3, gcs, azureblob, aliyunoss or local.",
        variable="STORAGE_BACKEND",
    ),
    Flag(
        "storage-backend-config-path",
        "JSON file with the settings of the store; variables take precedence.",
        variable="STORAGE_BACKEND_CONFIG_PATH",
    ),
    Flag("storage-root-dir", "Prefix of all keys inside the bucket.", variable="STORAGE_ROOT_DIR"),
    Flag("ray-cluster-name", "Name of the Ray cluster. Required.", variable="RAY_CLUSTER_NAME"),
    Flag(
        "ray-cluster-namespace",
        "Namespace of the Ray cluster; `local` outside Kubernetes.",
        default="default",
        variable="RAY_CLUSTER_NAMESPACE",
    ),
    Flag("owner-kind", "What the cluster was made for: rayjob or rayservice.", variable="OWNER_KIND"),
    Flag("owner-name", "Name of that RayJob or RayService.", variable="OWNER_NAME"),
    Flag(
        "enable-event-collector",
        "Receive Ray's events.",
        parse=parse_switch,
        default="true",
        variable="ENABLE_EVENT_COLLECTOR",
    ),
    Flag(
        "enable-log-collector",
        "Ship Ray's log files, and on the head poll the dashboard.",
        parse=parse_switch,
        default="true",
        variable="ENABLE_LOG_COLLECTOR",
    ),
    Flag("events-port", "Port to which Ray sends events; 0 for a free one.", default="8084", variable="EVENTS_PORT"),
    Flag(
        "ray-dashboard-address",
        "Where the head's collector finds the dashboard.",
        default="http://localhost:8265",
        variable="RAY_DASHBOARD_ADDRESS",
    ),
    Flag(
        "event-data-dir",
        "Folder that keeps events until the bucket has them. Default: `event-data` in --ray-tmp-root.",
        variable="RAY_COLLECTOR_EVENT_DATA_DIR",
    ),
    Flag(
        "event-rotation-interval",
        "Upper bound for --seal-age and --idle-seal-age.",
        default="5m",
        variable="RAY_COLLECTOR_EVENT_ROTATION_INTERVAL",
    ),
    Flag(
        "event-max-file-size-mb",
        "Upper bound for --seal-size-mb.",
        default="100",
        variable="RAY_COLLECTOR_EVENT_MAX_FILE_SIZE_MB",
    ),
    Flag(
        "event-max-disk-mb",
        "MB of events kept on disk; when it is full, Ray gets a 503 and retries.",
        default="200",
        variable="RAY_COLLECTOR_EVENT_MAX_DISK_MB",
    ),
)

_WITHOUT_EFFECT = (
    Flag(
        "event-compression-enabled",
        "Accepted and ignored: events are always compressed.",
        parse=parse_switch,
        variable="RAY_COLLECTOR_EVENT_COMPRESSION_ENABLED",
    ),
    Flag("log-batching", "Accepted and ignored, as KubeRay does.", variable="LOG_BATCHING"),
    Flag("push-interval", "Accepted and ignored, as KubeRay does.", variable="PUSH_INTERVAL"),
)

_OURS = (
    Flag(
        "store-url",
        "Where the history goes, instead of the --storage flags: s3://bucket/prefix, gs://, azblob://, oss:// or "
        "file:///folder.",
        variable="RAYKEEPER_STORE_URL",
    ),
    Flag(
        "events-bind",
        "IP addresses to receive events on, separated by commas; only the first one must exist.",
        default="127.0.0.1,::1",
        variable="RAYKEEPER_EVENTS_BIND",
    ),
    Flag(
        "metrics-addr",
        "Where `/metrics` and `/healthz` are served: host:port, :port for all interfaces, or 0.",
        default=":8085",
        variable="RAYKEEPER_METRICS_ADDR",
    ),
    Flag(
        "enable-resource-collector",
        "Sample the CPU, memory, GPUs, object store, disk and network of the node every ten seconds.",
        parse=parse_switch,
        default="true",
        variable="ENABLE_RESOURCE_COLLECTOR",
    ),
    Flag("ray-tmp-root", "Folder of Ray's sessions.", default="/tmp/ray", variable="RAY_TMP_ROOT"),  # noqa: S108 - Ray's
    Flag(
        "poll-interval",
        "Time between two polls of the dashboard.",
        default="30s",
        variable="RAY_COLLECTOR_POLL_INTERVAL",
    ),
    Flag(
        "additional-endpoints",
        "Further paths of the dashboard to poll and store, separated by commas.",
        variable="RAY_COLLECTOR_ADDITIONAL_ENDPOINTS",
    ),
    Flag(
        "seal-age",
        "Maximum age of buffered events under load. This is how much a lost disk can cost.",
        default="5s",
        variable="RAYKEEPER_SEAL_AGE",
    ),
    Flag(
        "idle-seal-age",
        "Maximum age of buffered events on an idle cluster, where small objects would fill the bucket.",
        default="90s",
        variable="RAYKEEPER_IDLE_SEAL_AGE",
    ),
    Flag(
        "seal-size-mb",
        "MB of buffered events that are uploaded at once, whatever their age; at most 32.",
        default="8",
        variable="RAYKEEPER_SEAL_SIZE_MB",
    ),
    Flag(
        "user-log-interval",
        "Time between two reads of user output.",
        default="5s",
        variable="RAYKEEPER_USER_LOG_INTERVAL",
    ),
    Flag(
        "component-log-interval",
        "Time between two reads of Ray's own logs.",
        default="1m",
        variable="RAYKEEPER_COMPONENT_LOG_INTERVAL",
    ),
    Flag(
        "held-log-mb",
        "MB of deleted log files to hold until they are shipped; the rest is lost, and counted.",
        default="512",
        variable="RAYKEEPER_HELD_LOG_MB",
    ),
    Flag(
        "grace-period",
        "Time to upload the rest after SIGTERM; must be shorter than the pod's grace period.",
        default="25s",
        variable="RAYKEEPER_GRACE_PERIOD",
    ),
    Flag(
        "once",
        "Capture what the dashboard and the log folder still hold, then end: for a cluster that had no collector.",
        parse=parse_switch,
    ),
    *LOG_FLAGS,
)


_OTHER_SPELLINGS = (
    other_spelling("runtime-class-name", "storage-backend"),
    other_spelling("runtime-class-config-path", "storage-backend-config-path"),
    other_spelling("ray-root-dir", "storage-root-dir", "RAY_ROOT_DIR"),
    other_spelling("ray-cluster-id", "ray-cluster-namespace"),
    other_spelling("zap-log-level", "log-level"),
)
"""How KubeRay before 1.7 and Alibaba's ACK call the same, and how the operator calls its log level."""

FLAGS = (*_KUBERAY, *_OURS, *_OTHER_SPELLINGS, *_WITHOUT_EFFECT)

WITHOUT_EFFECT = tuple(flag.name for flag in _WITHOUT_EFFECT)
"""Flags that are accepted so that existing command lines keep working."""
