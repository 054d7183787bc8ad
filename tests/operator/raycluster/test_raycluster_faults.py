"""What goes wrong around a RayCluster, and that it comes right again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from bed.control_plane import ControlPlane
from bed.crds import install_ray_crds
from bed.fixtures import make_namespace
from bed.kwok import Kwok
from raykeeper.api import labels
from raykeeper.api.meta import JSON, ObjectKey
from raykeeper.kube.resources import JOBS, PODS
from support.conditions import eventually
from support.kube_clients import connected
from support.operating import ClockAhead, operating
from support.raycluster_scene import CLUSTERS, TEMPLATE, Scene, a_group, a_raycluster

LATER = ClockAhead(timedelta(minutes=10))
STUCK = {"metadata": {"annotations": {"bed/stuck": "true"}}, **TEMPLATE}
"""Pods that seem to run for ever once they are deleted, as on a node that no longer answers."""


@pytest.fixture
async def scene(ray_crds: ControlPlane, kwok: Kwok, namespace: str) -> AsyncIterator[Scene]:
    """A cluster without an operator; each test brings its own."""
    async with connected(ray_crds.admin_kubeconfig) as kube:
        yield Scene(kube, namespace)


async def free_stuck_pods(scene: Scene) -> None:
    """Let the namespace be deleted after the test."""
    await scene.kube.delete(CLUSTERS, scene.key)
    await scene.kube.delete_collection(PODS, scene.namespace, grace_seconds=0)


@pytest.mark.parametrize("group", [labels.HEAD_GROUP, "small"])
async def test_a_pod_on_a_node_that_does_not_answer_is_replaced_without_a_person(
    group: str, ray_crds: ControlPlane, scene: Scene
) -> None:
    await scene.apply(a_raycluster(a_group("small", 1, template=STUCK), headGroupSpec={"template": STUCK}))
    async with operating(ray_crds.admin_kubeconfig, scene.namespace):
        await scene.becomes("ready")
    (lost,) = await scene.names(group)
    await scene.kube.delete(PODS, ObjectKey(scene.namespace, lost))
    async with operating(ray_crds.admin_kubeconfig, scene.namespace, clock=LATER):
        await scene.becomes("ready")
        assert lost not in await scene.has_pods(group, 1)
        assert await scene.kube.find(PODS, ObjectKey(scene.namespace, lost)) is None
    await free_stuck_pods(scene)


def held_head(kind: str) -> JSON:
    """A template for a head that somebody's finalizer will hold."""
    templates: dict[str, JSON] = {
        "well": TEMPLATE,
        "on a dead node": STUCK,
        "never scheduled": {"spec": TEMPLATE["spec"] | {"nodeSelector": {"gpu": "of-the-next-year"}}},
    }
    return templates[kind]


@pytest.mark.parametrize("kind", ["well", "on a dead node", "never scheduled"])
async def test_a_head_held_by_a_finalizer_is_replaced_after_five_minutes_and_blocks_no_group(
    kind: str, ray_crds: ControlPlane, scene: Scene
) -> None:
    await scene.apply(a_raycluster(a_group("small", 1), headGroupSpec={"template": held_head(kind)}))
    async with operating(ray_crds.admin_kubeconfig, scene.namespace):
        (head,) = await scene.has_pods(labels.HEAD_GROUP, 1)
        await scene.has_pods("small", 1)
        held = ObjectKey(scene.namespace, head)
        await scene.kube.merge_patch(PODS, held, {"metadata": {"finalizers": ["example.com/held"]}})
        await scene.kube.delete(PODS, held)
        await scene.patch(workerGroupSpecs=[a_group("small", 2)])
        await scene.has_pods("small", 2)
        assert await scene.names(labels.HEAD_GROUP) == set(), "nobody knows yet whether it still runs"
    async with operating(ray_crds.admin_kubeconfig, scene.namespace, clock=LATER):
        await scene.has_pods(labels.HEAD_GROUP, 1)
        await scene.patch(workerGroupSpecs=[a_group("small", 3)])
        await scene.has_pods("small", 3)
        assert len(await scene.names(labels.HEAD_GROUP)) == 1
        assert await scene.kube.find(PODS, held) is not None, "who holds it lets it go"
    await scene.kube.merge_patch(PODS, held, {"metadata": {"finalizers": None}})
    await free_stuck_pods(scene)


