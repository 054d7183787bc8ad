"""Conditions, states and pods in plain words. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from raykeeper.history.live_objects.model import LiveCondition, Tone
from raykeeper.layout.kube_facts import ContainerFact, PodFact

_Said = tuple[str, Tone]

_CONDITIONS: Final[dict[str, tuple[_Said, _Said]]] = {
    "Ready": (("It is ready", "good"), ("It is not ready", "warn")),
    "HeadPodReady": (("The head is ready", "good"), ("The head is not ready", "warn")),
    "RayClusterProvisioned": (("All pods have been ready", "good"), ("Not all pods have been ready yet", "warn")),
    "ReplicaFailure": (("A pod could not be made or deleted", "bad"), ("Pods can be made and deleted", "good")),
    "RayClusterSuspending": (("Its pods are being deleted", "busy"), ("It is not being suspended", "quiet")),
    "RayClusterSuspended": (("It is suspended and has no pods", "quiet"), ("It is not suspended", "quiet")),
    "RayClusterInvalid": (("Its spec is invalid", "bad"), ("Its spec is valid", "good")),
    "RayJobInvalid": (("Its spec is invalid", "bad"), ("Its spec is valid", "good")),
    "RayServiceInvalid": (("Its spec is invalid", "bad"), ("Its spec is valid", "good")),
    "Scheduled": (("All pods have nodes", "good"), ("Pods wait for nodes", "warn")),
    "HistoryCollected": (("Its history is kept", "good"), ("Its history is not kept in full", "warn")),
    "Reconciling": (("It is being worked on", "busy"), ("Nothing is left to do", "quiet")),
    "Stalled": (("It cannot go on by itself", "bad"), ("It is not stuck", "good")),
    "UpgradeInProgress": (("An upgrade is under way", "busy"), ("No upgrade is under way", "quiet")),
    "RollbackInProgress": (("An upgrade is being taken back", "warn"), ("No upgrade is being taken back", "quiet")),
    "Suspending": (("It is being suspended", "busy"), ("It is not being suspended", "quiet")),
    "Suspended": (("It is suspended", "quiet"), ("It is not suspended", "quiet")),
    "ServeApplicationsHealthy": (("All applications are healthy", "good"), ("An application is unhealthy", "bad")),
    "GatewayReady": (("The gateway is ready", "good"), ("The gateway is not ready", "warn")),
}
"""What a type says where it is True, and where it is False."""


def condition_in_words(type_: str, status: str) -> _Said:
    """What a condition means; one that somebody else wrote is told as it is."""
    said = _CONDITIONS.get(type_)
    if said is not None and status in ("True", "False"):
        return said[status == "False"]
    return f"{type_} is {status.lower() or 'unknown'}", "quiet"


def worst_of(conditions: Sequence[LiveCondition]) -> str:
    """What is the matter, by the condition that says the most about it; empty where nothing is."""
    for tone in ("bad", "warn", "busy"):
        for one in conditions:
            if one.tone == tone:
                return with_message(one.words, one.message)
    return ""


def with_message(words: str, message: str) -> str:
    return f"{words}: {message}" if message else words


_IN_PROGRESS: Final = frozenset({"", "ContainerCreating", "PodInitializing"})


def pod_in_words(pod: PodFact) -> str:
    """What a pod waits for, or why it failed; empty where all is well."""
    if pod.unschedulable:
        return with_message("No node can take it", pod.unschedulable)
    if pod.disruption:
        return with_message(f"Kubernetes ends it ({pod.disruption})", pod.disruption_message)
    if pod.phase == "Failed" and pod.reason:
        return with_message(f"It failed ({pod.reason})", pod.message)
    troubled = [said for container in pod.containers if (said := _container_in_words(container))]
    if troubled:
        return troubled[0]
    if pod.deletion_requested_at is not None:
        return "It is being deleted"
    return "Its containers are being started" if pod.phase == "Pending" else ""


def _container_in_words(container: ContainerFact) -> str:
    name = f"Container {container.name}"
    if container.state == "waiting" and container.reason not in _IN_PROGRESS:
        before = f"; it ended before with {container.last_reason}" if container.last_reason else ""
        return with_message(f"{name} waits ({container.reason}){before}", container.message)
    if container.state == "terminated" and container.exit_code:
        said = f"{name} ended with exit code {container.exit_code} ({container.reason or 'Error'})"
        return with_message(said, container.message)
    return ""
