"""The pods of a cluster as those see them who wait for its head. Pure."""

from __future__ import annotations

from typing import Final

import msgspec

from raykeeper.api import containers, labels
from raykeeper.api.meta import JSON, Object
from raykeeper.api.raycluster import INVALID, REPLICA_FAILURE, RayCluster
from raykeeper.operator.shared.troubles import Trouble

BESIDE_RAY: Final = frozenset({containers.AUTOSCALER, containers.JOB_SUBMITTER, containers.HISTORY_COLLECTOR})
"""Containers that the operator adds to a head pod."""
ENDED: Final = ("Failed", "Succeeded")


def pod_view(item: Object) -> JSON:
    """A cached pod, as far as its state and who it is go."""
    metadata = item.metadata
    return {
        "metadata": {
            "name": metadata.name,
            "uid": metadata.uid,
            "labels": metadata.labels,
            "creationTimestamp": metadata.creation_timestamp,
        },
        "status": msgspec.json.decode(item.status or b"{}"),
    }


def head_pod(pods: list[JSON], known: str = "") -> JSON | None:
    """The head whose instance is known, while it is there; else the latest."""
    heads = [pod for pod in pods if pod["metadata"]["labels"].get(labels.NODE_TYPE) == labels.HEAD]
    heads.sort(key=lambda pod: (known.startswith(pod["metadata"]["uid"]), pod["metadata"]["creationTimestamp"]))
    return heads[-1] if heads else None


def head_instance(pod: JSON | None) -> str:
    """Which start of which head this is; empty for one that has ended."""
    if pod is None or pod["status"].get("phase") in ENDED:
        return ""
    statuses = pod["status"].get("containerStatuses") or []
    # Containers of a template come first and keep their order; the first one runs Ray.
    restarts = [status.get("restartCount", 0) for status in statuses if status["name"] not in BESIDE_RAY]
    return f"{pod['metadata']['uid']}/{restarts[0] if restarts else 0}"


def is_ready(pod: JSON) -> bool:
    """Whether the kubelet says that the pod takes requests."""
    conditions = pod["status"].get("conditions") or []
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def cluster_trouble(cluster: RayCluster) -> Trouble | None:
    """What the cluster itself says: an invalid spec, quota, a child that was refused."""
    for condition in cluster.status.conditions:
        if condition.type in (INVALID, REPLICA_FAILURE) and condition.status == "True":
            return Trouble(condition.reason, f"RayCluster {cluster.metadata.name}: {condition.message}")
    return None
