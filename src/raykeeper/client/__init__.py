"""A client of Ray on Kubernetes: manifests, objects, and waiting that says why. docs/client.md has examples.

Importing this opens nothing and imports no program; what talks to Kubernetes is imported with the first client.
"""

from raykeeper.client.async_client import AsyncClient, Changed
from raykeeper.client.diagnosis import ConditionSeen, Diagnosis, EventSeen, Health, PodSeen
from raykeeper.client.errors import WaitError, WaitFailed, WaitTimedOut
from raykeeper.client.history import NoHistory
from raykeeper.client.manifests import (
    Head,
    InvalidManifest,
    WorkerGroup,
    check_manifest,
    cluster_spec,
    ray_cluster,
    ray_cron_job,
    ray_job,
    ray_service,
)
from raykeeper.client.sync_client import Client
from raykeeper.errors import RaykeeperError, Unavailable
from raykeeper.kube.errors import AlreadyExists, ApiError, Conflict, Forbidden, Invalid, NotFound, Unauthorized

__all__ = [
    "AlreadyExists",
    "ApiError",
    "AsyncClient",
    "Changed",
    "Client",
    "ConditionSeen",
    "Conflict",
    "Diagnosis",
    "EventSeen",
    "Forbidden",
    "Head",
    "Health",
    "Invalid",
    "InvalidManifest",
    "NoHistory",
    "NotFound",
    "PodSeen",
    "RaykeeperError",
    "Unauthorized",
    "Unavailable",
    "WaitError",
    "WaitFailed",
    "WaitTimedOut",
    "WorkerGroup",
    "check_manifest",
    "cluster_spec",
    "ray_cluster",
    "ray_cron_job",
    "ray_job",
    "ray_service",
]
