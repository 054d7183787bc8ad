"""What to do about the pods of a RayCluster now. Pure: no I/O, no clock, no environment."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from raykeeper.api import labels
from raykeeper.api.conditions import is_true
from raykeeper.api.raycluster import RayCluster
from raykeeper.operator.raycluster.actions import AdoptPod, CreateHead, DeletePod, PodAction, RefreshHead, Why
from raykeeper.operator.raycluster.plan_workers import GroupRules, NewName, plan_group, plan_removed_groups
from raykeeper.operator.raycluster.pod import Pod
from raykeeper.operator.raycluster.suspension import Suspension, suspension_of


@dataclass(frozen=True)
class Facts:
    """What a plan rests on beside the cluster and its pods."""

    now: datetime
    unsettled: Collection[str]
    """Groups with writes of ours that the cache does not show yet; they are left alone."""
    recreate_hash: str
    """Hash of the spec as it is now."""
    version: str
    """Our own version, as head pods carry it."""
    may_shrink_autoscaled: bool
    has_indexes: bool
    new_name: NewName


def plan_pods(cluster: RayCluster, pods: Sequence[Pod], facts: Facts) -> list[PodAction]:
    """Everything to be done about pods; the actions are independent of each other and may run in parallel."""
    match suspension_of(cluster):
        case Suspension.SUSPENDING:
            return [DeletePod(pod, Why.SUSPENDED) for pod in pods if not pod.is_terminating]
        case Suspension.SUSPENDED:
            return []
        case Suspension.NONE:
            pass
    heads = [pod for pod in pods if pod.is_head]
    if _must_recreate(cluster, heads, facts):
        return _plan_recreation(pods)
    if not heads and _stays_without_head(cluster):
        return []
    actions = [*_plan_head(heads, facts), *_refresh(cluster, heads, facts), *_plan_workers(cluster, pods, facts)]
    return [*_plan_adoption(pods, actions), *actions]


def _plan_head(heads: Sequence[Pod], facts: Facts) -> list[PodAction]:
    """One head pod. The next is made when the last is gone, or was given up for lost: two heads are two clusters."""
    if labels.HEAD_GROUP in facts.unsettled:
        return []
    lost = [pod for pod in heads if pod.is_lost(facts.now)]
    alive = sorted((pod for pod in heads if not pod.is_terminating), key=lambda pod: (pod.created, pod.name))
    going = [pod for pod in heads if pod.is_terminating and not pod.is_stuck(facts.now) and pod not in lost]
    actions: list[PodAction] = [DeletePod(pod, Why.LOST) for pod in lost]
    actions += [DeletePod(pod, Why.SECOND_HEAD) for pod in alive[1:]]
    if alive and alive[0].is_over(facts.now):
        actions.append(DeletePod(alive[0], Why.ENDED))
    elif not alive and not going and not lost:
        actions.append(CreateHead())
    return actions


def _plan_workers(cluster: RayCluster, pods: Sequence[Pod], facts: Facts) -> list[PodAction]:
    workers = [pod for pod in pods if not pod.is_head]
    groups = cluster.spec.worker_group_specs
    is_autoscaled = bool(cluster.spec.enable_in_tree_autoscaling)
    rules = GroupRules(facts.may_shrink_autoscaled or not is_autoscaled, facts.has_indexes)
    actions: list[PodAction] = [*plan_removed_groups((group.group_name for group in groups), workers)]
    for group in groups:
        if group.group_name not in facts.unsettled:
            own = [pod for pod in workers if pod.group == group.group_name]
            actions += plan_group(group, own, rules, facts.now, facts.new_name)
    return actions


def _plan_adoption(pods: Sequence[Pod], actions: Sequence[PodAction]) -> list[PodAction]:
    """Take in what an earlier cluster of that name left behind, and stays."""
    going = {action.pod.uid for action in actions if isinstance(action, DeletePod)}
    return [AdoptPod(pod) for pod in pods if pod.is_orphan and not pod.is_terminating and pod.uid not in going]


def _uses_recreate(cluster: RayCluster) -> bool:
    strategy = cluster.spec.upgrade_strategy
    return strategy is not None and strategy.type == "Recreate"


def _must_recreate(cluster: RayCluster, heads: Sequence[Pod], facts: Facts) -> bool:
    """Whether the head pod was made, by this version, for another spec."""
    stored = [pod.annotations for pod in heads if not pod.is_terminating][:1]
    if not _uses_recreate(cluster) or not stored or _is_of_other_version(stored[0], facts):
        return False
    return stored[0].get(labels.RECREATE_HASH, "") not in ("", facts.recreate_hash)


def _plan_recreation(pods: Sequence[Pod]) -> list[PodAction]:
    """Workers go, then the head: it alone carries the hash, so it must be there for whoever goes on after a crash."""
    alive = [pod for pod in pods if not pod.is_terminating]
    workers = [pod for pod in alive if not pod.is_head]
    return [DeletePod(pod, Why.RECREATE) for pod in workers or alive]


def _refresh(cluster: RayCluster, heads: Sequence[Pod], facts: Facts) -> list[PodAction]:
    """Adopt head pods that another version made: its hash cannot be compared with ours."""
    if not _uses_recreate(cluster):
        return []
    return [
        RefreshHead(pod) for pod in heads if not pod.is_terminating and _is_of_other_version(pod.annotations, facts)
    ]


def _is_of_other_version(annotations: dict[str, str], facts: Facts) -> bool:
    return annotations.get(labels.KUBERAY_VERSION, "") not in ("", facts.version)


def _stays_without_head(cluster: RayCluster) -> bool:
    """The user wants a provisioned cluster that lost its head to stay as it is."""
    wanted = cluster.metadata.annotations.get(labels.DISABLE_PROVISIONED_HEAD_RESTART) == "true"
    return wanted and is_true(cluster.status.conditions, "RayClusterProvisioned")
