"""What is said about the history of a cluster that asks for it by an annotation. Pure.

Pods are never restarted for it, so that a cluster may have pods of both kinds for as long as it lives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from raykeeper.api.containers import COLLECTOR_EVENTS_PORT
from raykeeper.api.podtemplates import env_value, has_collector, ray_container
from raykeeper.api.raycluster import HISTORY_COLLECTED, RayCluster
from raykeeper.operator.raycluster.pod import Pod
from raykeeper.operator.shared.conditions import Finding
from raykeeper.operator.shared.features import TRUE_IN_ENV
from raykeeper.operator.shared.history import NOT_CONFIGURED, History, asks_for_history

LONGEST_TEXT: Final = 1000
_EVENT_SWITCHES: Final = ("RAY_enable_ray_event", "RAY_enable_core_worker_ray_event_to_aggregator")
_EVENT_ADDRESS: Final = "RAY_DASHBOARD_AGGREGATOR_AGENT_EVENTS_EXPORT_ADDR"
_OUR_ADDRESSES: Final = tuple(
    f"http://{host}:{COLLECTOR_EVENTS_PORT}/v1/events" for host in ("localhost", "127.0.0.1", "[::1]")
)


def history_finding(cluster: RayCluster, pods: Sequence[Pod], history: History, refusal: str) -> Finding | None:
    """What the condition should say; None where there should be none.

    `refusal`: why pods cannot run as the ServiceAccount of the history, so that they are made without a collector.
    """
    alive = [pod for pod in pods if not pod.is_terminating]
    if not asks_for_history(cluster.metadata.annotations):
        return _leftover(cluster, alive)
    if problem := history.problem_of(cluster.spec, cluster.metadata.annotations):
        return _false(NOT_CONFIGURED, f"pods are made without a collector: {problem}")
    if refusal:
        return _false("ServiceAccountRefused", f"pods are made without a collector: {refusal}")
    troubles = [*_without_collector(alive), *_in_trouble(alive), *_events_elsewhere(cluster)]
    if troubles:
        return troubles[0]
    url = history.url(cluster.metadata.namespace, cluster.metadata.name)
    return Finding(
        HISTORY_COLLECTED,
        "True",
        "AllPodsCollected",
        f"every pod has a collector{f'; the history opens at {url}' if url else ''}",
    )


def _leftover(cluster: RayCluster, alive: Sequence[Pod]) -> Finding | None:
    """Collectors that stay in pods though nobody asks for them any more."""
    left = [pod.name for pod in alive if pod.has_collector]
    is_users = any(has_collector(template) for template in cluster.spec.templates)
    if not left or is_users or cluster.spec.history_server_options is not None:
        return None
    told = f"{_told(left)} still collected, though history is switched off: no pod is restarted for it"
    return _false("SwitchedOff", f"{told}; new pods have no collector")


def _without_collector(alive: Sequence[Pod]) -> Iterator[Finding]:
    missing = [pod.name for pod in alive if not pod.has_collector]
    if missing:
        told = f"{_told(missing)} not collected, since no pod is restarted for it"
        yield _false("PodsWithoutCollector", f"{told}; new pods have a collector")


def _in_trouble(alive: Sequence[Pod]) -> Iterator[Finding]:
    for pod in sorted(alive, key=lambda pod: pod.name):
        if pod.collector_trouble:
            yield _false("CollectorTrouble", f"the collector of pod {pod.name} does not run: {pod.collector_trouble}")


def _events_elsewhere(cluster: RayCluster) -> Iterator[Finding]:
    """Ray's events that a template sends to others, or switches off; logs are collected all the same."""
    for container in map(ray_container, cluster.spec.templates):
        address = env_value(container, _EVENT_ADDRESS)
        switches = {name: env_value(container, name) for name in _EVENT_SWITCHES}
        culprits = [name for name, value in switches.items() if value is not None and value.lower() not in TRUE_IN_ENV]
        if address is not None and address not in _OUR_ADDRESSES:
            culprits.append(_EVENT_ADDRESS)
        if culprits:
            what = f"{culprits[0]} keeps its events from the collector"
            told = f"container {container.get('name')}: {what}; logs are collected"
            yield _false("EventsElsewhere", told)


def _told(names: Sequence[str]) -> str:
    return f"pod {names[0]} is" if len(names) == 1 else f"{len(names)} pods ({min(names)}, ...) are"


def _false(reason: str, message: str) -> Finding:
    return Finding(HISTORY_COLLECTED, "False", reason, message[:LONGEST_TEXT])
