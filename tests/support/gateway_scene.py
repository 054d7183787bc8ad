"""A RayService behind a Gateway that a test moves by hand, and words for how its traffic is divided."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Unpack
from uuid import uuid4

from bed.control_plane import ControlPlane
from bed.fixtures import make_namespace
from raykeeper.api.meta import JSON, ObjectKey, Resource
from raykeeper.kube.errors import ApiError
from raykeeper.kube.resources import GATEWAYS, HTTP_ROUTES
from support.conditions import eventually
from support.kube_clients import connected
from support.operating import KUBERNETES, Given, Operator
from support.ray_serve_head import serve_heads
from support.rayservice_scene import ServiceScene, a_cluster_config, a_rayservice

CARRY_SECONDS = 0.2
"""Between two looks of the one who carries the traffic; a dozen scenes may be played at once."""
GATEWAY_OBJECTS, ROUTE_OBJECTS = GATEWAYS.read_as(dict), HTTP_ROUTES.read_as(dict)
WITH_GATEWAYS = replace(KUBERNETES, has_gateway_api=True)
AUTOSCALED: JSON = a_cluster_config(enableInTreeAutoscaling=True) | {"workerGroupSpecs": []}
OTHER: JSON = a_cluster_config(enableInTreeAutoscaling=True, image="rayproject/ray:2.61.0") | {"workerGroupSpecs": []}
THIRD: JSON = a_cluster_config(enableInTreeAutoscaling=True, image="rayproject/ray:2.62.0") | {"workerGroupSpecs": []}


def a_strategy(step: int = 50, surge: int = 50, interval: int = 1, **options: Any) -> JSON:
    pace = {"stepSizePercent": step, "maxSurgePercent": surge, "intervalSeconds": interval}
    way_in = options or {"gatewayClassName": "bed"}
    return {"type": "NewClusterWithIncrementalUpgrade", "clusterUpgradeOptions": pace | way_in}


def a_routed_service(annotations: dict[str, str] | None = None, **spec: Any) -> JSON:
    usual = {"rayClusterConfig": AUTOSCALED, "upgradeStrategy": a_strategy(), "rayClusterDeletionDelaySeconds": 0}
    return a_rayservice(annotations, **(usual | spec))


class GatewayScene(ServiceScene):
    """One RayService in a namespace, and whoever carries its traffic."""

    is_gateway_working: bool = True

    @contextlib.asynccontextmanager
    async def operating(self, **given: Unpack[Given]) -> AsyncIterator[Operator]:
        given.setdefault("api_server", WITH_GATEWAYS)
        async with super().operating(**given) as operator:
            yield operator

    async def weights(self, name: str = "web-httproute") -> dict[str, int]:
        """What each backend of the first rule gets, by the cluster's name."""
        route = await self.kube.find(ROUTE_OBJECTS, ObjectKey(self.namespace, name))
        rules = route["spec"]["rules"] if route else [{}]
        references = rules[0].get("backendRefs") or []
        return {one["name"].removesuffix("-serve-svc"): one["weight"] for one in references}

    async def has_weights(self, wanted: dict[str, int], name: str = "web-httproute") -> None:
        async def look() -> bool:
            return await self.weights(name) == wanted

        await eventually(look, seconds=self.patience)

    async def shares(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Capacity and traffic of the active and of the pending cluster, as the status says."""
        status = await self.status()
        both = (status.get("activeServiceStatus", {}), status.get("pendingServiceStatus", {}))
        found = [(one.get("targetCapacity", -1), one.get("trafficRoutedPercent", -1)) for one in both]
        return found[0], found[1]

    async def has_shares(self, active: tuple[int, int], pending: tuple[int, int]) -> None:
        async def look() -> bool:
            return await self.shares() == (active, pending)

        await eventually(look, seconds=self.patience)

    async def has_ended(self, other_than: str = "") -> str:
        """The active cluster once it has all of the traffic, and the only one."""
        name = await self.serves(other_than)
        await self.has_weights({name: 100})
        return name

    def capacities(self, cluster: str) -> list[int | None]:
        """Those that Serve on a cluster was given, without repetitions."""
        sent = [config.get("target_capacity") for config in self.head(cluster).configs]
        return [one for number, one in enumerate(sent) if number == 0 or one != sent[number - 1]]

    async def annotate(self, **annotations: str) -> None:
        given = {f"raykeeper.io/{key.replace('_', '-')}": value for key, value in annotations.items()}
        await self.kube.merge_patch(self.services_resource, self.key, {"metadata": {"annotations": given}})

    @property
    def services_resource(self) -> Resource[JSON]:
        return Resource("ray.io", "v1", "rayservices", "RayService", dict)


@contextlib.asynccontextmanager
async def a_gateway_scene(plane: ControlPlane, **script: Any) -> AsyncIterator[GatewayScene]:
    """A namespace of its own, heads, and a controller of Gateways."""
    name = f"gateway-{uuid4().hex[:10]}"
    await asyncio.to_thread(make_namespace, plane, name)
    async with connected(plane.admin_kubeconfig) as kube, serve_heads(**script) as heads:
        scene = GatewayScene(plane, kube, name, heads)
        carrying = asyncio.create_task(carry(scene))
        try:
            yield scene
        finally:
            carrying.cancel()
            await asyncio.gather(carrying, return_exceptions=True)
    await asyncio.to_thread(plane.admin.delete, f"/api/v1/namespaces/{name}")


async def carry(scene: GatewayScene) -> None:
    """Says of every Gateway and HTTPRoute that it works, as a controller of Gateways does once it does."""
    while True:
        if scene.is_gateway_working:
            with contextlib.suppress(ApiError):
                for gateway in await scene.kube.list(GATEWAY_OBJECTS, scene.namespace):
                    await _state(scene, GATEWAY_OBJECTS, gateway, {"conditions": _taken(gateway, "Programmed")})
                for route in await scene.kube.list(ROUTE_OBJECTS, scene.namespace):
                    parents = [
                        {
                            "parentRef": {"name": parent["name"]},
                            "controllerName": "bed.example/gateway",
                            "conditions": _taken(route, "ResolvedRefs"),
                        }
                        for parent in route["spec"].get("parentRefs") or ()
                    ]
                    await _state(scene, ROUTE_OBJECTS, route, {"parents": parents})
        await asyncio.sleep(CARRY_SECONDS)


def _taken(item: JSON, kind: str) -> list[JSON]:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    said = {"status": "True", "reason": "Bed", "message": "", "lastTransitionTime": now}
    return [said | {"type": one, "observedGeneration": item["metadata"]["generation"]} for one in ("Accepted", kind)]


async def _state(scene: GatewayScene, resource: Resource[JSON], item: JSON, status: JSON) -> None:
    known = item.get("status") or {}
    parts = known.get("parents") or [known]
    generations = [one.get("observedGeneration") for part in parts for one in part.get("conditions") or ()]
    if not generations or set(generations) != {item["metadata"]["generation"]}:
        key = ObjectKey(scene.namespace, item["metadata"]["name"])
        await scene.kube.merge_patch(resource, key, {"status": status}, subresource="status")
