"""The status of a RayCluster, from what was observed and what was tried. Pure: nothing is remembered but times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from raykeeper.api.conditions import is_true
from raykeeper.api.fields import MAX_INT32
from raykeeper.api.meta import JSON
from raykeeper.api.raycluster import HeadInfo, RayCluster, RayClusterStatus
from raykeeper.operator.raycluster.conditions import (
    HEAD_POD_READY,
    INVALID,
    PROVISIONED,
    REPLICA_FAILURE,
    Finding,
    to_time,
    updated,
)
from raykeeper.operator.raycluster.plan_workers import desired_replicas
from raykeeper.operator.raycluster.pod import Pod
from raykeeper.operator.raycluster.resources import desired_totals
from raykeeper.operator.raycluster.suspension import SUSPENDED, SUSPENDING, Suspension, suspension_of


@dataclass(frozen=True)
class Failure:
    """What could not be done to pods, or what is wrong with the spec: a reason for programs, a sentence for people."""

    reason: str
    message: str


@dataclass(frozen=True)
class Outcome:
    """What a pass saw and what came of it."""

    pods: Sequence[Pod]
    head_service: JSON | None
    failure: Failure | None = None
    """The first write to pods that was refused in this pass."""
    now: datetime = datetime.min
    has_conditions: bool = True
    """Whether the status has conditions at all (the feature gate RayClusterStatusConditions)."""


def status_of(cluster: RayCluster, outcome: Outcome) -> RayClusterStatus:
    """What the status should say; equal to what it says, but for the time of writing, when nothing changed."""
    seen = _Seen(cluster, outcome)
    findings = _findings(seen) if outcome.has_conditions else ()
    conditions = updated(cluster.status.conditions, findings, cluster.metadata.generation, outcome.now)
    return _dated(cluster.status, _counted(seen, state=_state(seen), conditions=conditions), outcome.now)


def invalid_status(cluster: RayCluster, failure: Failure, now: datetime) -> RayClusterStatus:
    """The status as it was, with the condition that says why nothing is done about the spec."""
    kept = [
        Finding(one.type, one.status, one.reason, one.message)
        for one in cluster.status.conditions
        if one.type != INVALID
    ]
    finding = Finding(INVALID, "True", failure.reason, failure.message)
    conditions = updated(cluster.status.conditions, [*kept, finding], cluster.metadata.generation, now)
    status = msgspec.structs.replace(
        cluster.status, conditions=conditions, observed_generation=cluster.metadata.generation
    )
    return _dated(cluster.status, status, now)


def without_conditions(cluster: RayCluster) -> RayCluster:
    """The cluster as if its status had never had conditions, so that old ones decide nothing."""
    return msgspec.structs.replace(cluster, status=msgspec.structs.replace(cluster.status, conditions=()))


class _Seen:
    """The pods of an outcome, counted."""

    def __init__(self, cluster: RayCluster, outcome: Outcome) -> None:
        groups = cluster.spec.worker_group_specs
        names = {group.group_name for group in groups}
        self.cluster = cluster
        self.outcome = outcome
        self.alive = [pod for pod in outcome.pods if not pod.is_terminating]
        self.head = next((pod for pod in self.alive if pod.is_head), None)
        self.workers = [pod for pod in self.alive if not pod.is_head and pod.group in names]
        self.desired = sum(desired_replicas(group) * group.num_of_hosts for group in groups)
        self.suspension = suspension_of(cluster)

    @property
    def is_complete(self) -> bool:
        """Whether all pods that should be are there and ready, and none beside them."""
        wanted = [*([self.head] if self.head else []), *self.workers]
        return (
            self.head is not None
            and len(self.workers) == self.desired
            and len(wanted) == len(self.alive)
            and all(pod.is_up for pod in wanted)
        )

    @property
    def is_empty(self) -> bool:
        return not self.outcome.pods


def _state(seen: _Seen) -> str:
    if seen.suspension is Suspension.SUSPENDED or (seen.suspension is Suspension.SUSPENDING and seen.is_empty):
        return "suspended"
    return "ready" if seen.is_complete and seen.suspension is Suspension.NONE else ""


def _findings(seen: _Seen) -> Iterator[Finding]:
    yield _head_finding(seen.head)
    yield _provisioned_finding(seen)
    if seen.outcome.failure is not None:
        yield Finding(REPLICA_FAILURE, "True", seen.outcome.failure.reason, seen.outcome.failure.message)
    yield from _suspension_findings(seen)


def _head_finding(head: Pod | None) -> Finding:
    if head is None:
        return Finding(HEAD_POD_READY, "False", "HeadPodNotFound", "there is no head pod")
    if head.is_ready:
        return Finding(HEAD_POD_READY, "True", head.ready_reason or "HeadPodRunningAndReady", head.ready_message)
    return Finding(HEAD_POD_READY, "False", head.ready_reason or "Unknown", head.ready_message)


def _provisioned_finding(seen: _Seen) -> Finding:
    """True from the first time all pods were ready, until the cluster is suspended."""
    was = is_true(seen.cluster.status.conditions, PROVISIONED) and _state(seen) != "suspended"
    if was or (seen.is_complete and seen.suspension is Suspension.NONE):
        return Finding(PROVISIONED, "True", "AllPodRunningAndReadyFirstTime", "all pods were ready")
    now = "pods are being made" if seen.suspension is Suspension.NONE else "the cluster is suspended"
    return Finding(PROVISIONED, "False", "RayClusterPodsProvisioning", now)


def _suspension_findings(seen: _Seen) -> Iterator[Finding]:
    is_done = _state(seen) == "suspended"
    is_going = seen.suspension is Suspension.SUSPENDING and not is_done
    yield Finding(SUSPENDING, "True" if is_going else "False", SUSPENDING)
    yield Finding(SUSPENDED, "True" if is_done else "False", SUSPENDED)


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
