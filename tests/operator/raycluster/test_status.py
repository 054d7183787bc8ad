"""The status says what is the case, at all times."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from raykeeper.api.conditions import Condition, find_condition
from raykeeper.api.raycluster import RayCluster, RayClusterStatus
from raykeeper.operator.raycluster.ledger import Ledger
from raykeeper.operator.raycluster.pod import Pod
from raykeeper.operator.raycluster.status import Failure, Outcome, invalid_status, status_of, without_conditions
from raykeeper.operator.raycluster.suspension import Suspension, suspension_of
from raykeeper.operator.shared.conditions import to_reason
from support.operator_raycluster import NOW, TEMPLATE, a_cluster, a_group, a_head, a_worker

LATER = NOW.replace(hour=13)
SERVICE = {
    "metadata": {"name": "cluster-head-svc"},
    "spec": {
        "clusterIP": "None",
        "ports": [
            {"name": "dashboard", "port": 8265, "targetPort": 8265},
            {"name": "gcs", "port": 1, "nodePort": 30001},
        ],
    },
}


def status(cluster: RayCluster, *pods: Pod, **fields: Any) -> RayClusterStatus:
    return status_of(cluster, Outcome(pods, SERVICE, **{"now": NOW, **fields}))


def after(cluster: RayCluster, known: RayClusterStatus) -> RayCluster:
    """The cluster once that status was written."""
    return msgspec.structs.replace(cluster, status=known)


def condition(status: RayClusterStatus, name: str) -> Condition:
    found = find_condition(status.conditions, name)
    assert found is not None
    return found


def test_a_cluster_is_ready_when_all_its_pods_are() -> None:
    cluster = a_cluster(a_group("small", 1))
    ready = status(cluster, a_head(), a_worker("a"))
    assert ready.state == "ready"
    assert ready.state_transition_times == {"ready": "2026-11-15T12:00:00Z"}
    assert condition(ready, "RayClusterProvisioned").status == "True"


def test_a_cluster_whose_pods_were_deleted_just_now_is_not_ready_though_the_cache_still_shows_them() -> None:
    pods = [a_head(), a_worker("a")]
    left = Ledger(deleted={"uid-a"}).after(pods, NOW)
    assert [pod.is_terminating for pod in left] == [False, True]
    assert status(a_cluster(a_group("small", 1)), *left).state == ""


@pytest.mark.parametrize(
    "pods",
    [
        [],
        [a_head()],
        [a_worker("a")],
        [a_head(), a_worker("a", ready=False)],
        [a_head(ready=False), a_worker("a")],
        [a_head(), a_worker("a"), a_worker("b")],
        [a_head(), a_worker("a"), a_worker("b", "removed")],
    ],
)
def test_a_cluster_that_is_no_longer_ready_keeps_its_state_and_says_so_in_a_condition(pods: list[Pod]) -> None:
    cluster = a_cluster(a_group("small", 1))
    assert status(cluster, *pods).state == "", "it never was"
    cluster = after(cluster, status(cluster, a_head(), a_worker("a")))
    assert condition(cluster.status, "Ready").status == "True"
    now = status(cluster, *pods)
    assert now.state == "ready"
    assert (condition(now, "Ready").status, condition(now, "Ready").reason) == ("False", "PodsNotReady")
    assert condition(now, "RayClusterProvisioned").status == "True", "it was, once"


@pytest.mark.parametrize(
    ("pods", "text"),
    [
        ([], "there is no head pod; 0 of 2 workers are ready"),
        ([a_head(), a_worker("a")], "1 of 2 workers are ready"),
        (
            [a_head(), a_worker("a"), a_worker("b", ready=False, ready_reason="OOMKilled", ready_message="ray: 137")],
            "1 of 2 workers are ready; pod b: OOMKilled, ray: 137",
        ),
        (
            [a_head(ready=False, ready_reason="ImagePullBackOff"), a_worker("a"), a_worker("b")],
            "2 of 2 workers are ready; pod head: ImagePullBackOff",
        ),
        ([a_head(), *(a_worker(name) for name in "abc")], "3 of 2 workers are ready; 1 more than asked for"),
        (
            [a_head(ends=NOW), a_worker("a"), a_worker("b")],
            "2 of 2 workers are ready; the head pod head is on its way out",
        ),
    ],
)
def test_the_condition_ready_says_in_words_what_is_the_matter(pods: list[Pod], text: str) -> None:
    assert condition(status(a_cluster(a_group("small", 2)), *pods), "Ready").message == text


def test_a_message_without_end_has_one_in_the_condition() -> None:
    chatty = a_head(ready=False, ready_reason="Error", ready_message="x" * 30_000)
    assert len(condition(status(a_cluster(), chatty), "Ready").message) == 1000


def test_a_cluster_is_not_ready_while_something_of_it_fails() -> None:
    cluster, failure = a_cluster(), Failure("FailedCreateChild", "the ingress was refused")
    refused = status(cluster, a_head(), failure=failure)
    assert (refused.state, condition(refused, "Ready").message) == ("", "the ingress was refused")
    ready = status(after(cluster, refused), a_head())
    assert ready.state == "ready"
    assert status(after(cluster, ready), a_head(), failure=failure).state == "ready"


def test_a_child_that_was_refused_and_holds_no_pod_up_keeps_a_new_cluster_from_ready() -> None:
    refused = status(a_cluster(), a_head(), refused="the ingress was refused")
    assert (refused.state, find_condition(refused.conditions, "ReplicaFailure")) == ("", None)
    ready = condition(refused, "Ready")
    assert (ready.reason, ready.message) == ("ChildRefused", "0 of 0 workers are ready; the ingress was refused")


def test_a_head_on_its_way_out_is_the_head_until_it_is_gone() -> None:
    going = status(a_cluster(), a_head(ends=NOW))
    assert (going.head.pod_name, going.head.pod_ip) == ("head", "10.0.0.1")
    assert condition(going, "HeadPodReady").status == "True"
    assert going.state == ""
    assert status(a_cluster(), a_head("old", ends=NOW), a_head("new", age=1)).head.pod_name == "new"


def test_provisioned_waits_for_pods_that_are_not_there_yet() -> None:
    assert (
        condition(status(a_cluster(a_group("small", 2)), a_head(), a_worker("a")), "RayClusterProvisioned").status
        == "False"
    )


def test_the_head_condition_names_what_its_container_waits_for() -> None:
    assert condition(status(a_cluster()), "HeadPodReady").reason == "HeadPodNotFound"
    waiting = a_head(ready=False, ready_reason="ImagePullBackOff", ready_message="ray: no such image")
    found = condition(status(a_cluster(), waiting), "HeadPodReady")
    assert (found.status, found.reason, found.message) == ("False", "ImagePullBackOff", "ray: no such image")


@pytest.mark.parametrize(("text", "reason"), [("", "Unknown"), ("Error: 1!", "Error"), ("OOMKilled", "OOMKilled")])
def test_any_text_becomes_a_reason_that_kubernetes_takes(text: str, reason: str) -> None:
    assert to_reason(text) == reason


def test_a_condition_keeps_its_time_until_its_status_changes() -> None:
    cluster = a_cluster()
    first = status(cluster, a_head())
    second = status(after(cluster, first), a_head(ready_reason="Other"), now=LATER)
    assert condition(second, "HeadPodReady").reason == "Other"
    assert condition(second, "HeadPodReady").last_transition_time == "2026-11-15T12:00:00Z"
    third = status(after(cluster, second), now=LATER)
    assert condition(third, "HeadPodReady").last_transition_time == "2026-11-15T13:00:00Z"


def test_nothing_changes_while_nothing_happens() -> None:
    cluster = a_cluster(a_group("small", 1))
    known = status(cluster, a_head(), a_worker("a"))
    assert status(after(cluster, known), a_head(), a_worker("a"), now=LATER) == known


def test_numbers_and_places_are_those_of_the_pods_and_the_service() -> None:
    group = a_group("small", 9, minReplicas=1, maxReplicas=2, numOfHosts=2)
    now = status(a_cluster(group), a_head(), a_worker("a"), a_worker("b", ready=False), a_worker("c", phase="Pending"))
    assert (now.desired_worker_replicas, now.min_worker_replicas, now.max_worker_replicas) == (4, 2, 4)
    assert (now.ready_worker_replicas, now.available_worker_replicas) == (2, 2)
    assert now.endpoints == {"dashboard": "8265", "gcs": "30001"}
    assert (now.head.pod_name, now.head.pod_ip) == ("head", "10.0.0.1")
    assert (now.head.service_name, now.head.service_ip) == ("cluster-head-svc", "10.0.0.1")


def test_limits_that_nobody_set_do_not_overflow() -> None:
    assert status(a_cluster(a_group("small", 0, numOfHosts=4))).max_worker_replicas == 2**31 - 1


def test_resources_are_summed_over_all_desired_pods() -> None:
    resources = {"limits": {"cpu": "2", "nvidia.com/gpu": "1"}, "requests": {"cpu": "1500m", "memory": "1Gi"}}
    template = {"spec": {"containers": [{"name": "ray", "resources": resources}]}}
    group = a_group("small", 9, maxReplicas=2, template=template)
    now = status(a_cluster(group, headGroupSpec={"template": template}))
    assert (now.desired_cpu, now.desired_memory, now.desired_gpu, now.desired_tpu) == ("4500m", "3Gi", "3", "0")
    assert TEMPLATE["spec"]["containers"][0].get("resources") is None


@pytest.mark.parametrize(
    ("limits", "gpus"),
    [
        ({"nvidia.com/gpu": 3, "nvidia.com/mig-1g.10gb": 2, "foo.bar/gpu": 2}, "7"),
        ({"nvidia.com/mig-1g.10gb.me": 2}, "2"),
        ({"google.com/tpu": 4, "huawei.com/Ascend910": 8}, "0"),
    ],
)
def test_slices_of_a_gpu_are_gpus(limits: dict[str, int], gpus: str) -> None:
    template = {"spec": {"containers": [{"name": "ray", "resources": {"limits": limits}}]}}
    assert status(a_cluster(headGroupSpec={"template": template})).desired_gpu == gpus


def test_a_refused_pod_is_a_condition_until_it_is_over() -> None:
    cluster = a_cluster()
    refused = status(cluster, failure=Failure("FailedCreateHeadPod", "exceeded quota"))
    assert condition(refused, "ReplicaFailure").message == "exceeded quota"
    assert find_condition(status(after(cluster, refused), a_head()).conditions, "ReplicaFailure") is None


def test_suspending_ends_in_suspended_and_resuming_in_neither() -> None:
    cluster = a_cluster(suspend=True)
    cluster = after(cluster, status(a_cluster(), a_head()))
    going = status(cluster, a_head())
    assert condition(going, "RayClusterSuspending").status == "True"
    assert (going.state, condition(going, "RayClusterSuspended").status) == ("ready", "False"), "quota is still in use"
    ending = status(after(cluster, going), a_head(ends=NOW))
    assert (ending.state, condition(ending, "Ready").reason) == ("ready", "Suspending")
    gone = status(after(cluster, going))
    assert (gone.state, condition(gone, "RayClusterSuspended").status) == ("suspended", "True")
    assert condition(gone, "RayClusterProvisioned").message == "the cluster is suspended"
    assert condition(gone, "RayClusterSuspending").status == "False"
    assert condition(gone, "RayClusterProvisioned").status == "False"
    resuming = status(after(a_cluster(suspend=False), gone))
    assert (resuming.state, condition(resuming, "RayClusterSuspended").status) == ("suspended", "False")
    resumed = status(after(a_cluster(suspend=False), gone), a_head())
    assert (resumed.state, condition(resumed, "RayClusterSuspended").status) == ("ready", "False")


def test_suspending_is_brought_to_its_end_when_taken_back() -> None:
    going = status(a_cluster(suspend=True), a_head())
    taken_back = after(a_cluster(suspend=False), going)
    assert condition(status(taken_back, a_head()), "RayClusterSuspending").status == "True"
    assert condition(status(taken_back), "RayClusterSuspended").status == "True"


def test_an_invalid_spec_is_said_and_forgotten_when_it_is_mended() -> None:
    cluster = a_cluster()
    cluster = after(cluster, status(cluster, a_head()))
    wrong = invalid_status(cluster, Failure("InvalidRayClusterSpec", "spec.x is wrong"), NOW)
    assert condition(wrong, "RayClusterInvalid").message == "spec.x is wrong"
    assert condition(wrong, "HeadPodReady").status == "True"
    mended = status(after(cluster, wrong), a_head())
    assert find_condition(mended.conditions, "RayClusterInvalid") is None


def test_without_the_gate_there_are_no_conditions_and_the_rest_is_the_same() -> None:
    cluster = a_cluster(a_group("small", 1))
    pods = [a_head(), a_worker("a")]
    bare = status(cluster, *pods, has_conditions=False)
    assert bare == msgspec.structs.replace(status(cluster, *pods), conditions=())
    assert status(after(cluster, bare), *pods, has_conditions=False, now=LATER) == bare, "written once"


def test_without_the_gate_a_suspension_follows_the_spec_alone() -> None:
    stale = after(a_cluster(suspend=False), status(a_cluster(suspend=True), a_head()))
    assert suspension_of(stale) is Suspension.SUSPENDING, "committed to, with the gate"
    assert suspension_of(without_conditions(stale)) is Suspension.NONE
    gone = status(a_cluster(suspend=True), has_conditions=False)
    assert gone.state == "suspended"
    assert status(after(a_cluster(suspend=True), gone), has_conditions=False) == gone


def test_pods_that_run_and_of_which_nobody_says_more_make_a_cluster_ready_but_count_as_no_ready_workers() -> None:
    """As in KubeRay: without kubelets, in tests and simulations, pods often have a phase and no conditions."""
    cluster = a_cluster(a_group("small", 1))
    said_nothing: Any = {"is_ready": False, "is_unready": False}
    now = status(cluster, a_head(**said_nothing), a_worker("a", **said_nothing))
    assert (now.state, condition(now, "RayClusterProvisioned").status) == ("ready", "True")
    assert (now.available_worker_replicas, now.ready_worker_replicas) == (1, 0)
    assert condition(now, "HeadPodReady").status == "False"


@pytest.mark.parametrize("has_conditions", [True, False])
def test_a_condition_that_somebody_else_wrote_is_kept(has_conditions: bool) -> None:
    idle = Condition("example.com/Idle", "True", "NoTasks", "", "2026-01-01T00:00:00Z")
    cluster = after(a_cluster(), RayClusterStatus(conditions=(idle,)))
    valid = status_of(cluster, Outcome([], None, now=NOW, has_conditions=has_conditions))
    assert idle in valid.conditions
    assert idle in invalid_status(cluster, Failure("InvalidRayClusterSpec", "x"), NOW).conditions
    assert without_conditions(cluster).status.conditions == (idle,)
