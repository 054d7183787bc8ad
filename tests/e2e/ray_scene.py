"""RayClusters with real Ray in their pods, kept by an operator beside the test, and words for what happens there."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

from bed.control_plane import ControlPlane
from bed.crds import install_ray_crds
from bed.node.settings import RAY_IMAGE, RAY_VERSION
from e2e.cluster import POD_SECONDS, Namespace, a_pod, is_ready
from raykeeper.api import labels
from raykeeper.api.meta import JSON, ObjectKey
from raykeeper.kube.client import Kube
from raykeeper.kube.resources import PODS
from support.conditions import eventually
from support.kube_clients import connected
from support.operating import operating
from support.raycluster_scene import CLUSTERS, Scene

WORKERS = "small"
# Ray gives its raylet 30 s to start, which is not enough while the machine builds something.
PATIENT_START = {"RAY_raylet_start_wait_time_s": "100"}
# Ray's raylets wait a minute for a GCS that is gone before they end and are started anew.
SHORT_MOURNING = {"RAY_gcs_rpc_server_reconnect_timeout_s": "5"}
# A raylet with its agents takes 600 MiB, the head's other servers as much again.
HEAD_RESOURCES = {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "3Gi"}}
WORKER_RESOURCES = {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "2Gi"}}


def a_template(resources: JSON, env: Mapping[str, str]) -> JSON:
    """Ray in a pod that does not wait long for its end."""
    variables = [{"name": name, "value": value} for name, value in {**PATIENT_START, **env}.items()]
    ray = {"name": "ray", "image": RAY_IMAGE, "env": variables, "resources": resources}
    return {"spec": {"containers": [ray], "terminationGracePeriodSeconds": 1}}


def a_real_group(replicas: int = 1, env: Mapping[str, str] | None = None, **fields: Any) -> JSON:
    """A worker group of pods with two CPUs each."""
    return {"groupName": WORKERS, "replicas": replicas, "template": a_template(WORKER_RESOURCES, env or {}), **fields}


def a_real_cluster(group: JSON, **spec: Any) -> JSON:
    """A RayCluster whose head offers no CPU, so that what asks for one runs on a worker."""
    head = {"rayStartParams": {"num-cpus": "0"}, "template": a_template(HEAD_RESOURCES, {})}
    body = {"rayVersion": RAY_VERSION, "headGroupSpec": head, "workerGroupSpecs": [group], **spec}
    return {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "demo"}, "spec": body}


class RealScene(Scene):
    """One RayCluster in a namespace of the real node's cluster."""

    def __init__(self, kube: Kube, plane: ControlPlane, namespace: str, name: str = "demo") -> None:
        super().__init__(kube, namespace, name)
        self.plane = plane
        self._namespace = Namespace(plane, namespace)

    async def create(self, *objects: JSON) -> None:
        await asyncio.to_thread(self._namespace.create, *objects)

    async def wait_for_pod(self, name: str, condition: Callable[[JSON], bool]) -> None:
        await asyncio.to_thread(self._namespace.wait_for_pod, name, condition)

    async def output_of(self, pod: JSON) -> str:
        """What a pod printed that ran to a good end."""
        return await asyncio.to_thread(self._namespace.output_of, pod)

    async def run_job(self, program: str) -> str:
        """What a Python program printed as a Ray job, sent to the head Service by a pod outside the cluster."""
        submit = [
            "ray",
            "job",
            "submit",
            "--address",
            f"http://{self.key.name}-head-svc:8265",
            "--",
            "python",
            "-c",
            program,
        ]
        return await self.output_of(a_pod(f"driver-{uuid.uuid4().hex[:6]}", submit))

    async def turns(self, state: str) -> None:
        """Return once the status says this state; real Ray takes its time."""
        await self.sees(lambda: self.is_now(state))

    async def sees(self, question: Callable[[], Awaitable[object]]) -> None:
        """Return once the answer is yes."""
        await eventually(question, seconds=POD_SECONDS)

    async def group(self, name: str) -> list[JSON]:
        """The pods of a group that are not going."""
        return [pod for pod in await self.pods() if pod["metadata"]["labels"][labels.GROUP] == name]

    async def ready(self, name: str) -> dict[str, int]:
        """The ready pods of a group: uid -> how often the Ray container was restarted."""
        pods = [pod for pod in await self.group(name) if is_ready(pod)]
        return {pod["metadata"]["uid"]: pod["status"]["containerStatuses"][0]["restartCount"] for pod in pods}

    async def kill_head(self) -> None:
        """Delete the head pod without grace, and return once another one is ready."""
        (head,) = await self.group(labels.HEAD_GROUP)
        key = ObjectKey(self.namespace, head["metadata"]["name"])
        await self.kube.delete(PODS, key, grace_seconds=0)

        async def another_is_ready() -> bool:
            found = await self.ready(labels.HEAD_GROUP)
            return bool(found) and head["metadata"]["uid"] not in found

        await self.sees(another_is_ready)

    async def delete(self) -> None:
        """Delete the cluster and return once nothing holds it any more."""
        await self.kube.delete(CLUSTERS, self.key)

        async def is_gone() -> bool:
            return await self.kube.find(CLUSTERS, self.key) is None

        await self.sees(is_gone)


@contextlib.asynccontextmanager
async def real_scene(plane: ControlPlane, namespace: str) -> AsyncIterator[RealScene]:
    """A namespace of the real node's cluster in which an operator works."""
    install_ray_crds(plane)
    async with connected(plane.admin_kubeconfig) as kube, operating(plane.admin_kubeconfig, namespace):
        yield RealScene(kube, plane, namespace)
