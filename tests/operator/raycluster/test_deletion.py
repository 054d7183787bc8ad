"""A cluster that keeps its state in Redis goes once Redis is clean; where that cannot be, it says so and goes too."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from bed.control_plane import ControlPlane
from bed.faults import Fault, HttpFaults
from raykeeper.api import labels
from raykeeper.api.meta import JSON
from raykeeper.kube.resources import EVENTS
from raykeeper.operator.settings import OperatorSettings, RayClusterSettings
from support.conditions import eventually
from support.kube_clients import connected
from support.operating import ClockAhead, operating
from support.raycluster_scene import CLUSTERS, TEMPLATE, Scene, a_raycluster

pytestmark = pytest.mark.usefixtures("kwok")

REDIS: JSON = {"gcsFaultToleranceOptions": {"redisAddress": "redis:6379"}}
WITHOUT_CLEAN_UP = OperatorSettings(raycluster=RayClusterSettings(cleans_up_redis=False))


@pytest.fixture
async def scene(ray_crds: ControlPlane, namespace: str) -> AsyncIterator[Scene]:
    async with connected(ray_crds.admin_kubeconfig) as kube:
        yield Scene(kube, namespace)


async def is_told(scene: Scene, reason: str) -> bool:
    return reason in [event["reason"] for event in await scene.kube.list(EVENTS, scene.namespace)]


async def is_gone(scene: Scene) -> bool:
    return await scene.kube.find(CLUSTERS, scene.key) is None


async def test_a_clean_up_that_cannot_be_started_is_told_and_given_up_after_its_time(
    ray_crds: ControlPlane, scene: Scene
) -> None:
    with HttpFaults(ray_crds, random.Random(4)) as wire:
        wire.inject(Fault(403, "POST", "/jobs"))
        through_proxy = ray_crds.kubeconfig(server=wire.server)
        async with operating(through_proxy, scene.namespace):
            await scene.apply(a_raycluster(**REDIS))
            await scene.becomes("ready")
            await scene.kube.delete(CLUSTERS, scene.key)
            await eventually(lambda: is_told(scene, "FailedToCreateRedisCleanupJob"))
            assert not await is_gone(scene)
        async with operating(through_proxy, scene.namespace, clock=ClockAhead(timedelta(minutes=10))):
            await eventually(lambda: is_gone(scene))
            await eventually(lambda: is_told(scene, "ForceDeletedStuckCluster"))


async def test_a_finalizer_whose_reason_went_away_does_not_hold_the_cluster(
    ray_crds: ControlPlane, scene: Scene
) -> None:
    async with operating(ray_crds.admin_kubeconfig, scene.namespace):
        await scene.apply(a_raycluster(**REDIS))
        cluster = await scene.becomes("ready")
        assert labels.GCS_FT_REDIS_CLEANUP_FINALIZER in cluster["metadata"]["finalizers"]
    async with operating(ray_crds.admin_kubeconfig, scene.namespace, settings=WITHOUT_CLEAN_UP):
        await scene.kube.delete(CLUSTERS, scene.key)
        await eventually(lambda: is_gone(scene))


async def test_the_end_of_a_clean_up_is_seen_whatever_labels_the_template_has(
    ray_crds: ControlPlane, scene: Scene
) -> None:
    template: JSON = {"metadata": {"labels": {labels.CREATED_BY: "me"}}, **TEMPLATE}
    async with operating(ray_crds.admin_kubeconfig, scene.namespace):
        await scene.apply(a_raycluster(headGroupSpec={"template": template}, **REDIS))
        await scene.becomes("ready")
        await scene.kube.delete(CLUSTERS, scene.key)
        await eventually(lambda: is_gone(scene))
    assert not await is_told(scene, "ForceDeletedStuckCluster")
