"""Services: RayServices."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from google.protobuf.empty_pb2 import Empty

from raykeeper.api.meta import JSON
from raykeeper.apiserver.errors import CallFailed, Code, Untranslatable, internal, untranslatable
from raykeeper.apiserver.protos import serve_pb2 as pb
from raykeeper.apiserver.services.compute_templates import templates_of, unpopulated
from raykeeper.apiserver.services.objects import (
    CLUSTERS,
    REFUSALS,
    SERVICES,
    EventsByObject,
    create,
    delete,
    events_of,
    get_ours,
    list_ours,
    object_key,
    uid_of,
)
from raykeeper.apiserver.services.validation import check_service_request, check_service_update, require
from raykeeper.apiserver.translate.metadata import COMPONENT, CREATION_TIMESTAMP, UPDATE_TIMESTAMP
from raykeeper.apiserver.translate.moments import go_now
from raykeeper.apiserver.translate.services import active_cluster_name, from_ray_service, to_ray_service
from raykeeper.apiserver.translate.specs import Templates
from raykeeper.clock import Clock
from raykeeper.kube.client import Kube

NO_NAME = "ray service name is empty. Please specify a valid value."
NO_NAMESPACE = "ray service namespace is empty. Please specify a valid value."


class RayServices:
    """The calls about services."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def create(self, kube: Kube, request: pb.CreateRayServiceRequest) -> pb.RayService:
        check_service_request(request)
        service = request.service
        try:
            templates = await _templates(kube, service)
            try:
                body = to_ray_service(service, templates, self._stamp(CREATION_TIMESTAMP))
            except Untranslatable as exc:
                raise untranslatable(exc, "Failed to create a Ray Service") from exc
            failure = f"Failed to create service for ({service.namespace}/{service.name})"
            made = await create(kube, SERVICES, body, failure)
        except CallFailed as failed:
            raise failed.wrapped("Create ray service failed.") from failed
        return from_ray_service(made, ())  # nothing was reported about it yet

    async def update(self, kube: Kube, request: pb.UpdateRayServiceRequest) -> pb.RayService:
        check_service_update(request)
        try:
            made = await self._replaced(kube, request.service)
        except CallFailed as failed:
            raise failed.wrapped("Update ray service failed.") from failed
        return await _with_events(kube, made)

    async def _replaced(self, kube: Kube, service: pb.RayService) -> JSON:
        try:
            old = await get_ours(kube, SERVICES, service.namespace, service.name)
        except CallFailed as failed:
            raise failed.wrapped(f"Update service fail, no service named: {service.name} ") from failed
        templates = await _templates(kube, service)
        try:
            body = to_ray_service(service, templates, self._stamp(UPDATE_TIMESTAMP))
        except Untranslatable as exc:
            raise CallFailed(Code.Unknown, str(exc)) from exc
        body["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
        try:
            return await kube.replace(SERVICES.resource, body, field_manager=COMPONENT)
        except REFUSALS as exc:
            raise internal(exc, f"Failed to update service for ({service.namespace}/{service.name})") from exc

    def _stamp(self, annotation: str) -> Mapping[str, str]:
        return {annotation: go_now(self._clock.now())}

    async def get(self, kube: Kube, request: pb.GetRayServiceRequest) -> pb.RayService:
        require(request.name, NO_NAME)
        require(request.namespace, NO_NAMESPACE)
        try:
            found = await get_ours(kube, SERVICES, request.namespace, request.name)
        except CallFailed as failed:
            raise failed.wrapped("get ray service failed") from failed
        return await _with_events(kube, found)

    async def list(self, kube: Kube, request: pb.ListRayServicesRequest) -> pb.ListRayServicesResponse:
        require(request.namespace, NO_NAMESPACE)
        try:
            services, token = await _listed(kube, request.namespace, request.page_size, request.page_token)
        except CallFailed as failed:
            raise failed.wrapped("failed to list rayservice.") from failed
        return pb.ListRayServicesResponse(services=services, next_page_token=token)

    async def list_all(self, kube: Kube, request: pb.ListAllRayServicesRequest) -> pb.ListAllRayServicesResponse:
        try:
            services, token = await _listed(kube, "", request.page_size, request.page_token)
        except CallFailed as failed:
            raise failed.wrapped("list all services failed.") from failed
        return pb.ListAllRayServicesResponse(services=services, next_page_token=token)

    async def delete(self, kube: Kube, request: pb.DeleteRayServiceRequest) -> Empty:
        require(request.name, NO_NAME)
        require(request.namespace, NO_NAMESPACE)
        try:
            await get_ours(kube, SERVICES, request.namespace, request.name)
        except CallFailed as failed:
            raise failed.wrapped("delete ray service failure") from failed
        key = object_key(request.namespace, request.name)
        await delete(kube, SERVICES, key, f"failed to delete ray service {request.name}.")
        return Empty()


async def _templates(kube: Kube, service: pb.RayService) -> Templates:
    try:
        return await templates_of(kube, service.cluster_spec, service.namespace)
    except CallFailed as failure:
        raise unpopulated(failure, service.namespace, service.name) from failure


async def _with_events(kube: Kube, found: JSON) -> pb.RayService:
    namespace, name = found["metadata"]["namespace"], found["metadata"]["name"]
    own, cluster = await asyncio.gather(
        events_of(kube, [SERVICES], namespace, name), _events_of_cluster(kube, namespace, active_cluster_name(found))
    )
    return from_ray_service(found, [*own.get(uid_of(found), ()), *cluster])


async def _events_of_cluster(kube: Kube, namespace: str, name: str) -> Sequence[JSON]:
    if not name:
        return ()
    return [event for events in (await events_of(kube, [CLUSTERS], namespace, name)).values() for event in events]


async def _listed(kube: Kube, namespace: str, limit: int, token: str) -> tuple[list[pb.RayService], str]:
    try:
        listed, events = await asyncio.gather(
            list_ours(kube, SERVICES, namespace, limit, token), events_of(kube, [SERVICES, CLUSTERS], namespace)
        )
    except CallFailed as failure:
        step = f"List RayService failed in {namespace} with next page token {token} and page limit {limit}"
        raise failure.wrapped(step) from failure
    by_name = _by_regarded(events)
    services = [from_ray_service(found, _events_about(found, events, by_name)) for found in listed.items]
    return services, listed.token


def _by_regarded(events: EventsByObject) -> Mapping[tuple[str, str], Sequence[JSON]]:
    """Events about clusters by namespace and name: a service knows its cluster by name alone."""
    found: dict[tuple[str, str], list[JSON]] = {}
    for event in (event for some in events.values() for event in some):
        regarding = event.get("regarding") or {}
        if regarding.get("kind") == CLUSTERS.resource.kind:
            found.setdefault((regarding.get("namespace", ""), regarding.get("name", "")), []).append(event)
    return found


def _events_about(
    service: JSON, events: EventsByObject, by_name: Mapping[tuple[str, str], Sequence[JSON]]
) -> Sequence[JSON]:
    cluster = (service["metadata"]["namespace"], active_cluster_name(service))
    return [*events.get(uid_of(service), ()), *by_name.get(cluster, ())]
