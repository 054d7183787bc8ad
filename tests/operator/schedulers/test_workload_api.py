"""Kubernetes' own workload API: a real API server with its gates on, and the scheduler that starts gangs together."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Final
from uuid import uuid4

import pytest

from bed.control_plane import ControlPlane
from bed.crds import install_ray_crds
from bed.fixtures import NewControlPlane, make_namespace
from bed.kwok import Kwok
from bed.schedulers import WORKLOAD_API
from raykeeper.api import labels
from raykeeper.api.meta import JSON, ObjectKey
from raykeeper.operator.schedulers import kubernetes_was
from support.conditions import eventually
from support.crashes import Story, play
from support.kube_clients import connected
from support.operating import operating, with_scheduler
from support.raycluster_scene import CLUSTERS, POD_OBJECTS, Scene, a_group, a_raycluster

WORKLOADS: Final = kubernetes_was.WORKLOADS.read_as(dict)
POD_GROUPS: Final = kubernetes_was.POD_GROUPS.read_as(dict)
GANG: Final = {labels.GANG_SCHEDULING_ENABLED: "True"}
GIVEN: Final = with_scheduler("kubernetes-was")
SECONDS: Final = 90.0


@pytest.fixture(scope="module")
def plane(new_control_plane: NewControlPlane) -> Iterator[ControlPlane]:
    plane = new_control_plane(WORKLOAD_API)
    install_ray_crds(plane)
    kwok = Kwok(plane)
    kwok.up(nodes=2)
    yield plane
    kwok.down()


@pytest.fixture
async def scene(plane: ControlPlane) -> AsyncIterator[Scene]:
    namespace = f"gang-{uuid4().hex[:8]}"
    make_namespace(plane, namespace)
    async with connected(plane.admin_kubeconfig) as kube:
        yield Scene(kube, namespace)


def a_gang(*groups: JSON, **spec: Any) -> JSON:
    body = a_raycluster(*groups, **spec)
    return {**body, "metadata": {**body["metadata"], "labels": GANG}}


def size(item: JSON) -> int:
    """Of a Workload or a PodGroup."""
    spec = item["spec"]
    policy = spec["podGroupTemplates"][0] if "podGroupTemplates" in spec else spec
    return int(policy["schedulingPolicy"]["gang"]["minCount"])


async def has_size(scene: Scene, members: int) -> JSON:
    """The PodGroup, once it and its Workload ask for so many."""

    async def look() -> JSON | None:
        workload = await scene.kube.find(WORKLOADS, scene.key)
        group = await scene.kube.find(POD_GROUPS, ObjectKey(scene.namespace, f"{scene.key.name}-cluster"))
        if workload is None or group is None or {size(workload), size(group)} != {members}:
            return None
        return None if "deletionTimestamp" in group["metadata"] else group

    return await eventually(look, seconds=SECONDS) or {}


async def test_a_gang_starts_grows_shrinks_rests_and_goes_without_losing_a_pod(
    plane: ControlPlane, scene: Scene
) -> None:
    await scene.apply(a_gang(a_group("small", 2)))
    async with operating(plane.admin_kubeconfig, scene.namespace, **GIVEN):
        await scene.becomes("ready", seconds=SECONDS)
        await has_size(scene, 3)
        first = await scene.names("small")
        pods = await scene.pods()
        assert {pod["spec"]["schedulingGroup"]["podGroupName"] for pod in pods} == {"demo-cluster"}
        assert {pod["spec"]["schedulerName"] for pod in pods} == {"default-scheduler"}
        await scene.patch(workerGroupSpecs=[a_group("small", 4)])
        await has_size(scene, 5)
        await scene.becomes("ready", seconds=SECONDS)
        assert first <= await scene.names("small")
        await scene.patch(workerGroupSpecs=[a_group("small", 1)])
        await has_size(scene, 2)
        await scene.becomes("ready", seconds=SECONDS)
        await scene.patch(suspend=True)
        await scene.becomes("suspended", seconds=SECONDS)
        await scene.patch(suspend=False)
        await scene.becomes("ready", seconds=SECONDS)
        (worker,) = await scene.names("small")
        await scene.kube.delete(POD_OBJECTS, ObjectKey(scene.namespace, worker))
        await scene.is_gone(worker, "small")
        await scene.becomes("ready", seconds=SECONDS)  # a pod that comes later finds its gang, and starts
        await scene.kube.delete(CLUSTERS, scene.key)
        await nothing_is_left(scene)


async def nothing_is_left(scene: Scene) -> None:
    async def look() -> bool:
        left = [await scene.kube.list(kind, scene.namespace) for kind in (WORKLOADS, POD_GROUPS)]
        return left == [[], []]

    await eventually(look, seconds=SECONDS)


async def test_a_cluster_that_does_not_ask_for_it_has_no_gang(plane: ControlPlane, scene: Scene) -> None:
    body = a_raycluster(a_group("small", 1))
    body["metadata"]["labels"] = {labels.GANG_SCHEDULING_ENABLED: "no"}
    await scene.apply(body)
    async with operating(plane.admin_kubeconfig, scene.namespace, **GIVEN):
        await scene.becomes("ready", seconds=SECONDS)
    await nothing_is_left(scene)
    assert all("schedulingGroup" not in pod["spec"] for pod in await scene.pods())


async def test_a_gang_of_another_size_that_kuberay_left_is_made_anew(plane: ControlPlane, scene: Scene) -> None:
    """KubeRay's have no label of ours but that of the cluster; here even that was taken away."""
    await scene.apply(a_gang(a_group("small", 2)))
    async with operating(plane.admin_kubeconfig, scene.namespace, **GIVEN):
        await scene.becomes("ready", seconds=SECONDS)
    old = await has_size(scene, 3)
    for kind, name in ((WORKLOADS, "demo"), (POD_GROUPS, "demo-cluster")):
        await scene.kube.merge_patch(
            kind, ObjectKey(scene.namespace, name), {"metadata": {"labels": {labels.CLUSTER: None}}}
        )
    await scene.patch(workerGroupSpecs=[a_group("small", 3)])
    async with operating(plane.admin_kubeconfig, scene.namespace, **GIVEN):
        new = await has_size(scene, 4)
        await scene.becomes("ready", seconds=SECONDS)
    assert new["metadata"]["uid"] != old["metadata"]["uid"]
    assert new["metadata"]["labels"] == {labels.CLUSTER: "demo"}


