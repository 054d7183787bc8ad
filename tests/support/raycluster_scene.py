"""A namespace with RayClusters in it, and words for what happens there."""

from __future__ import annotations

from typing import Any

from bed.waiting import PATIENCE_SECONDS
from raykeeper.api import labels
from raykeeper.api.meta import JSON, ObjectKey, Resource
from raykeeper.api.raycluster import RAY_CLUSTERS
from raykeeper.kube.client import Kube
from raykeeper.kube.resources import PODS, SERVICES
from support.conditions import eventually

CLUSTERS = RAY_CLUSTERS.read_as(dict)
POD_OBJECTS = PODS.read_as(dict)
SERVICE_OBJECTS = SERVICES.read_as(dict)
QUOTAS: Resource[JSON] = Resource("", "v1", "resourcequotas", "ResourceQuota", dict)
TEMPLATE = {"spec": {"containers": [{"name": "ray", "image": "rayproject/ray:2.60.0"}]}}


def a_group(name: str = "small", replicas: int = 1, **fields: Any) -> JSON:
    return {"groupName": name, "replicas": replicas, "template": TEMPLATE, **fields}


def a_raycluster(*groups: JSON, name: str = "demo", **spec: Any) -> JSON:
    body = {"rayVersion": "2.60.0", "headGroupSpec": {"template": TEMPLATE}, "workerGroupSpecs": list(groups), **spec}
    return {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": name}, "spec": body}


class Scene:
    """One RayCluster in a namespace."""

    def __init__(self, kube: Kube, namespace: str, name: str = "demo") -> None:
        self.kube = kube
        self.namespace = namespace
        self.key = ObjectKey(namespace, name)

    async def apply(self, body: JSON) -> None:
        await self.kube.create(CLUSTERS, body, self.namespace)

    async def patch(self, **spec: Any) -> None:
        await self.kube.merge_patch(CLUSTERS, self.key, {"spec": spec})

    async def cluster(self) -> JSON:
        return await self.kube.get(CLUSTERS, self.key)

    async def pods(self) -> list[JSON]:
        """Pods that are not going."""
        found = await self.kube.list(POD_OBJECTS, self.namespace, labels={labels.CLUSTER: self.key.name})
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    async def names(self, group: str) -> set[str]:
        pods = await self.pods()
        return {pod["metadata"]["name"] for pod in pods if pod["metadata"]["labels"][labels.GROUP] == group}

    async def is_now(self, state: str) -> bool:
        """Whether the status is about the present spec and says this state; of `ready`, that it is so now."""
        return _is_in(await self.cluster(), state)

    async def is_said_to_be(self, state: str) -> bool:
        """Whether KubeRay's `state` says so: all there is where it goes on with what we left, our `Ready` as it was."""
        return bool((await self.cluster()).get("status", {}).get("state") == state)

    async def becomes(self, state: str, seconds: float = PATIENCE_SECONDS) -> JSON:
        """The cluster once it `is_now` in this state, as it was then."""

        async def look() -> JSON | None:
            cluster = await self.cluster()
            return cluster if _is_in(cluster, state) else None

        return await eventually(look, seconds=seconds) or {}

    async def condition(self, kind: str, status: str) -> JSON:
        """The condition once it has this status."""

        async def look() -> JSON | None:
            conditions = (await self.cluster()).get("status", {}).get("conditions", [])
            return next((one for one in conditions if (one["type"], one["status"]) == (kind, status)), None)

        return await eventually(look) or {}

    async def has_pods(self, group: str, count: int) -> set[str]:
        """The names of a group's pods once there are so many."""

        async def look() -> tuple[set[str]] | None:
            names = await self.names(group)
            return (names,) if len(names) == count else None  # none at all may be what is waited for

        found = await eventually(look)
        return found[0] if found else set()

    async def is_gone(self, pod: str, group: str) -> None:
        """Return once the group has no pod of that name."""

        async def look() -> bool:
            return pod not in await self.names(group)

        await eventually(look)


def _is_in(cluster: JSON, state: str) -> bool:
    status = cluster.get("status", {})
    generation = cluster["metadata"]["generation"]
    is_current = status.get("observedGeneration") == generation
    ready = [one for one in status.get("conditions", ()) if one["type"] == "Ready"]
    said = [one["status"] for one in ready if one["observedGeneration"] == generation]  # KubeRay leaves it behind
    return bool(is_current and status.get("state", "") == state and (state != "ready" or said in ([], ["True"])))
