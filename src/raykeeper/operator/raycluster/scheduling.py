"""Whether the pods of a cluster have nodes, and else which group waits for what. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from raykeeper.api import labels
from raykeeper.api.raycluster import SCHEDULED, RayCluster
from raykeeper.operator.raycluster.pod import Pod
from raykeeper.operator.schedulers.interface import Wait
from raykeeper.operator.shared.conditions import Finding
from raykeeper.operator.shared.replicas import desired_replicas

LONGEST_TEXT: Final = 1000
MOST_GROUPS_TOLD: Final = 10


def scheduled_finding(cluster: RayCluster, alive: Sequence[Pod], wait: Wait | None) -> Finding:
    """`alive` are the pods that are not going, `wait` is what the batch scheduler's own objects say."""
    if cluster.spec.suspend:
        return Finding(SCHEDULED, "False", "Suspended", "the cluster is suspended")
    lacking = list(_groups(cluster, alive))
    if not lacking:
        return Finding(SCHEDULED, "True", "AllPodsHaveNodes", f"{len(alive)} pods have nodes")
    lines = [wait.message, *lacking] if wait else lacking
    told = [pod.ready_reason for pod in alive if not pod.has_node and pod.ready_reason]
    reason = wait.reason if wait else next(iter(told), "PodsMissing")
    return Finding(SCHEDULED, "False", reason, "; ".join(lines)[:LONGEST_TEXT])


def _groups(cluster: RayCluster, alive: Sequence[Pod]) -> Iterator[str]:
    """What each group lacks, those with most to wait for first."""
    sizes = Counter({labels.HEAD_GROUP: 1})
    sizes.update({one.group_name: desired_replicas(one) * one.num_of_hosts for one in cluster.spec.worker_group_specs})
    placed = Counter(_group(pod) for pod in alive if pod.has_node)
    lacking = Counter({group: size - placed[group] for group, size in sizes.items() if size > placed[group]})
    for group, missing in lacking.most_common(MOST_GROUPS_TOLD):
        said = next((pod for pod in alive if _group(pod) == group and not pod.has_node and pod.ready_message), None)
        because = f": {said.ready_message}" if said else ""
        yield f"group {group}: {missing} of {sizes[group]} pods have no node{because}"


def _group(pod: Pod) -> str:
    return labels.HEAD_GROUP if pod.is_head else pod.group