async def test_a_worker_held_by_a_finalizer_on_a_dead_node_is_replaced_and_its_group_grows(
    ray_crds: ControlPlane, scene: Scene
) -> None:
    group = a_group("small", 1, template=STUCK)
    await scene.apply(a_raycluster(group))
    async with operating(ray_crds.admin_kubeconfig, scene.namespace):
        await scene.becomes("ready")
    (worker,) = await scene.names("small")
    held = ObjectKey(scene.namespace, worker)
    await scene.kube.merge_patch(PODS, held, {"metadata": {"finalizers": ["example.com/held"]}})
    await scene.kube.delete(PODS, held)
    async with operating(ray_crds.admin_kubeconfig, scene.namespace, clock=LATER):
        await scene.has_pods("small", 1)
        await scene.patch(workerGroupSpecs=[group | {"replicas": 3}])
        await scene.has_pods("small", 3)
    await scene.kube.merge_patch(PODS, held, {"metadata": {"finalizers": None}})
    await free_stuck_pods(scene)


async def test_a_second_head_is_not_made_while_the_first_may_still_run(ray_crds: ControlPlane, scene: Scene) -> None:
    await scene.apply(a_raycluster(a_group("small", 1), headGroupSpec={"template": STUCK}))
    async with operating(ray_crds.admin_kubeconfig, scene.namespace):
        await scene.becomes("ready")
        (head,) = await scene.names(labels.HEAD_GROUP)
        await scene.kube.delete(PODS, ObjectKey(scene.namespace, head))
        assert "is on its way out" in (await scene.condition("Ready", "False"))["message"]
        assert await scene.names(labels.HEAD_GROUP) == set()
    await free_stuck_pods(scene)


async def test_a_multi_host_replica_lives_and_dies_together(ray_crds: ControlPlane, scene: Scene) -> None:
    await scene.apply(a_raycluster(a_group("tpu", 2, numOfHosts=2)))
    # To this operator the replicas are no longer young enough to be still in the making.
    async with operating(ray_crds.admin_kubeconfig, scene.namespace, clock=LATER):
        await scene.becomes("ready")
        before = await scene.has_pods("tpu", 4)
        lost = min(before)
        await scene.kube.delete(PODS, ObjectKey(scene.namespace, lost))

        async def is_replaced() -> bool:
            now = await scene.names("tpu")
            return len(now) == 4 and len(now & before) == 2

        await eventually(is_replaced)
        assert lost not in await scene.names("tpu")


def with_redis(*groups: JSON) -> JSON:
    return a_raycluster(*groups, gcsFaultToleranceOptions={"redisAddress": "redis:6379"})


async def test_deletion_waits_for_redis_to_be_cleaned(ray_crds: ControlPlane, scene: Scene) -> None:
    await scene.apply(with_redis(a_group("small", 1)))
    async with operating(ray_crds.admin_kubeconfig, scene.namespace):
        cluster = await scene.becomes("ready")
        assert labels.GCS_FT_REDIS_CLEANUP_FINALIZER in cluster["metadata"]["finalizers"]
        await scene.kube.delete(CLUSTERS, scene.key)
        job = await eventually(lambda: scene.kube.find(JOBS, ObjectKey(scene.namespace, "demo-redis-cleanup")))
        assert job is not None
        node_types = {pod["metadata"]["labels"][labels.NODE_TYPE] for pod in await scene.pods()}
        assert labels.HEAD not in node_types, "the GCS must have stopped writing"

        async def is_gone() -> bool:
            return await scene.kube.find(CLUSTERS, scene.key) is None

        await eventually(is_gone)


async def test_an_invalid_cluster_can_still_be_deleted(ray_crds: ControlPlane, scene: Scene) -> None:
    await scene.apply(with_redis())
    async with operating(ray_crds.admin_kubeconfig, scene.namespace):
        await scene.becomes("ready")
        await scene.patch(headGroupSpec={"rayStartParams": {"redis-username": "x"}})
        await scene.condition("RayClusterInvalid", "True")
        await scene.kube.delete(CLUSTERS, scene.key)

        async def is_gone() -> bool:
            return await scene.kube.find(CLUSTERS, scene.key) is None

        await eventually(is_gone)


SPACE, COUNT = "faulty", 20


async def test_an_api_server_that_is_killed_meanwhile_costs_no_pod(own_control_plane: ControlPlane) -> None:
    plane = own_control_plane
    kwok = Kwok(plane)
    await asyncio.to_thread(install_ray_crds, plane)
    await asyncio.to_thread(kwok.up, 2)
    await asyncio.to_thread(make_namespace, plane, SPACE)
    try:
        async with connected(plane.admin_kubeconfig) as kube, operating(plane.admin_kubeconfig, SPACE):
            scenes = [Scene(kube, SPACE, f"cluster-{number}") for number in range(COUNT)]
            for scene in scenes:
                await scene.apply(a_raycluster(a_group("small", 2), name=scene.key.name))
            await asyncio.to_thread(plane.restart_apiserver)
            for scene in scenes:
                await scene.becomes("ready", seconds=180)  # half a minute on a machine that is free
            assert [len(await scene.pods()) for scene in scenes] == [3] * COUNT
    finally:
        await asyncio.to_thread(kwok.down)
