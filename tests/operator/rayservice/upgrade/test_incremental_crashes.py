"""Incremental upgrades and rollbacks, stopped after every single write of the operator and gone on with by the next.

The end is the same, no cluster is made twice, and at no moment does a cluster get traffic that it has no capacity for.
Some hundred upgrades with real intervals take minutes, so this is part of `make soak`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

import pytest

from bed.control_plane import ControlPlane
from raykeeper.api.meta import JSON, ObjectKey
from support.gateway_scene import (
    AUTOSCALED,
    GATEWAY_OBJECTS,
    OTHER,
    ROUTE_OBJECTS,
    THIRD,
    WITH_GATEWAYS,
    GatewayScene,
    a_gateway_scene,
    a_routed_service,
    a_strategy,
)
from support.operating import Given
from support.raycluster_scene import CLUSTERS
from support.rayservice_scene import a_serve_config
from support.service_crashes import Portrait, Story, ends_of, writes_of

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900), pytest.mark.usefixtures("kwok", "ray_crds")]
THE_USERS: Final[JSON] = {
    "apiVersion": "gateway.networking.k8s.io/v1",
    "kind": "HTTPRoute",
    "metadata": {"name": "shop"},
    "spec": {"parentRefs": [{"name": "shared"}], "rules": [{"backendRefs": [{"name": "web-serve-svc", "port": 8000}]}]},
}

Deed = Callable[[GatewayScene], Awaitable[None]]
Question = Callable[[GatewayScene], Awaitable[bool]]
Shares = tuple[tuple[int, int], tuple[int, int]]


def applied(held_at: int, **annotations: str) -> Deed:
    """A service whose upgrades wait with so much of the traffic."""
    given = {f"raykeeper.io/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return lambda scene: scene.apply(a_routed_service(given | {"raykeeper.io/pause-upgrade-at": str(held_at)}))


def patched(config: JSON, application: str) -> Deed:
    return lambda scene: scene.patch(rayClusterConfig=config, serveConfigV2=a_serve_config(application))


async def serves_alone(scene: GatewayScene, application: str, route: str = "web-httproute") -> bool:
    """Whether all is settled: one cluster, with the application, all of the capacity and all of the traffic."""
    status, clusters = await scene.status(), await scene.clusters()
    active: JSON = status.get("activeServiceStatus", {})
    name = active.get("rayClusterName", "")
    if set(clusters) != {name} or set(active.get("applicationStatuses", {})) != {application} or await scene.pending():
        return False
    is_told = await scene.shares() == ((100, 100), (-1, -1)) and await scene.weights(route) == {name: 100}
    is_taken = {one["type"]: one["status"] for one in status["conditions"]}.get("GatewayReady") == "True"
    return is_told and is_taken and await scene.selected() == name and scene.capacities(name)[-1] == 100


async def is_held(scene: GatewayScene, shares: Shares) -> bool:
    """Also written to the HTTPRoute, and taken by Serve: nothing of before is left to do."""
    new = await scene.pending()
    is_routed = (await scene.weights()).get(new) == shares[1][1]
    is_said = is_routed and await scene.shares() == shares
    return is_said and scene.capacities(new)[-1:] == [shares[1][0]]


async def is_approved(scene: GatewayScene) -> None:
    await scene.annotate(approve_upgrade=await scene.pending())


async def breaks(scene: GatewayScene) -> None:
    scene.head(await scene.pending()).state = "UNHEALTHY"


async def loses_the_old_cluster(scene: GatewayScene) -> None:
    await scene.kube.delete(CLUSTERS, ObjectKey(scene.namespace, await scene.active()))


async def is_suspended(scene: GatewayScene) -> None:
    await scene.patch(suspend=True)


async def has_suspended(scene: GatewayScene) -> bool:
    is_said = (await scene.condition("Suspended")).get("status") == "True" and not await scene.clusters()
    left = [
        *await scene.kube.list(GATEWAY_OBJECTS, scene.namespace),
        *await scene.kube.list(ROUTE_OBJECTS, scene.namespace),
    ]
    return is_said and not left


async def attaches(scene: GatewayScene) -> None:
    await scene.kube.create(ROUTE_OBJECTS, THE_USERS, scene.namespace)
    await scene.patch(upgradeStrategy=a_strategy(httpRouteName="shop"), rayClusterConfig=OTHER)
    await scene.annotate(pause_upgrade_at="")


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


async def portrait(scene: GatewayScene) -> Portrait:
    conditions = (await scene.status())["conditions"]
    active, found = await scene.active(), await scene.services()
    ours = ("web-head-svc", "web-serve-svc", f"{active}-serve-svc")  # of the other cluster some may still have to go
    services = [name.removeprefix(active) for name in ours if name in found]
    return {"conditions": {(one["type"], one["status"], one["reason"]) for one in conditions}, "services": services}


def a_story(*before: tuple[Deed, Question], change: Deed, is_done: Question, **fields: Any) -> Story[GatewayScene]:
    usual: dict[str, Any] = {"clusters": 2, "watch": watch_weights}
    return Story(
        a_gateway_scene,
        before,
        change,
        is_done,
        portrait=portrait,
        given=Given(api_server=WITH_GATEWAYS),
        **usual | fields,
    )


SHOP, SEARCH = partial(serves_alone, application="shop"), partial(serves_alone, application="search")
UPGRADED: Final = patched(OTHER, "search")
BEGUN: Final = (UPGRADED, partial(is_held, shares=((100, 100), (50, 0))))
HALF_WAY: Final = (UPGRADED, partial(is_held, shares=((50, 40), (100, 60))))

STORIES: Final[dict[str, Story[GatewayScene]]] = {
    "upgrade": a_story((applied(0), SHOP), BEGUN, change=is_approved, is_done=SEARCH),
    "rollback": a_story((applied(60), SHOP), HALF_WAY, change=patched(AUTOSCALED, "shop"), is_done=SHOP),
    "rollback of what does not work": a_story(
        (applied(60, rollback_unhealthy="true"), SHOP), HALF_WAY, change=breaks, is_done=SHOP
    ),
    "third spec": a_story(
        (applied(60), SHOP),
        HALF_WAY,
        change=patched(THIRD, "find"),
        is_done=partial(is_held, shares=((50, 40), (100, 60))),
        clusters=3,
        watch=None,  # at times the weights are those of the third, and not of the second
    ),
    "lost old cluster": a_story(
        (applied(60), SHOP), HALF_WAY, change=loses_the_old_cluster, is_done=SEARCH, watch=None
    ),
    "suspension": a_story((applied(60), SHOP), HALF_WAY, change=is_suspended, is_done=has_suspended, watch=None),
    "another route": a_story(
        (applied(0), SHOP), change=attaches, is_done=partial(serves_alone, application="shop", route="shop")
    ),
}


@pytest.mark.parametrize("name", STORIES)
async def test_the_end_is_the_same_wherever_the_operator_was_stopped(name: str, gateway_crds: ControlPlane) -> None:
    assert writes_of(await ends_of(gateway_crds, STORIES[name])) >= 5, "the writes that the test is about were not made"
