"""The autoscaler, the history collector, the operator's own sidecars, and the wait for the head."""

from __future__ import annotations

from typing import Any

import pytest

from rayclusters.manifests import UID, ClusterBuilder, a_cluster
from rayclusters.ray_pods import (
    container_names,
    env,
    env_names,
    head_pod,
    init_container_names,
    named,
    pod_defaults,
    ray,
    worker_pod,
)
from raykeeper.api import labels
from raykeeper.api.meta import JSON

START = "ray kuberay-autoscaler --cluster-name $(RAY_CLUSTER_NAME) --cluster-namespace $(RAY_CLUSTER_NAMESPACE)"
AUTOSCALER_ENV = [
    "RAY_CLUSTER_NAME",
    "RAY_CLUSTER_NAMESPACE",
    "RAY_HEAD_POD_NAME",
    "KUBERAY_CRD_VER",
    "KUBERAY_GEN_AUTOSCALER_START_CMD",
]
STORAGE = [{"name": "STORAGE_BACKEND", "value": "s3"}, {"name": "S3_REGION", "value": "r"}]
USERS_INIT: JSON = {"name": "mine", "image": "busybox", "env": [{"name": "A", "value": "1"}]}


def collected(**options: Any) -> ClusterBuilder:
    chosen = {"image": "collector:1", "env": STORAGE} | options
    return a_cluster().with_spec(historyServerOptions={"collectorOptions": chosen})


def autoscaler(cluster: ClusterBuilder) -> JSON:
    return named(head_pod(cluster), "autoscaler")


def collector(pod: JSON) -> JSON:
    return named(pod, "ray-history-collector")


def test_the_autoscaler_runs_beside_the_head_of_an_autoscaled_cluster_alone() -> None:
    assert container_names(head_pod(a_cluster().autoscaled())) == ["ray-head", "autoscaler"]
    assert container_names(head_pod(a_cluster())) == ["ray-head"]
    assert container_names(worker_pod(a_cluster().autoscaled())) == ["workers"]


def test_the_autoscaler_is_started_as_ray_expects() -> None:
    container = autoscaler(a_cluster().autoscaled().with_head_container(image="ray:mine"))
    assert container["image"] == "ray:mine"
    assert container["imagePullPolicy"] == "IfNotPresent"
    assert container["command"] == ["/bin/bash", "-c", "--"]
    assert container["args"] == [START]
    assert container["resources"] == {key: {"cpu": "500m", "memory": "512Mi"} for key in ("limits", "requests")}
    assert env_names(container) == AUTOSCALER_ENV
    assert env(container)["RAY_HEAD_POD_NAME"] == "metadata.name"
    assert env(container)["KUBERAY_CRD_VER"] == "v1"
    assert env(container)["KUBERAY_GEN_AUTOSCALER_START_CMD"] == START
    assert "securityContext" not in container


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("image", "other:1"),
        ("imagePullPolicy", "Always"),
        ("resources", {"limits": {"cpu": 1}}),
        ("resources", {}),
        ("securityContext", {"runAsUser": 5}),
        ("envFrom", [{"configMapRef": {"name": "cm"}}]),
        ("command", ["/bin/sh", "-c"]),
        ("args", ["echo $KUBERAY_GEN_AUTOSCALER_START_CMD"]),
    ],
)
def test_an_option_of_the_autoscaler_replaces_the_default(option: str, value: Any) -> None:
    assert autoscaler(a_cluster().autoscaled(**{option: value}))[option] == value


def test_variables_of_the_user_come_after_the_autoscalers() -> None:
    container = autoscaler(a_cluster().autoscaled(env=[{"name": "X", "value": "1"}]))
    assert env_names(container) == [*AUTOSCALER_ENV, "X"]


def test_the_autoscaler_may_need_a_login_shell_too() -> None:
    pod = head_pod(a_cluster().autoscaled(), pod_defaults(uses_login_shell=True))
    assert named(pod, "autoscaler")["command"] == ["/bin/bash", "-cl", "--"]


