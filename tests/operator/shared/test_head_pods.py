"""Which start of which head this is."""

from __future__ import annotations

import msgspec
import pytest

from raykeeper.api.conditions import Condition
from raykeeper.api.meta import JSON, Object, ObjectMeta
from raykeeper.api.raycluster import HeadGroupSpec, RayCluster, RayClusterSpec, RayClusterStatus
from raykeeper.operator.shared.head_pods import cluster_trouble, head_instance, pod_view


def a_head(statuses: list[JSON], *containers: str, phase: str = "Running") -> JSON:
    spec = {"containers": [{"name": name, "image": "i"} for name in containers]}
    status = {"phase": phase, "containerStatuses": statuses}
    return pod_view(
        Object(
            metadata=ObjectMeta(name="demo-head", uid="uid"),
            spec=msgspec.Raw(msgspec.json.encode(spec)),
            status=msgspec.Raw(msgspec.json.encode(status)),
        )
    )


def test_a_start_is_counted_by_the_container_that_runs_ray_wherever_the_kubelet_lists_it() -> None:
    # The kubelet sorts by name; the template has Ray first.
    statuses = [{"name": "fluentbit", "restartCount": 5}, {"name": "ray-head", "restartCount": 1}]
    assert head_instance(a_head(statuses, "ray-head", "fluentbit")) == "uid/1"


@pytest.mark.parametrize("statuses", [[], [{"name": "fluentbit", "restartCount": 5}]])
def test_a_head_of_which_nothing_was_told_has_its_first_start(statuses: list[JSON]) -> None:
    assert head_instance(a_head(statuses, "ray-head", "fluentbit")) == "uid/0"


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_a_head_that_has_ended_is_none(phase: str) -> None:
    assert head_instance(a_head([], "ray-head", phase=phase)) == ""
    assert head_instance(None) == ""


def test_a_cluster_says_what_it_lacks_before_it_says_what_its_gang_waits_for() -> None:
    def told(*conditions: Condition) -> str:
        cluster = RayCluster(ObjectMeta(name="demo"), RayClusterSpec(HeadGroupSpec({})))
        status = RayClusterStatus(conditions=conditions)
        trouble = cluster_trouble(msgspec.structs.replace(cluster, status=status))
        return trouble.message if trouble else ""

    since = "2026-11-16T12:00:00Z"
    queued = Condition("Scheduled", "False", "Queued", "PodGroup ray-demo-pg is Pending", since)
    assert told(queued) == "RayCluster demo: PodGroup ray-demo-pg is Pending"
    assert told(queued, Condition("ReplicaFailure", "True", "FailedCreate", "quota", since)) == "RayCluster demo: quota"
    assert told(Condition("Scheduled", "True", "AllPodsHaveNodes", "", since)) == ""
