"""Changes of a RayService, stopped after every single write of the operator and gone on with by the next one.

The end is the same, no cluster is made twice, and what serves is never without an endpoint.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
import pytest_asyncio

from bed.control_plane import ControlPlane
from bed.kwok import Kwok
from raykeeper.api.meta import JSON, Object
from raykeeper.operator.kinds import WATCHED_RAYCLUSTERS
from support.conditions import eventually
from support.crashes import CrashAfter
from support.operating import Operator
from support.rayservice_scene import ServiceScene, a_cluster_config, a_rayservice, a_serve_config, a_service_scene
from support.side_by_side import Told, selected, told

pytestmark = pytest.mark.timeout(1500)  # the first test plays all stories
AT_ONCE = 6
"""Interruptions of a story that are played side by side: each waits most of the time."""
MOST_WRITES = 60
PATIENCE = 400.0
HEAD_ALONE: JSON = a_cluster_config() | {"workerGroupSpecs": []}
OTHER: JSON = a_cluster_config(image="rayproject/ray:2.61.0") | {"workerGroupSpecs": []}


async def starts(scene: ServiceScene) -> None:
    await scene.apply(a_rayservice(rayClusterConfig=HEAD_ALONE))


async def is_upgraded(scene: ServiceScene) -> None:
    await scene.patch(rayClusterConfig=OTHER, serveConfigV2=a_serve_config("search"))


async def gets_another_config(scene: ServiceScene) -> None:
    await scene.patch(serveConfigV2=a_serve_config("search"))


async def is_suspended(scene: ServiceScene) -> None:
    await scene.patch(suspend=True)


async def serves_shop(scene: ServiceScene) -> bool:
    return await serves_on(scene, "shop")


async def serves_search(scene: ServiceScene) -> bool:
    return await serves_on(scene, "search")


async def serves_on(scene: ServiceScene, application: str) -> bool:
    """Whether all is settled: one cluster, which has the application, the label and the traffic."""
    status = await scene.status()
    active: JSON = status.get("activeServiceStatus", {})
    name, clusters = active.get("rayClusterName", ""), await scene.clusters()
    is_served = status.get("serviceStatus") == "Running" and not await scene.pending()
    if not is_served or set(clusters) != {name} or set(active.get("applicationStatuses", {})) != {application}:
        return False
    label = (await scene.head_pod(name))["metadata"]["labels"]["ray.io/serve"]
    return bool(label == "true") and await scene.selected() == name and await scene.selected("web-head-svc") == name


async def has_suspended(scene: ServiceScene) -> bool:
    return (await scene.condition("Suspended")).get("status") == "True" and not await scene.clusters()


@dataclass(frozen=True)
class Story:
    """What is changed about a service, and how one knows that the change is done."""

    change: Callable[[ServiceScene], Awaitable[None]]
    is_done: Callable[[ServiceScene], Awaitable[bool]]
    clusters: int
    """How many clusters there must have been in all."""
    is_there: bool = True
    """The service serves before the change."""


STORIES = {
    "start": Story(starts, serves_shop, clusters=1, is_there=False),
    "upgrade": Story(is_upgraded, serves_search, clusters=2),
    "another config": Story(gets_another_config, serves_search, clusters=1),
    "suspension": Story(is_suspended, has_suspended, clusters=1),
}


def following(operator: Operator, uids: set[str]) -> None:
    def note(_old: Object | None, new: Object | None) -> None:
        if new is not None:
            uids.add(new.metadata.uid)

    operator.informers.of(WATCHED_RAYCLUSTERS).on_change(note)


async def play(plane: ControlPlane, story: Story, writes: int) -> tuple[bool, dict[str, Any]]:
    """Whether it was not interrupted, and how it ended."""
    async with a_service_scene(plane) as scene:
        made: set[str] = set()
        if story.is_there:
            await scene.apply(a_rayservice(rayClusterConfig=HEAD_ALONE, rayClusterDeletionDelaySeconds=0))
            async with scene.operating() as operator:
                following(operator, made)
                await eventually(lambda: serves_shop(scene), seconds=PATIENCE)
        await story.change(scene)
        fence = CrashAfter(writes)

        async def is_over() -> bool:
            return fence.is_spent or await story.is_done(scene)

        async with scene.operating(fence=fence) as first:
            following(first, made)
            await eventually(is_over, seconds=PATIENCE)
        async with scene.operating() as second:
            following(second, made)
            await second.informers.wait_synced()
            await eventually(lambda: story.is_done(scene), seconds=PATIENCE)
        assert len(made) == story.clusters, f"stopped after {writes} writes"
        return not fence.is_spent, await portrait(scene)


async def portrait(scene: ServiceScene) -> dict[str, Any]:
    """What must be the same in the end."""
    conditions = (await scene.status())["conditions"]
    services = {name for name in await scene.services() if name in ("web-head-svc", "web-serve-svc")}
    return {"conditions": {(one["type"], one["status"], one["reason"]) for one in conditions}, "services": services}


async def play_all(plane: ControlPlane, story: Story) -> list[tuple[bool, dict[str, Any]]]:
    """The ends after no write, after one, after two and so on, up to one that was not interrupted."""
    ends: list[tuple[bool, dict[str, Any]]] = []
    while not any(is_undisturbed for is_undisturbed, _ in ends):
        assert len(ends) < MOST_WRITES, "it never ends"
        numbers = range(len(ends), len(ends) + AT_ONCE)
        ends += await asyncio.gather(*(play(plane, story, writes) for writes in numbers))
    return ends


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ends(
    request: pytest.FixtureRequest, ray_crds: ControlPlane, kwok: Kwok
) -> Told[list[tuple[bool, dict[str, Any]]]]:
    names = selected(request, "name")
    return await told({name: partial(play_all, ray_crds, STORIES[name]) for name in names}, 2)


@pytest.mark.parametrize("name", STORIES)
def test_the_end_is_the_same_wherever_the_operator_was_stopped(
    name: str, ends: Told[list[tuple[bool, dict[str, Any]]]]
) -> None:
    undisturbed = next(number for number, (is_undisturbed, _) in enumerate(ends[name]) if is_undisturbed)
    for writes, (_, end) in enumerate(ends[name]):
        assert end == ends[name][undisturbed][1], f"stopped after {writes} writes"
    assert undisturbed >= 3, "the writes that the test is about were not made"
