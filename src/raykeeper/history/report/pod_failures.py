"""What Kubernetes did to the pods of a cluster, out of all that it said: a list of failures. Pure.

A pod that ends because its cluster was deleted, or that was scaled away after it was done, is no failure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from raykeeper.history.report.model import Evidence
from raykeeper.history.store.kube_facts import KubeFacts
from raykeeper.layout.kube_facts import ClusterFact, ContainerFact, EventFact, PodFact

HEAD = "head"
_OOM = "OOMKilled"
_OOM_KILLED = "oom_killed_container"
_NO_IMAGE = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "InvalidImageName",
        "ErrImageNeverPull",
        "ImageInspectError",
        "RegistryUnavailable",
    }
)
_NO_CONTAINER = frozenset({"CreateContainerConfigError", "CreateContainerError", "RunContainerError"})
_CRASHES = frozenset({"CrashLoopBackOff", "Error", "ContainerCannotRun", "StartError"})
_TAKEN = {
    "PreemptionByScheduler": ("preempted_pod", "was preempted for a pod of higher priority"),
    "EvictionByEvictionAPI": ("evicted_pod", "was evicted"),
    "TerminationByKubelet": ("evicted_pod", "was ended by its node, which ran short of something"),
    "DeletionByTaintManager": ("lost_pod_node", "was removed from a node that is not ready or was drained"),
    "DeletionByPodGC": ("lost_pod_node", "was removed because its node is gone"),
}
"""By the reason of the pod's condition `DisruptionTarget`."""
_PHASE_REASONS = {
    "Evicted": ("evicted_pod", "was evicted by its node"),
    "Preempted": ("preempted_pod", "was preempted for a pod of higher priority"),
    "Preempting": ("preempted_pod", "was preempted for a pod of higher priority"),
    "NodeLost": ("lost_pod_node", "was on a node that was lost"),
    "NodeShutdown": ("lost_pod_node", "was ended because its node shut down"),
    "Terminated": ("lost_pod_node", "was ended because its node shut down"),
}
_EVENTS_SHOWN = 3
_TELLING_EVENTS = ("Killing", "Preempted", "Evicted", "OOMKilling", "NodeNotReady", "TaintManagerEviction", "Failed")


@dataclass(frozen=True)
class PodFailure:
    """Something that happened to one pod, or to several of a group for the same reason."""

    rule: str
    title: str
    at: datetime
    pod: str
    pod_ip: str
    node_type: str
    evidence: tuple[Evidence, ...]
    keeps_from_starting: bool = False
    """The pod never ran because of it."""

    @property
    def is_of_head(self) -> bool:
        return self.node_type == HEAD


def pod_failures_of(facts: KubeFacts) -> tuple[PodFailure, ...]:
    """Every failure, the earliest first; each pod's of one kind once, but every death of its containers."""
    versions: dict[str, list[PodFact]] = {}
    for pod in facts.pods:
        versions.setdefault(pod.uid, []).append(pod)
    found = (failure for states in versions.values() for failure in _of_pod(states, facts))
    first: dict[tuple[str, str, datetime | None], PodFailure] = {}
    for failure in sorted(found, key=lambda one: (one.at, one.pod, one.rule)):
        first.setdefault((failure.rule, failure.pod, failure.at if failure.rule == _OOM_KILLED else None), failure)
    return tuple(first.values())


def _of_pod(states: list[PodFact], facts: KubeFacts) -> Iterator[PodFailure]:
    for pod in states:
        yield from _killed_containers(pod, facts)
        yield from _taken_pods(pod, facts)
    yield from _never_ran(states, facts)
    yield from _deleted(states, facts)


def _killed_containers(pod: PodFact, facts: KubeFacts) -> Iterator[PodFailure]:
    for container in pod.containers:
        for reason, code, at in _ends(container):
            if reason == _OOM:
                said = f"container {container.name} ended with reason {_OOM}, exit code {code}"
                title = f"container {container.name} of pod {pod.name} was killed for its memory limit"
                yield _trouble(_OOM_KILLED, title, pod, facts, at or pod.at, said)


