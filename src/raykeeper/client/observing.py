"""Reads all that is to be known about one Ray object; what may not be read is noted, and the rest read all the same."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from raykeeper.api import labels
from raykeeper.api.meta import JSON, ObjectKey, Resource
from raykeeper.client.diagnosis import Diagnosis, Observed, diagnose, status_of
from raykeeper.client.history import HistoryServer, NoHistory, headline_of, read_report
from raykeeper.client.kinds import CLUSTERS
from raykeeper.errors import RaykeeperError
from raykeeper.kube.errors import ApiError, Forbidden, NotFound

if TYPE_CHECKING:
    from raykeeper.kube.client import Kube

T = TypeVar("T")

_PODS_ASKED = 20
"""Pods whose Events are read: those with problems, which are seldom many kinds of problem."""
_EVENTS_LIMIT = 100
PODS: Resource[JSON] = Resource("", "v1", "pods", "Pod", dict)
EVENTS: Resource[JSON] = Resource("events.k8s.io", "v1", "events", "Event", dict)


async def describe(
    kube: Kube, resource: Resource[JSON], key: ObjectKey, history: HistoryServer | None = None
) -> Diagnosis:
    """How an object is, and why. Raises ApiError and Unavailable if the object itself cannot be read."""
    return diagnose(await observe(kube, resource, key, history))


async def observe(
    kube: Kube, resource: Resource[JSON], key: ObjectKey, history: HistoryServer | None = None
) -> Observed:
    """All that Kubernetes says about it, and the headline of its report where there is a history server."""
    unread: list[str] = []
    try:
        found = await kube.get(resource, key)
    except NotFound:
        item: JSON | None = None
    else:
        item = {"kind": resource.kind, **found}
    clusters = await _clusters(kube, resource, item, unread) if item else ()
    pods = await _pods(kube, key, item, clusters, unread) if item else ()
    names = tuple(cluster["metadata"]["name"] for cluster in clusters)
    about = [(resource.kind, key.name)] + [("RayCluster", name) for name in names if resource.kind != "RayCluster"]
    about += [("Pod", pod["metadata"]["name"]) for pod in pods if not _is_ready(pod)][:_PODS_ASKED]
    events: list[JSON] = await _tried("Events", partial(_events, kube, key.namespace, about), [], unread)
    observed = Observed(resource.kind, key, item, clusters, pods, tuple(events))
    if history is not None:
        observed = replace(observed, headline=await _headline(history, resource.kind, key, names, unread))
    return replace(observed, unread=tuple(unread))


async def _headline(
    history: HistoryServer, kind: str, key: ObjectKey, clusters: tuple[str, ...], unread: list[str]
) -> str:
    if kind == "RayCronJob":
        return ""
    try:
        return headline_of(await read_report(history, kind, key, clusters))
    except NoHistory:
        return ""
    except RaykeeperError as exc:
        unread.append(f"its report: {exc}")
        return ""


async def _tried(what: str, read: Callable[[], Awaitable[T]], otherwise: T, unread: list[str]) -> T:
    """What was read, or a note on why not: Ray's users often may not read pods, and V2 does not serve them."""
    try:
        return await read()
    except (Forbidden, NotFound) as exc:
        unread.append(f"{what}: {exc.message or exc}")
    except ApiError as exc:
        unread.append(f"{what}: {exc}")
    return otherwise


async def _clusters(kube: Kube, resource: Resource[JSON], item: JSON, unread: list[str]) -> tuple[JSON, ...]:
    namespace = item["metadata"]["namespace"]
    if resource.kind == "RayCluster":
        return (item,)
    found = []
    for name in cluster_names(resource.kind, item):
        find = partial(kube.find, CLUSTERS, ObjectKey(namespace, name))
        cluster: JSON | None = await _tried(f"RayCluster {name}", find, None, unread)
        if cluster is not None:
            found.append({"kind": "RayCluster", **cluster})
    return tuple(found)


def cluster_names(kind: str, item: JSON) -> tuple[str, ...]:
    """The RayClusters of an object, that which matters most first."""
    status = status_of(item)
    if kind == "RayCluster":
        return (str(item["metadata"]["name"]),)
    if kind == "RayJob":
        names = [status.get("rayClusterName")]
    elif kind == "RayService":
        parts = (status.get(part) or {} for part in ("activeServiceStatus", "pendingServiceStatus"))
        names = [part.get("rayClusterName") for part in parts]
    else:
        names = []
    return tuple(dict.fromkeys(str(name) for name in names if name))


async def _pods(
    kube: Kube, key: ObjectKey, item: JSON, clusters: Sequence[JSON], unread: list[str]
) -> tuple[JSON, ...]:
    selectors = [f"{labels.CLUSTER}={cluster['metadata']['name']}" for cluster in clusters]
    if item.get("kind") == "RayJob":
        selectors.append(f"job-name={key.name}")
    found: list[JSON] = []
    for selector in selectors:
        before = len(unread)
        read: Callable[[], Awaitable[list[JSON]]] = partial(kube.list, PODS, key.namespace, labels=selector)
        found += await _tried("pods", read, [], unread)
        if len(unread) > before:
            break
    return tuple(found)


def _is_ready(pod: JSON) -> bool:
    conditions = pod.get("status", {}).get("conditions", ())
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


async def _events(kube: Kube, namespace: str, about: Sequence[tuple[str, str]]) -> list[JSON]:
    async def read(kind: str, name: str) -> list[JSON]:
        fields = f"regarding.kind={kind},regarding.name={name}"
        page: Any = await kube.page(EVENTS, namespace, fields=fields, limit=_EVENTS_LIMIT)
        return list(page.items)

    found = await asyncio.gather(*(read(kind, name) for kind, name in about))
    return [event for events in found for event in events]
