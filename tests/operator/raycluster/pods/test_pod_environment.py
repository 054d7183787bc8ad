"""The environment of the Ray container: what, where, in which order, and who wins."""

from __future__ import annotations

from typing import Any

import pytest

from rayclusters.manifests import ClusterBuilder, a_cluster
from rayclusters.ray_pods import VERSION, env, env_names, head_pod, pod_defaults, ray, worker_pod
from raykeeper.api import labels
from raykeeper.api.meta import JSON

HEAD_HOST = "rc-head-svc.default.svc.cluster.local"
IDENTITY = [
    "RAY_CLUSTER_NAME",
    "RAY_CLUSTER_NAMESPACE",
    "RAY_CLOUD_INSTANCE_ID",
    "RAY_NODE_TYPE_NAME",
    "KUBERAY_GEN_RAY_START_CMD",
]
USAGE = "RAY_USAGE_STATS_KUBERAY_IN_USE"
TAGS = "RAY_USAGE_STATS_EXTRA_TAGS"
DISK = "RAY_DASHBOARD_ENABLE_K8S_DISK_USAGE"
SERVICE = [
    "RAY_timeout_ms_task_wait_for_death_info",
    "RAY_gcs_server_request_timeout_seconds",
    "RAY_SERVE_KV_TIMEOUT_S",
]


def made_for(kind: str) -> ClusterBuilder:
    return a_cluster().labelled({labels.ORIGINATED_FROM_CRD: kind, labels.ORIGINATED_FROM_CR_NAME: "mine"})


def with_env(**variables: str) -> ClusterBuilder:
    """The same variables in the head and in a worker group."""
    entries = [{"name": name, "value": value} for name, value in variables.items()]
    return a_cluster().with_head_container(env=entries).with_workers(container={"env": entries})


def test_a_head_has_these_variables_in_this_order() -> None:
    assert env_names(ray(head_pod(a_cluster()))) == [*IDENTITY, "RAY_PORT", "RAY_ADDRESS", USAGE, TAGS, DISK]


def test_a_worker_has_these_variables_in_this_order() -> None:
    expected = ["FQ_RAY_IP", "RAY_IP", *IDENTITY, "RAY_PORT", "RAY_ADDRESS", USAGE, DISK]
    assert env_names(ray(worker_pod(a_cluster()))) == expected


def test_the_users_variables_come_first() -> None:
    assert env_names(ray(worker_pod(with_env(MINE="1", YOURS="2"))))[:3] == ["MINE", "YOURS", "FQ_RAY_IP"]


def test_a_node_knows_itself_by_its_pod() -> None:
    seen = env(ray(worker_pod(a_cluster())))
    assert seen["RAY_CLUSTER_NAME"] == "metadata.labels['ray.io/cluster']"
    assert seen["RAY_CLUSTER_NAMESPACE"] == "metadata.namespace"
    assert seen["RAY_CLOUD_INSTANCE_ID"] == "metadata.name"
    assert seen["RAY_NODE_TYPE_NAME"] == "metadata.labels['ray.io/group']"


def test_the_head_is_found_by_its_service() -> None:
    seen = env(ray(worker_pod(a_cluster().with_head(rayStartParams={"port": "7000"}))))
    assert seen["FQ_RAY_IP"] == HEAD_HOST
    assert seen["RAY_IP"] == "rc-head-svc"
    assert seen["RAY_PORT"] == "7000"
    assert seen["RAY_ADDRESS"] == f"{HEAD_HOST}:7000"


def test_the_head_finds_itself_on_loopback() -> None:
    assert env(ray(head_pod(a_cluster())))["RAY_ADDRESS"] == "127.0.0.1:6379"


def test_a_head_service_of_the_users_name_and_another_domain_are_followed() -> None:
    cluster = a_cluster().with_head(headService={"metadata": {"name": "my-head"}})
    seen = env(ray(worker_pod(cluster, pod_defaults(cluster_domain="my.domain"))))
    assert seen["FQ_RAY_IP"] == "my-head.default.svc.my.domain"
    assert seen["RAY_IP"] == "my-head"


