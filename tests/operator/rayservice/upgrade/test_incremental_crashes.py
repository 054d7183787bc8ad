"""Incremental upgrades and rollbacks, stopped after every single write of the operator and gone on with by the next.

The end is the same, no cluster is made twice, and at no moment does a cluster get traffic that it has no capacity for.
Some forty upgrades with real intervals take minutes, so this is part of `make soak`.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from bed.control_plane import ControlPlane
from raykeeper.api.meta import JSON, Object
from raykeeper.operator.kinds import WATCHED_RAYCLUSTERS
from support.conditions import eventually
from support.crashes import CrashAfter
from support.gateway_scene import AUTOSCALED, OTHER, WITH_GATEWAYS, GatewayScene, a_gateway_scene, a_routed_service
from support.operating import Given, Operator, operating_each
from support.rayservice_scene import a_serve_config

pytestmark = [pytest.mark.soak, pytest.mark.usefixtures("kwok", "ray_crds")]
AT_ONCE = 12
"""Interruptions that are played side by side, under one operator: each waits most of the time."""
MOST_WRITES = 72
PATIENCE = 300.0


async def is_upgraded(scene: GatewayScene) -> None:
    await scene.patch(rayClusterConfig=OTHER, serveConfigV2=a_serve_config("search"))


async def is_approved(scene: GatewayScene) -> None:
    await scene.annotate(approve_upgrade=await scene.pending())


async def is_taken_back(scene: GatewayScene) -> None:
    await scene.patch(rayClusterConfig=AUTOSCALED, serveConfigV2=a_serve_config("shop"))


async def serves_alone(scene: GatewayScene, application: str) -> bool:
    """Whether all is settled: one cluster, with the application, all of the capacity and all of the traffic."""
    status, clusters = await scene.status(), await scene.clusters()
    active: JSON = status.get("activeServiceStatus", {})
    name = active.get("rayClusterName", "")
    if set(clusters) != {name} or set(active.get("applicationStatuses", {})) != {application} or await scene.pending():
        return False
    is_told = await scene.shares() == ((100, 100), (-1, -1)) and await scene.weights() == {name: 100}
    is_taken = {one["type"]: one["status"] for one in status["conditions"]}.get("GatewayReady") == "True"
    return is_told and is_taken and await scene.selected() == name and scene.capacities(name)[-1] == 100


@dataclass(frozen=True)
class Story:
    """An upgrade that is held somewhere, what is changed then, and how one knows that the change is done."""

    held_at: int
    held: tuple[tuple[int, int], tuple[int, int]]
    change: Callable[[GatewayScene], Awaitable[None]]
    serves: str
    """The application in the end."""


STORIES = {
    "upgrade": Story(0, ((100, 100), (50, 0)), is_approved, serves="search"),
    "rollback": Story(60, ((50, 40), (100, 60)), is_taken_back, serves="shop"),
}


@dataclass
class Play:
    """One interruption."""

    scene: GatewayScene
    fence: CrashAfter
    made: set[str] = field(default_factory=set)
    """Uids of all clusters that ever were."""

    async def is_served(self, application: str) -> bool:
        return await serves_alone(self.scene, application)

    async def is_held(self, story: Story) -> bool:
        """Also written to the HTTPRoute, and taken by Serve: nothing of before is left to do."""
        new = await self.scene.pending()
        is_routed = (await self.scene.weights()).get(new) == story.held_at
        is_said = is_routed and await self.scene.shares() == story.held
        return is_said and self.scene.capacities(new)[-1:] == [story.held[1][0]]

    async def is_over(self, story: Story) -> bool:
        return self.fence.is_spent or await self.is_served(story.serves)


@contextlib.asynccontextmanager
async def operated(plays: Sequence[Play], *, is_fenced: bool = False) -> AsyncIterator[Operator]:
    """One operator over all namespaces, each with its own heads, and with its own crash."""
    each: dict[str, Given] = {one.scene.namespace: Given(heads_at=one.scene.heads.url_of) for one in plays}
    if is_fenced:
        each = {one.scene.namespace: Given(**each[one.scene.namespace], fence=one.fence) for one in plays}
    by_namespace = {one.scene.namespace: one for one in plays}

    def note(_old: Object | None, new: Object | None) -> None:
        if new is not None and new.metadata.namespace in by_namespace:
            by_namespace[new.metadata.namespace].made.add(new.metadata.uid)

    async with operating_each(plays[0].scene.plane.admin_kubeconfig, each, api_server=WITH_GATEWAYS) as operator:
        operator.informers.of(WATCHED_RAYCLUSTERS).on_change(note)
        yield operator


async def all_are(plays: Sequence[Play], question: Callable[[Play], Awaitable[bool]]) -> None:
    """What is asked for stays so once it is: one after the other is waited for."""
    for one in plays:
        await eventually(functools.partial(question, one), seconds=PATIENCE)


async def play(plane: ControlPlane, story: Story, numbers: Sequence[int]) -> list[tuple[bool, dict[str, Any]]]:
    """Of each number of writes: whether it was not interrupted, and how it ended."""
    async with contextlib.AsyncExitStack() as stack:
        scenes = [await stack.enter_async_context(a_gateway_scene(plane)) for _ in numbers]
        plays = [Play(scene, CrashAfter(writes)) for scene, writes in zip(scenes, numbers, strict=True)]
        for scene in scenes:
            await scene.apply(a_routed_service({"raykeeper.io/pause-upgrade-at": str(story.held_at)}))
        async with operated(plays):
            await all_are(plays, lambda one: one.is_served("shop"))
            for scene in scenes:
                await is_upgraded(scene)
            await all_are(plays, lambda one: one.is_held(story))
        watching = asyncio.gather(*(watch_weights(scene) for scene in scenes))
        for scene in scenes:
            await story.change(scene)
        async with operated(plays, is_fenced=True):
            await all_are(plays, lambda one: one.is_over(story))
        async with operated(plays):
            await all_are(plays, lambda one: one.is_served(story.serves))
        assert not watching.done(), watching.exception()
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        assert [len(one.made) for one in plays] == [2] * len(plays)
        return [(not one.fence.is_spent, await portrait(one.scene)) for one in plays]


async def watch_weights(scene: GatewayScene) -> None:
    """Whatever is written to the HTTPRoute sums up to all of the traffic, and goes where Serve has the capacity."""
    while True:
        weights = await scene.weights()
        assert sum(weights.values()) == 100, weights
        for cluster, weight in weights.items():
            # The last but one, too: it may have been lowered since the weights were read.
            sent = [one or 0 for one in scene.capacities(cluster)]
            assert weight <= max([0, *sent[-2:]]), (cluster, weight, sent)
        await asyncio.sleep(0.5)


async def portrait(scene: GatewayScene) -> dict[str, Any]:
    """What must be the same in the end."""
    conditions = (await scene.status())["conditions"]
    active, found = await scene.active(), await scene.services()
    ours = ("web-head-svc", "web-serve-svc", f"{active}-serve-svc")  # of the other cluster some may still have to go
    services = [name.removeprefix(active) for name in ours if name in found]
    return {"conditions": {(one["type"], one["status"], one["reason"]) for one in conditions}, "services": services}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", STORIES)
async def test_the_end_is_the_same_wherever_the_operator_was_stopped(name: str, gateway_crds: ControlPlane) -> None:
    ends: list[tuple[bool, dict[str, Any]]] = []
    while not any(is_undisturbed for is_undisturbed, _ in ends):
        assert len(ends) < MOST_WRITES, "it never ends"
        ends += await play(gateway_crds, STORIES[name], range(len(ends), len(ends) + AT_ONCE))
    undisturbed = next(number for number, (is_undisturbed, _) in enumerate(ends) if is_undisturbed)
    for writes, (_, end) in enumerate(ends):
        assert end == ends[undisturbed][1], f"stopped after {writes} writes"
    assert undisturbed >= 5, "the writes that the test is about were not made"
