"""The status of a RayCluster, from what was observed and what was tried. Pure: nothing is remembered but times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec

from raykeeper.api.conditions import is_true
from raykeeper.api.fields import MAX_INT32
from raykeeper.api.meta import JSON
from raykeeper.api.raycluster import (
    CONDITION_TYPES,
    HEAD_POD_LOST,
    HEAD_POD_READY,
    INVALID,
    PROVISIONED,
    READY,
    REPLICA_FAILURE,
    SUSPENDED,
    SUSPENDING,
    HeadInfo,
    RayCluster,
    RayClusterStatus,
)
from raykeeper.api.times import to_time
from raykeeper.operator.raycluster.plan import stays_without_head
from raykeeper.operator.raycluster.pod import Pod
from raykeeper.operator.raycluster.resources import desired_totals
from raykeeper.operator.raycluster.scheduling import scheduled_finding
from raykeeper.operator.raycluster.suspension import Suspension, suspension_of
from raykeeper.operator.schedulers.interface import Wait
from raykeeper.operator.shared.conditions import Finding, foreign, updated
from raykeeper.operator.shared.replicas import desired_replicas

LONGEST_TEXT: Final = 1000
"""Of what the condition Ready says; servers and kubelets put whole objects into their messages."""


@dataclass(frozen=True)
class Failure:
    """What could not be done to pods, or what is wrong with the spec: a reason for programs, a sentence for people."""

    reason: str
    message: str


@dataclass(frozen=True)
class Scheduling:
    """The word of a batch scheduler."""

    wait: Wait | None = None


@dataclass(frozen=True)
class Outcome:
    """What a pass saw and what came of it."""

    pods: Sequence[Pod]
    head_service: JSON | None
    failure: Failure | None = None
    """The first write to pods that was refused in this pass."""
    now: datetime = datetime.min
    refused: str = ""
    """The first write to other children that was refused and holds no pod up."""
    scheduling: Scheduling | None = None
    """What the batch scheduler says; None without one."""
    history: Finding | None = None
    """What is to be said about history by annotation; None for nothing."""
    has_conditions: bool = True
    """Whether the status has conditions at all (the feature gate RayClusterStatusConditions)."""


def status_of(cluster: RayCluster, outcome: Outcome) -> RayClusterStatus:
    """What the status should say; equal to what it says, but for the time of writing, when nothing changed."""
    seen = _Seen(cluster, outcome)
    findings = _findings(seen) if outcome.has_conditions else ()
    generation = cluster.metadata.generation
    conditions = updated(cluster.status.conditions, findings, CONDITION_TYPES, generation, outcome.now)
    return _dated(cluster.status, _counted(seen, state=_state(seen), conditions=conditions), outcome.now)


def invalid_status(cluster: RayCluster, failure: Failure, now: datetime) -> RayClusterStatus:
    """The status as it was, with the condition that says why nothing is done about the spec."""
    finding, generation = Finding(INVALID, "True", failure.reason, failure.message), cluster.metadata.generation
    conditions = updated(cluster.status.conditions, [finding], {INVALID}, generation, now)
    status = msgspec.structs.replace(cluster.status, conditions=conditions, observed_generation=generation)
    return _dated(cluster.status, status, now)


def without_conditions(cluster: RayCluster) -> RayCluster:
    """The cluster as if its status had never had conditions of ours, so that old ones decide nothing."""
    conditions = foreign(cluster.status.conditions, CONDITION_TYPES)
    return msgspec.structs.replace(cluster, status=msgspec.structs.replace(cluster.status, conditions=conditions))


class _Seen:
    """The pods of an outcome, counted."""

    def __init__(self, cluster: RayCluster, outcome: Outcome) -> None:
        groups = cluster.spec.worker_group_specs
        names = {group.group_name for group in groups}
        self.cluster = cluster
        self.outcome = outcome
        self.alive = [pod for pod in outcome.pods if not pod.is_terminating]
        heads = sorted((pod for pod in outcome.pods if pod.is_head), key=lambda pod: (pod.is_terminating, pod.created))
        self.head = next(iter(heads), None)
        self.workers = [pod for pod in self.alive if not pod.is_head and pod.group in names]
        self.desired = sum(desired_replicas(group) * group.num_of_hosts for group in groups)
        self.suspension = suspension_of(cluster)

    @property
    def is_complete(self) -> bool:
        """Whether all pods that should be are there and ready, and none beside them."""
        return (
            len(self.workers) == self.desired
            and len(self.alive) == self.desired + 1
            and any(pod.is_head for pod in self.alive)
            and all(pod.is_up for pod in self.alive)
        )

    @property
    def is_suspended(self) -> bool:
        is_empty = not self.outcome.pods
        return self.suspension is Suspension.SUSPENDED or (self.suspension is Suspension.SUSPENDING and is_empty)

    @property
    def is_ready(self) -> bool:
        """Whether the cluster is what its spec says, and nothing about it failed."""
        has_failed = self.outcome.failure is not None or bool(self.outcome.refused)
        return self.is_complete and self.suspension is Suspension.NONE and not has_failed


def _state(seen: _Seen) -> str:
    """As KubeRay's: `ready` from the first time it was so until the last pod of a suspended cluster is gone.

    Kueue takes anything else for a cluster that holds no quota any more; what is true now stands in the conditions.
    """
    if seen.is_suspended:
        return "suspended"
    return "ready" if seen.is_ready else seen.cluster.status.state


def _findings(seen: _Seen) -> Iterator[Finding]:
    yield _ready_finding(seen)
    yield _head_finding(seen)
    yield _provisioned_finding(seen)
    if seen.outcome.failure is not None:
        yield Finding(REPLICA_FAILURE, "True", seen.outcome.failure.reason, seen.outcome.failure.message)
    yield from _suspension_findings(seen)
    if seen.outcome.scheduling is not None:
        yield scheduled_finding(seen.cluster, seen.alive, seen.outcome.scheduling.wait)
    if seen.outcome.history is not None:
        yield seen.outcome.history


def _ready_finding(seen: _Seen) -> Finding:
    if seen.is_ready:
        return Finding(READY, "True", "AllPodsReady", f"the head and {seen.desired} workers are ready")
    if seen.is_suspended:
        return Finding(READY, "False", "Suspended", "the cluster is suspended")
    if seen.suspension is Suspension.SUSPENDING:
        return Finding(READY, "False", "Suspending", f"{len(seen.outcome.pods)} pods are on their way out")
    if seen.outcome.failure is not None:
        return Finding(READY, "False", seen.outcome.failure.reason, seen.outcome.failure.message[:LONGEST_TEXT])
    reason = "ChildRefused" if seen.is_complete else "PodsNotReady"
    return Finding(READY, "False", reason, "; ".join(_trouble(seen))[:LONGEST_TEXT])


def _trouble(seen: _Seen) -> Iterator[str]:
    """What keeps the cluster from being ready: how far it is, and the first pod of each kind that is not well."""
    if seen.head is None:
        yield "there is no head pod"
    up = sum(pod.is_up for pod in seen.workers)
    yield f"{up} of {seen.desired} workers are ready"
    if len(seen.workers) > seen.desired:
        yield f"{len(seen.workers) - seen.desired} more than asked for"
    heads, workers = ([pod for pod in seen.alive if pod.is_head is is_head] for is_head in (True, False))
    for pods in (heads, workers):
        unwell = min((pod for pod in pods if not pod.is_up), key=lambda pod: pod.name, default=None)
        if unwell is not None:
            yield f"pod {unwell.name}: {', '.join(filter(None, (unwell.ready_reason, unwell.ready_message)))}"
    if seen.head is not None and seen.head.is_terminating:
        yield f"the head pod {seen.head.name} is on its way out"
    if seen.outcome.refused:
        yield seen.outcome.refused


def _head_finding(seen: _Seen) -> Finding:
    head = seen.head
    if head is None and seen.suspension is Suspension.NONE and stays_without_head(seen.cluster):
        return Finding(HEAD_POD_READY, "False", HEAD_POD_LOST, "the head pod is gone, and none takes its place")
    if head is None:
        return Finding(HEAD_POD_READY, "False", "HeadPodNotFound", "there is no head pod")
    if head.is_ready:
        return Finding(HEAD_POD_READY, "True", head.ready_reason or "HeadPodRunningAndReady", head.ready_message)
    return Finding(HEAD_POD_READY, "False", head.ready_reason or "Unknown", head.ready_message)


def _provisioned_finding(seen: _Seen) -> Finding:
    """True from the first time all pods were ready, until the cluster is suspended."""
    was = is_true(seen.cluster.status.conditions, PROVISIONED) and not seen.is_suspended
    if was or (seen.is_complete and seen.suspension is Suspension.NONE):
        return Finding(PROVISIONED, "True", "AllPodRunningAndReadyFirstTime", "all pods were ready")
    now = "pods are being made" if seen.suspension is Suspension.NONE else "the cluster is suspended"
    return Finding(PROVISIONED, "False", "RayClusterPodsProvisioning", now)


def _suspension_findings(seen: _Seen) -> Iterator[Finding]:
    is_going = seen.suspension is Suspension.SUSPENDING and not seen.is_suspended
    yield Finding(SUSPENDING, "True" if is_going else "False", SUSPENDING)
    yield Finding(SUSPENDED, "True" if seen.is_suspended else "False", SUSPENDED)


def _counted(seen: _Seen, **fields: object) -> RayClusterStatus:
    groups = [group for group in seen.cluster.spec.worker_group_specs if not group.suspend]
    totals = desired_totals(seen.cluster)
    return msgspec.structs.replace(
        seen.cluster.status,
        reason="",
        desired_cpu=str(totals.cpu),
        desired_memory=str(totals.memory),
        desired_gpu=str(totals.gpu),
        desired_tpu=str(totals.tpu),
        endpoints=_endpoints(seen.outcome.head_service),
        head=_head_info(seen),
        ready_worker_replicas=sum(pod.is_ready for pod in seen.workers),
        available_worker_replicas=sum(pod.phase == "Running" for pod in seen.workers),
        desired_worker_replicas=min(MAX_INT32, seen.desired),
        min_worker_replicas=min(MAX_INT32, sum(group.min_replicas * group.num_of_hosts for group in groups)),
        max_worker_replicas=min(MAX_INT32, sum(group.max_replicas * group.num_of_hosts for group in groups)),
        observed_generation=seen.cluster.metadata.generation,
        **fields,
    )


def _endpoints(service: JSON | None) -> dict[str, str]:
    """Ports by name: where a node listens, else where the pod does."""
    ports = (service or {}).get("spec", {}).get("ports") or ()
    return {
        port["name"]: str(port.get("nodePort") or port.get("targetPort") or port["port"])
        for port in ports
        if port.get("name")
    }


def _head_info(seen: _Seen) -> HeadInfo:
    pod_ip, pod_name = (seen.head.ip, seen.head.name) if seen.head else ("", "")
    service = seen.outcome.head_service
    if service is None:
        return HeadInfo(pod_ip, pod_name)
    address = service["spec"].get("clusterIP") or ""
    return HeadInfo(pod_ip, pod_name, pod_ip if address == "None" else address, service["metadata"]["name"])


def _dated(known: RayClusterStatus, new: RayClusterStatus, now: datetime) -> RayClusterStatus:
    """With the time of writing, if there is anything to write."""
    if new == known:
        return known
    times = dict(known.state_transition_times)
    if new.state and new.state != known.state:
        times[new.state] = to_time(now)
    return msgspec.structs.replace(new, last_update_time=to_time(now), state_transition_times=times)
