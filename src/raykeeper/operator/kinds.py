"""The kinds the operator watches. Label selectors are KubeRay's: other people's pods and Jobs are never sent to us."""

from __future__ import annotations

from typing import Final

import msgspec

from raykeeper.api.labels import (
    CLUSTER,
    CREATED_BY,
    CREATED_BY_KUBERAY_OPERATOR,
    HEAD,
    HEADLESS_WORKER_SERVICE,
    NODE_TYPE,
    REDIS_CLEANUP,
    SERVE,
    WORKER,
)
from raykeeper.api.meta import Object
from raykeeper.api.raycluster import RAY_CLUSTERS
from raykeeper.kube.informers.cache import by_controller, by_label
from raykeeper.kube.resources import (
    INGRESSES,
    JOBS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    ROUTES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
)
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


class WatchedRole(Object):
    """A Role as far as drift looks at it."""

    rules: msgspec.Raw = msgspec.Raw()


class WatchedRoleBinding(Object):
    """A RoleBinding as far as drift looks at it."""

    role_ref: msgspec.Raw = msgspec.field(name="roleRef", default=msgspec.Raw())
    subjects: msgspec.Raw = msgspec.Raw()


class WatchedSecret(Object):
    """A Secret of a Ray cluster; only those with its label are ever sent to us."""

    data: msgspec.Raw = msgspec.Raw()


OF_A_CLUSTER: Final = {BY_OWNER: by_controller}

WATCHED_HEAD_SERVICES: Final[WatchedKind[Object]] = WatchedKind(SERVICES, CLUSTER, OF_A_CLUSTER)
WATCHED_HEADLESS_SERVICES: Final[WatchedKind[Object]] = WatchedKind(SERVICES, HEADLESS_WORKER_SERVICE, OF_A_CLUSTER)
WATCHED_SERVE_SERVICES: Final[WatchedKind[Object]] = WatchedKind(SERVICES, SERVE, OF_A_CLUSTER)
WATCHED_SERVICE_ACCOUNTS: Final[WatchedKind[Object]] = WatchedKind(
    SERVICE_ACCOUNTS.read_as(Object), CLUSTER, OF_A_CLUSTER
)
WATCHED_ROLES: Final[WatchedKind[WatchedRole]] = WatchedKind(ROLES.read_as(WatchedRole), CLUSTER, OF_A_CLUSTER)
WATCHED_ROLE_BINDINGS: Final[WatchedKind[WatchedRoleBinding]] = WatchedKind(
    ROLE_BINDINGS.read_as(WatchedRoleBinding), CLUSTER, OF_A_CLUSTER
)
WATCHED_SECRETS: Final[WatchedKind[WatchedSecret]] = WatchedKind(SECRETS.read_as(WatchedSecret), CLUSTER, OF_A_CLUSTER)
WATCHED_CLAIMS: Final[WatchedKind[Object]] = WatchedKind(PERSISTENT_VOLUME_CLAIMS, CLUSTER, OF_A_CLUSTER)
WATCHED_INGRESSES: Final[WatchedKind[Object]] = WatchedKind(INGRESSES, CLUSTER, OF_A_CLUSTER)
WATCHED_ROUTES: Final[WatchedKind[Object]] = WatchedKind(
    ROUTES, CLUSTER, OF_A_CLUSTER, is_served=lambda surroundings: surroundings.is_openshift
)