@pytest.mark.parametrize(
    ("cluster", "account"),
    [
        (a_cluster().autoscaled(), "rc"),
        (a_cluster().named("x" + "9" * 52).autoscaled(), "r" + "9" * 49),
        (a_cluster().autoscaled().with_head_pod(serviceAccountName="mine"), "mine"),
        (a_cluster().with_head_pod(serviceAccountName="mine"), "mine"),
        (a_cluster(), None),
    ],
)
def test_the_autoscaler_acts_under_the_service_account(cluster: ClusterBuilder, account: str | None) -> None:
    assert head_pod(cluster)["spec"].get("serviceAccountName") == account


def test_workers_keep_their_service_account() -> None:
    assert "serviceAccountName" not in worker_pod(a_cluster().autoscaled())["spec"]


@pytest.mark.parametrize("pod_of", [head_pod, worker_pod])
@pytest.mark.parametrize(
    ("cluster", "policy"),
    [
        (a_cluster().autoscaled(version="v2"), "Never"),
        (a_cluster().autoscaled(version="v1"), None),
        (a_cluster().autoscaled(), None),
        (a_cluster().with_spec(autoscalerOptions={"version": "v2"}), None),
    ],
)
def test_containers_are_not_restarted_under_autoscaler_v2(pod_of: Any, cluster: ClusterBuilder, policy: str) -> None:
    assert pod_of(cluster)["spec"].get("restartPolicy") == policy


def test_the_users_restart_policy_stays() -> None:
    assert head_pod(a_cluster().with_head_pod(restartPolicy="OnFailure"))["spec"]["restartPolicy"] == "OnFailure"


def test_a_collector_outlives_ray_where_kubernetes_can() -> None:
    pod = head_pod(collected())
    assert init_container_names(pod) == ["ray-history-collector"]
    assert collector(pod)["restartPolicy"] == "Always"
    assert container_names(pod) == ["ray-head"]


def test_a_collector_is_a_plain_container_elsewhere() -> None:
    pod = head_pod(collected().autoscaled(), pod_defaults(native_sidecars=False))
    assert init_container_names(pod) == []
    assert container_names(pod) == ["ray-head", "autoscaler", "ray-history-collector"]
    assert "restartPolicy" not in collector(pod)


def test_a_plain_collector_may_use_the_grace_period_that_was_set_for_it() -> None:
    plain, native = pod_defaults(native_sidecars=False), pod_defaults(native_sidecars=True)
    users_own = collected().with_workers(pod={"terminationGracePeriodSeconds": 10})
    assert {"name": "RAYKEEPER_GRACE_PERIOD", "value": "55s"} in collector(worker_pod(collected(), plain))["env"]
    for pod in (worker_pod(users_own, plain), worker_pod(collected(), native)):
        assert "RAYKEEPER_GRACE_PERIOD" not in {variable["name"] for variable in collector(pod)["env"]}


def test_a_native_sidecar_beside_a_head_is_told_before_ray_ends() -> None:
    hook = {"httpGet": {"path": "/last-poll", "port": 8085}}
    assert ray(head_pod(collected()))["lifecycle"] == {"preStop": hook}
    assert "lifecycle" not in ray(worker_pod(collected()))
    assert "lifecycle" not in ray(head_pod(a_cluster()))
    assert "lifecycle" not in ray(head_pod(collected(), pod_defaults(native_sidecars=False)))
    elsewhere = [*STORAGE, {"name": "RAYKEEPER_METRICS_ADDR", "value": ":9000"}]
    assert "lifecycle" not in ray(head_pod(collected(env=elsewhere)))


def test_a_hook_of_the_user_stays() -> None:
    users = {"preStop": {"sleep": {"seconds": 3}}, "postStart": {"exec": {"command": ["true"]}}}
    assert ray(head_pod(collected().with_head_container(lifecycle=users)))["lifecycle"] == users
    only_start = {"postStart": users["postStart"]}
    both = ray(head_pod(collected().with_head_container(lifecycle=only_start)))["lifecycle"]
    assert set(both) == {"preStop", "postStart"}


