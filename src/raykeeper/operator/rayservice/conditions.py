"""What a RayService says about itself in conditions. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from raykeeper.api.conditions import Condition, find_condition, is_true
from raykeeper.api.rayservice import RayService
from raykeeper.operator.rayservice.facts import ClusterFacts, Facts, Phase, Plan
from raykeeper.operator.rayservice.services import serve_service_name
from raykeeper.operator.rayservice.states import (
    APPLICATION_RUNNING,
    APPLICATIONS_HEALTHY,
    BOTH_CLUSTERS,
    DEPLOYMENT_HEALTHY,
    GATEWAY_READY,
    INITIALIZING,
    INITIALIZING_TIMEOUT,
    INVALID,
    NO_ACTIVE,
    NO_PENDING,
    NONZERO_ENDPOINTS,
    READY,
    RESUMED,
    ROLLBACK_IN_PROGRESS,
    SPEC_CHANGED,
    SUSPEND_COMPLETE,
    SUSPEND_IN_PROGRESS,
    SUSPEND_REQUESTED,
    SUSPENDED,
    SUSPENDING,
    UNHEALTHY,
    UPGRADE_IN_PROGRESS,
    VALIDATION_FAILED,
    ZERO_ENDPOINTS,
)
from raykeeper.operator.rayservice.stepping import was_rolled_back
from raykeeper.operator.rayservice.versions import Match
from raykeeper.operator.shared.conditions import Finding, updated

OURS: Final = frozenset(
    {
        READY,
        UPGRADE_IN_PROGRESS,
        ROLLBACK_IN_PROGRESS,
        SUSPENDING,
        SUSPENDED,
        APPLICATIONS_HEALTHY,
        GATEWAY_READY,
        INVALID,
    }
)
HAS_SERVED: Final = frozenset({NONZERO_ENDPOINTS, ZERO_ENDPOINTS})
MOST_TOLD: Final = 10
"""Applications and deployments whose trouble is told; the status has all of them."""
LONGEST_TOLD: Final = 1000
"""Characters of Serve's words about one of them: tracebacks are longer."""


def refused(service: RayService, message: str, now: datetime) -> tuple[Condition, ...]:
    """The conditions of a service of which nothing can be made."""
    findings = [Finding(READY, "False", VALIDATION_FAILED, message)]
    return updated(service.status.conditions, findings, OURS, service.metadata.generation, now)


def conditions(
    service: RayService, facts: Facts, plan: Plan, invalid: str, now: datetime, refusal: str
) -> tuple[Condition, ...]:
    """All conditions, after what was planned has been done, but for what the API server refused."""
    known = service.status.conditions
    findings = [*_findings(service, facts, plan, refusal)]
    if invalid:
        findings.append(Finding(INVALID, "True", "InvalidSpec", invalid))
    if plan.phase in (Phase.WORKING, Phase.RESUMING) and _starts_anew(known):
        # The time since which it initializes counts from now, though it was not ready before either.
        known = tuple(one for one in known if one.type != READY)
    return updated(known, findings, OURS, service.metadata.generation, now)


def _findings(service: RayService, facts: Facts, plan: Plan, refusal: str) -> Iterator[Finding]:
    match plan.phase:
        case Phase.SUSPENDING | Phase.SUSPENDED:
            yield from _suspension(service.status.conditions, is_done=plan.phase is Phase.SUSPENDED)
        case Phase.TIMED_OUT:
            message = "it was not ready in time (ray.io/initializing-timeout); a change of the spec starts it anew"
            yield Finding(READY, "False", INITIALIZING_TIMEOUT, message)
            yield Finding(UPGRADE_IN_PROGRESS, "False", INITIALIZING_TIMEOUT, message)
        case _:
            yield from _working(service, facts, plan, refusal)


def _suspension(known: tuple[Condition, ...], *, is_done: bool) -> Iterator[Finding]:
    message = "spec.suspend is true"
    yield Finding(READY, "False", SUSPEND_IN_PROGRESS, message)
    yield Finding(UPGRADE_IN_PROGRESS, "False", SUSPEND_IN_PROGRESS, message)
    if find_condition(known, ROLLBACK_IN_PROGRESS):
        yield Finding(ROLLBACK_IN_PROGRESS, "False", SUSPEND_IN_PROGRESS, message)
    if is_done:
        yield Finding(SUSPENDING, "False", SUSPEND_COMPLETE)
        yield Finding(SUSPENDED, "True", SUSPEND_COMPLETE, message)
        return
    yield Finding(SUSPENDING, "True", SUSPEND_REQUESTED, message)
    if find_condition(known, SUSPENDED):
        yield Finding(SUSPENDED, "False", RESUMED)


def _working(service: RayService, facts: Facts, plan: Plan, refusal: str) -> Iterator[Finding]:
    known = service.status.conditions
    yield _ready(service, facts, plan, refusal)
    yield _upgrade(known, facts, plan)
    yield _applications(known, facts, plan)
    yield from _rollback(facts, plan)
    if facts.routing.is_wanted and plan.active:
        waits = facts.routing.waits
        yield Finding(GATEWAY_READY, "False" if waits else "True", "Waiting" if waits else "Programmed", waits)
    for kind in (SUSPENDING, SUSPENDED):
        if find_condition(known, kind):
            yield Finding(kind, "False", RESUMED)


