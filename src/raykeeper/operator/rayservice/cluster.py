"""The RayClusters that a RayService makes. Pure."""

from __future__ import annotations

import copy

from raykeeper.api import labels
from raykeeper.api.meta import JSON
from raykeeper.api.raycluster import RAY_CLUSTERS
from raykeeper.api.rayservice import RAY_SERVICES, RayService
from raykeeper.operator.rayservice.versions import Marks
from raykeeper.operator.shared.children.metadata import NOT_FOR_CHILDREN
from raykeeper.operator.shared.owner import Owner


def desired_cluster(
    service: RayService, name: str, cluster_spec: JSON, marks: Marks, *, starts_small: bool = False
) -> JSON:
    """The cluster of the present spec. `cluster_spec` is the spec as the user wrote it, unknown fields and all.

    `starts_small`: it gets its traffic step by step, so its autoscaler begins with the fewest workers.
    """
    given = {key: value for key, value in service.metadata.annotations.items() if key not in NOT_FOR_CHILDREN}
    metadata: JSON = {
        "name": name,
        "namespace": service.metadata.namespace,
        "labels": {
            **service.metadata.labels,
            labels.ORIGINATED_FROM_CR_NAME: service.metadata.name,
            labels.ORIGINATED_FROM_CRD: RAY_SERVICES.kind,
        },
        "annotations": {**given, **marks.annotations()},
        "ownerReferences": [Owner.of(service).reference()],
    }
    spec = copy.deepcopy(cluster_spec)
    for group in (spec.get("workerGroupSpecs") or []) if starts_small else ():
        group.pop("replicas", None)
    return {"apiVersion": RAY_CLUSTERS.api_version, "kind": RAY_CLUSTERS.kind, "metadata": metadata, "spec": spec}


def appending_patch(stored: JSON, cluster_spec: JSON, marks: Marks, resource_version: str) -> JSON:
    """Adds the worker groups that the spec has in addition. Those that are there stay as the autoscaler left them."""
    present = stored.get("workerGroupSpecs") or []
    appended = copy.deepcopy((cluster_spec.get("workerGroupSpecs") or [])[len(present) :])
    return {
        "metadata": {"resourceVersion": resource_version, "annotations": marks.annotations()},
        "spec": {"workerGroupSpecs": [*present, *appended]},
    }