def test_a_collector_starts_after_the_users_init_containers_and_before_the_wait_for_the_head() -> None:
    cluster = collected().with_workers(pod={"initContainers": [USERS_INIT]})
    assert init_container_names(worker_pod(cluster)) == ["mine", "ray-history-collector", "wait-gcs-ready"]


@pytest.mark.parametrize(
    ("pod_of", "role", "dashboard"),
    [(head_pod, "Head", {"RAY_DASHBOARD_ADDRESS": "http://localhost:8265"}), (worker_pod, "Worker", {})],
)
def test_a_collector_knows_where_it_is(pod_of: Any, role: str, dashboard: dict[str, str]) -> None:
    assert env(collector(pod_of(collected()))) == {
        "POD_IP": "status.podIP",
        "RAY_CLUSTER_NAME": "metadata.labels['ray.io/cluster']",
        "RAY_CLUSTER_NAMESPACE": "metadata.namespace",
        "RAY_CLUSTER_UID": UID,
        "RAY_ROLE": role,
        "EVENTS_PORT": "8084",
        "FQ_RAY_IP": "rc-head-svc.default.svc.cluster.local",
        **dashboard,
        "RAY_COLLECTOR_EVENT_DATA_DIR": "/var/lib/raykeeper/event-data",
        "STORAGE_BACKEND": "s3",
        "S3_REGION": "r",
    }


def test_a_collector_knows_what_its_cluster_was_made_for() -> None:
    marks = {labels.ORIGINATED_FROM_CRD: "RayJob", labels.ORIGINATED_FROM_CR_NAME: "job"}
    seen = env(collector(worker_pod(collected().labelled(marks))))
    assert (seen["OWNER_KIND"], seen["OWNER_NAME"]) == ("RayJob", "job")


def test_a_collectors_image_says_what_runs_in_it() -> None:
    assert not {"command", "args"} & set(collector(head_pod(collected())))


def test_a_collectors_image_is_pulled_once() -> None:
    assert collector(head_pod(collected()))["imagePullPolicy"] == "IfNotPresent"


def test_a_user_may_tell_a_collector_another_uid() -> None:
    mine = collected(env=[*STORAGE, {"name": "RAY_CLUSTER_UID", "value": "mine"}])
    entries = [one for one in collector(head_pod(mine))["env"] if one["name"] == "RAY_CLUSTER_UID"]
    assert entries == [{"name": "RAY_CLUSTER_UID", "value": "mine"}]


def test_a_collector_finds_a_dashboard_on_another_port() -> None:
    pod = head_pod(collected().with_head(rayStartParams={"dashboard-port": "9000"}))
    assert env(collector(pod))["RAY_DASHBOARD_ADDRESS"] == "http://localhost:9000"


def test_a_collector_is_small_unless_told_otherwise() -> None:
    assert collector(head_pod(collected()))["resources"] == {
        "requests": {"cpu": "50m", "memory": "64Mi"},
        "limits": {"cpu": "200m", "memory": "256Mi"},
    }
    mine = {"limits": {"memory": "1Gi"}}
    container = collector(head_pod(collected(resources=mine, imagePullPolicy="Always")))
    assert container["resources"] == mine
    assert container["imagePullPolicy"] == "Always"


@pytest.mark.parametrize("pod_of", [head_pod, worker_pod])
def test_ray_sends_its_events_to_the_collector(pod_of: Any) -> None:
    container = ray(pod_of(collected()))
    seen = env(container)
    assert seen["RAY_enable_ray_event"] == "true"
    assert seen["RAY_enable_core_worker_ray_event_to_aggregator"] == "true"
    assert seen["RAY_DASHBOARD_AGGREGATOR_AGENT_EVENTS_EXPORT_ADDR"] == "http://localhost:8084/v1/events"
    types = seen["RAY_DASHBOARD_AGGREGATOR_AGENT_EXPOSABLE_EVENT_TYPES"].split(",")
    assert {"TASK_PROFILE_EVENT", "WORKER_LIFECYCLE_EVENT", "NODE_DEFINITION_EVENT"} <= set(types)
    assert env_names(container)[-1] == "RAY_DASHBOARD_AGGREGATOR_AGENT_PUBLISHER_HTTP_ENDPOINT_EXPOSABLE_EVENT_TYPES"
    assert seen[env_names(container)[-1]].split(",") == types


