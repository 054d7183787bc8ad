"""What is kept of a pod, an Event and a RayCluster, and what is not."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from raykeeper.api.meta import JSON
from raykeeper.history.observer.facts import (
    MOST_CHARACTERS,
    cluster_fact,
    cluster_id,
    event_fact,
    is_living_head,
    pod_fact,
)
from raykeeper.layout.keys import ClusterId
from raykeeper.layout.kube_facts import ContainerFact, says_the_same
from support.observer_scene import cluster, event, pod

AT = datetime(2026, 11, 15, 19, 12, 35, tzinfo=UTC)
STARTED, FINISHED = "2026-11-15T19:10:00Z", "2026-11-15T19:12:30Z"


def test_a_container_killed_for_its_memory_says_so_also_after_it_was_started_again() -> None:
    killed = {"exitCode": 137, "signal": 9, "reason": "OOMKilled", "startedAt": STARTED, "finishedAt": FINISHED}
    status = {
        "name": "ray-worker",
        "image": "ray:2.60",
        "restartCount": 1,
        "state": {"running": {"startedAt": FINISHED}},
        "lastState": {"terminated": killed},
    }
    [container] = pod_fact(pod(containerStatuses=[status]), AT).containers
    assert container == ContainerFact(
        name="ray-worker",
        image="ray:2.60",
        state="running",
        restarts=1,
        started_at=datetime(2026, 11, 15, 19, 12, 30, tzinfo=UTC),
        last_reason="OOMKilled",
        last_exit_code=137,
        last_signal=9,
        last_started_at=datetime(2026, 11, 15, 19, 10, tzinfo=UTC),
        last_finished_at=datetime(2026, 11, 15, 19, 12, 30, tzinfo=UTC),
    )


def test_containers_that_ended_and_that_wait_are_told_with_their_reasons() -> None:
    ended = {"name": "ray-head", "state": {"terminated": {"exitCode": 1, "reason": "Error", "message": "no disk"}}}
    waits = {"name": "autoscaler", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}
    init = {"name": "wait-gcs-ready", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}
    fact = pod_fact(pod(containerStatuses=[ended, waits], initContainerStatuses=[init]), AT)
    assert [(one.name, one.is_init, one.state, one.reason, one.message, one.exit_code) for one in fact.containers] == [
        ("wait-gcs-ready", True, "terminated", "Completed", "", 0),
        ("ray-head", False, "terminated", "Error", "no disk", 1),
        ("autoscaler", False, "waiting", "ImagePullBackOff", "no such image", None),
    ]


def test_an_evicted_pod_says_why_and_where_it_was() -> None:
    evicted = pod(
        spec={"nodeName": "node-7", "containers": [{"name": "ray-worker", "image": "ray:2.60"}]},
        phase="Failed",
        reason="Evicted",
        message="The node was low on resource: memory.",
        hostIP="10.0.0.7",
        podIP="10.1.0.9",
    )
    fact = pod_fact(evicted, AT)
    assert (fact.phase, fact.reason, fact.message) == ("Failed", "Evicted", "The node was low on resource: memory.")
    assert (fact.node, fact.host_ip, fact.pod_ip, fact.image) == ("node-7", "10.0.0.7", "10.1.0.9", "ray:2.60")
    assert (fact.group, fact.node_type, fact.created_at) == (
        "workers",
        "worker",
        datetime(2026, 11, 15, 19, tzinfo=UTC),
    )


def test_a_pod_without_a_node_and_one_that_is_preempted_say_why() -> None:
    nowhere = "0/4 nodes are available: 4 Insufficient cpu."
    scheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": nowhere}
    assert pod_fact(pod(phase="Pending", conditions=[scheduled]), AT).unschedulable == nowhere
    target = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": "more urgent"}
    preempted = pod_fact(pod(conditions=[{**scheduled, "status": "True"}, target]), AT)
    assert (preempted.disruption, preempted.disruption_message) == ("PreemptionByScheduler", "more urgent")
    assert preempted.unschedulable == ""


def test_values_of_environment_variables_and_arguments_are_not_kept() -> None:
    secret = "hunter2-hunter2"
    container = {
        "name": "ray-worker",
        "image": "ray:2.60",
        "env": [{"name": "AWS_SECRET_ACCESS_KEY", "value": secret}],
        "args": [f"--token={secret}"],
    }
    fact = pod_fact(pod(spec={"containers": [container], "initContainers": [container]}), AT)
    assert fact.image == "ray:2.60"
    assert secret.encode() not in msgspec.json.encode(fact)


def test_what_changes_without_meaning_anything_is_no_new_fact() -> None:
    ready = {"type": "Ready", "status": "False", "lastTransitionTime": STARTED}
    before, after = pod(conditions=[ready]), pod(conditions=[{**ready, "status": "True"}])
    after.metadata.resource_version = "99"
    after.metadata.annotations = {"note": "touched"}
    assert says_the_same(pod_fact(before, AT), pod_fact(after, AT.replace(hour=20)))
    assert not says_the_same(pod_fact(before, AT), pod_fact(pod(phase="Failed"), AT))


def test_a_message_longer_than_kubernetes_makes_is_cut() -> None:
    message = pod_fact(pod(message="x" * 100_000), AT).message
    assert len(message) == MOST_CHARACTERS
    assert message.endswith("x…")


@pytest.mark.parametrize(
    ("node_type", "phase", "is_living"),
    [("head", "Running", True), ("head", "Pending", True), ("head", "Failed", False), ("worker", "Running", False)],
)
def test_a_head_lives_until_its_pod_ended(node_type: str, phase: str, *, is_living: bool) -> None:
    fact = pod_fact(pod(node_type=node_type, phase=phase), AT)
    assert is_living_head(fact) is is_living
    assert not is_living_head(msgspec.structs.replace(fact, deleted=True))


def test_an_event_of_a_kubelet_has_its_count_and_times() -> None:
    fact = event_fact(event("p-1", count=7, last=FINISHED), AT)
    assert (fact.uid, fact.count, fact.reason, fact.type) == ("e-1", 7, "BackOff", "Warning")
    assert (fact.first_at, fact.at) == (
        datetime(2026, 11, 15, 19, tzinfo=UTC),
        datetime(2026, 11, 15, 19, 12, 30, tzinfo=UTC),
    )
    assert (fact.about_kind, fact.about_uid, fact.component, fact.host) == ("Pod", "p-1", "kubelet", "node-1")


def test_an_event_of_the_newer_api_has_its_series() -> None:
    newer = event(
        "p-1",
        count=0,
        firstTimestamp=None,
        lastTimestamp=None,
        eventTime="2026-11-15T19:01:00.000001Z",
        source={},
        reportingComponent="default-scheduler",
        series={"count": 4, "lastObservedTime": "2026-11-15T19:05:00.500000Z"},
    )
    fact = event_fact(newer, AT)
    assert (fact.count, fact.component) == (4, "default-scheduler")
    assert fact.first_at == datetime(2026, 11, 15, 19, 1, 0, 1, tzinfo=UTC)
    assert fact.at == datetime(2026, 11, 15, 19, 5, 0, 500_000, tzinfo=UTC)


def test_an_event_without_any_time_happened_when_it_was_made() -> None:
    fact = event_fact(event("p-1", firstTimestamp=None, lastTimestamp=None), AT)
    assert fact.first_at == fact.at == datetime(2026, 11, 15, 19, tzinfo=UTC)


def test_a_cluster_says_whose_it_is_and_how_it_is() -> None:
    item = cluster(
        owner={"kind": "RayJob", "name": "nightly", "uid": "j-1"}, status={"state": "failed", "reason": "no quota"}
    )
    fact = cluster_fact(item, AT)
    assert cluster_id(item) == ClusterId("team-a", "train", "c-1")
    assert (fact.owner_kind, fact.owner_name, fact.owner_uid) == ("RayJob", "nightly", "j-1")
    assert (fact.state, fact.reason, fact.suspend, fact.deleted) == ("failed", "no quota", False, False)


@pytest.mark.parametrize(
    "parts", [{"spec": {"suspend": True}}, {"status": {"state": "suspended"}}], ids=["spec", "status"]
)
def test_a_cluster_is_suspended_from_when_that_is_asked_for(parts: JSON) -> None:
    assert cluster_fact(cluster(**parts), AT).suspend
