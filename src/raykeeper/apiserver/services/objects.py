"""Kubernetes objects that this API made: found by name or listed by page, in the rights of the caller."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from raykeeper.api.meta import JSON, ObjectKey, Resource
from raykeeper.api.raycluster import RAY_CLUSTERS
from raykeeper.api.rayjob import RAY_JOBS
from raykeeper.api.rayservice import RAY_SERVICES
from raykeeper.apiserver.errors import CallFailed, Code, internal, not_found, plain
from raykeeper.apiserver.translate.metadata import COMPONENT, MANAGED_BY, OURS
from raykeeper.errors import Unavailable
from raykeeper.kube.client import PAGE_SIZE, Kube
from raykeeper.kube.errors import ApiError, NotFound
from raykeeper.kube.resources import EVENTS
from raykeeper.logs import Log

REFUSALS: Final = (ApiError, Unavailable)
MOST_PER_PAGE: Final = 10_000
"""Objects of one page, whatever a caller asks for; the rest follows on the next."""
MOST_EVENTS: Final = 20_000
"""Events that one list reads. They live for an hour, and those beyond are of objects that have plenty already."""

log = Log("raykeeper.apiserver.objects")


@dataclass(frozen=True)
class Kind:
    """One of the kinds that this API serves, with KubeRay's words for it."""

    resource: Resource[JSON]
    noun: str
    get_failed: str
    calls_itself: str
    """In the sentence about objects that somebody else made."""


CLUSTERS: Final = Kind(RAY_CLUSTERS.read_as(dict), "Cluster", "Get Cluster failed", "RayCluster")
JOBS: Final = Kind(RAY_JOBS.read_as(dict), "Job", "Get Job failed", "RayCluster")
SERVICES: Final = Kind(RAY_SERVICES.read_as(dict), "Service", "get service failed", "RayService")


def object_key(namespace: str, name: str) -> ObjectKey:
    """The key of an object. Raises `CallFailed` for what would be another path to the API server."""
    check_segment("namespace", namespace)
    check_segment("resource name", name)
    return ObjectKey(namespace, name)


def check_segment(what: str, text: str) -> None:
    """Client-go's rule for a part of a path, in its words."""
    problems = [f"may not be '{text}'"] if text in (".", "..") else []
    problems += [f"may not contain '{character}'" for character in "/%" if character in text]
    if problems:
        raise CallFailed(Code.Unknown, f'invalid {what} "{text}": [{" ".join(problems)}]')


async def get_ours(kube: Kube, kind: Kind, namespace: str, name: str) -> JSON:
    """The object. Raises `CallFailed` where there is none, or where somebody else made it."""
    try:
        found = await kube.get(kind.resource, object_key(namespace, name))
    except NotFound as exc:
        raise not_found(exc, f"{kind.noun} {name} not found") from exc
    except (*REFUSALS, CallFailed) as exc:
        raise plain(exc).wrapped(kind.get_failed) from exc
    if (found["metadata"].get("labels") or {}).get(MANAGED_BY) != COMPONENT:
        raise CallFailed(Code.Unknown, f"{kind.calls_itself} with name {name} not managed by {COMPONENT}")
    return found


async def create(kube: Kube, kind: Kind, body: JSON, failure: str) -> JSON:
    """The object as it was made. Raises `CallFailed` with `failure` in it."""
    try:
        check_segment("namespace", body["metadata"]["namespace"])
        return await kube.create(kind.resource, body, field_manager=COMPONENT)
    except (*REFUSALS, CallFailed) as exc:
        raise internal(exc, failure) from exc


async def delete(kube: Kube, kind: Kind, key: ObjectKey, failure: str) -> None:
    try:
        await kube.delete(kind.resource, key)
    except REFUSALS as exc:
        raise internal(exc, failure) from exc


@dataclass(frozen=True)
class Listed:
    """One page of objects, and where the next begins."""

    items: Sequence[JSON]
    token: str


async def list_ours(kube: Kube, kind: Kind, namespace: str, limit: int, token: str) -> Listed:
    """A page of the objects of a namespace, or of all; a limit of 0 stands for all objects. Raises `CallFailed`."""
    check_segment("namespace", namespace)
    try:
        if limit or token:
            most = min(limit, MOST_PER_PAGE) or None
            page = await kube.page(kind.resource, namespace or None, labels=OURS, limit=most, token=token or None)
            return Listed(page.items, page.token)
        return Listed(await kube.list(kind.resource, namespace or None, labels=OURS), "")
    except REFUSALS as exc:
        raise plain(exc) from exc


EventsByObject = Mapping[str, Sequence[JSON]]
"""Events by the uid of the object that they are about."""


async def events_of(kube: Kube, kinds: Sequence[Kind], namespace: str, name: str = "") -> EventsByObject:
    """The Events about objects of these kinds, or about the one of this name.

    Whoever may not read them, or cannot at present, gets the objects without: KubeRay does the same.
    """
    lists = await asyncio.gather(*(_events(kube, kind, namespace, name) for kind in kinds))
    found: dict[str, list[JSON]] = {}
    for event in (event for events in lists for event in events):
        found.setdefault((event.get("regarding") or {}).get("uid", ""), []).append(event)
    return found


async def _events(kube: Kube, kind: Kind, namespace: str, name: str) -> list[JSON]:
    fields = {"regarding.kind": kind.resource.kind, **({"regarding.name": name} if name else {})}
    found: list[JSON] = []
    try:
        async for page in kube.pages(EVENTS, namespace or None, fields=fields, limit=PAGE_SIZE):
            found += page.items
            if len(found) >= MOST_EVENTS:
                log.warning("too many events, the rest is left out", kind=kind.resource.kind, namespace=namespace)
                break
    except REFUSALS as exc:
        log.warning("events not read", kind=kind.resource.kind, namespace=namespace, name=name, error=str(exc))
    return found


def uid_of(found: JSON) -> str:
    uid: str = found["metadata"].get("uid", "")
    return uid