def test_a_user_may_choose_the_events() -> None:
    cluster = collected().with_head_env("RAY_DASHBOARD_AGGREGATOR_AGENT_EXPOSABLE_EVENT_TYPES", "ALL")
    assert env(ray(head_pod(cluster)))["RAY_DASHBOARD_AGGREGATOR_AGENT_EXPOSABLE_EVENT_TYPES"] == "ALL"


def test_without_a_collector_ray_sends_nothing() -> None:
    assert "RAY_enable_ray_event" not in env(ray(head_pod(a_cluster())))


def test_a_pod_with_a_collector_has_time_to_say_its_last_words() -> None:
    assert worker_pod(collected())["spec"]["terminationGracePeriodSeconds"] == 60
    mine = collected().with_workers(pod={"terminationGracePeriodSeconds": 5})
    assert worker_pod(mine)["spec"]["terminationGracePeriodSeconds"] == 5
    assert "terminationGracePeriodSeconds" not in worker_pod(a_cluster())["spec"]


def test_the_operators_sidecars_come_last() -> None:
    defaults = pod_defaults(head_sidecars=({"name": "hs"},), worker_sidecars=({"name": "ws"},))
    side = [{"name": "ray", "image": "i"}, {"name": "mine", "image": "i"}]
    cluster = a_cluster().autoscaled().with_head_pod(containers=side)
    assert container_names(head_pod(cluster, defaults)) == ["ray", "mine", "autoscaler", "hs"]
    assert container_names(worker_pod(cluster, defaults)) == ["workers", "ws"]


def test_workers_wait_for_the_head() -> None:
    container = named(worker_pod(a_cluster().with_head(rayStartParams={"port": "7000"})), "wait-gcs-ready")
    assert container["image"] == "rayproject/ray:2.60.0"
    assert container["command"] == ["/bin/bash", "-c", "--"]
    assert "ray health-check --address rc-head-svc.default.svc.cluster.local:7000" in container["args"][0]
    assert container["resources"] == {key: {"cpu": "200m", "memory": "256Mi"} for key in ("limits", "requests")}


def test_the_wait_has_what_the_users_container_needs_to_reach_the_head() -> None:
    mine = {
        "imagePullPolicy": "Always",
        "securityContext": {"runAsUser": 7},
        "env": [{"name": "A", "value": "1"}],
        "volumeMounts": [{"name": "certs", "mountPath": "/certs"}],
    }
    pod = worker_pod(a_cluster().with_workers(container=mine), pod_defaults(default_env=({"name": "OP"},)))
    container = named(pod, "wait-gcs-ready")
    assert env_names(container) == ["A", "FQ_RAY_IP", "RAY_IP"]
    assert {name: container[name] for name in mine if name != "env"} == {
        name: value for name, value in mine.items() if name != "env"
    }


def test_an_operator_may_leave_the_wait_out() -> None:
    pod = worker_pod(a_cluster(), pod_defaults(injects_init_container=False))
    assert "initContainers" not in pod["spec"]


@pytest.mark.parametrize("pod_of", [head_pod, worker_pod])
def test_every_init_container_of_the_user_learns_where_the_head_is(pod_of: Any) -> None:
    mine = {"initContainers": [USERS_INIT]}
    pod = pod_of(a_cluster().with_head_pod(**mine).with_workers(pod=mine))
    assert env_names(named(pod, "mine")) == ["A", "FQ_RAY_IP", "RAY_IP"]
    assert env(named(pod, "mine"))["FQ_RAY_IP"] == "rc-head-svc.default.svc.cluster.local"


def test_a_head_waits_for_nobody() -> None:
    assert "initContainers" not in head_pod(a_cluster())["spec"]
