"""Which options of an incremental upgrade make sense, and which pace they ask for."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import pytest

from raykeeper.api.meta import JSON
from raykeeper.api.rayservice import RayService
from raykeeper.operator.gates import FeatureGates, Gate
from raykeeper.operator.rayservice.upgrade.options import pace_of
from raykeeper.operator.rayservice.upgrade.steps import Pace
from raykeeper.operator.rayservice.validation import violations
from support.rayservice_facts import CONFIG, a_service

OPTIONS: JSON = {"stepSizePercent": 10, "intervalSeconds": 5, "gatewayClassName": "istio", "maxSurgePercent": 20}
AUTOSCALED = CONFIG | {"enableInTreeAutoscaling": True}


def a_stepwise_service(annotations: JSON | None = None, config: JSON = AUTOSCALED, **options: Any) -> RayService:
    strategy = {"type": "NewClusterWithIncrementalUpgrade", "clusterUpgradeOptions": OPTIONS | options}
    return a_service("a", "web-bbbbb", annotations, rayClusterConfig=config, upgradeStrategy=strategy)


def told(service: RayService, gates: FeatureGates | None = None, *, has_gateway_api: bool = True) -> str:
    return "; ".join(map(str, violations(service, gates or FeatureGates(), has_gateway_api=has_gateway_api)))


def test_options_that_make_sense_are_a_pace() -> None:
    service = a_stepwise_service()
    assert told(service) == ""
    assert pace_of(service, "web-bbbbb") == Pace(10, timedelta(seconds=5), 20)


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        ({"stepSizePercent": 0}, "stepSizePercent is 0: use 1 to 100"),
        ({"stepSizePercent": -1}, "stepSizePercent is -1"),
        ({"maxSurgePercent": 0, "stepSizePercent": 0}, "maxSurgePercent is 0"),
        ({"maxSurgePercent": 101}, "maxSurgePercent is 101"),
        ({"stepSizePercent": 21}, "use at most maxSurgePercent (20)"),
        ({"intervalSeconds": 0}, "intervalSeconds is 0"),
        ({"gatewayClassName": ""}, "kubectl get gatewayclasses"),
        ({"gatewayClassName": "Not A Name"}, "kubectl get gatewayclasses"),
        ({"gatewayClassName": "a" * 254}, "kubectl get gatewayclasses"),
        ({"httpRouteName": "../web"}, "use the name of an HTTPRoute in the same namespace"),
        ({"httpRouteName": ""}, "use the name of an HTTPRoute in the same namespace"),
    ],
    ids=str,
)
def test_options_that_make_no_sense_are_refused_and_move_nothing(options: JSON, cause: str) -> None:
    service = a_stepwise_service(**options)
    assert cause in told(service)
    assert pace_of(service, "web-bbbbb") is None


@pytest.mark.parametrize(
    "annotations",
    [
        {"raykeeper.io/pause-upgrade-at": "100"},
        {"raykeeper.io/pause-upgrade-at": "-1"},
        {"raykeeper.io/pause-upgrade-at": "²"},
        {"raykeeper.io/pause-upgrade-at": "a few"},
        {"raykeeper.io/rollback-unhealthy": "yes"},
    ],
    ids=str,
)
def test_annotations_that_make_no_sense_are_refused(annotations: JSON) -> None:
    assert next(iter(annotations)) in told(a_stepwise_service(annotations))
    assert told(a_service("a", annotations=annotations)) == "", "they say nothing where all moves at once"


def test_what_the_strategy_needs_is_asked_for() -> None:
    assert "enableInTreeAutoscaling is false" in told(a_stepwise_service(config=CONFIG))
    bare = a_service(upgradeStrategy={"type": "NewClusterWithIncrementalUpgrade"}, rayClusterConfig=AUTOSCALED)
    assert "clusterUpgradeOptions is missing" in told(bare)
    off = FeatureGates({Gate.INCREMENTAL_UPGRADE: False})
    assert "RayServiceIncrementalUpgrade is off" in told(a_stepwise_service(), off, has_gateway_api=False)
    assert "httproutes.gateway.networking.k8s.io" in told(a_stepwise_service(), has_gateway_api=False)


def test_a_route_of_the_user_needs_no_class() -> None:
    assert told(a_stepwise_service(httpRouteName="shop", gatewayClassName="")) == ""


def test_a_config_that_cannot_be_kept_is_refused() -> None:
    text = f"applications: [{{name: shop, import_path: '{random.Random(0).randbytes(120_000).hex()}'}}]"
    service = a_service(
        rayClusterConfig=AUTOSCALED,
        serveConfigV2=text,
        upgradeStrategy={"type": "NewClusterWithIncrementalUpgrade", "clusterUpgradeOptions": OPTIONS},
    )
    assert "serveConfigV2 is too long" in told(service)


def test_an_upgrade_is_held_unless_this_very_cluster_is_approved() -> None:
    held = {"raykeeper.io/pause-upgrade-at": "20"}
    for approved, pause in (("", 20), ("web-aaaaa", 20), ("web-bbbbb", None)):
        pace = pace_of(a_stepwise_service(held | {"raykeeper.io/approve-upgrade": approved}), "web-bbbbb")
        assert pace is not None
        assert pace.pause_at == pause
