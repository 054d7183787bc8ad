"""One cluster never delays another: nothing that a pass does grows with a number that a user can write."""

from __future__ import annotations

import itertools
import time
import tracemalloc
from typing import Any

import pytest

from bed.waiting import BUSY_FACTOR
from raykeeper.operator.raycluster.actions import CreateHead, CreateWorker, DeletePod, PodAction
from raykeeper.operator.raycluster.plan import ACTIONS_A_PASS, Facts, plan_pods
from raykeeper.operator.raycluster.pod import Pod
from support.operator_raycluster import NOW, a_cluster, a_group, a_head, a_host, a_worker

MANY = 10_000_000
HUGE = 2**31 - 1
SHAPES: dict[str, dict[str, Any]] = {
    "replicas": a_group("small", MANY),
    "the least of them": a_group("small", minReplicas=HUGE),
    "hosts": a_group("small", 1, numOfHosts=HUGE),
    "hosts and replicas": a_group("small", MANY, numOfHosts=MANY),
}


def planned(cluster: Any, *pods: Pod) -> list[PodAction]:
    numbers = itertools.count()
    known = Facts(NOW, (), "hash", "raykeeper-1", False, True, lambda: f"n{next(numbers)}")
    return plan_pods(cluster, pods, known)


@pytest.mark.parametrize("group", SHAPES.values(), ids=SHAPES.keys())
def test_a_plan_of_ten_million_pods_takes_milliseconds_and_kilobytes(group: dict[str, Any]) -> None:
    cluster = a_cluster(group)
    tracemalloc.start()
    started = time.process_time()
    plan = planned(cluster)
    seconds, (_, peak) = time.process_time() - started, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(plan) == ACTIONS_A_PASS
    assert plan[0] == CreateHead()
    assert seconds < 0.25 * BUSY_FACTOR
    assert peak < 2**20


def test_a_replica_that_is_still_being_made_is_completed_in_steps() -> None:
    group = a_group("tpu", 1, numOfHosts=HUGE)
    plan = planned(a_cluster(group), a_head(), a_host("tpu-a", 0, age=5))
    assert len(plan) == ACTIONS_A_PASS


def test_the_next_pass_goes_on_where_this_one_stopped() -> None:
    cluster, pods = a_cluster(a_group("small", 2 * ACTIONS_A_PASS)), [a_head()]
    for _ in range(3):
        pods += [a_worker(f"w{len(pods) + n}") for n, _ in enumerate(planned(cluster, *pods))]
    assert len(pods) == 1 + 2 * ACTIONS_A_PASS


def test_pods_go_in_steps_too() -> None:
    workers = [a_worker(str(n)) for n in range(3 * ACTIONS_A_PASS)]
    assert len(planned(a_cluster(a_group("small", 0)), a_head(), *workers)) == ACTIONS_A_PASS


def test_pods_go_though_more_are_to_be_made_than_a_pass_may_and_every_group_has_its_turn() -> None:
    cluster = a_cluster(a_group("large", MANY), a_group("full", 0), a_group("small", 2))
    plan = planned(cluster, a_head(), a_worker("idle", "full"))
    made = [action.group for action in plan if isinstance(action, CreateWorker)]
    assert [action.pod.name for action in plan if isinstance(action, DeletePod)] == ["idle"]
    assert (made.count("small"), len(plan)) == (2, ACTIONS_A_PASS)
