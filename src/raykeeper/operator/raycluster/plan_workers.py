"""Which worker pods to make and which to give up. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import chain, islice

from raykeeper.api import labels
from raykeeper.api.raycluster import WorkerGroupSpec
from raykeeper.operator.raycluster.actions import CreateWorker, DeletePod, Slot, Why
from raykeeper.operator.raycluster.pod import Pod
from raykeeper.operator.shared.replicas import desired_replicas

NewName = Callable[[], str]
"""Five random characters; an argument, so that plans are the same in tests."""


@dataclass(frozen=True)
class GroupRules:
    """What the rest of the spec and the operator's settings say about a group."""

    may_shrink: bool
    """Whether surplus pods go. Not in an autoscaled cluster: only the autoscaler knows which pods are idle."""
    has_indexes: bool
    """Whether pods carry the index of their replica, and multi-host replicas live and die together."""


@dataclass(frozen=True)
class GroupPlan:
    """What to do about the pods of one group."""

    deletes: Sequence[DeletePod]
    creates: Iterable[CreateWorker] = ()
    """One at a time: no list may be as long as a number in a spec says."""


def plan_group(
    group: WorkerGroupSpec, pods: Sequence[Pod], rules: GroupRules, now: datetime, new_name: NewName
) -> GroupPlan:
    """Bring one group to its replicas. `pods` are the group's own.

    A pod that goes keeps its place until it is gone, or was given up: its replacement would wait beside it for the
    same GPU, or be refused by a quota.
    """
    if group.suspend:
        return GroupPlan([DeletePod(pod, Why.GROUP_SUSPENDED) for pod in pods if not pod.is_terminating])
    doomed = list(_doomed(group, pods, now))
    members = _GroupPods.of(pods, {action.pod.uid for action in doomed}, now)
    if group.num_of_hosts <= 1:
        plan = _plan_pods(group, members, rules)
    elif not rules.has_indexes or _are_of_older_kuberay(members.alive):
        plan = _plan_pods(group, members, replace(rules, has_indexes=False))
    else:
        plan = _plan_replicas(group, members, rules, now, new_name)
    return GroupPlan([*doomed, *plan.deletes], plan.creates)


@dataclass(frozen=True)
class _GroupPods:
    """The pods of a group."""

    alive: list[Pod]
    """Those that stay, but for what the number of replicas says."""
    going: list[Pod]
    """Those on their way out, for which no replacement is made yet."""
    broken: set[str]
    """The multi-host replicas of which a pod goes, or went and is still there."""

    @staticmethod
    def of(pods: Sequence[Pod], doomed: set[str], now: datetime) -> _GroupPods:
        """Of these pods, when the doomed ones are deleted."""
        leaving = [pod for pod in pods if pod.is_terminating or pod.uid in doomed]
        return _GroupPods(
            alive=[pod for pod in pods if not pod.is_terminating and pod.uid not in doomed],
            going=[pod for pod in leaving if not pod.is_stuck(now)],
            broken={name for pod in leaving if (name := pod.labels.get(labels.REPLICA_NAME))},
        )


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
    marks = (labels.REPLICA_NAME, labels.REPLICA_INDEX)
    return bool(alive) and not any(mark in pod.labels for pod in alive for mark in marks)


def _plan_pods(group: WorkerGroupSpec, members: _GroupPods, rules: GroupRules) -> GroupPlan:
    """A group whose pods are independent of each other."""
    missing = desired_replicas(group) * group.num_of_hosts - len(members.alive)
    if missing < 0:
        surplus = scale_down_order(members.alive)[:-missing] if rules.may_shrink else []
        return GroupPlan([DeletePod(pod, Why.SURPLUS) for pod in surplus])
    free = free_indexes(index for pod in (*members.alive, *members.going) if (index := replica_index(pod)) is not None)
    slots = (Slot(next(free)) if rules.has_indexes else None for _ in range(missing - len(members.going)))
    return GroupPlan([], (CreateWorker(group.group_name, slot) for slot in slots))


def _plan_replicas(
    group: WorkerGroupSpec, members: _GroupPods, rules: GroupRules, now: datetime, new_name: NewName
) -> GroupPlan:
    """A group whose replicas are several pods that make no sense without each other."""
    replicas = [Replica(name, pods) for name, pods in _by_replica(members.alive).items()]
    kept = [one for one in replicas if one.name not in members.broken and (one.is_whole(group) or one.is_forming(now))]
    dropped = [one for one in replicas if one not in kept]
    deletes = [DeletePod(pod, Why.INCOMPLETE) for one in dropped for pod in one.pods]
    missing = desired_replicas(group) - len(kept)
    if missing < 0 and rules.may_shrink:
        surplus = sorted(kept, key=Replica.keep_rank)[:-missing]
        return GroupPlan([*deletes, *(DeletePod(pod, Why.SURPLUS) for one in surplus for pod in one.pods)])
    leaving = _by_replica([*members.going, *(pod for one in dropped for pod in one.pods)])
    taken = [*kept, *(Replica(name, pods) for name, pods in leaving.items())]
    free = free_indexes(one.index for one in taken)
    names = (f"{group.group_name}-{new_name()}" for _ in range(missing - len(leaving)))
    new = (Replica(name, [], next(free)) for name in names)
    return GroupPlan(deletes, (pod for one in chain(kept, new) for pod in one.missing_pods(group)))


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
        known = replica_index(self.pods[0]) if self.pods else None
        return self.new_index if known is None else known

    def is_whole(self, group: WorkerGroupSpec) -> bool:
        """One with more hosts than asked for is left alone: who lowers their number must not lose all work at once."""
        return len(self.pods) >= group.num_of_hosts

    def is_forming(self, now: datetime) -> bool:
        return all(now - pod.created < FORMING for pod in self.pods)

    def keep_rank(self) -> tuple[bool, int, float, str]:
        """A replica is as good as its worst pod."""
        return min(_keep_rank(pod) for pod in self.pods)

    def missing_pods(self, group: WorkerGroupSpec) -> Iterator[CreateWorker]:
        """One at a time: nobody says how many hosts a replica may have."""
        there = {pod.labels.get(labels.REPLICA_HOST_INDEX) for pod in self.pods}
        hosts = (host for host in range(group.num_of_hosts) if str(host) not in there)
        for host in islice(hosts, max(0, group.num_of_hosts - len(self.pods))):
            yield CreateWorker(group.group_name, Slot(self.index, self.name, host))


def replica_index(pod: Pod) -> int | None:
    """The number of its replica within the group, where its label is one."""
    text = pod.labels.get(labels.REPLICA_INDEX, "")
    return int(text) if text.isdecimal() else None


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
