"""What a step of an incremental upgrade rests on: who gets traffic, and what holds it up. Pure."""

from __future__ import annotations

from typing import Final

from raykeeper.api.rayservice import RayService
from raykeeper.api.times import parse_time
from raykeeper.operator.rayservice.facts import ClusterFacts, Facts
from raykeeper.operator.rayservice.upgrade.steps import WHOLE, Direction, Shares, View
from raykeeper.operator.rayservice.versions import Match

MOST_OF_IT: Final = WHOLE // 2


def shares_of(service: RayService) -> Shares:
    """What each of the two clusters should have by now. The status says it before the world is made so."""
    active, pending = service.status.active_service_status, service.status.pending_service_status
    return Shares(
        WHOLE if active.target_capacity is None else active.target_capacity,
        pending.target_capacity or 0,
        pending.traffic_routed_percent or 0,
        parse_time(pending.last_traffic_migrated_time),
    )


def weights(service: RayService, facts: Facts) -> tuple[tuple[str, int], ...]:
    """How the traffic is to be divided by now; nothing while no cluster serves."""
    active = service.status.active_service_status.ray_cluster_name
    pending = service.status.pending_service_status.ray_cluster_name
    if active not in facts.clusters:
        return ()
    if pending not in facts.clusters or not facts.is_stepwise:
        return ((active, WHOLE),)
    traffic = routed_to_new(shares_of(service), facts.clusters[active], facts.clusters[pending])
    return ((active, WHOLE - traffic), (pending, traffic))


def routed_to_new(shares: Shares, active: ClusterFacts, pending: ClusterFacts) -> int:
    """What the new cluster gets of the traffic: its share. But while a cluster that has some answers nobody, the other
    one gets it all: requests that fail are worse than a step that comes too early, or a cluster that answers late.
    """
    is_shared = 0 < shares.traffic < WHOLE
    if is_shared and bool(active.ready_pods) != bool(pending.ready_pods):
        return WHOLE if pending.ready_pods else 0
    return shares.traffic


def was_rolled_back(active: ClusterFacts, facts: Facts) -> bool:
    """Whether the present goal was tried, and did not work."""
    return bool(facts.goal) and active.rolled_back == facts.goal


def why_roll_back(active: ClusterFacts, pending: ClusterFacts, facts: Facts) -> str:
    """Why traffic should go back, as the user wants it to; empty: it should not, or that was written down already."""
    if direction(active, pending, facts) is not Direction.FORWARD:
        return ""
    if facts.rolls_back_unhealthy and pending.serve.is_broken:
        return f"Serve says that an application on {pending.name} does not work"
    if facts.error_limit is not None and pending.failures.exceed(facts.error_limit):
        return f"{pending.name}: {pending.failures}, and {facts.error_limit:g} % are allowed"
    return ""


def direction(active: ClusterFacts, pending: ClusterFacts, facts: Facts) -> Direction:
    """Back, where the spec is not that of the new cluster any more, or the new cluster does not work."""
    is_wanted = pending.match in (Match.SAME, Match.APPENDED) and not was_rolled_back(active, facts)
    return Direction.FORWARD if is_wanted else Direction.BACK


def view(service: RayService, facts: Facts, active: ClusterFacts, pending: ClusterFacts) -> View:
    """What there is to wait for."""
    is_forward = direction(active, pending, facts) is Direction.FORWARD
    taker, giver = (pending, active) if is_forward else (active, pending)
    shares = shares_of(service)
    is_judged = is_forward and facts.error_limit is not None and shares.traffic > 0
    return View(
        capacity_waits=_taking(taker) or (_taking(giver) if _can_take(giver) else ""),
        traffic_waits=_traffic_waits(service, facts),
        taker_waits=_taker_waits(taker),
        is_giver_dead=not giver.ready_pods,
        verdict_waits=pending.failures.waits(shares.moved_at) if is_judged else "",
    )


def _taking(cluster: ClusterFacts) -> str:
    """Why Serve does not have the capacity that it should have, on a cluster whose head answers."""
    if cluster.head is None or not cluster.head.is_ready or not cluster.serve.has_goal or cluster.serve.has_config:
        return ""
    return f"Serve on {cluster.name} has not taken its capacity yet {cluster.serve.refusal}".rstrip()


def _can_take(cluster: ClusterFacts) -> bool:
    """A cluster that gives traffic away does not hold the other up where its Serve answers nobody."""
    return cluster.serve.is_current and not cluster.serve.refusal


def _taker_waits(cluster: ClusterFacts) -> str:
    if cluster.trouble is not None and not cluster.ready_pods:
        return f"{cluster.name}: {cluster.trouble.message}"
    if not cluster.serve.is_running:
        return f"Serve does not run every application on {cluster.name}"
    if not cluster.ready_pods:
        return f"Serve runs on {cluster.name}, and none of its pods that take requests is ready yet"
    return ""


def _traffic_waits(service: RayService, facts: Facts) -> str:
    if dict(weights(service, facts)) != dict(facts.routing.weights):
        return facts.routing.waits or "the HTTPRoute does not have the weights of this step yet"
    return facts.routing.waits
