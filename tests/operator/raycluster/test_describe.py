"""What a person reads who asks kubectl what is the matter with a RayCluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from bed.control_plane import ControlPlane
from raykeeper.api.meta import JSON
from support.conditions import eventually
from support.kube_clients import connected
from support.operating import operating
from support.raycluster_scene import QUOTAS, TEMPLATE, Scene, a_group, a_raycluster

pytestmark = pytest.mark.usefixtures("kwok")


@pytest.fixture
async def scene(ray_crds: ControlPlane, namespace: str) -> AsyncIterator[Scene]:
    async with connected(ray_crds.admin_kubeconfig) as kube, operating(ray_crds.admin_kubeconfig, namespace):
        yield Scene(kube, namespace)


async def read(plane: ControlPlane, scene: Scene, *sentences: str) -> str:
    """What `kubectl describe` prints, on one line and once it says all of the sentences."""

    async def told() -> str:
        command = ("describe", "raycluster", scene.key.name, f"--namespace={scene.namespace}")
        lines = (await asyncio.to_thread(plane.kubectl, *command)).split()
        text = " ".join(lines)
        return text if all(sentence in text for sentence in sentences) else ""

    return await eventually(told)


async def test_an_invalid_spec_is_told_field_by_field_with_what_to_do(ray_crds: ControlPlane, scene: Scene) -> None:
    head: JSON = {"template": TEMPLATE, "rayStartParams": {"num-cpus": "1"}, "resources": {"CPU": "1"}}
    await scene.apply(a_raycluster(a_group("small", minReplicas=3, maxReplicas=1), headGroupSpec=head))
    wrong = (
        "spec.headGroupSpec.rayStartParams[num-cpus] is set: use either it or spec.headGroupSpec.resources, not both; "
        "spec.workerGroupSpecs[0].minReplicas is 3: use at most spec.workerGroupSpecs[0].maxReplicas, which is 1"
    )
    text = await read(ray_crds, scene, "Type: RayClusterInvalid", "Warning InvalidRayClusterSpec")
    assert text.count(wrong) == 2, "in the condition, and in the event"


async def test_a_quota_that_is_used_up_is_named_with_its_numbers(ray_crds: ControlPlane, scene: Scene) -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}, "spec": {"hard": {"pods": "2"}}}
    await scene.kube.create(QUOTAS, quota, scene.namespace)
    await scene.apply(a_raycluster(a_group("small", 5)))
    text = await read(ray_crds, scene, "Type: ReplicaFailure", "Warning FailedToCreateWorkerPod")
    told = text.count("exceeded quota: few, requested: pods=1, used: pods=2, limited: pods=2")
    assert told == 3, "in the conditions ReplicaFailure and Ready, and in the event"


async def test_a_head_that_fails_is_told_with_the_way_it_ended(ray_crds: ControlPlane, scene: Scene) -> None:
    failing = {"metadata": {"annotations": {"bed/fail": "true"}}, **TEMPLATE}
    await scene.apply(a_raycluster(a_group("small", 1), headGroupSpec={"template": failing}))
    ending = "container ray ended with exit code 1, Error"
    await read(ray_crds, scene, f"Message: {ending} Observed Generation: 1 Reason: PodCompleted Status: False")
    await read(ray_crds, scene, f"it has ended and will not be restarted ({ending})")


async def test_a_head_for_which_there_is_no_node_is_told_with_what_the_scheduler_says(
    ray_crds: ControlPlane, scene: Scene
) -> None:
    picky = {"spec": TEMPLATE["spec"] | {"nodeSelector": {"gpu": "of-the-next-year"}}}
    await scene.apply(a_raycluster(headGroupSpec={"template": picky}))
    text = await read(ray_crds, scene, "Reason: Unschedulable Status: False Type: HeadPodReady")
    assert "nodes are available" in text
