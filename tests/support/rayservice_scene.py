"""A namespace with a RayService in it, heads that a test moves by hand, and words for what happens there."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any, Unpack
from uuid import uuid4

import yaml

from bed.control_plane import ControlPlane
from bed.fixtures import make_namespace, remove_namespace
from raykeeper.api.meta import JSON, ObjectKey, Resource
from raykeeper.api.rayservice import RAY_SERVICES
from raykeeper.kube.client import Kube
from raykeeper.kube.errors import NotFound
from raykeeper.kube.resources import PODS
from support.conditions import eventually
from support.kube_clients import connected
from support.operating import Given, Operator, operating
from support.ray_serve_head import ServeHead, ServeHeads, serve_heads
from support.raycluster_scene import CLUSTERS, POD_OBJECTS, SERVICE_OBJECTS, TEMPLATE, a_group

EVENTS: Resource[JSON] = Resource("events.k8s.io", "v1", "events", "Event", dict)
RAY_SERVICE_OBJECTS = RAY_SERVICES.read_as(dict)
PATIENCE = 120.0
"""Seconds; everything here takes two or three of them on an idle machine."""


def a_serve_config(*names: str, **fields: Any) -> str:
    applications = [{"name": name, "import_path": "model:app", **fields} for name in names or ("shop",)]
    return yaml.safe_dump({"applications": applications})


def a_cluster_config(*groups: JSON, image: str = "rayproject/ray:2.60.0", **spec: Any) -> JSON:
    template = {"spec": {"containers": [TEMPLATE["spec"]["containers"][0] | {"image": image}]}}
    workers = list(groups or (a_group(),))
    return {"rayVersion": "2.60.0", "headGroupSpec": {"template": template}, "workerGroupSpecs": workers, **spec}


def a_rayservice(annotations: dict[str, str] | None = None, **spec: Any) -> JSON:
    body = {"serveConfigV2": a_serve_config(), "rayClusterConfig": a_cluster_config(), **spec}
    metadata = {"name": "web", "annotations": annotations or {}}
    return {"apiVersion": "ray.io/v1", "kind": "RayService", "metadata": metadata, "spec": body}


@contextlib.asynccontextmanager
async def a_service_scene(plane: ControlPlane, **script: Any) -> AsyncIterator[ServiceScene]:
    """A namespace of its own, and heads."""
    name = f"rayservice-{uuid4().hex[:10]}"
    await asyncio.to_thread(make_namespace, plane, name)
    async with connected(plane.admin_kubeconfig) as kube, serve_heads(**script) as heads:
        yield ServiceScene(plane, kube, name, heads)
    await asyncio.to_thread(remove_namespace, plane, name)


class ServiceScene:
    """One RayService in a namespace."""

    patience = PATIENCE

    def __init__(self, plane: ControlPlane, kube: Kube, namespace: str, heads: ServeHeads) -> None:
        self.plane = plane
        self.kube = kube
        self.namespace = namespace
        self.heads = heads
        self.key = ObjectKey(namespace, "web")

    @contextlib.asynccontextmanager
    async def operating(self, **given: Unpack[Given]) -> AsyncIterator[Operator]:
        """An operator whose heads are the scripted ones."""
        given["heads_at"] = self.heads.url_of
        async with operating(self.plane.admin_kubeconfig, self.namespace, **given) as operator:
            yield operator

    async def apply(self, body: JSON) -> None:
        await self.kube.create(RAY_SERVICE_OBJECTS, body, self.namespace)

    async def patch(self, **spec: Any) -> None:
        await self.kube.merge_patch(RAY_SERVICE_OBJECTS, self.key, {"spec": spec})

    async def status(self) -> JSON:
        found: JSON = (await self.kube.get(RAY_SERVICE_OBJECTS, self.key)).get("status") or {}
        return found

    async def active(self) -> str:
        return str((await self.status()).get("activeServiceStatus", {}).get("rayClusterName", ""))

    async def pending(self) -> str:
        return str((await self.status()).get("pendingServiceStatus", {}).get("rayClusterName", ""))

    async def condition(self, kind: str) -> JSON:
        conditions = (await self.status()).get("conditions") or []
        return next((one for one in conditions if one["type"] == kind), {})

    async def says(self, kind: str, status: str, text: str = "", reason: str = "") -> JSON:
        """The condition once it has this status, and a reason or message with the text."""

        async def look() -> JSON | None:
            found = await self.condition(kind)
            is_so = found.get("status") == status and reason in ("", found["reason"]) and text in found["message"]
            return found if is_so else None

        return await eventually(look, seconds=self.patience) or {}

    async def serves(self, other_than: str = "") -> str:
        """The name of the active cluster once the service is ready, settled, and another than before."""

        async def look() -> str:
            status = await self.status()
            active = status.get("activeServiceStatus", {}).get("rayClusterName", "")
            is_settled = status.get("serviceStatus") == "Running" and not await self.pending()
            return active if is_settled and active != other_than and await self.selected() == active else ""

        return await eventually(look, seconds=self.patience)

    async def has_pending(self, other_than: str = "") -> str:
        """The name of the pending cluster once there is one, and its RayCluster too."""

        async def look() -> str:
            name = await self.pending()
            is_there = name and name != other_than and name in await self.clusters()
            return name if is_there else ""

        return await eventually(look, seconds=self.patience)

    async def clusters(self) -> dict[str, JSON]:
        return {one["metadata"]["name"]: one for one in await self.kube.list(CLUSTERS, self.namespace)}

    async def has_clusters(self, *names: str) -> None:
        async def look() -> bool:
            return set(await self.clusters()) == set(names)

        await eventually(look, seconds=self.patience)

    async def services(self) -> dict[str, JSON]:
        found = await self.kube.list(SERVICE_OBJECTS, self.namespace)
        return {one["metadata"]["name"]: one for one in found}

    async def selected(self, name: str = "web-serve-svc") -> str:
        """The cluster that a service leads to."""
        service = (await self.services()).get(name)
        return str(service["spec"]["selector"]["ray.io/cluster"]) if service else ""

    def head(self, cluster: str) -> ServeHead:
        return self.heads.of(cluster)

    async def head_pod(self, cluster: str) -> JSON:
        """The head pod of a cluster once it is there."""

        async def look() -> JSON | None:
            found = await self.kube.list(
                POD_OBJECTS, self.namespace, labels=f"ray.io/node-type=head,ray.io/cluster={cluster}"
            )
            return next((pod for pod in found if "deletionTimestamp" not in pod["metadata"]), None)

        return await eventually(look, seconds=self.patience) or {}

    async def head_has_label(self, cluster: str, value: str) -> None:
        async def look() -> bool:
            return bool((await self.head_pod(cluster))["metadata"]["labels"]["ray.io/serve"] == value)

        await eventually(look, seconds=self.patience)

    async def delete_head(self, cluster: str) -> None:
        pod = await self.head_pod(cluster)
        with contextlib.suppress(NotFound):
            await self.kube.delete(PODS, ObjectKey(self.namespace, pod["metadata"]["name"]), grace_seconds=0)

    async def is_told(self, reason: str) -> JSON:
        """The Event with this reason, once it is there."""

        async def look() -> JSON | None:
            events = await self.kube.list(EVENTS, self.namespace)
            return next((event for event in events if event["reason"] == reason), None)

        return await eventually(look, seconds=self.patience) or {}

    async def is_gone(self) -> None:
        async def look() -> bool:
            return await self.kube.find(RAY_SERVICE_OBJECTS, self.key) is None

        await eventually(look, seconds=self.patience)
