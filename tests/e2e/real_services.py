"""A RayService with real Ray Serve on the real node, kept by an operator in a pod, and somebody who asks it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from bed.control_plane import ControlPlane
from bed.crds import install_ray_crds
from bed.node.settings import RAY_VERSION
from bed.rest import Refused
from e2e.cluster import Namespace, a_pod, is_ready
from e2e.operator_pod import OPERATOR, operator_objects
from e2e.ray_scene import HEAD_RESOURCES, a_template
from raykeeper.api.meta import JSON
from support.conditions import eventually
from support.gateway_scene import GatewayScene
from support.kube_clients import connected
from support.ray_serve_head import ServeHeads
from support.rayservice_scene import RAY_SERVICE_OBJECTS

PROGRAMS = Path(__file__).parent / "programs"
SECONDS = 240.0  # a head and Serve need 25 on an idle machine
CLIENT = "client"
RATE = 50
"""Requests a second."""


def a_config(word: str) -> str:
    deployment = {
        "name": "Hello",
        "user_config": {"word": word},
        "ray_actor_options": {"num_cpus": 0.1},
        "max_ongoing_requests": 100,  # with Serve's five, slow requests would keep the others waiting
    }
    application = {"name": "hello", "import_path": "hello:app", "route_prefix": "/", "deployments": [deployment]}
    return yaml.safe_dump({"applications": [application]})


def a_cluster(release: str, **spec: Any) -> JSON:
    """A head alone; its applications say which release they are of."""
    template = a_template(HEAD_RESOURCES, {"RELEASE": release, "PYTHONPATH": "/programs"})
    (ray,) = template["spec"]["containers"]
    ray["volumeMounts"] = [{"name": "programs", "mountPath": "/programs"}]
    template["spec"]["volumes"] = [{"name": "programs", "configMap": {"name": "programs"}}]
    return {"rayVersion": RAY_VERSION, "headGroupSpec": {"template": template}, **spec}


@dataclass(frozen=True)
class Counts:
    """What came of requests."""

    ended: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    """By error."""
    answers: Counter[str] = field(default_factory=Counter)

    def __sub__(self, before: Counts) -> Counts:
        return Counts(self.ended - before.ended, self.failed - before.failed, self.answers - before.answers)

    def __str__(self) -> str:
        errors = "".join(f"; {count} x {error}" for error, count in self.failed.most_common())
        return f"{self.failed.total()} of {self.ended} requests failed{errors}"


class RealService(GatewayScene):
    """The RayService `web` on the real node."""

    patience = SECONDS

    async def create(self, word: str, annotations: dict[str, str] | None = None, **spec: Any) -> None:
        metadata = {"name": "web", "annotations": annotations or {}}
        whole = {"serveConfigV2": a_config(word), **spec}
        body = {"apiVersion": "ray.io/v1", "kind": "RayService", "metadata": metadata, "spec": whole}
        await self.kube.create(RAY_SERVICE_OBJECTS, body, self.namespace)

    async def ask(self, url: str, client: str = CLIENT, rate: float = RATE, patience: float = 10.0) -> None:
        """Have somebody ask so often a second from now on, whatever comes of it."""
        program = (PROGRAMS / "counting.py").read_text()
        command = ["python", "-c", program, url, str(rate), str(patience)]
        await asyncio.to_thread(Namespace(self.plane, self.namespace).create, a_pod(client, command))

    async def counts(self, client: str = CLIENT) -> Counts:
        """What came of all requests so far."""
        try:
            log = await asyncio.to_thread(Namespace(self.plane, self.namespace).log, client)
        except Refused:
            return Counts()  # its container is not there yet
        lines = [line for line in log.splitlines() if line.startswith("{")]
        if not lines:
            return Counts()
        last = json.loads(lines[-1])
        return Counts(last["ended"], Counter(last["failed"]), Counter(last["answers"]))

    async def ended_since(self, before: Counts, requests: int) -> Counts:
        """What came of the requests since then, once there are so many."""

        async def look() -> Counts | None:
            since = await self.counts() - before
            return since if since.ended >= requests else None

        found = await eventually(look, seconds=self.patience)
        assert found is not None
        return found

    async def answers_with(self, text: str, requests: int = RATE) -> None:
        """Return once nothing but this is answered."""

        async def look() -> bool:
            since = await self.ended_since(await self.counts(), requests)
            return set(since.answers) == {text} and not since.failed

        await eventually(look, seconds=self.patience)


def programs_in(plane: ControlPlane, namespace: str) -> None:
    """Make what is served known to the pods of a namespace."""
    programs = {"metadata": {"name": "programs"}, "data": {"hello.py": (PROGRAMS / "hello.py").read_text()}}
    plane.admin.post(f"/api/v1/namespaces/{namespace}/configmaps", programs)


@contextlib.asynccontextmanager
async def a_real_service(plane: ControlPlane, namespace: str, *flags: str) -> AsyncIterator[RealService]:
    """A namespace with an operator in it that is ready, and the program to serve."""
    install_ray_crds(plane)
    programs_in(plane, namespace)
    for collection, body in operator_objects(namespace, *flags):
        plane.admin.post(collection, body)
    async with connected(plane.admin_kubeconfig) as kube:
        await asyncio.to_thread(Namespace(plane, namespace).wait_for_pod, OPERATOR, is_ready)
        yield RealService(plane, kube, namespace, ServeHeads({}))
