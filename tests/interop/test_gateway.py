"""Incremental upgrades through a real Gateway, Traefik, with real Ray Serve behind it: weights as requests see them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from bed.node.real_node import RealNode
from bed.traefik import CLASS, traefik_on, way_in
from e2e.real_services import RATE, RealService, a_cluster, a_real_service
from raykeeper.api.meta import JSON

pytestmark = [pytest.mark.interop, pytest.mark.node, pytest.mark.timeout(1100)]
PACE: JSON = {"stepSizePercent": 25, "maxSurgePercent": 50, "intervalSeconds": 2, "gatewayClassName": CLASS}
STRATEGY: JSON = {"type": "NewClusterWithIncrementalUpgrade", "clusterUpgradeOptions": PACE}
SAMPLE = 8 * RATE


def autoscaled(release: str) -> JSON:
    """A head alone: Ray's autoscaler ends with a KeyError where the list of groups is left out."""
    return a_cluster(release, enableInTreeAutoscaling=True, workerGroupSpecs=[])


@pytest.fixture
async def scene(node_with_own_image: RealNode, node_namespace: str) -> AsyncIterator[RealService]:
    plane = node_with_own_image.plane
    with traefik_on(plane):
        async with a_real_service(plane, node_namespace) as scene:
            yield scene


async def has_share(scene: RealService, text: str, percent: int) -> None:
    """Fails unless so many of the next requests are answered with the text; the Gateway sends them round in turn."""
    since = await scene.ended_since(await scene.counts(), SAMPLE)
    share = since.answers[text] * 100 / since.ended
    print(f"{percent} % of the traffic was asked for, {share:.1f} % of {since.ended} requests got there")
    assert abs(share - percent) < 5, since


async def test_traffic_moves_step_by_step_and_back_and_no_request_fails(scene: RealService) -> None:
    held = {"raykeeper.io/pause-upgrade-at": "25"}
    await scene.create("hello", held, rayClusterConfig=autoscaled("one"), upgradeStrategy=STRATEGY)
    first = await scene.has_ended()
    await scene.says("GatewayReady", "True")
    await scene.ask(way_in())
    await scene.answers_with("hello from one")
    before = await scene.counts()

    await scene.patch(rayClusterConfig=autoscaled("two"))
    second = await scene.has_pending()
    await scene.has_weights({first: 75, second: 25})
    await scene.says("GatewayReady", "True")
    await has_share(scene, "hello from two", 25)

    await scene.patch(rayClusterConfig=autoscaled("one"))
    await scene.has_clusters(first)
    await scene.answers_with("hello from one")
    print(f"rollback at 25 %: {await scene.counts() - before}")
    assert not (await scene.counts() - before).failed

    await scene.patch(rayClusterConfig=autoscaled("three"))
    third = await scene.has_pending()
    await scene.annotate(pause_upgrade_at="75", approve_upgrade="")
    await scene.has_weights({first: 25, third: 75})
    await scene.says("GatewayReady", "True")
    await has_share(scene, "hello from three", 75)
    await scene.annotate(approve_upgrade=third)
    assert await scene.has_ended(other_than=first) == third
    await scene.answers_with("hello from three")
    since = await scene.counts() - before
    print(f"a rollback and an upgrade: {since}")
    assert not since.failed, since


async def test_a_head_that_is_killed_half_way_costs_few_requests(scene: RealService) -> None:
    await scene.create(
        "hello", {"raykeeper.io/pause-upgrade-at": "50"}, rayClusterConfig=autoscaled("one"), upgradeStrategy=STRATEGY
    )
    first = await scene.has_ended()
    await scene.ask(way_in())
    await scene.answers_with("hello from one")
    await scene.patch(rayClusterConfig=autoscaled("two"))
    second = await scene.has_pending()
    await scene.has_weights({first: 50, second: 50})
    await scene.says("GatewayReady", "True")
    before = await scene.counts()
    await scene.delete_head(second)
    await scene.has_weights({first: 100, second: 0})
    await scene.answers_with("hello from one")
    alone = await scene.counts()
    print(f"the new head was killed with half of the traffic, until the old cluster had it all: {alone - before}")
    await scene.has_weights({first: 50, second: 50})
    await scene.annotate(approve_upgrade=second)
    assert await scene.has_ended(other_than=first) == second
    await scene.answers_with("hello from two")
    after = await scene.counts() - alone
    print(f"from then on to the end of the upgrade: {after}")
    assert not after.failed, after
    # Half of the requests went to the dead cluster, and it takes a head more than twenty seconds to come back.
    assert (alone - before).failed.total() < 20 * RATE / 2, alone - before
