"""Clusters: RayClusters."""

from __future__ import annotations

import asyncio

from google.protobuf.empty_pb2 import Empty

from raykeeper.api.meta import JSON
from raykeeper.apiserver.errors import CallFailed, Untranslatable, untranslatable
from raykeeper.apiserver.protos import cluster_pb2 as pb
from raykeeper.apiserver.services.compute_templates import templates_of, unpopulated
from raykeeper.apiserver.services.objects import (
    CLUSTERS,
    create,
    delete,
    events_of,
    get_ours,
    list_ours,
    object_key,
    uid_of,
)
from raykeeper.apiserver.services.validation import NO_NAMESPACE, check_cluster_request, require
from raykeeper.apiserver.translate.clusters import from_ray_cluster, to_ray_cluster
from raykeeper.apiserver.translate.moments import go_now
from raykeeper.clock import Clock
from raykeeper.kube.client import Kube

NO_NAME = "Cluster name is empty. Please specify a valid value."


class Clusters:
    """The calls about clusters."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def create(self, kube: Kube, request: pb.CreateClusterRequest) -> pb.Cluster:
        check_cluster_request(request)
        try:
            made = await self._created(kube, request.cluster)
        except CallFailed as failure:
            raise failure.wrapped("Create Cluster failed.") from failure
        return from_ray_cluster(made, ())  # nothing was reported about it yet

    async def _created(self, kube: Kube, cluster: pb.Cluster) -> JSON:
        namespace, name = cluster.namespace, cluster.name
        try:
            templates = await templates_of(kube, cluster.cluster_spec, namespace)
        except CallFailed as failure:
            raise unpopulated(failure, namespace, name) from failure
        try:
            body = to_ray_cluster(cluster, templates, go_now(self._clock.now()))
        except Untranslatable as exc:
            raise untranslatable(exc, "Failed to create a Ray cluster") from exc
        return await create(kube, CLUSTERS, body, f"Failed to create a cluster for ({namespace}/{name})")

    async def get(self, kube: Kube, request: pb.GetClusterRequest) -> pb.Cluster:
        found = await find_cluster(kube, request.namespace, request.name)
        events = await events_of(kube, [CLUSTERS], request.namespace, request.name)
        return from_ray_cluster(found, events.get(uid_of(found), ()))

    async def list(self, kube: Kube, request: pb.ListClustersRequest) -> pb.ListClustersResponse:
        require(request.namespace, NO_NAMESPACE)
        token = getattr(request, "continue")
        try:
            clusters, token = await _listed(kube, request.namespace, request.limit, token)
        except CallFailed as failure:
            raise failure.wrapped("List clusters failed.") from failure
        return pb.ListClustersResponse(clusters=clusters, **{"continue": token})

    async def list_all(self, kube: Kube, request: pb.ListAllClustersRequest) -> pb.ListAllClustersResponse:
        token = getattr(request, "continue")
        try:
            clusters, token = await _listed(kube, "", request.limit, token)
        except CallFailed as failure:
            raise failure.wrapped("List clusters from all namespaces failed.") from failure
        return pb.ListAllClustersResponse(clusters=clusters, **{"continue": token})

    async def delete(self, kube: Kube, request: pb.DeleteClusterRequest) -> Empty:
        require(request.name, NO_NAME)
        require(request.namespace, NO_NAMESPACE)
        try:
            await get_ours(kube, CLUSTERS, request.namespace, request.name)
        except CallFailed as failure:
            raise failure.wrapped("Get cluster failure") from failure
        key = object_key(request.namespace, request.name)
        await delete(kube, CLUSTERS, key, f"Failed to delete cluster {request.name}.")
        return Empty()


async def find_cluster(kube: Kube, namespace: str, name: str) -> JSON:
    """A RayCluster that this API made. Raises `CallFailed` in the words of `GetCluster`."""
    require(name, NO_NAME)
    require(namespace, NO_NAMESPACE)
    try:
        return await get_ours(kube, CLUSTERS, namespace, name)
    except CallFailed as failure:
        raise failure.wrapped("Get cluster failed.") from failure


async def _listed(kube: Kube, namespace: str, limit: int, token: str) -> tuple[list[pb.Cluster], str]:
    try:
        listed, events = await asyncio.gather(
            list_ours(kube, CLUSTERS, namespace, limit, token), events_of(kube, [CLUSTERS], namespace)
        )
    except CallFailed as failure:
        raise failure.wrapped(f"List RayCluster failed in {namespace}") from failure
    return [from_ray_cluster(found, events.get(uid_of(found), ())) for found in listed.items], listed.token
