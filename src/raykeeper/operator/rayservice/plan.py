"""What to do about a RayService now. Pure.

Four promises hold: the cluster that serves is looked after whatever the new one does; traffic moves only to a cluster
that answers; nothing is torn down for a spec that makes no sense; what another operator made is not restarted.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from raykeeper.api import labels
from raykeeper.api.conditions import find_condition, is_true
from raykeeper.api.rayservice import RayService
from raykeeper.api.times import parse_time
from raykeeper.errors import Misconfigured
from raykeeper.operator.rayservice.clusters import READY_POD_SECONDS, Choice, choose, plan_replaced
from raykeeper.operator.rayservice.facts import (
    Action,
    ClusterFacts,
    DeleteCluster,
    DeleteRouting,
    DeleteService,
    Facts,
    LabelHead,
    NoteConfig,
    Phase,
    Plan,
    PointServices,
    RouteTraffic,
)
from raykeeper.operator.rayservice.states import (
    INITIALIZING,
    INITIALIZING_TIMEOUT,
    READY,
    REPLACE_UNHEALTHY_AFTER,
    SUSPENDED,
    SUSPENDING,
)
from raykeeper.operator.rayservice.stepping import MOST_OF_IT, shares_of, weights
from raykeeper.operator.rayservice.upgrade.steps import UNDIVIDED, Shares
from raykeeper.settings.values import parse_duration

MISSING_ROUTE_SECONDS: Final = 5.0
"""How soon a user's HTTPRoute is looked for again: until our backends are in it, nothing tells that it is for us."""
LONGEST_SECONDS: Final = 10 * 366 * 24 * 3600.0
"""Of a duration in an annotation: no calendar has the moment that a hundred million years lead to."""


def plan(service: RayService, facts: Facts, now: datetime) -> Plan:
    """The next step."""
    phase = phase_of(service, facts, now)
    if phase in (Phase.SUSPENDING, Phase.TIMED_OUT):
        is_said = is_true(service.status.conditions, SUSPENDING) or _has_timed_out(service)
        return Plan(phase, actions=tuple(_tear_down(facts))) if is_said else Plan(phase, look_at=now)
    if phase is Phase.SUSPENDED:
        return Plan(phase, look_at=None if service.spec.suspend or not facts.is_valid else now)
    given_up_at = healing_deadline(service, facts, now)
    choice = choose(service, facts, now, is_given_up=given_up_at is not None and now >= given_up_at)
    return _working(service, facts, phase, choice, now)


def phase_of(service: RayService, facts: Facts, now: datetime) -> Phase:
    """`Suspending` in the conditions is the point of no return: all goes before the service may resume."""
    conditions, suspend = service.status.conditions, service.spec.suspend and facts.is_valid
    if is_true(conditions, SUSPENDING):
        is_left = facts.clusters or facts.services or facts.routing.owned
        return Phase.SUSPENDING if is_left else Phase.SUSPENDED
    if is_true(conditions, SUSPENDED):
        return Phase.SUSPENDED if service.spec.suspend or not facts.is_valid else Phase.RESUMING
    if suspend:
        return Phase.SUSPENDING
    deadline = initializing_deadline(service)
    if _has_timed_out(service) or (deadline is not None and now >= deadline):
        return Phase.TIMED_OUT
    return Phase.WORKING


def initializing_deadline(service: RayService) -> datetime | None:
    """When a service that has not served yet is given up; None where the user did not ask for that."""
    ready = find_condition(service.status.conditions, READY)
    seconds = parse_seconds(service.metadata.annotations.get(labels.INITIALIZING_TIMEOUT, ""))
    since = parse_time(ready.last_transition_time) if ready and ready.reason == INITIALIZING else None
    return since + timedelta(seconds=seconds) if since and seconds else None


def healing_deadline(service: RayService, facts: Facts, now: datetime) -> datetime | None:
    """When a new cluster takes the place of one whose applications are broken; None where nobody asked for that."""
    active = facts.clusters.get(service.status.active_service_status.ray_cluster_name)
    seconds = parse_seconds(service.metadata.annotations.get(REPLACE_UNHEALTHY_AFTER, ""))
    if active is None or not active.serve.is_broken or not seconds:
        return None
    since = parse_time(service.status.active_service_status.unhealthy_since) or now
    return since + timedelta(seconds=seconds)