def _ends(container: ContainerFact) -> Iterator[tuple[str, int | None, datetime | None]]:
    if container.state == "terminated":
        yield container.reason, container.exit_code, container.finished_at
    if container.last_reason:
        yield container.last_reason, container.last_exit_code, container.last_finished_at


def _taken_pods(pod: PodFact, facts: KubeFacts) -> Iterator[PodFailure]:
    known = _TAKEN.get(pod.disruption) or _PHASE_REASONS.get(pod.reason)
    if known is None:
        return
    rule, words = known
    reasons = (pod.disruption or pod.reason, pod.disruption_message or pod.message)
    yield _trouble(rule, f"pod {pod.name} {words}", pod, facts, pod.at, ": ".join(filter(None, reasons)))


def _never_ran(states: list[PodFact], facts: KubeFacts) -> Iterator[PodFailure]:
    """What the pod waited for to its end, if it never ran."""
    if any(map(_is_running, states)):
        return
    # What containers say once their pod is being deleted is how they were ended.
    kept = [pod for pod in states if not (pod.deleted or pod.deletion_requested_at)]
    waiting = [pod for pod in kept if pod.unschedulable or _waits_for(pod)]
    if not waiting:
        return
    first, last = waiting[0], waiting[-1]
    waits = _waits_for(last)
    if waits is not None:
        rule, what = waits
        title = f"pod {last.name} never started: {what}"
        yield _trouble(rule, title, last, facts, first.at, what, keeps_from_starting=True)
    else:
        title = f"pod {last.name} found no node: {last.unschedulable}"
        yield _trouble("unschedulable_pod", title, last, facts, first.at, last.unschedulable, keeps_from_starting=True)


def _is_running(pod: PodFact) -> bool:
    return any(container.state == "running" and not container.is_init for container in pod.containers)


def _waits_for(pod: PodFact) -> tuple[str, str] | None:
    """The rule, and what a container that cannot start says."""
    for container in pod.containers:
        said = ": ".join(filter(None, (container.reason, container.message)))
        if container.reason in _NO_IMAGE:
            return "missing_image", f"image {container.image}, {said}"
        if container.reason in _NO_CONTAINER:
            return "unmade_container", f"container {container.name}, {said}"
        if container.reason in _CRASHES:
            code = container.last_exit_code if container.exit_code is None else container.exit_code
            return "crashing_container", f"container {container.name}, {said}, exit code {code}"
    return None


def _deleted(states: list[PodFact], facts: KubeFacts) -> Iterator[PodFailure]:
    """Somebody deleted a pod that ran, while its cluster stayed."""
    last, ran = states[-1], any(map(_is_running, states))
    first = next((pod for pod in states if pod.deleted or pod.deletion_requested_at), None)
    if first is None or not ran or any(pod.disruption or pod.reason for pod in states):
        return
    if facts.cluster is not None and _is_going(facts.cluster, first.at):
        return
    yield _trouble(
        "deleted_pod", f"pod {last.name} was deleted", last, facts, first.at, "deleted while its cluster stayed"
    )


def _is_going(cluster: ClusterFact, at: datetime) -> bool:
    """Whether the cluster itself was being deleted by then."""
    since = cluster.deletion_requested_at or (cluster.at if cluster.deleted else None)
    return since is not None and at >= since


def _trouble(
    rule: str, title: str, pod: PodFact, facts: KubeFacts, at: datetime, said: str, *, keeps_from_starting: bool = False
) -> PodFailure:
    where = f"pod {pod.name} on node {pod.node or 'none'}, {pod.phase or 'phase unknown'}: {said}"
    evidence = (Evidence("pod", where, at), *_events_about(pod, facts.events))
    return PodFailure(rule, title, at, pod.name, pod.pod_ip, pod.node_type, evidence, keeps_from_starting)


def _events_about(pod: PodFact, events: Iterable[EventFact]) -> Iterator[Evidence]:
    """The last few Events that tell of an end or of a start that failed."""
    told = [
        event
        for event in events
        if event.about_uid == pod.uid and (event.type == "Warning" or event.reason in _TELLING_EVENTS)
    ]
    for event in told[-_EVENTS_SHOWN:]:
        yield Evidence("kubernetes", f"{event.reason}: {event.message}", event.at)