def _ready(service: RayService, facts: Facts, plan: Plan, refusal: str) -> Finding:
    if facts.endpoints and plan.active:
        count = "1 pod takes" if facts.endpoints == 1 else f"{facts.endpoints} pods take"
        return Finding(READY, "True", NONZERO_ENDPOINTS, f"{count} requests")
    before = find_condition(service.status.conditions, READY)
    cause = refusal or _cause(service, facts, plan)
    if before is not None and (before.reason in HAS_SERVED or before.status == "True"):
        return Finding(READY, "False", ZERO_ENDPOINTS, cause or "no pod takes requests")
    return Finding(READY, "False", INITIALIZING, cause or "the next step is under way")


def _starts_anew(known: tuple[Condition, ...]) -> bool:
    ready = find_condition(known, READY)
    return ready is not None and ready.reason in (VALIDATION_FAILED, SUSPEND_IN_PROGRESS, INITIALIZING_TIMEOUT)


def _cause(service: RayService, facts: Facts, plan: Plan) -> str:
    """What the service waits for, in the words of whoever holds it up."""
    cluster = facts.clusters.get(plan.active or plan.pending)
    if not facts.has_applications:
        return "serveConfigV2 has no applications"
    if cluster is None:
        return ""
    if cluster.trouble is not None:
        return cluster.trouble.message
    if cluster.head is None or not cluster.head.is_ready:
        return f"the head of RayCluster {cluster.name} is not ready"
    if plan.active and cluster.serve.is_running:
        is_left_out = service.spec.exclude_head_pod_from_serve_svc
        why = ": excludeHeadPodFromServeSvc keeps requests from its head" if is_left_out else ""
        behind = f"no pod behind Service {serve_service_name(service)} takes requests"
        return f"Serve runs on RayCluster {cluster.name}, and {behind}{why}"
    return "; ".join(_unhealthy(cluster))


def _upgrade(known: tuple[Condition, ...], facts: Facts, plan: Plan) -> Finding:
    if plan.active and plan.pending:
        new = facts.clusters.get(plan.pending)
        told = plan.told or (new.trouble.message if new and new.trouble else "") or f"RayCluster {plan.pending} starts"
        return Finding(UPGRADE_IN_PROGRESS, "True", BOTH_CLUSTERS, told)
    if plan.active:
        return Finding(UPGRADE_IN_PROGRESS, "False", NO_PENDING)
    before = find_condition(known, UPGRADE_IN_PROGRESS)
    if before is None or before.reason not in (BOTH_CLUSTERS, NO_PENDING, NO_ACTIVE):
        return Finding(UPGRADE_IN_PROGRESS, "False", INITIALIZING)
    return Finding(UPGRADE_IN_PROGRESS, "Unknown", NO_ACTIVE)


def _rollback(facts: Facts, plan: Plan) -> Iterator[Finding]:
    active = facts.clusters.get(plan.active)
    is_unhealthy = active is not None and was_rolled_back(active, facts)
    reason = UNHEALTHY if is_unhealthy else SPEC_CHANGED
    if plan.is_rollback:
        yield Finding(ROLLBACK_IN_PROGRESS, "True", reason, plan.told)
    elif active is not None and is_unhealthy and active.match is Match.DIFFERENT:
        cure = f"change the spec, or take the annotation raykeeper.io/rolled-back off RayCluster {active.name}"
        because = active.rolled_back_because or "the new cluster did not work"
        yield Finding(ROLLBACK_IN_PROGRESS, "False", reason, f"{because}; to try again, {cure}")


def _applications(known: tuple[Condition, ...], facts: Facts, plan: Plan) -> Finding:
    """How the applications are on the cluster that serves, and on the one that is to take over."""
    named = [facts.clusters[name] for name in (plan.active, plan.pending) if name in facts.clusters]
    if not facts.has_applications:
        return Finding(APPLICATIONS_HEALTHY, "Unknown", "NoApplications", "serveConfigV2 has no applications")
    if not named:
        return Finding(APPLICATIONS_HEALTHY, "Unknown", "NoCluster")
    serving, told = named[0], [line for cluster in named for line in _unhealthy(cluster)]
    if any(cluster.serve.refusal for cluster in named):
        return Finding(APPLICATIONS_HEALTHY, "False", "ConfigNotTaken", "; ".join(told))
    if serving.serve.is_running:
        return Finding(APPLICATIONS_HEALTHY, "True", "AllRunning", "; ".join(told))
    if not serving.serve.is_current:
        before = find_condition(known, APPLICATIONS_HEALTHY)
        if before is not None and not serving.serve.failure:  # not asked yet: what was said last still stands
            return Finding(before.type, before.status, before.reason, before.message)
        return Finding(APPLICATIONS_HEALTHY, "Unknown", "NoAnswer", "; ".join(told))
    return Finding(APPLICATIONS_HEALTHY, "False", "NotRunning", "; ".join(told) or "Serve has no applications yet")


def _unhealthy(cluster: ClusterFacts) -> list[str]:
    """What Serve says about applications and deployments that are not as they should be."""
    serve, told = cluster.serve, []
    if serve.refusal:
        told.append(f"the config was not taken: {serve.refusal}")
    if serve.failure:
        told.append(f"Serve was asked and did not answer: {serve.failure}")
    for name, application in serve.applications.items():
        if application.status != APPLICATION_RUNNING:
            told.append(f"application {name} is {application.status}: {application.message}")
        for deployment, state in application.serve_deployment_statuses.items():
            if state.status != DEPLOYMENT_HEALTHY:
                told.append(f"deployment {deployment} of {name} is {state.status}: {state.message}")
    return [f"{cluster.name}: {line.rstrip(': ')[:LONGEST_TOLD]}" for line in told[:MOST_TOLD]]


def is_ready(known: tuple[Condition, ...]) -> bool:
    return is_true(known, READY)
