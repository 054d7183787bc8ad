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
    ORIGINATED_FROM_CR_NAME,
    ORIGINATED_FROM_CRD,
    REDIS_CLEANUP,
    SERVE,
    SERVICE_NAME,
    WORKER,
)
from raykeeper.api.meta import Object, Resource
from raykeeper.api.raycluster import RAY_CLUSTERS
from raykeeper.api.raycronjob import RAY_CRON_JOBS
from raykeeper.api.rayjob import RAY_JOBS
from raykeeper.api.rayservice import RAY_SERVICES
from raykeeper.api.structs import parse_part
from raykeeper.kube.informers.cache import by_controller, by_label
from raykeeper.kube.resources import (
    ENDPOINT_SLICES,
    GATEWAYS,
    HTTP_ROUTES,
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
from raykeeper.operator.schedulers import kubernetes_was, scheduler_plugins, volcano
from raykeeper.operator.watches import WatchedKind

BY_CLUSTER: Final = "cluster"
"""Index: `namespace/name` of the RayCluster in the label ray.io/cluster."""
BY_OWNER: Final = "owner"
"""Index: uid of the controlling owner."""
BY_ORIGIN: Final = "origin"
"""Index: `namespace/name` of the RayJob or RayService in the label ray.io/originated-from-cr-name."""

BY_SERVICE: Final = "service"
"""Index: `namespace/name` of the Service that an EndpointSlice is of."""

BY_RAY_JOB: Final = "ray job"
"""Index of RayJobs on clusters of others: `ray_job_key` of their present attempts."""


class _Attempt(msgspec.Struct, rename="camel"):
    job_id: str = ""
    ray_cluster_name: str = ""


def ray_job_key(namespace: str, cluster: str, job_id: str) -> str:
    return f"{namespace}/{cluster}/{job_id}"


def _by_ray_job(rayjob: Object) -> list[str]:
    if b'"clusterSelector"' not in bytes(rayjob.spec):
        return []
    try:
        attempt = parse_part(rayjob.status, _Attempt)
    except msgspec.ValidationError:
        return []  # whoever reconciles it says so
    return [ray_job_key(rayjob.metadata.namespace, attempt.ray_cluster_name, attempt.job_id)] if attempt.job_id else []


WATCHED_RAYCLUSTERS: Final[WatchedKind[Object]] = WatchedKind(RAY_CLUSTERS, indexes={BY_OWNER: by_controller})
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
WATCHED_RAYJOBS: Final[WatchedKind[Object]] = WatchedKind(
    RAY_JOBS, indexes={BY_OWNER: by_controller, BY_RAY_JOB: _by_ray_job}
)
WATCHED_RAYSERVICES: Final[WatchedKind[Object]] = WatchedKind(RAY_SERVICES)
WATCHED_RAYCRONJOBS: Final[WatchedKind[Object]] = WatchedKind(RAY_CRON_JOBS)
WATCHED_SUBMITTER_PODS: Final[WatchedKind[Object]] = WatchedKind(
    PODS,
    labels=f"{ORIGINATED_FROM_CRD}={RAY_JOBS.kind},!{NODE_TYPE}",
    indexes={BY_ORIGIN: by_label(ORIGINATED_FROM_CR_NAME)},
)


class WatchedRole(Object):
    """A Role as far as drift looks at it."""

    rules: msgspec.Raw = msgspec.Raw()


class WatchedRoleBinding(Object):
    """A RoleBinding as far as drift looks at it."""

    role_ref: msgspec.Raw = msgspec.field(name="roleRef", default=msgspec.Raw())
    subjects: msgspec.Raw = msgspec.Raw()


class WatchedEndpointSlice(Object):
    """An EndpointSlice as far as a RayService counts what is ready behind it."""

    endpoints: msgspec.Raw = msgspec.Raw()


class WatchedSecret(Object):
    """A Secret of a Ray cluster; only those with its label are ever sent to us."""

    data: msgspec.Raw = msgspec.Raw()


OF_A_CLUSTER: Final = {BY_OWNER: by_controller}

WATCHED_HEAD_SERVICES: Final[WatchedKind[Object]] = WatchedKind(SERVICES, CLUSTER, OF_A_CLUSTER)
WATCHED_HEADLESS_SERVICES: Final[WatchedKind[Object]] = WatchedKind(SERVICES, HEADLESS_WORKER_SERVICE, OF_A_CLUSTER)
WATCHED_SERVE_SERVICES: Final[WatchedKind[Object]] = WatchedKind(SERVICES, SERVE, OF_A_CLUSTER)
WATCHED_ORIGINATED_SERVICES: Final[WatchedKind[Object]] = WatchedKind(
    SERVICES, f"{ORIGINATED_FROM_CRD} in ({RAY_JOBS.kind},{RAY_SERVICES.kind})", OF_A_CLUSTER
)
"""Services of RayJobs and RayServices, which carry no `ray.io/cluster`."""
WATCHED_SERVE_ENDPOINTS: Final[WatchedKind[WatchedEndpointSlice]] = WatchedKind(
    ENDPOINT_SLICES.read_as(WatchedEndpointSlice), SERVE, {BY_SERVICE: by_label(SERVICE_NAME)}
)
"""EndpointSlices inherit the labels of their Service: those behind Ray Serve are a few among all of a cluster's."""
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
    ROUTES, CLUSTER, OF_A_CLUSTER, is_served=lambda api_server: api_server.is_openshift
)

WATCHED_GATEWAYS: Final[WatchedKind[Object]] = WatchedKind(GATEWAYS, is_served=lambda api: api.has_gateway_api)
WATCHED_HTTP_ROUTES: Final[WatchedKind[Object]] = WatchedKind(HTTP_ROUTES, is_served=lambda api: api.has_gateway_api)
"""All of them: KubeRay's carry no label, and a user may have the weights kept in his own."""


OF_OPERATOR: Final = f"{CREATED_BY}={CREATED_BY_KUBERAY_OPERATOR}"


def _of_scheduler(resource: Resource[Object], selector: str = OF_OPERATOR) -> WatchedKind[Object]:
    """Objects of the batch scheduler that the operator was told to use; other people's are never sent to us."""
    return WatchedKind(
        resource,
        selector,
        OF_A_CLUSTER,
        is_served=lambda api_server: resource in api_server.scheduler_kinds,
    )


WATCHED_BY_SCHEDULERS: Final = (
    _of_scheduler(volcano.POD_GROUPS),
    _of_scheduler(scheduler_plugins.POD_GROUPS),
    _of_scheduler(kubernetes_was.WORKLOADS, CLUSTER),
    _of_scheduler(kubernetes_was.POD_GROUPS, CLUSTER),
)
"""At most those of one scheduler are watched."""
