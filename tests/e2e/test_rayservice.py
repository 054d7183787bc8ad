"""A RayService with real Ray Serve, kept by an operator in a pod, while somebody asks it up to fifty times a second."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from bed.crds import install_ray_crds
from bed.node.real_node import RealNode
from bed.node.settings import RAY_VERSION
from bed.rest import Refused
from e2e.cluster import Namespace, a_pod, is_ready
from e2e.operator_pod import OPERATOR, operator_objects
from e2e.ray_scene import HEAD_RESOURCES, a_template
from raykeeper.api.meta import JSON
from support.conditions import eventually
from support.kube_clients import connected
from support.ray_serve_head import ServeHeads
from support.rayservice_scene import RAY_SERVICE_OBJECTS, ServiceScene

PROGRAMS = Path(__file__).parent / "programs"
SECONDS = 240.0  # a head and Serve need 25 on an idle machine
ANSWER = re.compile(r"asked=(\d+) failed=(\d+) answer=(.*)")


def a_config(word: str) -> str:
    deployment = {"name": "Hello", "user_config": {"word": word}, "ray_actor_options": {"num_cpus": 0.1}}
    application = {"name": "hello", "import_path": "hello:app", "route_prefix": "/", "deployments": [deployment]}
    return yaml.safe_dump({"applications": [application]})


def a_cluster(release: str) -> JSON:
    template = a_template(HEAD_RESOURCES, {"RELEASE": release, "PYTHONPATH": "/programs"})
    (ray,) = template["spec"]["containers"]
    ray["volumeMounts"] = [{"name": "programs", "mountPath": "/programs"}]
    template["spec"]["volumes"] = [{"name": "programs", "configMap": {"name": "programs"}}]
    return {"rayVersion": RAY_VERSION, "headGroupSpec": {"template": template}}


class RealService(ServiceScene):
    """The RayService `web` on the real node."""

    patience = SECONDS

    async def answers(self, client: str) -> list[tuple[int, int, str]]:
        """What the client was told so far: requests, failed ones among them, the answer."""
        try:
            log = await asyncio.to_thread(Namespace(self.plane, self.namespace).log, client)
        except Refused:
            return []  # its container is not there yet
        return [(int(asked), int(failed), answer) for asked, failed, answer in ANSWER.findall(log)]

    async def answers_with(self, client: str, text: str) -> tuple[int, int, str]:
        """The client's latest line, once the answer is this text."""

        async def look() -> tuple[int, int, str] | None:
            answers = await self.answers(client)
            return answers[-1] if answers and answers[-1][2] == text else None

        return await eventually(look, seconds=self.patience) or (0, 0, "")


@pytest.fixture
async def scene(node_with_own_image: RealNode, node_namespace: str) -> AsyncIterator[RealService]:
    """A namespace with an operator in it that is ready, and the program to serve."""
    plane = node_with_own_image.plane
    install_ray_crds(plane)
    programs = {"metadata": {"name": "programs"}, "data": {"hello.py": (PROGRAMS / "hello.py").read_text()}}
    plane.admin.post(f"/api/v1/namespaces/{node_namespace}/configmaps", programs)
    for collection, body in operator_objects(node_namespace):
        plane.admin.post(collection, body)
    async with connected(plane.admin_kubeconfig) as kube:
        await asyncio.to_thread(Namespace(plane, node_namespace).wait_for_pod, OPERATOR, is_ready)
        yield RealService(plane, kube, node_namespace, ServeHeads({}))


@pytest.mark.timeout(900)
async def test_a_service_is_changed_in_place_upgraded_and_survives_its_head(scene: RealService) -> None:
    spec: JSON = {"serveConfigV2": a_config("hello"), "rayClusterConfig": a_cluster("one")}
    body = {"apiVersion": "ray.io/v1", "kind": "RayService", "metadata": {"name": "web"}, "spec": spec}
    await scene.kube.create(RAY_SERVICE_OBJECTS, body, scene.namespace)
    first = await scene.serves()
    ask = ["python", "-c", (PROGRAMS / "asking.py").read_text(), "http://web-serve-svc:8000/"]
    Namespace(scene.plane, scene.namespace).create(a_pod("client", ask))
    await scene.answers_with("client", "hello from one")

    await scene.patch(serveConfigV2=a_config("hi"))
    await scene.answers_with("client", "hi from one")
    assert await scene.serves() == first

    edited = time.monotonic()
    await scene.patch(rayClusterConfig=a_cluster("two"))
    second = await scene.serves(other_than=first)
    switched = time.monotonic() - edited
    asked, failed, _ = await scene.answers_with("client", "hi from two")
    print(f"from the edit to the switch: {switched:.1f} s; {failed} of {asked} requests failed")
    answers = [answer for _, _, answer in await scene.answers("client")]
    assert failed == 0, answers

    await scene.delete_head(second)
    await scene.says("Ready", "False")
    assert await scene.serves() == second, "the new head of the same cluster gets its applications again"
    await scene.answers_with("client", "hi from two")

    await scene.patch(suspend=True)
    await scene.says("Suspended", "True")
    await scene.has_clusters()