async def test_a_workload_of_somebody_else_is_left_alone_and_named(plane: ControlPlane, scene: Scene) -> None:
    template = {"name": "theirs", "schedulingPolicy": {"gang": {"minCount": 7}}}
    theirs = {"apiVersion": WORKLOADS.api_version, "kind": "Workload", "metadata": {"name": "demo"}}
    await scene.kube.create(WORKLOADS, theirs | {"spec": {"podGroupTemplates": [template]}}, scene.namespace)
    await scene.apply(a_gang())
    async with operating(plane.admin_kubeconfig, scene.namespace, **GIVEN):
        told = await scene.condition("ReplicaFailure", "True")
    assert "Workload demo is there already" in told["message"]
    assert await scene.pods() == []
    assert size(await scene.kube.get(WORKLOADS, scene.key)) == 7


def patched(**spec: Any) -> Callable[[Scene], Any]:
    return lambda scene: scene.patch(**spec)


async def is_ready(scene: Scene) -> bool:
    return await scene.is_now("ready")


STORIES: Final = {
    "a new gang": Story(lambda scene: scene.apply(a_gang(a_group("small", 2))), is_ready, made=3, gone=0, given=GIVEN),
    "a gang that grows": Story(
        patched(workerGroupSpecs=[a_group("small", 3)]),
        is_ready,
        made=4,
        gone=0,
        before=a_gang(a_group("small", 1)),
        given=GIVEN,
    ),
    "a gang that shrinks": Story(
        patched(workerGroupSpecs=[a_group("small", 1)]),
        is_ready,
        made=4,
        gone=2,
        before=a_gang(a_group("small", 3)),
        given=GIVEN,
    ),
}


@pytest.mark.parametrize("what", STORIES)
async def test_the_end_is_the_same_wherever_it_was_interrupted(what: str, plane: ControlPlane) -> None:
    assert await play(plane, STORIES[what]) >= 5, "the writes that the test is about were not made"
