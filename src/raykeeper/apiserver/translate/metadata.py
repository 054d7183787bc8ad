"""Labels and annotations by which KubeRay's API server knows its own objects: all of them are interface."""

from __future__ import annotations

from typing import Final

from raykeeper.api.labels import APP_NAME, APP_NAME_KUBERAY

MANAGED_BY: Final = "app.kubernetes.io/managed-by"
COMPONENT: Final = "kuberay-apiserver"
OURS: Final = {MANAGED_BY: COMPONENT}
"""Labels of every object that this API made; it shows and deletes no other."""

CLUSTER_NAME: Final = "ray.io/cluster-name"
USER: Final = "ray.io/user"
VERSION: Final = "ray.io/version"
ENVIRONMENT: Final = "ray.io/environment"
COMPUTE_TEMPLATE: Final = "ray.io/compute-template"
COMPUTE_IMAGE: Final = "ray.io/compute-image"
CONFIG_TYPE: Final = "ray.io/config-type"
COMPUTE_TEMPLATE_TYPE: Final = "compute-template"
CREATION_TIMESTAMP: Final = "ray.io/creation-timestamp"
UPDATE_TIMESTAMP: Final = "ray.io/update-timestamp"

RESERVED_LABELS: Final = frozenset({CLUSTER_NAME, USER, VERSION, ENVIRONMENT, APP_NAME, MANAGED_BY})
"""What this API sets itself on RayClusters, RayJobs and RayServices; a user's own labels are the others."""


def common_labels(user: str) -> dict[str, str]:
    return {USER: user, APP_NAME: APP_NAME_KUBERAY, **OURS}


def own_labels(labels: dict[str, str]) -> dict[str, str]:
    """The labels that a user set."""
    return {name: value for name, value in labels.items() if name not in RESERVED_LABELS}
