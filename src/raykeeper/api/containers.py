"""Names of containers and volumes inside Ray pods, and the ports Ray listens on: all of them are interface."""

from __future__ import annotations

from typing import Final

RAY_CONTAINER_INDEX: Final = 0
"""The first container of a pod template is the one that runs Ray."""

# Containers and init containers.
AUTOSCALER: Final = "autoscaler"
JOB_SUBMITTER: Final = "ray-job-submitter"
HISTORY_COLLECTOR: Final = "ray-history-collector"
COLLECTOR_PROGRAM: Final = "collector"
"""What runs in it, as users write it who add one by hand."""
WAIT_GCS_READY: Final = "wait-gcs-ready"
WAIT_FOR_TLS_IP_SAN: Final = "wait-for-tls-ip-san"

# Volumes and where they are mounted.
SHARED_MEMORY_VOLUME: Final = "shared-mem"
SHARED_MEMORY_PATH: Final = "/dev/shm"  # noqa: S108 - the path inside the Ray container that Ray's object store uses
RAY_LOGS_VOLUME: Final = "ray-logs"
RAY_LOGS_PATH: Final = "/tmp/ray"  # noqa: S108 - where Ray writes its sessions
COLLECTOR_SPOOL_VOLUME: Final = "ray-history-spool"
COLLECTOR_SPOOL_PATH: Final = "/var/lib/raykeeper"
COLLECTOR_SPOOL_FOLDER: Final = "event-data"
"""The spool itself, below its volume or Ray's folder: a volume's own folder belongs to root."""
RAY_TOKEN_VOLUME: Final = "ray-token"  # noqa: S105 - the name of a volume
RAY_TOKEN_PATH: Final = "/var/run/secrets/ray.io/serviceaccount"  # noqa: S105 - a path
RAY_TLS_VOLUME: Final = "ray-tls"
RAY_TLS_PATH: Final = "/etc/ray/tls"
GCS_STORAGE_VOLUME: Final = "gcs-storage"
GCS_STORAGE_PATH: Final = "/data/gcs"

# Names of container ports and of the service ports made from them, with their defaults.
CLIENT_PORT_NAME: Final = "client"
GCS_SERVER_PORT_NAME: Final = "gcs-server"
DASHBOARD_PORT_NAME: Final = "dashboard"
METRICS_PORT_NAME: Final = "metrics"
SERVE_PORT_NAME: Final = "serve"
CLIENT_PORT: Final = 10001
GCS_SERVER_PORT: Final = 6379
DASHBOARD_PORT: Final = 8265
METRICS_PORT: Final = 8080
SERVE_PORT: Final = 8000
DASHBOARD_AGENT_PORT: Final = 52365
COLLECTOR_EVENTS_PORT: Final = 8084
GATEWAY_LISTENER_PORT: Final = 80

# Keys of the Secret that holds a cluster's token.
AUTH_TOKEN_KEY: Final = "auth_token"  # noqa: S105 - the name of the key, not a token
