"""The condition `Scheduled`: which group waits for what, in the words of whoever starts pods."""

from __future__ import annotations

from dataclasses import replace

import pytest

from raykeeper.api.conditions import find_condition
from raykeeper.api.meta import JSON
from raykeeper.operator.raycluster.scheduling import LONGEST_TEXT, scheduled_finding
from raykeeper.operator.raycluster.status import Outcome, Scheduling, status_of
from raykeeper.operator.schedulers.choice import scheduler_named
from raykeeper.operator.schedulers.interface import Wait
from support.operator_raycluster import NOW, a_cluster, a_group, a_head, a_worker

CLUSTER = a_cluster(a_group("gpu", 3), a_group("cpu", 1))
NO_GPU = {"has_node": False, "ready_reason": "Unschedulable", "ready_message": "0/4 nodes are available: 4 GPU"}


def volcanos(phase: str, **status: object) -> JSON:
    spec = {"queue": "research", "minMember": 5}
    return {"metadata": {"name": "ray-demo-pg"}, "spec": spec, "status": {"phase": phase, **status}}


def test_a_cluster_whose_pods_all_have_nodes_is_scheduled_whatever_else_is_said() -> None:
    pods = [a_head(), *(a_worker(name, "gpu") for name in "abc"), a_worker("d", "cpu")]
    assert scheduled_finding(CLUSTER, pods, None).status == "True"
    assert scheduled_finding(CLUSTER, pods, Wait("Queued", "an old word")).status == "True"


def test_each_group_that_waits_is_named_with_what_it_waits_for() -> None:
    pods = [a_head(), a_worker("a", "gpu"), a_worker("b", "gpu", **NO_GPU), a_worker("c", "gpu", **NO_GPU)]
    finding = scheduled_finding(CLUSTER, pods, None)
    assert (finding.status, finding.reason) == ("False", "Unschedulable")
    assert finding.message == (
        "group gpu: 2 of 3 pods have no node: 0/4 nodes are available: 4 GPU; group cpu: 1 of 1 pods have no node"
    )


def test_what_the_scheduler_says_comes_first() -> None:
    finding = scheduled_finding(CLUSTER, [], Wait("Queued", "PodGroup ray-demo-pg is Pending in queue research"))
    assert finding.reason == "Queued"
    assert finding.message.startswith("PodGroup ray-demo-pg is Pending in queue research; group gpu: 3 of 3")


def test_a_suspended_cluster_waits_for_nobody() -> None:
    suspended = a_cluster(a_group("gpu", 3), suspend=True)
    assert scheduled_finding(suspended, [], None).reason == "Suspended"


def test_the_text_has_a_bound_however_many_groups_there_are() -> None:
    many = a_cluster(*(a_group(f"g{number}", 1) for number in range(100)))
    assert len(scheduled_finding(many, [], Wait("Queued", "x" * 5000)).message) == LONGEST_TEXT


@pytest.mark.parametrize(
    ("name", "group", "wait"),
    [
        ("volcano", volcanos("Running"), None),
        ("volcano", volcanos("Pending"), Wait("Queued", "PodGroup ray-demo-pg is Pending in queue research")),
        (
            "volcano",
            volcanos(
                "Inqueue",
                conditions=[
                    {
                        "type": "Scheduled",
                        "status": "True",
                        "message": "old",
                        "lastTransitionTime": "2026-01-01T00:00:00Z",
                    },
                    {
                        "type": "Unschedulable",
                        "status": "True",
                        "message": "5/5 tasks in gang unschedulable",
                        "lastTransitionTime": "2026-01-02T00:00:00Z",
                    },
                ],
            ),
            Wait(
                "Unschedulable",
                "PodGroup ray-demo-pg is Inqueue in queue research: 5/5 tasks in gang unschedulable",
            ),
        ),
        ("volcano", {"metadata": {"name": "new"}}, Wait("Queued", "PodGroup new is Pending in queue default")),
        ("scheduler-plugins", volcanos("Scheduled"), None),
        (
            "scheduler-plugins",
            volcanos("Scheduling"),
            Wait("Unschedulable", "PodGroup ray-demo-pg is Scheduling, with 5 members"),
        ),
        ("yunikorn", volcanos("Pending"), None),
    ],
)
def test_schedulers_say_what_their_own_objects_wait_for(name: str, group: JSON, wait: Wait | None) -> None:
    assert scheduler_named(name).waits([group]) == wait


def test_without_a_batch_scheduler_there_is_no_such_condition() -> None:
    plain = Outcome([a_head()], None, now=NOW)
    assert find_condition(status_of(CLUSTER, plain).conditions, "Scheduled") is None
    gang = replace(plain, scheduling=Scheduling())
    told = find_condition(status_of(CLUSTER, gang).conditions, "Scheduled")
    assert told is not None
    assert told.status == "False"
