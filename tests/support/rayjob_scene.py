"""A namespace with a RayJob in it, a head that a test moves by hand, and words for what happens there."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any, Unpack
from uuid import uuid4

from bed.control_plane import ControlPlane
from bed.fixtures import make_namespace, remove_namespace
from bed.waiting import PATIENCE_SECONDS
from raykeeper.api.meta import JSON, ObjectKey, Resource
from raykeeper.api.raycluster import RAY_CLUSTERS
from raykeeper.api.rayjob import RAY_JOBS
from raykeeper.kube.client import Kube
from raykeeper.kube.errors import NotFound
from raykeeper.kube.resources import JOBS, PODS
from support.conditions import eventually
from support.kube_clients import connected
from support.operating import Given, Operator, operating
from support.ray_jobs_head import JobsHead, a_jobs_head
from support.raycluster_scene import TEMPLATE

EVENTS: Resource[JSON] = Resource("events.k8s.io", "v1", "events", "Event", dict)
RAY_JOB_OBJECTS = RAY_JOBS.read_as(dict)
CLUSTER_OBJECTS = RAY_CLUSTERS.read_as(dict)
CLUSTER_SPEC: JSON = {"rayVersion": "2.60.0", "headGroupSpec": {"template": TEMPLATE}}


def a_rayjob(mode: str = "HTTPMode", **spec: Any) -> JSON:
    body = {"entrypoint": "python job.py", "submissionMode": mode, "rayClusterSpec": CLUSTER_SPEC, **spec}
    return {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": "counter"}, "spec": body}


@contextlib.asynccontextmanager
async def a_job_scene(plane: ControlPlane, kube: Kube | None = None) -> AsyncIterator[JobScene]:
    """A namespace of its own, and a head; `kube` may be shared by many of them."""
    name = f"rayjob-{uuid4().hex[:10]}"
    await asyncio.to_thread(make_namespace, plane, name)
    head, client = JobsHead(), contextlib.nullcontext(kube) if kube else connected(plane.admin_kubeconfig)
    async with client as own, a_jobs_head(head) as url:
        yield JobScene(plane, own, name, head, url)
    await asyncio.to_thread(remove_namespace, plane, name)


class JobScene:
    """One RayJob in a namespace."""

    def __init__(self, plane: ControlPlane, kube: Kube, namespace: str, head: JobsHead, url: str) -> None:
        self.plane = plane
        self.kube = kube
        self.namespace = namespace
        self.head = head
        self.url = url
        self.key = ObjectKey(namespace, "counter")

    @contextlib.asynccontextmanager
    async def operating(self, **given: Unpack[Given]) -> AsyncIterator[Operator]:
        """An operator whose heads are all the scripted one."""
        given["heads_at"] = self.url
        async with operating(self.plane.admin_kubeconfig, self.namespace, **given) as operator:
            yield operator

    async def apply(self, body: JSON) -> None:
        await self.kube.create(RAY_JOB_OBJECTS, body, self.namespace)

    async def patch(self, **spec: Any) -> None:
        await self.kube.merge_patch(RAY_JOB_OBJECTS, self.key, {"spec": spec})

    async def annotate(self, annotations: dict[str, str]) -> None:
        await self.kube.merge_patch(RAY_JOB_OBJECTS, self.key, {"metadata": {"annotations": annotations}})

    async def is_told(self, reason: str) -> JSON:
        """The Event with this reason, once it is there."""

        async def look() -> JSON | None:
            events = await self.kube.list(EVENTS, self.namespace)
            return next((event for event in events if event["reason"] == reason), None)

        return await eventually(look) or {}

    async def mode(self) -> str:
        return str((await self.kube.get(RAY_JOB_OBJECTS, self.key))["spec"]["submissionMode"])

    async def status(self) -> JSON:
        found: JSON = (await self.kube.get(RAY_JOB_OBJECTS, self.key)).get("status") or {}
        return found

    async def becomes(self, state: str, job_status: str | None = None, seconds: float = PATIENCE_SECONDS) -> JSON:
        """The status once the job is in this state, as it was then: a second look may find the next one."""

        async def look() -> JSON | None:
            status = await self.status()
            is_there = status.get("jobDeploymentStatus", "") == state
            return status if is_there and job_status in (None, status.get("jobStatus", "")) else None

        return await eventually(look, seconds=seconds) or {}

    async def is_submitted(self, times: int = 1) -> str:
        """The id of the job once Ray has it."""

        async def look() -> bool:
            return len(self.head.submitted) == times

        await eventually(look)
        return self.head.submitted[-1]

    async def condition(self, kind: str) -> JSON:
        conditions = (await self.status()).get("conditions") or []
        return next((one for one in conditions if one["type"] == kind), {})

    async def clusters(self) -> list[JSON]:
        return await self.kube.list(CLUSTER_OBJECTS, self.namespace)

    async def has_clusters(self, count: int) -> None:
        async def look() -> bool:
            return len(await self.clusters()) == count

        await eventually(look)

    async def submitter(self) -> JSON | None:
        return await self.kube.find(JOBS.read_as(dict), self.key)

    async def heads(self) -> list[JSON]:
        return await self.kube.list(PODS.read_as(dict), self.namespace, labels="ray.io/node-type=head")

    async def end_sidecar(self, exit_code: int = 0, word: str = "SUCCEEDED", restarts: int = 0) -> None:
        """Let the submitter beside the head end, once there is one, as the kubelet would tell it."""
        ended = {"exitCode": exit_code, "message": word, "finishedAt": "2026-11-16T11:30:00Z", "reason": "Completed"}
        await self.tell_of_sidecar({"state": {"terminated": ended}, "ready": False, "restartCount": restarts})

    async def tell_of_sidecar(self, told: JSON) -> None:
        """Write what the kubelet would about the submitter beside the head, once there is one."""

        async def is_running() -> JSON | None:
            for pod in await self.heads():
                statuses = (pod.get("status") or {}).get("containerStatuses") or []
                if len(statuses) == 2:
                    return pod
            return None

        pod = await eventually(is_running) or {}
        statuses = pod["status"]["containerStatuses"]
        for status in statuses:
            if status["name"] == "ray-job-submitter":
                status |= told
        conditions = pod["status"]["conditions"]
        for condition in conditions:
            if condition["type"] in ("Ready", "ContainersReady"):
                condition |= {"status": "False", "reason": "ContainersNotReady"}
        key = ObjectKey(self.namespace, pod["metadata"]["name"])
        patch = {"status": {"containerStatuses": statuses, "conditions": conditions}}
        await self.kube.merge_patch(PODS.read_as(dict), key, patch, subresource="status")

    async def set_heads_ready(self, status: str) -> None:
        """What the kubelet would say of head pods from now on."""
        for pod in await self.heads():
            conditions = pod["status"]["conditions"]
            for condition in conditions:
                if condition["type"] in ("Ready", "ContainersReady"):
                    condition |= {"status": status, "reason": "Probed"}
            key = ObjectKey(self.namespace, pod["metadata"]["name"])
            patch = {"status": {"conditions": conditions}}
            await self.kube.merge_patch(PODS.read_as(dict), key, patch, subresource="status")

    async def is_gone(self) -> None:
        """Return once the RayJob is not there any more."""

        async def look() -> bool:
            return await self.kube.find(RAY_JOB_OBJECTS, self.key) is None

        await eventually(look)

    async def says(self, kind: str, text: str) -> None:
        """Return once the condition's message contains the text."""

        async def look() -> bool:
            return text in (await self.condition(kind)).get("message", "")

        await eventually(look)

    async def delete_heads(self) -> None:
        for pod in await self.heads():
            with contextlib.suppress(NotFound):
                await self.kube.delete(PODS, ObjectKey(self.namespace, pod["metadata"]["name"]), grace_seconds=0)
