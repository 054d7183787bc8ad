"""RayClusters of our operator are real: Ray runs jobs in them, scales them itself, and outlives its head."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from bed.node.image import REDIS_IMAGE
from bed.node.real_node import RealNode
from e2e.cluster import a_pod, a_service, is_ready
from e2e.ray_scene import SHORT_MOURNING, WORKERS, RealScene, a_real_cluster, a_real_group, real_scene
from raykeeper.api import labels

JOB = "import ray; ray.init(); print('answer', ray.get(ray.remote(num_cpus=1)(lambda: 6 * 7).remote()))"
"""Needs a worker: the head has no CPU to offer."""
JOB_OF_AN_ACTOR = """
import ray
ray.init()

@ray.remote(num_cpus=1)
class Asked:
    def answer(self):
        return 6 * 7

print('answer', ray.get(Asked.remote().answer.remote()))
"""
"""The same by an actor, which Ray's GCS places and reports as waiting, where raylets do so for tasks."""


@pytest.fixture
async def scene(real_node: RealNode, node_namespace: str) -> AsyncIterator[RealScene]:
    async with real_scene(real_node.plane, node_namespace) as made:
        yield made


async def test_a_raycluster_comes_back_from_a_suspension_and_a_lost_head_and_runs_a_job(scene: RealScene) -> None:
    await scene.apply(a_real_cluster(a_real_group(env=SHORT_MOURNING)))
    await scene.turns("ready")

    await scene.patch(suspend=True)
    await scene.turns("suspended")
    assert await scene.pods() == []
    await scene.patch(suspend=False)
    await scene.turns("ready")

    await scene.kill_head()
    assert "answer 42" in await scene.run_job(JOB)
    await scene.turns("ready")


async def test_rays_own_autoscaler_brings_a_worker_up_for_an_actor_and_removes_it_when_idle(scene: RealScene) -> None:
    group = a_real_group(0, minReplicas=0, maxReplicas=1, idleTimeoutSeconds=5)
    options = {"version": "v2", "env": [{"name": "AUTOSCALER_UPDATE_INTERVAL_S", "value": "1"}]}
    await scene.apply(a_real_cluster(group, enableInTreeAutoscaling=True, autoscalerOptions=options))
    await scene.turns("ready")
    assert await scene.group(WORKERS) == []
    assert "answer 42" in await scene.run_job(JOB_OF_AN_ACTOR)

    async def no_worker_is_left() -> bool:
        return not await scene.group(WORKERS)

    await scene.sees(no_worker_is_left)
    await scene.turns("ready")


async def test_with_redis_a_worker_outlives_the_head_and_deletion_leaves_redis_empty(scene: RealScene) -> None:
    redis = a_pod("redis", ["redis-server", "--protected-mode", "no"], image=REDIS_IMAGE)
    await scene.create(redis, a_service("redis", 6379))
    await scene.wait_for_pod("redis", is_ready)
    await scene.apply(a_real_cluster(a_real_group(), gcsFaultToleranceOptions={"redisAddress": "redis:6379"}))
    await scene.turns("ready")
    assert (await scene.cluster())["metadata"]["finalizers"] == [labels.GCS_FT_REDIS_CLEANUP_FINALIZER]
    workers = await scene.ready(WORKERS)
    await scene.kill_head()
    await scene.turns("ready")
    assert "answer 42" in await scene.run_job(JOB)
    assert await scene.ready(WORKERS) == workers
    assert await redis_keys(scene, "before") != []

    await scene.delete()
    assert await redis_keys(scene, "after") == []


async def redis_keys(scene: RealScene, when: str) -> list[str]:
    """All keys in the test's Redis, asked by a pod."""
    ask = ["redis-cli", "-h", "redis", "keys", "*"]
    return (await scene.output_of(a_pod(f"keys-{when}", ask, image=REDIS_IMAGE))).split()
