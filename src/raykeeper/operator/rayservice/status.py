"""The status of a RayService, computed from what was seen and done. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime

import msgspec

from raykeeper.api.conditions import Condition
from raykeeper.api.raycluster import RayClusterStatus
from raykeeper.api.rayservice import AppStatus, RayService, RayServiceStatus, RayServiceStatuses
from raykeeper.api.times import to_time
from raykeeper.operator.rayservice.conditions import conditions, is_ready
from raykeeper.operator.rayservice.facts import Facts, Plan, ServeFacts
from raykeeper.operator.rayservice.states import RUNNING
from raykeeper.operator.rayservice.stepping import shares_of
from raykeeper.operator.rayservice.upgrade.steps import WHOLE


def status_of(
    service: RayService,
    facts: Facts,
    plan: Plan,
    invalid: str,
    now: datetime,
    *,
    is_adopting: bool = False,
    refusal: str = "",
) -> RayServiceStatuses:
    """What the service says after the plan was carried out.

    `is_adopting`: clusters of another version are being taken over, for which it matters which spec that one saw last.
    `refusal`: what the API server said to what could not be done.
    """
    known = service.status
    told = conditions(service, facts, plan, invalid, now, refusal)
    before = {one.ray_cluster_name: one for one in (known.active_service_status, known.pending_service_status)}
    status = msgspec.structs.replace(
        known,
        conditions=told,
        service_status=RUNNING if is_ready(told) else "",
        num_serve_endpoints=facts.endpoints if plan.active else 0,
        observed_generation=known.observed_generation if is_adopting else service.metadata.generation,
        active_service_status=_shared(_cluster(plan.active, facts, before, now), plan, now),
        pending_service_status=_shared(_cluster(plan.pending, facts, before, now), plan, now),
    )
    return stamped(known, status, now)


def refused_status(service: RayService, told: tuple[Condition, ...], now: datetime) -> RayServiceStatuses:
    """What a service says of which nothing can be made."""
    changed = msgspec.structs.replace(service.status, conditions=told, observed_generation=service.metadata.generation)
    return stamped(service.status, changed, now)


def stamped(known: RayServiceStatuses, status: RayServiceStatuses, now: datetime) -> RayServiceStatuses:
    """With the time of the write, if there is anything to write."""
    return status if status == known else msgspec.structs.replace(status, last_update_time=to_time(now))


def without_promotion(service: RayService, plan: Plan) -> Plan:
    """The plan as it stands where traffic could not be moved: each cluster stays what it was."""
    known = service.status
    active, pending = known.active_service_status.ray_cluster_name, known.pending_service_status.ray_cluster_name
    is_promotion = bool(pending) and plan.active == pending
    shares = shares_of(service) if plan.shares is not None else None
    return replace(plan, active=active, pending=pending, shares=shares) if is_promotion else plan


def linked(status: RayServiceStatuses, url: Callable[[str], str]) -> RayServiceStatuses:
    """With the way to the history of each cluster, which `url` gives by its name."""

    def link(cluster: RayServiceStatus) -> RayServiceStatus:
        name = cluster.ray_cluster_name
        return msgspec.structs.replace(cluster, history_url=url(name) if name else "")

    return msgspec.structs.replace(
        status,
        active_service_status=link(status.active_service_status),
        pending_service_status=link(status.pending_service_status),
    )


def _cluster(name: str, facts: Facts, before: Mapping[str, RayServiceStatus], now: datetime) -> RayServiceStatus:
    if not name:
        return RayServiceStatus()
    known, found = before.get(name, RayServiceStatus()), facts.clusters.get(name)
    if found is None:
        return msgspec.structs.replace(known, ray_cluster_name=name)
    is_same = _without_times(known.ray_cluster_status) == _without_times(found.status)
    applications: dict[str, AppStatus] = known.application_statuses
    return msgspec.structs.replace(
        known,
        ray_cluster_name=name,
        ray_cluster_status=known.ray_cluster_status if is_same else found.status,
        application_statuses=dict(found.serve.applications) if found.serve.is_current else applications,
        unhealthy_since=_unhealthy_since(known, found.serve, now),
    )


def _unhealthy_since(known: RayServiceStatus, serve: ServeFacts, now: datetime) -> str | None:
    """What Serve said last stands while it does not answer."""
    if not serve.is_current:
        return known.unhealthy_since
    return (known.unhealthy_since or to_time(now)) if serve.is_broken else None


def _shared(status: RayServiceStatus, plan: Plan, now: datetime) -> RayServiceStatus:
    """With what the cluster should have of capacity and traffic, where that moves step by step."""
    shares, name = plan.shares, status.ray_cluster_name
    if shares is None or not name:
        empty = {"target_capacity": None, "traffic_routed_percent": None, "last_traffic_migrated_time": None}
        return msgspec.structs.replace(status, **empty)
    capacity: int = WHOLE
    traffic: int | None = WHOLE if plan.active else None
    if plan.active and plan.pending:
        is_new = name == plan.pending
        capacity = shares.pending_capacity if is_new else shares.active_capacity
        traffic = shares.traffic if is_new else WHOLE - shares.traffic
    has_moved = traffic is not None and status.traffic_routed_percent not in (None, traffic)
    moved_at = to_time(now) if has_moved else status.last_traffic_migrated_time
    return msgspec.structs.replace(
        status, target_capacity=capacity, traffic_routed_percent=traffic, last_traffic_migrated_time=moved_at
    )


def _without_times(status: RayClusterStatus) -> RayClusterStatus:
    return msgspec.structs.replace(status, last_update_time=None, state_transition_times={})
