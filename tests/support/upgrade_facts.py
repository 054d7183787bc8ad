"""RayServices whose traffic moves from one cluster to the next step by step, for tests of decisions."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from raykeeper.api.meta import JSON
from raykeeper.api.rayservice import AppStatus, RayService
from raykeeper.operator.rayservice.facts import Facts
from raykeeper.operator.rayservice.upgrade.routes import RoutingFacts
from raykeeper.operator.rayservice.upgrade.steps import Pace
from raykeeper.operator.rayservice.versions import Match
from support.rayservice_facts import RUNNING, a_cluster, a_service, ago, facts

PACE = Pace(step=10, interval=timedelta(seconds=30), surge=20)
STRATEGY: JSON = {"type": "NewClusterWithIncrementalUpgrade"}
OLD = a_cluster("a", Match.DIFFERENT)
NEW = a_cluster("b")
BROKEN = replace(RUNNING, applications={"shop": AppStatus("UNHEALTHY")})


def upgrading(
    active: tuple[int, int] = (80, 70), pending: tuple[int, int] = (40, 30), moved: float | None = 60
) -> RayService:
    """From a to b; capacity and traffic of each."""
    status = {
        "activeServiceStatus": {"rayClusterName": "a", "targetCapacity": active[0], "trafficRoutedPercent": active[1]},
        "pendingServiceStatus": {
            "rayClusterName": "b",
            "targetCapacity": pending[0],
            "trafficRoutedPercent": pending[1],
        },
    }
    if moved is not None:
        status["pendingServiceStatus"]["lastTrafficMigratedTime"] = ago(moved)
    return a_service("a", "b", status=status, upgradeStrategy=STRATEGY)


def stepwise(service: RayService, *clusters: Any, waits: str = "", **given: Any) -> Facts:
    """Where the gateway sends traffic as the status says."""
    both = (service.status.active_service_status, service.status.pending_service_status)
    there = {one.name for one in clusters}
    weights = {one.ray_cluster_name: one.traffic_routed_percent or 0 for one in both if one.ray_cluster_name in there}
    usual: dict[str, Any] = {
        "is_stepwise": True,
        "pace": PACE,
        "goal": "goal",
        "routing": RoutingFacts(True, waits, weights),
    }
    return facts(*clusters, **(usual | given))