def parse_seconds(text: str) -> float | None:
    """Seconds of a Go duration or of a whole number; None for neither, for none, or for more than ten years."""
    try:
        seconds = parse_duration("", f"{text}s" if text.isdecimal() else text)
    except Misconfigured:
        return None
    return seconds if seconds <= LONGEST_SECONDS else None


def _has_timed_out(service: RayService) -> bool:
    """It was given up, and its spec is still the one that did not work."""
    ready = find_condition(service.status.conditions, READY)
    is_over = ready is not None and ready.reason == INITIALIZING_TIMEOUT
    return is_over and ready is not None and ready.observed_generation == service.metadata.generation


def _tear_down(facts: Facts) -> Iterator[Action]:
    """All clusters and services go, and the way in from outside."""
    for (kind, name), uid in facts.routing.owned.items():
        yield DeleteRouting(kind, name, uid)
    for cluster in facts.clusters.values():
        if not cluster.is_going:
            yield DeleteCluster(cluster.name, cluster.uid)
    for name, uid in facts.services.items():
        yield DeleteService(name, uid)


def _working(service: RayService, facts: Facts, phase: Phase, choice: Choice, now: datetime) -> Plan:
    status, actions = service.status, list(choice.actions)
    healing = None if choice.pending else healing_deadline(service, facts, now)
    looks = [initializing_deadline(service), healing, choice.look_at]
    known = (status.active_service_status.ray_cluster_name, status.pending_service_status.ray_cluster_name)
    for name in known:
        if cluster := facts.clusters.get(name):
            actions += _of_cluster(service, cluster)
            looks.append(cluster.head.known_at if cluster.head else None)
    shares, routed = _shares(service, facts, choice), weights(service, facts)
    if choice.active in facts.clusters:
        is_moved = bool(choice.pending) and dict(routed).get(choice.pending, 0) > MOST_OF_IT
        actions.append(PointServices(choice.active, choice.pending if is_moved else ""))
    if facts.routing.is_wanted:
        actions.append(RouteTraffic(routed))
        if choice.active and not facts.routing.weights:
            looks.append(now + timedelta(seconds=MISSING_ROUTE_SECONDS))
    for action, moment in plan_replaced(service, facts, {*known, choice.active, choice.pending}, now):
        actions += [action] if action else []
        looks.append(moment)
    if choice.told and choice.shares is None:
        looks.append(now + timedelta(seconds=READY_POD_SECONDS))
    if (choice.active, choice.pending) != known or (choice.pending and shares not in (None, shares_of(service))):
        looks.append(now)
    look_at = min((moment for moment in looks if moment is not None), default=None)
    told = choice.told
    return Plan(phase, choice.active, choice.pending, tuple(actions), look_at, told, shares, choice.is_rollback)


def _shares(service: RayService, facts: Facts, choice: Choice) -> Shares | None:
    """What the two clusters should have from now on. One that is alone has it all."""
    if choice.shares is not None or not facts.is_stepwise:
        return choice.shares
    known = (
        service.status.active_service_status.ray_cluster_name,
        service.status.pending_service_status.ray_cluster_name,
    )
    is_kept = (choice.active, choice.pending) == known and choice.active and choice.pending in facts.clusters
    return shares_of(service) if is_kept else UNDIVIDED


def _of_cluster(service: RayService, cluster: ClusterFacts) -> Iterator[Action]:
    """What is kept up on each of the two clusters, whatever the other does."""
    if cluster.serve.was_sent:
        yield NoteConfig(cluster.name)
    head = cluster.head
    if head is None:
        return
    is_healthy = False if service.spec.exclude_head_pod_from_serve_svc else head.is_proxy_healthy
    value = head.serve_label if is_healthy is None else str(is_healthy).lower()
    if value != head.serve_label:
        yield LabelHead(cluster.name, head.pod, value)
