"""Incremental upgrades on a real API server that has the Gateway API, whose controller is played by the test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from bed.control_plane import ControlPlane
from raykeeper.api.meta import JSON, ObjectKey
from raykeeper.operator.gates import FeatureGates, Gate
from raykeeper.operator.settings import OperatorSettings
from support.conditions import eventually
from support.gateway_scene import (
    AUTOSCALED,
    GATEWAY_OBJECTS,
    OTHER,
    ROUTE_OBJECTS,
    THIRD,
    GatewayScene,
    a_gateway_scene,
    a_routed_service,
    a_strategy,
)
from support.operating import KUBERNETES
from support.raycluster_scene import CLUSTERS
from support.rayservice_scene import PATIENCE, a_serve_config

pytestmark = pytest.mark.usefixtures("kwok", "ray_crds")
HOURS = 3600


@pytest.fixture
async def scene(gateway_crds: ControlPlane) -> AsyncIterator[GatewayScene]:
    async with a_gateway_scene(gateway_crds) as scene:
        yield scene


async def test_an_upgrade_moves_capacity_and_traffic_step_by_step(scene: GatewayScene) -> None:
    await scene.apply(a_routed_service())
    async with scene.operating():
        old = await scene.has_ended()
        assert await scene.shares() == ((100, 100), (-1, -1))
        await scene.says("GatewayReady", "True")
        await scene.patch(rayClusterConfig=OTHER, serveConfigV2=a_serve_config("search"))
        new = await scene.has_ended(other_than=old)
        await scene.has_clusters(new)
        await scene.has_shares((100, 100), (-1, -1))
        for reason in ("CreatedGateway", "CreatedHTTPRoute", "UpdatedHTTPRoute", "UpdatedServeTargetCapacity"):
            await scene.is_told(reason)
    assert (scene.capacities(old), scene.capacities(new)) == ([100, 50, 0], [50, 100])
    names = [{one["name"] for one in config["applications"]} for config in scene.head(old).configs]
    assert names == [{"shop"}] * 3, "the old cluster keeps the applications that it had"
    assert "lastTrafficMigratedTime" in (await scene.status())["activeServiceStatus"]


async def test_the_way_in_is_called_as_kuberay_calls_it(scene: GatewayScene) -> None:
    await scene.apply(a_routed_service())
    async with scene.operating():
        name = await scene.has_ended()
        gateway = await scene.kube.get(GATEWAY_OBJECTS, ObjectKey(scene.namespace, "web-gateway"))
        route = await scene.kube.get(ROUTE_OBJECTS, ObjectKey(scene.namespace, "web-httproute"))
    assert gateway["spec"]["gatewayClassName"] == "bed"
    assert [(one["name"], one["port"], one["protocol"]) for one in gateway["spec"]["listeners"]] == [
        ("http", 80, "HTTP")
    ]
    rule = route["spec"]["rules"][0]
    assert route["spec"]["parentRefs"][0]["name"] == "web-gateway"
    assert rule["matches"] == [{"path": {"type": "PathPrefix", "value": "/"}}]
    assert [(one["name"], one["port"], one["weight"]) for one in rule["backendRefs"]] == [
        (f"{name}-serve-svc", 8000, 100)
    ]
    service = (await scene.services())[f"{name}-serve-svc"]
    assert service["metadata"]["ownerReferences"][0]["kind"] == "RayCluster"
    assert service["spec"]["selector"] == {"ray.io/cluster": name, "ray.io/serve": "true"}


async def test_traffic_waits_for_serve_and_for_the_gateway(scene: GatewayScene) -> None:
    await scene.apply(a_routed_service({"raykeeper.io/pause-upgrade-at": "0"}))
    async with scene.operating():
        old = await scene.has_ended()
        await scene.patch(rayClusterConfig=OTHER)
        new = await scene.has_pending()
        scene.head(new).state = "DEPLOYING"

        async def is_deploying() -> bool:
            applications = (await scene.status())["pendingServiceStatus"].get("applicationStatuses", {})
            return bool(applications.get("shop", {}).get("status") == "DEPLOYING")

        await eventually(is_deploying, seconds=PATIENCE)
        await scene.annotate(approve_upgrade=new)
        await scene.says("UpgradeInProgress", "True", f"Serve does not run every application on {new}")
        assert await scene.shares() == ((100, 100), (50, 0))
        scene.is_gateway_working = False
        scene.head(new).state = "RUNNING"
        await scene.has_shares((100, 50), (50, 50))
        await scene.has_weights({old: 50, new: 50})
        await scene.says("UpgradeInProgress", "True", "its controller has not taken that yet")
        assert await scene.shares() == (
            (100, 50),
            (50, 50),
        ), "the old cluster keeps its capacity until traffic has moved"
        scene.is_gateway_working = True
        await scene.has_ended(other_than=old)


async def test_the_serve_service_leads_to_the_cluster_that_has_most_of_the_traffic(scene: GatewayScene) -> None:
    await scene.apply(a_routed_service({"raykeeper.io/pause-upgrade-at": "60"}))
    async with scene.operating():
        old = await scene.has_ended()
        await scene.patch(rayClusterConfig=OTHER)
        new = await scene.has_pending()
        await scene.has_shares((50, 40), (100, 60))

        async def is_pointed() -> bool:
            return (await scene.selected(), await scene.selected("web-head-svc")) == (new, old)

        await eventually(is_pointed, seconds=PATIENCE)


async def test_an_upgrade_is_held_until_somebody_approves_it(scene: GatewayScene) -> None:
    await scene.apply(a_routed_service({"raykeeper.io/pause-upgrade-at": "25"}))
    async with scene.operating():
        old = await scene.has_ended()
        await scene.patch(rayClusterConfig=OTHER)
        new = await scene.has_pending()
        await scene.says("UpgradeInProgress", "True", f"raykeeper.io/approve-upgrade={new}")
        await scene.has_weights({old: 75, new: 25})
        await scene.annotate(approve_upgrade=old)
        await scene.annotate(approve_upgrade=new)
        assert await scene.has_ended(other_than=old) == new


async def test_another_operator_goes_on_where_the_last_one_stopped(scene: GatewayScene) -> None:
    await scene.apply(a_routed_service({"raykeeper.io/pause-upgrade-at": "60"}))
    async with scene.operating():
        old = await scene.has_ended()
        await scene.patch(rayClusterConfig=OTHER, serveConfigV2=a_serve_config("search"))
        new = await scene.has_pending()
        await scene.has_weights({old: 40, new: 60})
    assert (scene.capacities(old), scene.capacities(new)) == ([100, 50], [50, 100])
    await scene.annotate(approve_upgrade=new)
    async with scene.operating():
        assert await scene.has_ended(other_than=old) == new
    assert (scene.capacities(old), scene.capacities(new)) == ([100, 50, 0], [50, 100])


async def test_a_change_that_is_taken_back_brings_the_traffic_back(scene: GatewayScene) -> None:
    await scene.apply(a_routed_service({"raykeeper.io/pause-upgrade-at": "60"}))
    async with scene.operating():
        old = await scene.has_ended()
        await scene.patch(rayClusterConfig=OTHER)
        new = await scene.has_pending()
        await scene.has_shares((50, 40), (100, 60))
        await scene.patch(upgradeStrategy=a_strategy(interval=HOURS))
        await scene.patch(rayClusterConfig=AUTOSCALED)
        await scene.says("RollbackInProgress", "True", reason="DesiredClusterSpecChanged")
        await scene.patch(upgradeStrategy=a_strategy())
        await scene.has_clusters(old)
        assert await scene.has_ended() == old
        await scene.has_shares((100, 100), (-1, -1))
        assert not await scene.condition("RollbackInProgress")
    assert scene.capacities(old) == [100, 50, 100]
    assert scene.capacities(new)[:2] == [50, 100]


async def test_a_rollback_that_is_taken_back_goes_on(scene: GatewayScene) -> None:
    await scene.apply(a_routed_service({"raykeeper.io/pause-upgrade-at": "60"}))
    async with scene.operating():
        old = await scene.has_ended()
        await scene.patch(rayClusterConfig=OTHER)
        new = await scene.has_pending()
        await scene.has_shares((50, 40), (100, 60))
        await scene.patch(upgradeStrategy=a_strategy(interval=HOURS), rayClusterConfig=AUTOSCALED)
        await scene.says("RollbackInProgress", "True")
        await scene.annotate(approve_upgrade=new)
        await scene.patch(upgradeStrategy=a_strategy(), rayClusterConfig=OTHER)
        assert await scene.has_ended(other_than=old) == new
        assert not await scene.condition("RollbackInProgress")


async def test_a_third_spec_waits_until_the_traffic_is_back(scene: GatewayScene) -> None:
    await scene.apply(a_routed_service({"raykeeper.io/pause-upgrade-at": "60"}))
    async with scene.operating():
        old = await scene.has_ended()
        await scene.patch(rayClusterConfig=OTHER)
        second = await scene.has_pending()
        await scene.has_shares((50, 40), (100, 60))
        await scene.patch(rayClusterConfig=THIRD)
        third = await scene.has_pending(other_than=second)
        await scene.has_shares((50, 40), (100, 60))
        assert set(await scene.clusters()) == {old, third}
        assert scene.capacities(old) == [100, 50, 100, 50], "all came back before anything went to the third"


async def test_an_upgrade_that_serve_calls_broken_is_rolled_back_and_not_tried_again(scene: GatewayScene) -> None:
    asked = {"raykeeper.io/pause-upgrade-at": "60", "raykeeper.io/rollback-unhealthy": "true"}
    await scene.apply(a_routed_service(asked))
    async with scene.operating():
        old = await scene.has_ended()
        await scene.patch(rayClusterConfig=OTHER, serveConfigV2=a_serve_config("search"))
        new = await scene.has_pending()
        await scene.has_shares((50, 40), (100, 60))
        scene.head(new).state, scene.head(new).message = "UNHEALTHY", "CUDA out of memory"
        await scene.has_clusters(old)
        assert await scene.has_ended() == old
        told = await scene.says("RollbackInProgress", "False", "to try again", reason="PendingClusterUnhealthy")
        assert old in told["message"]
        await scene.is_told("RolledBackUnhealthyUpgrade")
        assert set(await scene.clusters()) == {old}
        assert [one["name"] for one in scene.head(old).configs[-1]["applications"]] == ["shop"]
        await scene.annotate(pause_upgrade_at="")
        await scene.patch(rayClusterConfig=THIRD)
        await scene.has_ended(other_than=old)


async def test_traffic_comes_back_at_once_from_a_new_cluster_that_died(scene: GatewayScene) -> None:
    await scene.apply(a_routed_service({"raykeeper.io/pause-upgrade-at": "60"}))
    async with scene.operating():
        old = await scene.has_ended()
        await scene.patch(rayClusterConfig=OTHER)
        new = await scene.has_pending()
        await scene.has_shares((50, 40), (100, 60))
        await scene.patch(upgradeStrategy=a_strategy(interval=HOURS))
        scene.head(new).is_proxy_healthy = False
        await scene.head_has_label(new, "false")
        await scene.patch(rayClusterConfig=AUTOSCALED)
        await scene.has_clusters(old)
        assert await scene.has_ended() == old


async def test_an_upgrade_whose_requests_fail_is_rolled_back_and_not_tried_again(scene: GatewayScene) -> None:
    asked = {"raykeeper.io/pause-upgrade-at": "60", "raykeeper.io/rollback-error-percent": "5"}
    await scene.apply(a_routed_service(asked))
    async with scene.operating():
        old = await scene.has_ended()
        await scene.patch(rayClusterConfig=OTHER)
        new = await scene.has_pending()
        scene.head(new).requests = {200: 96, 500: 4, 404: 300}
        await scene.has_shares((50, 40), (100, 60))
        assert not await scene.condition("RollbackInProgress")
        scene.head(new).requests = {200: 150, 500: 40, 404: 300}
        await scene.has_clusters(old)
        assert await scene.has_ended() == old
        cause = "requests were answered with an error of the server, and 5 % are allowed"
        await scene.says("RollbackInProgress", "False", cause, reason="PendingClusterUnhealthy")
        assert cause in (await scene.is_told("RolledBackUnhealthyUpgrade"))["note"]
        assert set(await scene.clusters()) == {old}


@pytest.mark.parametrize("dies", ["old", "new"])
async def test_no_request_goes_to_a_cluster_that_answers_nobody(dies: str, scene: GatewayScene) -> None:
    await scene.apply(a_routed_service({"raykeeper.io/pause-upgrade-at": "60"}))
    async with scene.operating():
        old = await scene.has_ended()
        await scene.patch(rayClusterConfig=OTHER)
        new = await scene.has_pending()
        await scene.has_weights({old: 40, new: 60})
        dead = old if dies == "old" else new
        scene.head(dead).is_proxy_healthy = False
        await scene.has_weights({old: 0, new: 100} if dead == old else {old: 100, new: 0})
        await scene.says("UpgradeInProgress", "True", f"no pod of {dead} takes requests")
        scene.head(dead).is_proxy_healthy = True
        await scene.has_weights({old: 40, new: 60})
        await scene.annotate(approve_upgrade=new)
        assert await scene.has_ended(other_than=old) == new


async def test_an_old_cluster_that_somebody_deletes_leaves_all_to_the_new_one(scene: GatewayScene) -> None:
    await scene.apply(a_routed_service({"raykeeper.io/pause-upgrade-at": "60"}))
    async with scene.operating():
        old = await scene.has_ended()
        await scene.patch(rayClusterConfig=OTHER)
        new = await scene.has_pending()
        await scene.has_shares((50, 40), (100, 60))
        await scene.kube.delete(CLUSTERS, ObjectKey(scene.namespace, old))
        assert await scene.has_ended(other_than=old) == new


async def test_a_spec_that_makes_no_sense_holds_an_upgrade_where_it_is(scene: GatewayScene) -> None:
    await scene.apply(a_routed_service({"raykeeper.io/pause-upgrade-at": "60"}))
    async with scene.operating():
        old = await scene.has_ended()
        await scene.patch(rayClusterConfig=OTHER)
        new = await scene.has_pending()
        await scene.has_shares((50, 40), (100, 60))
        await scene.patch(upgradeStrategy=a_strategy(step=0))
        await scene.says("RayServiceInvalid", "True", "nothing would ever move")
        await scene.patch(upgradeStrategy={"type": "Sideways"})
        await scene.says("RayServiceInvalid", "True", "Sideways")
        await scene.annotate(approve_upgrade=new)
        await scene.has_weights({old: 40, new: 60})
        await scene.patch(upgradeStrategy=a_strategy())
        assert await scene.has_ended(other_than=old) == new


async def test_suspension_takes_the_way_in_away_and_resuming_makes_it_anew(scene: GatewayScene) -> None:
    await scene.apply(a_routed_service({"raykeeper.io/pause-upgrade-at": "60"}))
    async with scene.operating():
        old = await scene.has_ended()
        await scene.patch(rayClusterConfig=OTHER)
        await scene.has_shares((50, 40), (100, 60))
        await scene.patch(suspend=True)
        await scene.says("Suspended", "True")
        assert await scene.kube.list(GATEWAY_OBJECTS, scene.namespace) == []
        assert await scene.kube.list(ROUTE_OBJECTS, scene.namespace) == []
        await scene.patch(suspend=False)
        await scene.has_ended(other_than=old)


async def test_another_strategy_leaves_the_way_in_and_moves_it_all_at_once(scene: GatewayScene) -> None:
    await scene.apply(a_routed_service())
    async with scene.operating():
        old = await scene.has_ended()
        await scene.patch(upgradeStrategy={"type": "NewCluster"})
        await scene.patch(rayClusterConfig=OTHER)
        new = await scene.has_ended(other_than=old)
        await scene.has_shares((-1, -1), (-1, -1))
    assert scene.capacities(new) == [None]


THE_USERS: JSON = {
    "apiVersion": "gateway.networking.k8s.io/v1",
    "kind": "HTTPRoute",
    "metadata": {"name": "shop", "labels": {"team": "shop"}},
    "spec": {
        "parentRefs": [{"name": "shared"}],
        "hostnames": ["shop.example"],
        "rules": [
            {
                "matches": [{"path": {"type": "PathPrefix", "value": "/static"}}],
                "backendRefs": [{"name": "cdn", "port": 80}],
            },
            {
                "matches": [{"path": {"type": "PathPrefix", "value": "/api"}}],
                "filters": [{"type": "RequestHeaderModifier", "requestHeaderModifier": {"remove": ["x-secret"]}}],
                "backendRefs": [{"name": "web-serve-svc", "port": 8000}, {"name": "mirror", "port": 80, "weight": 5}],
            },
        ],
    },
}


async def test_a_route_of_the_user_keeps_all_but_our_weights(scene: GatewayScene) -> None:
    strategy = a_strategy(httpRouteName="shop")
    await scene.apply(a_routed_service({"raykeeper.io/pause-upgrade-at": "50"}, upgradeStrategy=strategy))
    async with scene.operating():
        await scene.says("GatewayReady", "False", "HTTPRoute shop is not there")
        before = (await scene.kube.create(ROUTE_OBJECTS, THE_USERS, scene.namespace))["spec"]
        key = ObjectKey(scene.namespace, "shop")

        async def references() -> list[tuple[str, int]]:
            rules = (await scene.kube.get(ROUTE_OBJECTS, key))["spec"]["rules"]
            return [(one["name"], one["weight"]) for one in rules[1]["backendRefs"]]

        async def become(*wanted: tuple[str, int]) -> None:
            async def look() -> bool:
                return await references() == list(wanted)

            await eventually(look, seconds=PATIENCE)

        old = await scene.serves()
        await become((f"{old}-serve-svc", 100), ("mirror", 5))
        await scene.patch(rayClusterConfig=OTHER)
        new = await scene.has_pending()
        await become((f"{old}-serve-svc", 50), (f"{new}-serve-svc", 50), ("mirror", 5))
        await scene.annotate(approve_upgrade=new)
        await scene.serves(other_than=old)
        await become((f"{new}-serve-svc", 100), ("mirror", 5))
        assert await scene.kube.list(GATEWAY_OBJECTS, scene.namespace) == []
        after = await scene.kube.get(ROUTE_OBJECTS, key)
        assert after["metadata"]["labels"] == {"team": "shop"}
        assert "ownerReferences" not in after["metadata"]
        assert [after["spec"][field] for field in ("parentRefs", "hostnames")] == [
            before[field] for field in ("parentRefs", "hostnames")
        ]
        assert after["spec"]["rules"][0] == before["rules"][0]
        assert after["spec"]["rules"][1]["filters"] == before["rules"][1]["filters"]


async def test_our_route_is_kept_when_the_user_names_his_own_until_he_deletes_it(scene: GatewayScene) -> None:
    await scene.apply(a_routed_service())
    async with scene.operating():
        old = await scene.has_ended()
        await scene.kube.create(ROUTE_OBJECTS, THE_USERS, scene.namespace)
        await scene.patch(upgradeStrategy=a_strategy(httpRouteName="shop"))
        await scene.patch(rayClusterConfig=OTHER)
        new = await scene.has_ended(other_than=old)
        rules = (await scene.kube.get(ROUTE_OBJECTS, ObjectKey(scene.namespace, "shop")))["spec"]["rules"]
        assert rules[1]["backendRefs"][0]["name"] == f"{new}-serve-svc"
        await scene.kube.delete(ROUTE_OBJECTS, ObjectKey(scene.namespace, "web-httproute"))
        await scene.patch(rayClusterConfig=AUTOSCALED)
        await scene.serves(other_than=new)
        assert {one["metadata"]["name"] for one in await scene.kube.list(ROUTE_OBJECTS, scene.namespace)} == {"shop"}


async def test_what_a_user_adds_to_our_route_stays_and_weights_are_put_back(scene: GatewayScene) -> None:
    await scene.apply(a_routed_service())
    async with scene.operating():
        name = await scene.has_ended()
        key = ObjectKey(scene.namespace, "web-httproute")
        route = await scene.kube.get(ROUTE_OBJECTS, key)
        rule = route["spec"]["rules"][0]
        changed = [rule | {"timeouts": {"request": "60s"}, "backendRefs": [rule["backendRefs"][0] | {"weight": 7}]}]
        await scene.kube.merge_patch(ROUTE_OBJECTS, key, {"spec": {"hostnames": ["shop.example"], "rules": changed}})
        await scene.has_weights({name: 100})
        spec = (await scene.kube.get(ROUTE_OBJECTS, key))["spec"]
        assert (spec["hostnames"], spec["rules"][0]["timeouts"]) == (["shop.example"], {"request": "60s"})


async def test_without_the_gateway_api_nothing_is_made_and_the_cure_is_told(scene: GatewayScene) -> None:
    await scene.apply(a_routed_service())
    async with scene.operating(api_server=KUBERNETES):
        told = await scene.says("Ready", "False", "gateways.gateway.networking.k8s.io", reason="ValidationFailed")
        assert "install the Gateway API" in told["message"]
        assert (await scene.clusters(), await scene.services()) == ({}, {})


async def test_a_gate_that_is_off_is_told(scene: GatewayScene) -> None:
    await scene.apply(a_routed_service())
    gates = FeatureGates({Gate.INCREMENTAL_UPGRADE: False})
    async with scene.operating(settings=OperatorSettings(gates=gates)):
        await scene.says("Ready", "False", "RayServiceIncrementalUpgrade is off", reason="ValidationFailed")
        assert await scene.clusters() == {}
