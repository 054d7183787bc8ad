"""The pods of a cluster as those see them who wait for its head. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from raykeeper.api import labels
from raykeeper.api.meta import JSON, Object
from raykeeper.api.raycluster import INVALID, REPLICA_FAILURE, SCHEDULED, RayCluster
from raykeeper.operator.shared.troubles import Trouble

ENDED: Final = ("Failed", "Succeeded")


class _Container(msgspec.Struct, gc=False):
    name: str = ""


class _Spec(msgspec.Struct, gc=False):
    containers: tuple[_Container, ...] = ()


_read_spec = msgspec.json.Decoder(_Spec).decode


def pod_view(item: Object) -> JSON:
    """A cached pod, as far as its state and who it is go; `ray` is the container that runs Ray, the first."""
    metadata = item.metadata
    return {
        "metadata": {
            "name": metadata.name,
            "uid": metadata.uid,
            "labels": metadata.labels,
            "creationTimestamp": metadata.creation_timestamp,
        },
        "ray": next((one.name for one in _read_spec(item.spec or b"{}").containers), ""),
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
    statuses = pod["status"].get("containerStatuses") or []  # sorted by name
    restarts = next((status.get("restartCount", 0) for status in statuses if status["name"] == pod["ray"]), 0)
    return f"{pod['metadata']['uid']}/{restarts}"


def is_ready(pod: JSON) -> bool:
    """Whether the kubelet says that the pod takes requests."""
    conditions = pod["status"].get("conditions") or []
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def is_unready(pod: JSON) -> bool:
    """Whether somebody says that the pod takes no requests; a pod of which nobody said anything may take some."""
    conditions = pod["status"].get("conditions") or []
    return any(one["type"] == "Ready" and one["status"] != "True" for one in conditions)


def cluster_refusal(cluster: RayCluster) -> Trouble | None:
    """What the cluster itself says that it lacks: an invalid spec, quota, a child that was refused."""
    return _told(cluster, {INVALID: "True", REPLICA_FAILURE: "True"})


def cluster_trouble(cluster: RayCluster) -> Trouble | None:
    """The same, else what its batch scheduler lets its pods wait for."""
    return cluster_refusal(cluster) or _told(cluster, {SCHEDULED: "False"})


def _told(cluster: RayCluster, bad: Mapping[str, str]) -> Trouble | None:
    """The first condition that has the status which is bad for its type."""
    for condition in cluster.status.conditions:
        if bad.get(condition.type) == condition.status:
            return Trouble(condition.reason, f"RayCluster {cluster.metadata.name}: {condition.message}")
    return None
