"""What the children of a RayCluster say about themselves."""

from __future__ import annotations

from raykeeper.api import labels
from raykeeper.api.raycluster import RayCluster


def common_labels(cluster: RayCluster) -> dict[str, str]:
    """What every child of a cluster but a few says about itself."""
    return {
        labels.CLUSTER: cluster.metadata.name,
        labels.APP_NAME: labels.APP_NAME_KUBERAY,
        labels.CREATED_BY: labels.CREATED_BY_KUBERAY_OPERATOR,
    }
