"""Which worker pods to make and which to give up. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from raykeeper.api import labels
from raykeeper.api.raycluster import WorkerGroupSpec
from raykeeper.operator.raycluster.actions import CreateWorker, DeletePod, PodAction, Slot, Why
from raykeeper.operator.raycluster.pod import Pod

NewName = Callable[[], str]
"""Five random characters; an argument, so that plans are the same in tests."""


@dataclass(frozen=True)
class GroupRules:
    """What the rest of the spec and the operator's settings say about a group."""

    may_shrink: bool
    """Whether surplus pods go. Not in an autoscaled cluster: only the autoscaler knows which pods are idle."""
    has_indexes: bool
    """Whether pods carry the index of their replica, and multi-host replicas live and die together."""


def desired_replicas(group: WorkerGroupSpec) -> int:
    """How many replicas there should be: within the limits, none while suspended."""
    if group.suspend:
        return 0
    return max(group.min_replicas, min(group.replicas, group.max_replicas))


def plan_group(
    group: WorkerGroupSpec, pods: Sequence[Pod], rules: GroupRules, now: datetime, new_name: NewName
) -> list[PodAction]:
    """Bring one group to its replicas. `pods` are the group's own."""
    if group.suspend:
        return [DeletePod(pod, Why.GROUP_SUSPENDED) for pod in pods if not pod.is_terminating]
    doomed = list(_doomed(group, pods, now))
    gone = {action.pod.uid for action in doomed}
    alive = [pod for pod in pods if pod.uid not in gone and not pod.is_terminating]
    if group.num_of_hosts <= 1:
        rest = _plan_pods(group, alive, rules)
    elif not rules.has_indexes or _are_of_older_kuberay(alive):
        rest = _plan_pods(group, alive, replace(rules, has_indexes=False))
    else:
        rest = _plan_replicas(group, alive, gone_replicas(pods, alive), rules, now, new_name)
    return [*doomed, *rest]


def plan_removed_groups(names: Iterable[str], workers: Sequence[Pod]) -> list[DeletePod]:
    """Give up the pods of groups that are no longer in the spec."""
    known = set(names)
    return [DeletePod(pod, Why.GROUP_REMOVED) for pod in workers if pod.group not in known and not pod.is_terminating]


def _doomed(group: WorkerGroupSpec, pods: Sequence[Pod], now: datetime) -> Iterator[DeletePod]:
    """Pods that go whatever the number of replicas."""
    asked = set(group.scale_strategy.workers_to_delete)
    for pod in pods:
        if pod.is_lost(now):
            yield DeletePod(pod, Why.LOST)
        elif pod.is_terminating:
            continue
        elif pod.is_over(now):
            yield DeletePod(pod, Why.ENDED)
        elif pod.name in asked:
            yield DeletePod(pod, Why.ASKED)


def _are_of_older_kuberay(alive: Sequence[Pod]) -> bool:
    """Whether a multi-host group was made by KubeRay before 1.6, which does not say which pods belong together.

    Such pods stay, and are added to in kind, until the group is made anew; KubeRay makes a second group beside them.
    """
    return bool(alive) and not any(labels.REPLICA_NAME in pod.labels for pod in alive)


def _plan_pods(group: WorkerGroupSpec, alive: Sequence[Pod], rules: GroupRules) -> list[PodAction]:
    """A group whose pods are independent of each other."""
    missing = desired_replicas(group) * group.num_of_hosts - len(alive)
    if missing < 0 and rules.may_shrink:
        return [DeletePod(pod, Why.SURPLUS) for pod in scale_down_order(alive)[:-missing]]
    free = free_indexes(int(text) for pod in alive if (text := pod.labels.get(labels.REPLICA_INDEX, "")).isdecimal())
    return [
        CreateWorker(group.group_name, Slot(next(free)) if rules.has_indexes else None) for _ in range(max(0, missing))
    ]


def _plan_replicas(
    group: WorkerGroupSpec, alive: Sequence[Pod], broken: set[str], rules: GroupRules, now: datetime, new_name: NewName
) -> list[PodAction]:
    """A group whose replicas are several pods that make no sense without each other."""
    replicas = [Replica(name, pods) for name, pods in _by_replica(alive).items()]
    kept = [one for one in replicas if one.name not in broken and (one.is_whole(group) or one.is_forming(now))]
    actions: list[PodAction] = [
        DeletePod(pod, Why.INCOMPLETE) for one in replicas if one not in kept for pod in one.pods
    ]
    missing = desired_replicas(group) - len(kept)
    if missing < 0 and rules.may_shrink:
        worst_first = sorted(kept, key=Replica.keep_rank)
        return [*actions, *(DeletePod(pod, Why.SURPLUS) for one in worst_first[:-missing] for pod in one.pods)]
    free = free_indexes(one.index for one in kept)
    fresh = [Replica(f"{group.group_name}-{new_name()}", [], next(free)) for _ in range(max(0, missing))]
    return [*actions, *(create for one in [*kept, *fresh] for create in one.missing_pods(group))]


FORMING = timedelta(minutes=1)
"""A replica that lacks pods but is younger than this is still being made, and is completed. Older, it has lost one."""


@dataclass(frozen=True)
class Replica:
    """The pods of one multi-host replica."""

    name: str
    pods: list[Pod]
    new_index: int = 0

    @property
    def index(self) -> int:
        """Number of the replica: its pods' label, else the one it is to be given."""
        text = self.pods[0].labels.get(labels.REPLICA_INDEX, "") if self.pods else ""
        return int(text) if text.isdecimal() else self.new_index

    def is_whole(self, group: WorkerGroupSpec) -> bool:
        return len(self.pods) == group.num_of_hosts

    def is_forming(self, now: datetime) -> bool:
        return all(now - pod.created < FORMING for pod in self.pods)

    def keep_rank(self) -> tuple[bool, int, float, str]:
        """A replica is as good as its worst pod."""
        return min(_keep_rank(pod) for pod in self.pods)

    def missing_pods(self, group: WorkerGroupSpec) -> list[CreateWorker]:
        there = {pod.labels.get(labels.REPLICA_HOST_INDEX) for pod in self.pods}
        hosts = [host for host in range(group.num_of_hosts) if str(host) not in there]
        return [CreateWorker(group.group_name, Slot(self.index, self.name, host)) for host in hosts]


def gone_replicas(pods: Iterable[Pod], alive: Sequence[Pod]) -> set[str]:
    """The multi-host replicas of which a pod goes or is going."""
    uids = {pod.uid for pod in alive}
    return {name for pod in pods if pod.uid not in uids and (name := pod.labels.get(labels.REPLICA_NAME))}


def _by_replica(pods: Sequence[Pod]) -> dict[str, list[Pod]]:
    """Pods by the name of their replica; pods that carry none were not made by this rule and are left alone."""
    replicas: dict[str, list[Pod]] = {}
    for pod in pods:
        if name := pod.labels.get(labels.REPLICA_NAME):
            replicas.setdefault(name, []).append(pod)
    return replicas


def scale_down_order(pods: Sequence[Pod]) -> list[Pod]:
    """Whom to give up first: who is not ready, then who costs least, then the youngest."""
    return sorted(pods, key=_keep_rank)


def _keep_rank(pod: Pod) -> tuple[bool, int, float, str]:
    return (pod.is_ready, pod.deletion_cost, -pod.created.timestamp(), pod.name)


def free_indexes(used: Iterable[int]) -> Iterator[int]:
    """The numbers from 0 up that are not used."""
    taken = set(used)
    index = 0
    while True:
        if index not in taken:
            yield index
        index += 1
