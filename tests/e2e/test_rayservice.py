"""A RayService with real Ray Serve, kept by an operator in a pod, while somebody asks it twenty times a second."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

import pytest

from bed.node.real_node import RealNode
from e2e.real_services import RealService, a_cluster, a_config, a_real_service
from support.conditions import eventually

URL = "http://web-serve-svc:8000/"


async def has_answer(scene: RealService, client: str, text: str) -> bool:
    return text in (await scene.counts(client)).answers


@pytest.fixture
async def scene(node_with_own_image: RealNode, node_namespace: str) -> AsyncIterator[RealService]:
    async with a_real_service(node_with_own_image.plane, node_namespace) as scene:
        yield scene


@pytest.mark.timeout(900)
async def test_a_service_is_changed_in_place_upgraded_and_survives_its_head(scene: RealService) -> None:
    await scene.create("hello", rayClusterConfig=a_cluster("one"))
    first = await scene.serves()
    await scene.ask(URL, rate=20, patience=60)  # so that a busy machine fails no request
    await scene.answers_with("hello from one")

    await scene.patch(serveConfigV2=a_config("hi"))
    await scene.answers_with("hi from one")
    assert await scene.serves() == first

    before, edited = await scene.counts(), time.monotonic()
    await scene.ask(f"{URL}?seconds=15", "slow", rate=0.2, patience=60)  # three are always under way
    await scene.patch(rayClusterConfig=a_cluster("two"))
    second = await scene.serves(other_than=first)
    print(f"from the edit to the switch: {time.monotonic() - edited:.1f} s")
    await scene.answers_with("hi from two")
    since = await scene.counts() - before
    print(since)
    assert not since.failed, since
    await eventually(lambda: has_answer(scene, "slow", "hi from two"), seconds=scene.patience)
    slow = await scene.counts("slow")
    assert slow.answers["hi from one"], slow
    assert not slow.failed, "requests that were under way at the switch came to their end"

    await scene.delete_head(second)
    await scene.says("Ready", "False")
    assert await scene.serves() == second, "the new head of the same cluster gets its applications again"
    await scene.answers_with("hi from two")

    await scene.patch(suspend=True)
    await scene.says("Suspended", "True")
    await scene.has_clusters()
    await scene.patch(suspend=False)
    third = await scene.serves(other_than=second)
    await scene.answers_with("hi from two")
    await scene.has_clusters(third)
