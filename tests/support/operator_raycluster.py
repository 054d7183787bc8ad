"""Clusters and pods for tests, in the words of the tests: `a_cluster(workers=3)`, `a_worker("a", ready=False)`."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from raykeeper.api import labels
from raykeeper.api.meta import ObjectMeta
from raykeeper.api.raycluster import RayCluster, RayClusterSpec, RayClusterStatus
from raykeeper.operator.raycluster.pod import Pod

NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)
TEMPLATE = {"spec": {"containers": [{"name": "ray", "image": "rayproject/ray:2.60.0"}]}}


def a_group(name: str = "small", replicas: int = 0, **fields: Any) -> dict[str, Any]:
    return {"groupName": name, "replicas": replicas, "template": TEMPLATE, **fields}


def a_cluster(
    *groups: dict[str, Any],
    annotations: dict[str, str] | None = None,
    labels: dict[str, str] | None = None,
    status: dict[str, Any] | None = None,
    **spec: Any,
) -> RayCluster:
    body = {"headGroupSpec": {"template": TEMPLATE}, "workerGroupSpecs": list(groups), **spec}
    meta = ObjectMeta(name="cluster", namespace="n", uid="u", generation=1)
    return RayCluster(
        msgspec.structs.replace(meta, annotations=annotations or {}, labels=labels or {}),
        msgspec.convert(body, RayClusterSpec),
        msgspec.convert(status or {}, RayClusterStatus),
    )


def a_pod(name: str, group: str, node_type: str, *, age: float = 3600, ready: bool = True, **fields: Any) -> Pod:
    pod = Pod(
        name=name,
        uid=f"uid-{name}",
        labels={
            labels.CLUSTER: "cluster",
            labels.GROUP: group,
            labels.NODE_TYPE: node_type,
            **fields.pop("labels", {}),
        },
        annotations=fields.pop("annotations", {}),
        created=NOW - timedelta(seconds=age),
        ends=None,
        phase="Running",
        ip="10.0.0.1",
        is_ready=ready,
        is_unready=not ready,
        ready_reason="",
        ready_message="",
        has_ended=fields.pop("ended", False),
        has_autoscaler=False,
        seems_running=True,
    )
    return replace(pod, **fields)


def a_head(name: str = "head", **fields: Any) -> Pod:
    return a_pod(name, labels.HEAD_GROUP, labels.HEAD, **fields)


def a_worker(name: str, group: str = "small", **fields: Any) -> Pod:
    return a_pod(name, group, labels.WORKER, **fields)


def a_host(replica: str, host: int, index: int = 0, group: str = "tpu", **fields: Any) -> Pod:
    """A pod of a multi-host replica."""
    more = {labels.REPLICA_NAME: replica, labels.REPLICA_INDEX: str(index), labels.REPLICA_HOST_INDEX: str(host)}
    return a_worker(f"{replica}-{host}", group, labels=more, **fields)
