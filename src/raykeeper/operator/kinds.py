"""The kinds the operator watches. Label selectors are KubeRay's: other people's pods and Jobs are never sent to us."""

from __future__ import annotations

from typing import Final

from raykeeper.api.labels import (
    CLUSTER,
    CREATED_BY,
    CREATED_BY_KUBERAY_OPERATOR,
    HEAD,
    NODE_TYPE,
    REDIS_CLEANUP,
    WORKER,
)
from raykeeper.api.meta import Object
from raykeeper.api.raycluster import RAY_CLUSTERS
from raykeeper.kube.informers.cache import by_controller, by_label
from raykeeper.kube.resources import JOBS, PODS
from raykeeper.operator.watches import WatchedKind

BY_CLUSTER: Final = "cluster"
"""Index: `namespace/name` of the RayCluster in the label ray.io/cluster."""
BY_OWNER: Final = "owner"
"""Index: uid of the controlling owner."""

WATCHED_RAYCLUSTERS: Final[WatchedKind[Object]] = WatchedKind(RAY_CLUSTERS)
WATCHED_PODS: Final[WatchedKind[Object]] = WatchedKind(
    PODS,
    labels=f"{NODE_TYPE} in ({HEAD},{WORKER},{REDIS_CLEANUP})",
    indexes={BY_CLUSTER: by_label(CLUSTER)},
)
WATCHED_JOBS: Final[WatchedKind[Object]] = WatchedKind(
    JOBS,
    labels=f"{CREATED_BY}={CREATED_BY_KUBERAY_OPERATOR}",
    indexes={BY_OWNER: by_controller},
)