@pytest.mark.parametrize("name", ["RAY_PORT", "RAY_ADDRESS", USAGE, DISK])
@pytest.mark.parametrize("pod_of", [head_pod, worker_pod])
def test_the_users_value_stays(name: str, pod_of: Any) -> None:
    container = ray(pod_of(with_env(**{name: "mine"})))
    assert env_names(container).count(name) == 1
    assert env(container)[name] == "mine"


@pytest.mark.parametrize("name", ["FQ_RAY_IP", "RAY_IP", *IDENTITY])
def test_the_operators_value_counts(name: str) -> None:
    container = ray(worker_pod(with_env(**{name: "mine"})))
    assert env(container)[name] != "mine"


def test_a_variable_without_a_literal_value_stays_too() -> None:
    secret = {"name": "RAY_ADDRESS", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}
    container = ray(head_pod(a_cluster().with_head_container(env=[secret])))
    assert env_names(container).count("RAY_ADDRESS") == 1


@pytest.mark.parametrize(
    ("cluster", "kind"),
    [(a_cluster(), "RayCluster"), (made_for("RayJob"), "RayJob"), (made_for("RayService"), "RayService")],
)
def test_the_head_reports_version_and_origin(cluster: ClusterBuilder, kind: str) -> None:
    assert env(ray(head_pod(cluster)))[TAGS] == f"kuberay_version={VERSION};kuberay_crd={kind}"


def test_a_cluster_of_a_rayservice_gives_up_on_a_lost_gcs_early() -> None:
    for container in (ray(head_pod(made_for("RayService"))), ray(worker_pod(made_for("RayService")))):
        seen = env_names(container)
        start = seen.index("RAY_PORT") + 1
        assert seen[start : start + 4] == [*SERVICE, "RAY_ADDRESS"]
        assert [env(container)[name] for name in SERVICE] == ["0", "5", "5"]


def test_a_users_value_stays_in_a_cluster_of_a_rayservice() -> None:
    cluster = made_for("RayService").with_head_env("RAY_SERVE_KV_TIMEOUT_S", "9")
    assert env(ray(head_pod(cluster)))["RAY_SERVE_KV_TIMEOUT_S"] == "9"


def test_a_cluster_of_a_rayjob_does_not() -> None:
    assert not set(SERVICE) & set(env_names(ray(head_pod(made_for("RayJob")))))


@pytest.mark.parametrize(("version", "value"), [("v2", "true"), ("v1", "false")])
def test_a_chosen_autoscaler_is_told_to_the_head_alone(version: str, value: str) -> None:
    cluster = a_cluster().autoscaled(version=version)
    assert env(ray(head_pod(cluster)))["RAY_enable_autoscaler_v2"] == value
    assert "RAY_enable_autoscaler_v2" not in env(ray(worker_pod(cluster)))


@pytest.mark.parametrize(
    "cluster", [a_cluster().autoscaled(), a_cluster().with_spec(autoscalerOptions={"version": "v2"})]
)
def test_else_ray_decides_about_the_autoscaler(cluster: ClusterBuilder) -> None:
    assert "RAY_enable_autoscaler_v2" not in env(ray(head_pod(cluster)))


def test_the_operators_defaults_fill_gaps_before_anything_of_the_pods_own() -> None:
    defaults = pod_defaults(
        default_env=({"name": "A", "value": "op"}, {"name": "B", "value": "op"}, {"name": "RAY_ADDRESS", "value": "op"})
    )
    container = ray(worker_pod(with_env(A="mine"), defaults))
    assert env_names(container)[:4] == ["A", "B", "RAY_ADDRESS", "FQ_RAY_IP"]
    assert env(container)["A"] == "mine"
    assert env(container)["RAY_ADDRESS"] == "op"


def test_other_containers_keep_their_environment() -> None:
    side: JSON = {"name": "side", "image": "i", "env": [{"name": "MINE", "value": "1"}]}
    cluster = a_cluster().with_head_pod(containers=[{"name": "ray", "image": "i"}, side])
    assert head_pod(cluster)["spec"]["containers"][1] == side
