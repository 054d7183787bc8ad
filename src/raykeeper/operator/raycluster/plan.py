"""What to do about the pods of a RayCluster now. Pure: no I/O, no clock, no environment."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Final

from raykeeper.api import labels
from raykeeper.api.conditions import is_true
from raykeeper.api.raycluster import PROVISIONED, SUSPENDING, RayCluster, has_lost_head
from raykeeper.operator.raycluster.actions import (
    AdoptPod,
    CreateHead,
    CreateWorker,
    DeletePod,
    PodAction,
    RefreshHead,
    Why,
)
from raykeeper.operator.raycluster.plan_workers import GroupRules, NewName, plan_group, plan_removed_groups
from raykeeper.operator.raycluster.pod import HEAD_POD, Pod
from raykeeper.operator.raycluster.suspension import Suspension, suspension_of

ACTIONS_A_PASS: Final = 200
"""A larger plan is carried out in several passes, so that a cluster of a million pods delays no other of its namespace
for long. Other namespaces do not wait for it: a pass that lasts leaves its worker to them."""


@dataclass(frozen=True)
class Facts:
    """What a plan rests on beside the cluster and its pods."""

    now: datetime
    unsettled: Collection[str]
    """Groups, as pods are tracked, with writes of ours that the cache does not show yet; they are left alone."""
    recreate_hash: str
    """Hash of the spec as it is now."""
    version: str
    """Our own version, as head pods carry it."""
    may_shrink_autoscaled: bool
    has_indexes: bool
    new_name: NewName
    commits_suspension: bool = True
    """Whether the status says that pods will go before they do; it cannot where it has no conditions."""


def plan_pods(cluster: RayCluster, pods: Sequence[Pod], facts: Facts) -> list[PodAction]:
    """What to do about pods in this pass; the actions are independent of each other and may run in parallel.

    Where there is more to do than a pass may, it is the beginning of it: as many actions as `ACTIONS_A_PASS`. What goes
    comes before the workers that are made, since those may be refused for as long as one cares to wait.
    """
    actions = list(islice(_plan(cluster, pods, facts), ACTIONS_A_PASS))
    return [*_plan_adoption(pods, actions), *actions][:ACTIONS_A_PASS]


def _plan(cluster: RayCluster, pods: Sequence[Pod], facts: Facts) -> Iterator[PodAction]:
    """All there is to do, one action at a time: no list may be as long as a number in a spec says."""
    heads = [pod for pod in pods if pod.is_head]
    suspension = suspension_of(cluster)
    if suspension is not Suspension.NONE:
        if suspension is Suspension.SUSPENDING and _is_committed(cluster, facts):
            yield from (DeletePod(pod, Why.SUSPENDED) for pod in pods if not pod.is_terminating)
        return
    if _must_recreate(cluster, heads, facts):
        yield from _plan_recreation(pods)
        return
    head = _plan_head(heads, facts)
    if CreateHead() in head and stays_without_head(cluster, has_conditions=facts.commits_suspension):
        yield from (action for action in head if action != CreateHead())
        return
    yield from head
    yield from _refresh(cluster, heads, facts)
    yield from _plan_workers(cluster, pods, facts)


def _is_committed(cluster: RayCluster, facts: Facts) -> bool:
    """Whether the status says that the cluster is being suspended: then it is brought to its end, whoever goes on."""
    return not facts.commits_suspension or is_true(cluster.status.conditions, SUSPENDING)


def _plan_head(heads: Sequence[Pod], facts: Facts) -> list[PodAction]:
    """One head pod. The next is made when the last is gone, or was given up: two heads are two clusters."""
    if HEAD_POD in facts.unsettled:
        return []
    alive = sorted((pod for pod in heads if not pod.is_terminating), key=lambda pod: (pod.created, pod.name))
    actions: list[PodAction] = [DeletePod(pod, Why.LOST) for pod in heads if pod.is_lost(facts.now)]
    actions += [DeletePod(pod, Why.SECOND_HEAD) for pod in alive[1:]]
    if alive and alive[0].is_over(facts.now):
        actions.append(DeletePod(alive[0], Why.ENDED))
    elif all(pod.is_stuck(facts.now) for pod in heads):
        actions.append(CreateHead())
    return actions


def _plan_workers(cluster: RayCluster, pods: Sequence[Pod], facts: Facts) -> Iterator[PodAction]:
    workers = [pod for pod in pods if not pod.is_head]
    groups = cluster.spec.worker_group_specs
    is_autoscaled = bool(cluster.spec.enable_in_tree_autoscaling)
    rules = GroupRules(facts.may_shrink_autoscaled or not is_autoscaled, facts.has_indexes)
    yield from plan_removed_groups((group.group_name for group in groups), workers)
    of_group: dict[str, list[Pod]] = {}
    for pod in workers:
        of_group.setdefault(pod.group, []).append(pod)
    plans = [
        plan_group(group, of_group.get(group.group_name, ()), rules, facts.now, facts.new_name)
        for group in groups
        if group.group_name not in facts.unsettled
    ]
    yield from (action for plan in plans for action in plan.deletes)
    yield from _in_turn(plan.creates for plan in plans)


def _in_turn(creates: Iterable[Iterable[CreateWorker]]) -> Iterator[CreateWorker]:
    """One of each group, then another of each: a group of thousands, or one that is refused its pods for ever, keeps
    no other from its turn."""
    waiting = deque(map(iter, creates))
    while waiting:
        if action := next(waiting[0], None):
            yield action
            waiting.rotate(-1)
        else:
            waiting.popleft()


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


def stays_without_head(cluster: RayCluster, *, has_conditions: bool = True) -> bool:
    """Whether a cluster that lost its head gets no other: the user wants a provisioned one to stay as it is, and a head
    with the submitter of a RayJob in it would run the job again, provisioned or not.
    """
    if cluster.metadata.annotations.get(labels.DISABLE_PROVISIONED_HEAD_RESTART) != "true":
        return False
    has_submitter = cluster.metadata.labels.get(labels.JOB_SUBMISSION_MODE) == "SidecarMode"
    had_head = bool(cluster.status.head.pod_name) or has_lost_head(cluster)
    return is_true(cluster.status.conditions, PROVISIONED) or (has_submitter and had_head and has_conditions)
