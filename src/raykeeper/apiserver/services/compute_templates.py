"""Compute templates, kept as ConfigMaps."""

from __future__ import annotations

import asyncio
from typing import Final

from google.protobuf.empty_pb2 import Empty

from raykeeper.api.meta import JSON
from raykeeper.apiserver.errors import CallFailed, Code, Untranslatable, already_exists, internal, not_found, plain
from raykeeper.apiserver.protos import config_pb2 as pb
from raykeeper.apiserver.protos.cluster_pb2 import ClusterSpec
from raykeeper.apiserver.services.objects import REFUSALS, check_segment, object_key
from raykeeper.apiserver.services.validation import NO_NAMESPACE, check_template_request, require
from raykeeper.apiserver.translate.metadata import COMPONENT, COMPUTE_TEMPLATE_TYPE, CONFIG_TYPE
from raykeeper.apiserver.translate.specs import Templates, template_names
from raykeeper.apiserver.translate.templates import from_config_map, to_config_map
from raykeeper.kube.client import Kube
from raykeeper.kube.errors import AlreadyExists, NotFound
from raykeeper.kube.resources import CONFIG_MAPS

SELECTOR: Final = {CONFIG_TYPE: COMPUTE_TEMPLATE_TYPE}
NO_NAME: Final = "Compute template name is empty. Please specify a valid value."
MOST_AT_ONCE: Final = 8
"""Templates that are read at the same time for one cluster."""


async def create_template(kube: Kube, request: pb.CreateComputeTemplateRequest) -> pb.ComputeTemplate:
    check_template_request(request)
    try:
        return from_config_map(await _created(kube, request.compute_template))
    except CallFailed as failure:
        raise failure.wrapped("Create compute template failed.") from failure


async def _created(kube: Kube, template: pb.ComputeTemplate) -> JSON:
    place = f"({template.namespace}/{template.name})"
    try:
        body = to_config_map(template)
    except Untranslatable as exc:
        raise internal(exc, f"Failed to convert compute runtime {place}") from exc
    try:
        check_segment("namespace", template.namespace)
        return await kube.create(CONFIG_MAPS, body, field_manager=COMPONENT)
    except AlreadyExists as exc:
        text = f"Compute template with name {template.name} already exists in namespace {template.namespace}"
        raise already_exists(text) from exc
    except (*REFUSALS, CallFailed) as exc:
        raise internal(exc, f"Failed to create a compute runtime for {place}") from exc


async def get_template(kube: Kube, request: pb.GetComputeTemplateRequest) -> pb.ComputeTemplate:
    require(request.name, NO_NAME)
    require(request.namespace, NO_NAMESPACE)
    try:
        return from_config_map(await _config_map(kube, request.namespace, request.name))
    except CallFailed as failure:
        raise failure.wrapped("Get compute template failed.") from failure


async def list_templates(kube: Kube, request: pb.ListComputeTemplatesRequest) -> pb.ListComputeTemplatesResponse:
    require(request.namespace, NO_NAMESPACE)
    try:
        found = await _listed(kube, request.namespace)
    except CallFailed as failure:
        steps = f"List compute templates in namespace {request.namespace} failed.: List compute templates failed"
        raise failure.wrapped(steps) from failure
    return pb.ListComputeTemplatesResponse(compute_templates=found)


async def list_all_templates(kube: Kube, _: pb.ListAllComputeTemplatesRequest) -> pb.ListAllComputeTemplatesResponse:
    try:
        found = await _listed(kube, "")
    except CallFailed as failure:
        raise failure.wrapped("List all compute templates from all namespaces failed.") from failure
    return pb.ListAllComputeTemplatesResponse(compute_templates=found)


async def delete_template(kube: Kube, request: pb.DeleteComputeTemplateRequest) -> Empty:
    require(request.name, NO_NAME)
    require(request.namespace, NO_NAMESPACE)
    try:
        await _config_map(kube, request.namespace, request.name)
    except CallFailed as failure:
        raise failure.wrapped("Get compute template failure") from failure
    try:
        await kube.delete(CONFIG_MAPS, object_key(request.namespace, request.name))
    except REFUSALS as exc:
        raise internal(exc, f"failed to delete compute template {request.name}.") from exc
    return Empty()


async def templates_of(kube: Kube, spec: ClusterSpec, namespace: str) -> Templates:
    """The templates that a cluster is made from. Raises `CallFailed` for one that is not there."""
    turns = asyncio.Semaphore(MOST_AT_ONCE)

    async def read(name: str) -> pb.ComputeTemplate:
        async with turns:
            return await read_template(kube, namespace, name)

    names = template_names(spec)
    return dict(zip(names, await asyncio.gather(*map(read, names)), strict=True))


async def read_template(kube: Kube, namespace: str, name: str) -> pb.ComputeTemplate:
    """One template that something is made from. Raises `CallFailed`."""
    try:
        return from_config_map(await _config_map(kube, namespace, name))
    except CallFailed as failure:
        # KubeRay shows the steps inside, and not what they mean for the caller.
        text = f"Cannot get compute template for name '{name}' in namespace '{namespace}', error: {failure.cause}"
        raise CallFailed(failure.code, text) from failure


async def _config_map(kube: Kube, namespace: str, name: str) -> JSON:
    """The ConfigMap of a template. Another ConfigMap of that name counts as none: it is neither shown nor deleted."""
    missing = f"Compute template {name} not found"
    try:
        found = await kube.get(CONFIG_MAPS, object_key(namespace, name))
    except NotFound as exc:
        raise not_found(exc, missing) from exc
    except (*REFUSALS, CallFailed) as exc:
        raise plain(exc).wrapped("Get compute template failed") from exc
    if not _is_template(found):
        raise not_found(Untranslatable(f'configmaps "{name}" is not a compute template'), missing)
    return found


def _is_template(config_map: JSON) -> bool:
    """Whether it is labelled as one, or made by hand and has what a template needs."""
    labels, data = config_map["metadata"].get("labels") or {}, config_map.get("data") or {}
    return labels.get(CONFIG_TYPE) == COMPUTE_TEMPLATE_TYPE or ("cpu" in data and "memory" in data)


async def _listed(kube: Kube, namespace: str) -> list[pb.ComputeTemplate]:
    check_segment("namespace", namespace)
    try:
        found = await kube.list(CONFIG_MAPS, namespace or None, labels=SELECTOR)
    except REFUSALS as exc:
        raise plain(exc) from exc
    return [from_config_map(config_map) for config_map in found]


def unpopulated(failure: CallFailed, namespace: str, name: str) -> CallFailed:
    """The failure of an object whose templates cannot be read."""
    text = f"InternalServerError: Failed to populate compute template for ({namespace}/{name}): {failure}"
    code = Code.Internal if failure.code in (Code.NotFound, Code.Unknown) else failure.code
    return CallFailed(code, text, "Internal Server Error")
