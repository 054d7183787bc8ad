"""Clusters as RayClusters and back."""

from __future__ import annotations

from collections.abc import Sequence

from raykeeper.api.labels import ENABLE_SERVE_SERVICE
from raykeeper.api.meta import JSON
from raykeeper.apiserver.protos.cluster_pb2 import Cluster
from raykeeper.apiserver.translate.events import cluster_events
from raykeeper.apiserver.translate.metadata import (
    CLUSTER_NAME,
    CREATION_TIMESTAMP,
    ENVIRONMENT,
    USER,
    VERSION,
    common_labels,
    own_labels,
)
from raykeeper.apiserver.translate.moments import to_timestamp
from raykeeper.apiserver.translate.specs import Templates, from_cluster_spec, to_cluster_spec


def to_ray_cluster(cluster: Cluster, templates: Templates, now: str) -> JSON:
    """The RayCluster to create. Raises `Untranslatable`."""
    serves = cluster.annotations.get(ENABLE_SERVE_SERVICE) == "true"
    labels = {
        **dict(cluster.labels),
        **common_labels(cluster.user),
        CLUSTER_NAME: cluster.name,
        VERSION: cluster.version,
        ENVIRONMENT: _environment_name(cluster.environment),
    }
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {
            "name": cluster.name,
            "namespace": cluster.namespace,
            "labels": labels,
            "annotations": {**dict(cluster.annotations), CREATION_TIMESTAMP: now},
        },
        "spec": to_cluster_spec(cluster.cluster_spec, cluster.version, templates, cluster.envs, serves=serves),
    }


def _environment_name(number: int) -> str:
    """The name, or the number where there is none, as Go prints an enum."""
    known = number in Cluster.Environment.values()
    return Cluster.Environment.Name(number) if known else str(number)


def from_ray_cluster(cluster: JSON, events: Sequence[JSON]) -> Cluster:
    """The cluster in a RayCluster, with its Events."""
    metadata, status = cluster.get("metadata") or {}, cluster.get("status") or {}
    labels = metadata.get("labels") or {}
    environment = labels.get(ENVIRONMENT, "")
    return Cluster(
        name=metadata.get("name"),
        namespace=metadata.get("namespace"),
        version=labels.get(VERSION),
        user=labels.get(USER),
        environment=environment if environment in Cluster.Environment.keys() else Cluster.DEV,  # noqa: SIM118 - no dict
        created_at=to_timestamp(metadata.get("creationTimestamp")),
        cluster_state=status.get("state"),
        annotations=metadata.get("annotations"),
        cluster_spec=from_cluster_spec(cluster.get("spec") or {}),
        events=cluster_events(labels.get(CLUSTER_NAME, ""), events),
        service_endpoint=status.get("endpoints"),
        labels=own_labels(labels),
    )
