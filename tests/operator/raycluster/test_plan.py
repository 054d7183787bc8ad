"""Which pods are made and which go, decided from a cluster and what is there."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raykeeper.api import labels
from raykeeper.api.meta import JSON
from raykeeper.operator.raycluster.actions import (
    AdoptPod,
    CreateHead,
    CreateWorker,
    DeletePod,
    PodAction,
    RefreshHead,
    Slot,
    Why,
)
from raykeeper.operator.raycluster.plan import Facts, plan_pods
from raykeeper.operator.raycluster.plan_workers import scale_down_order
from raykeeper.operator.raycluster.pod import HEAD_POD, LOST_AFTER, STUCK_AFTER, Pod
from support.operator_raycluster import NOW, a_cluster, a_group, a_head, a_host, a_worker

GOING: dict[str, Any] = {"ends": NOW + timedelta(seconds=30)}
LONG_GONE: dict[str, Any] = {"ends": NOW - STUCK_AFTER}


def facts(**fields: Any) -> Facts:
    numbers = itertools.count()
    known = Facts(NOW, (), "hash", "raykeeper-1", False, True, lambda: f"new{next(numbers):02}")
    return replace(known, **fields)


def deleted(actions: list[PodAction], why: Why | None = None) -> set[str]:
    return {one.pod.name for one in actions if isinstance(one, DeletePod) and why in (None, one.why)}


def created(actions: list[PodAction]) -> list[PodAction]:
    return [one for one in actions if isinstance(one, CreateHead | CreateWorker)]


def test_a_new_cluster_gets_its_head_and_workers_at_once() -> None:
    plan = plan_pods(a_cluster(a_group("small", 2)), [], facts())
    assert plan == [CreateHead(), CreateWorker("small", Slot(0)), CreateWorker("small", Slot(1))]


def test_a_complete_cluster_is_left_alone() -> None:
    assert plan_pods(a_cluster(a_group("small", 1)), [a_head(), a_worker("a")], facts()) == []


@pytest.mark.parametrize(("replicas", "least", "most", "made"), [(5, 0, 2, 2), (0, 1, 3, 1), (2, 0, 9, 2)])
def test_replicas_are_held_within_their_limits(replicas: int, least: int, most: int, made: int) -> None:
    group = a_group("small", replicas, minReplicas=least, maxReplicas=most)
    assert len(created(plan_pods(a_cluster(group), [a_head()], facts()))) == made


# The head


def test_a_head_that_ended_goes_and_the_next_waits_until_it_is_gone() -> None:
    ended = a_head(ended=True)
    assert plan_pods(a_cluster(), [ended], facts()) == [DeletePod(ended, Why.ENDED)]
    assert plan_pods(a_cluster(), [replace(ended, **GOING)], facts()) == []
    assert plan_pods(a_cluster(), [], facts()) == [CreateHead()]


@pytest.mark.parametrize(("age", "goes"), [(0, False), (4, False), (5, True)])
def test_a_pod_that_ends_as_soon_as_it_starts_is_replaced_after_a_moment(age: float, goes: bool) -> None:
    head, worker = a_head(ended=True, age=age), a_worker("a", ended=True, age=age)
    plan = plan_pods(a_cluster(a_group("small", 1)), [head, worker], facts())
    assert deleted(plan, Why.ENDED) == ({"head", "a"} if goes else set())


def test_a_head_on_a_lost_node_is_removed_by_force_after_a_time() -> None:
    head = replace(a_head(), ends=NOW - LOST_AFTER)
    (action,) = plan_pods(a_cluster(), [head], facts())
    assert action == DeletePod(head, Why.LOST)
    assert action.is_forced
    assert plan_pods(a_cluster(), [replace(head, ends=NOW - LOST_AFTER / 2)], facts()) == []


HELD = {
    "by a finalizer": a_head(seems_running=False, is_held=True),
    "by a finalizer on a dead node": a_head(is_held=True, is_forced=True),
    "by a finalizer and never scheduled": a_head(is_held=True, has_node=False, is_forced=True, phase="Pending"),
}


@pytest.mark.parametrize("held", HELD.values(), ids=HELD.keys())
def test_a_head_that_is_held_is_replaced_after_five_minutes_and_not_forced_again(held: Pod) -> None:
    cluster = a_cluster(a_group("small", 2))
    workers = [a_worker("a", labels={labels.REPLICA_INDEX: "0"})]
    more = CreateWorker("small", Slot(1))
    early, late = (replace(held, ends=NOW - STUCK_AFTER * part) for part in (0.9, 1))
    assert plan_pods(cluster, [early, *workers], facts()) == [more], "groups are not blocked meanwhile"
    assert plan_pods(cluster, [late, *workers], facts()) == [CreateHead(), more]
    assert plan_pods(cluster, [late, a_head("next"), *workers], facts()) == [more], "one head at a time"


def test_a_head_on_a_dead_node_is_forced_once_and_replaced_although_that_does_not_help() -> None:
    dead = a_head(is_held=True, ends=NOW - STUCK_AFTER)
    assert plan_pods(a_cluster(), [dead], facts()) == [DeletePod(dead, Why.LOST), CreateHead()]
    assert plan_pods(a_cluster(), [replace(dead, is_forced=True)], facts()) == [CreateHead()]


def test_a_pod_that_has_no_node_is_not_removed_by_force() -> None:
    pods = [a_head(), a_worker("a", has_node=False, ends=NOW - LOST_AFTER)]
    assert plan_pods(a_cluster(a_group("small", 0)), pods, facts()) == []


def test_of_two_heads_the_older_stays() -> None:
    old, young = a_head("old", age=100), a_head("young", age=1)
    assert plan_pods(a_cluster(), [young, old], facts()) == [DeletePod(young, Why.SECOND_HEAD)]


def test_a_provisioned_cluster_stays_without_head_where_the_user_wants_that() -> None:
    condition = {
        "type": "RayClusterProvisioned",
        "status": "True",
        "reason": "AllPodRunningAndReadyFirstTime",
        "message": "",
        "lastTransitionTime": "2026-11-15T11:00:00Z",
    }
    wish = {labels.DISABLE_PROVISIONED_HEAD_RESTART: "true"}
    cluster = a_cluster(a_group("small", 1), annotations=wish, status={"conditions": [condition]})
    assert plan_pods(cluster, [], facts()) == []
    held = a_head(seems_running=False, **LONG_GONE)
    assert plan_pods(cluster, [held], facts()) == [], "nor when the last one is still held by somebody"
    assert created(plan_pods(a_cluster(annotations=wish), [], facts())) == [CreateHead()]


@pytest.mark.parametrize("known", ["podName", "condition"])
def test_a_head_with_a_submitter_in_it_is_made_once(known: str) -> None:
    condition = {
        "type": "HeadPodReady",
        "status": "False",
        "reason": "HeadPodLost",
        "message": "",
        "lastTransitionTime": "2026-11-15T11:00:00Z",
    }
    wish = {labels.DISABLE_PROVISIONED_HEAD_RESTART: "true"}
    status: JSON = {"head": {"podName": "demo-head-abcde"}} if known == "podName" else {"conditions": [condition]}
    marks = {labels.JOB_SUBMISSION_MODE: "SidecarMode"}
    assert plan_pods(a_cluster(annotations=wish, labels=marks, status=status), [], facts()) == []
    assert created(plan_pods(a_cluster(annotations=wish, labels=marks), [], facts())) == [CreateHead()], "the first"
    assert created(plan_pods(a_cluster(annotations=wish, status=status), [], facts())) == [CreateHead()], "as KubeRay"


# Workers


def test_a_worker_that_ended_is_replaced_once_it_is_gone() -> None:
    cluster, ended = a_cluster(a_group("small", 1)), a_worker("a", ended=True)
    assert plan_pods(cluster, [a_head(), ended], facts()) == [DeletePod(ended, Why.ENDED)]
    assert plan_pods(cluster, [a_head(), replace(ended, **GOING)], facts()) == []
    assert plan_pods(cluster, [a_head()], facts()) == [CreateWorker("small", Slot(0))]


def test_a_terminating_worker_keeps_its_place_and_is_not_deleted_again() -> None:
    pods = [a_head(), a_worker("a", labels={labels.REPLICA_INDEX: "0"}, **GOING)]
    assert plan_pods(a_cluster(a_group("small", 1)), pods, facts()) == []
    assert plan_pods(a_cluster(a_group("small", 0)), pods, facts()) == []
    assert plan_pods(a_cluster(a_group("small", 2)), pods, facts()) == [CreateWorker("small", Slot(1))]


def test_a_worker_that_is_held_is_replaced_after_five_minutes() -> None:
    held = a_worker("a", seems_running=False, is_held=True, **LONG_GONE)
    cluster = a_cluster(a_group("small", 1))
    assert plan_pods(cluster, [a_head(), held], facts()) == [CreateWorker("small", Slot(0))]
    assert plan_pods(cluster, [a_head(), held, a_worker("b")], facts()) == []


def test_a_worker_on_a_lost_node_is_removed_by_force() -> None:
    plan = plan_pods(a_cluster(a_group("small", 0)), [a_head(), a_worker("a", **LONG_GONE)], facts())
    assert deleted(plan, Why.LOST) == {"a"}


def test_surplus_workers_go_the_least_useful_first() -> None:
    cost: dict[str, Any] = {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-5"}}
    old, young = a_worker("old", age=100), a_worker("young", age=1)
    cheap, unready = a_worker("cheap", age=200, **cost), a_worker("unready", age=300, ready=False)
    order = [pod.name for pod in scale_down_order([old, cheap, young, unready])]
    assert order == ["unready", "cheap", "young", "old"]
    plan = plan_pods(a_cluster(a_group("small", 2)), [a_head(), old, cheap, young, unready], facts())
    assert deleted(plan, Why.SURPLUS) == {"unready", "cheap"}


def test_an_autoscaled_group_shrinks_only_by_name() -> None:
    pods = [a_head(), a_worker("a"), a_worker("b"), a_worker("c")]
    group = a_group("small", 1, scaleStrategy={"workersToDelete": ["b"]})
    plan = plan_pods(a_cluster(group, enableInTreeAutoscaling=True), pods, facts())
    assert deleted(plan) == deleted(plan, Why.ASKED) == {"b"}
    shrinking = plan_pods(a_cluster(group, enableInTreeAutoscaling=True), pods, facts(may_shrink_autoscaled=True))
    assert len(deleted(shrinking)) == 2


def test_workers_to_delete_reaches_no_pod_of_another_group_and_not_the_head() -> None:
    group = a_group("small", 1, scaleStrategy={"workersToDelete": ["other", "head"]})
    pods = [a_head(), a_worker("a"), a_worker("other", "large")]
    assert plan_pods(a_cluster(group, a_group("large", 1)), pods, facts()) == []


def test_pods_of_a_removed_group_go_and_no_others() -> None:
    pods = [a_head(), a_worker("a", "large"), a_worker("b", "small")]
    plan = plan_pods(a_cluster(a_group("small", 1)), pods, facts())
    assert plan == [DeletePod(pods[1], Why.GROUP_REMOVED)]


def test_reordering_groups_changes_nothing() -> None:
    pods = [a_head(), a_worker("a", "large"), a_worker("b", "small")]
    groups = [a_group("small", 1), a_group("large", 1)]
    assert plan_pods(a_cluster(*groups), pods, facts()) == plan_pods(a_cluster(*reversed(groups)), pods, facts()) == []


def test_a_suspended_group_has_no_pods() -> None:
    pods = [a_head(), a_worker("a"), a_worker("b", **GOING)]
    plan = plan_pods(a_cluster(a_group("small", 2, suspend=True)), pods, facts())
    assert plan == [DeletePod(pods[1], Why.GROUP_SUSPENDED)]


def test_a_group_with_writes_in_flight_is_left_alone_and_others_are_not() -> None:
    plan = plan_pods(a_cluster(a_group("small", 1), a_group("large", 1)), [a_head()], facts(unsettled={"small"}))
    assert plan == [CreateWorker("large", Slot(0))]
    assert plan_pods(a_cluster(), [], facts(unsettled={HEAD_POD})) == []


def test_a_worker_group_may_be_called_as_kuberay_calls_the_heads() -> None:
    cluster = a_cluster(a_group(labels.HEAD_GROUP, 1))
    assert plan_pods(cluster, [], facts(unsettled={HEAD_POD})) == [CreateWorker(labels.HEAD_GROUP, Slot(0))]
    assert plan_pods(cluster, [], facts(unsettled={labels.HEAD_GROUP})) == [CreateHead()]


def test_new_workers_get_the_lowest_free_index() -> None:
    pods = [a_head(), *(a_worker(str(n), labels={labels.REPLICA_INDEX: str(n)}) for n in (0, 2))]
    plan = plan_pods(a_cluster(a_group("small", 4)), pods, facts())
    assert plan == [CreateWorker("small", Slot(1)), CreateWorker("small", Slot(3))]
    without = plan_pods(a_cluster(a_group("small", 1)), [a_head()], facts(has_indexes=False))
    assert without == [CreateWorker("small", None)]


@given(st.integers(0, 8), st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), max_size=8))
def test_one_pass_always_ends_with_as_many_workers_as_asked_for_those_that_go_included(
    replicas: int, states: list[tuple[bool, bool, bool]]
) -> None:
    pods = [
        replace(a_worker(str(n), ready=ready, ended=ended), ends=NOW + timedelta(seconds=9) if going else None)
        for n, (ready, ended, going) in enumerate(states)
    ]
    plan = plan_pods(a_cluster(a_group("small", replicas)), [a_head(), *pods], facts())
    left = [pod for pod in pods if not pod.is_terminating and pod.name not in deleted(plan)]
    going = len(pods) - len(left) - len(deleted(plan, Why.SURPLUS))
    assert len(left) + len(created(plan)) == (replicas if len(left) == replicas else max(len(left), replicas - going))
    assert not any(pod.has_ended for pod in left)
    assert not (deleted(plan, Why.SURPLUS) and created(plan)), "nobody is given up while another is made"


# Multi-host replicas


def hosts(replica: str, index: int = 0, **fields: Any) -> list[Pod]:
    return [a_host(replica, host, index, **fields) for host in (0, 1)]


def tpu_cluster(replicas: int, **fields: Any) -> Any:
    return a_cluster(a_group("tpu", replicas, numOfHosts=2, **fields))


def test_a_multi_host_replica_is_made_whole() -> None:
    plan = plan_pods(tpu_cluster(1), [a_head()], facts())
    assert plan == [CreateWorker("tpu", Slot(0, "tpu-new00", host)) for host in (0, 1)]


def test_hosts_of_a_kuberay_that_named_no_replicas_stay_and_are_added_to_in_kind() -> None:
    pods = [a_head(), *(a_worker(name, "tpu") for name in "abcd")]
    assert plan_pods(tpu_cluster(2), pods, facts()) == []
    assert plan_pods(tpu_cluster(3), pods, facts()) == [CreateWorker("tpu", None)] * 2
    assert len(deleted(plan_pods(tpu_cluster(1), pods, facts()), Why.SURPLUS)) == 2


def test_a_replica_that_lost_a_pod_goes_and_is_made_anew() -> None:
    rest = a_host("tpu-a", 0)
    assert plan_pods(tpu_cluster(1), [a_head(), rest], facts()) == [DeletePod(rest, Why.INCOMPLETE)]
    assert plan_pods(tpu_cluster(1), [a_head(), replace(rest, **GOING)], facts()) == []
    assert len(created(plan_pods(tpu_cluster(1), [a_head()], facts()))) == 2


def test_a_replica_of_which_a_pod_is_held_is_replaced_after_five_minutes() -> None:
    held = a_host("tpu-a", 0, seems_running=False, is_held=True, **LONG_GONE)
    plan = plan_pods(tpu_cluster(1), [a_head(), held], facts())
    assert plan == [CreateWorker("tpu", Slot(0, "tpu-new00", host)) for host in (0, 1)]


def test_a_replica_with_more_hosts_than_asked_for_now_is_left_alone() -> None:
    pods = [a_head(), *(a_host("tpu-a", host) for host in range(4))]
    assert plan_pods(tpu_cluster(1), pods, facts()) == []


def test_pods_from_before_a_group_had_several_hosts_stay_beside_proper_replicas() -> None:
    single = a_worker("a", "tpu", labels={labels.REPLICA_INDEX: "0"})
    plan = plan_pods(tpu_cluster(1), [a_head(), single], facts())
    assert plan == [CreateWorker("tpu", Slot(0, "tpu-new00", host)) for host in (0, 1)]


def test_a_replica_that_is_still_being_made_is_completed() -> None:
    plan = plan_pods(tpu_cluster(1), [a_head(), a_host("tpu-a", 0, index=3, age=5)], facts())
    assert plan == [CreateWorker("tpu", Slot(3, "tpu-a", 1))]


@pytest.mark.parametrize("fate", [{"ended": True}, GOING])
def test_a_replica_shares_the_fate_of_each_of_its_pods(fate: dict[str, Any]) -> None:
    pods = [a_head(), a_host("tpu-a", 0, **fate), a_host("tpu-a", 1), *hosts("tpu-b", 1)]
    plan = plan_pods(tpu_cluster(2), pods, facts())
    assert deleted(plan, Why.INCOMPLETE) == {"tpu-a-1"}
    assert created(plan) == [], "the next waits until this one is gone"


def test_a_named_worker_takes_its_whole_replica_along() -> None:
    cluster = tpu_cluster(1, scaleStrategy={"workersToDelete": ["tpu-a-1"]})
    plan = plan_pods(cluster, [a_head(), *hosts("tpu-a"), *hosts("tpu-b", 1)], facts())
    assert deleted(plan) == {"tpu-a-0", "tpu-a-1"}
    assert created(plan) == []


def test_surplus_replicas_go_whole() -> None:
    pods = [a_head(), *hosts("tpu-a"), a_host("tpu-b", 0, 1), a_host("tpu-b", 1, 1, ready=False)]
    assert deleted(plan_pods(tpu_cluster(1), pods, facts()), Why.SURPLUS) == {"tpu-b-0", "tpu-b-1"}


# Suspend, recreate, take-over


def condition(name: str) -> dict[str, Any]:
    return {
        "type": name,
        "status": "True",
        "reason": name,
        "message": "",
        "lastTransitionTime": "2026-11-15T11:00:00Z",
    }


@pytest.mark.parametrize("wish", [True, False])
def test_suspending_deletes_every_pod_once_and_goes_on_when_taken_back(wish: bool) -> None:
    pods = [a_head(), a_worker("a"), a_worker("b", **GOING)]
    status = {"conditions": [condition("RayClusterSuspending")]}
    plan = plan_pods(a_cluster(a_group("small", 2), suspend=wish, status=status), pods, facts())
    assert deleted(plan, Why.SUSPENDED) == {"head", "a"}
    assert created(plan) == []


def test_no_pod_goes_before_the_status_says_that_the_cluster_is_being_suspended() -> None:
    cluster = a_cluster(a_group("small", 1), suspend=True)
    assert plan_pods(cluster, [a_head()], facts()) == []
    without_conditions = plan_pods(cluster, [a_head()], facts(commits_suspension=False))
    assert deleted(without_conditions, Why.SUSPENDED) == {"head"}


@pytest.mark.parametrize("wish", [{"suspend": False}, {}])
def test_a_suspended_cluster_stays_so_until_it_is_no_longer_asked_for(wish: dict[str, Any]) -> None:
    status = {"conditions": [condition("RayClusterSuspended")]}
    assert plan_pods(a_cluster(suspend=True, status=status), [], facts()) == []
    assert plan_pods(a_cluster(status=status, **wish), [], facts()) == [CreateHead()]


@pytest.mark.parametrize(("wish", "goes"), [({"suspend": True}, {"head"}), ({}, set())])
def test_a_status_that_says_both_suspending_and_suspended_costs_no_pod_that_the_spec_wants(
    wish: dict[str, Any], goes: set[str]
) -> None:
    status = {"conditions": [condition("RayClusterSuspending"), condition("RayClusterSuspended")]}
    plan = plan_pods(a_cluster(status=status, **wish), [a_head()], facts())
    assert deleted(plan, Why.SUSPENDED) == goes


RECREATE = {"upgradeStrategy": {"type": "Recreate"}}


def head_of(version: str, hash_: str) -> Pod:
    return a_head(annotations={labels.KUBERAY_VERSION: version, labels.RECREATE_HASH: hash_})


def test_a_changed_spec_recreates_all_pods_where_asked_for_and_the_head_with_the_hash_goes_last() -> None:
    cluster, head = a_cluster(a_group("small", 1), **RECREATE), head_of("raykeeper-1", "old hash")
    assert deleted(plan_pods(cluster, [head, a_worker("a")], facts()), Why.RECREATE) == {"a"}
    assert deleted(plan_pods(cluster, [head, a_worker("a", ends=NOW)], facts()), Why.RECREATE) == {"head"}
    assert deleted(plan_pods(cluster, [head], facts()), Why.RECREATE) == {"head"}
    assert plan_pods(a_cluster(a_group("small", 1)), [head, a_worker("a")], facts()) == []


def test_a_head_that_another_version_made_is_adopted_without_touching_a_pod() -> None:
    pods = [head_of("v1.7.0", "a hash of KubeRay's"), a_worker("a")]
    assert plan_pods(a_cluster(a_group("small", 1), **RECREATE), pods, facts()) == [RefreshHead(pods[0])]


def test_the_same_spec_recreates_nothing() -> None:
    pods = [head_of("raykeeper-1", "hash")]
    assert plan_pods(a_cluster(**RECREATE), pods, facts()) == []


def test_pods_that_a_deleted_cluster_left_behind_are_taken_in_instead_of_made_again() -> None:
    cluster = a_cluster(a_group("small", 1))
    head, worker = a_head(is_orphan=True), a_worker("a", is_orphan=True)
    assert plan_pods(cluster, [head, worker], facts()) == [AdoptPod(head), AdoptPod(worker)]


def test_orphans_that_go_anyway_are_not_taken_in_before() -> None:
    cluster = a_cluster(a_group("small", 0))
    going = a_worker("a", is_orphan=True, ends=NOW)
    surplus = a_worker("b", is_orphan=True)
    assert plan_pods(cluster, [a_head(), going, surplus], facts()) == [DeletePod(surplus, Why.SURPLUS)]
