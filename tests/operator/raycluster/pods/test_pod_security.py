"""Tokens between the containers of a cluster, and where the state of the GCS is kept."""

from __future__ import annotations

from typing import Any

import pytest

from rayclusters.manifests import UID, ClusterBuilder, a_cluster
from rayclusters.ray_pods import env, env_names, head_pod, mounts, named, ray, volumes, worker_pod
from raykeeper.api.meta import JSON

TOKEN_PATH = "/var/run/secrets/ray.io/serviceaccount"
PASSWORD: JSON = {"valueFrom": {"secretKeyRef": {"name": "redis", "key": "password"}}}


def with_auth(**options: Any) -> ClusterBuilder:
    collector = {"collectorOptions": {"image": "c"}}
    return a_cluster().autoscaled().with_spec(authOptions=options, historyServerOptions=collector)


def secret(name: str) -> JSON:
    return {"secretKeyRef": {"name": name, "key": "auth_token"}}


def talkers(cluster: ClusterBuilder) -> list[JSON]:
    """Every container that talks to Ray."""
    head, worker = head_pod(cluster), worker_pod(cluster)
    sidecars = [named(head, "autoscaler"), named(head, "ray-history-collector"), named(worker, "ray-history-collector")]
    return [ray(head), ray(worker), named(worker, "wait-gcs-ready"), *sidecars]


@pytest.mark.parametrize(("options", "name"), [({"mode": "token"}, "rc"), ({"mode": "token", "secretName": "s"}, "s")])
def test_every_container_that_talks_to_ray_has_the_token(options: JSON, name: str) -> None:
    for container in talkers(with_auth(**options)):
        assert env(container)["RAY_AUTH_MODE"] == "token"
        assert env(container)["RAY_AUTH_TOKEN"] == secret(name)
        assert TOKEN_PATH not in mounts(container)


def test_every_container_that_talks_to_ray_has_a_token_of_its_service_account() -> None:
    cluster = with_auth(mode="token", enableK8sTokenAuth=True)
    for container in talkers(cluster):
        assert env(container)["RAY_ENABLE_K8S_TOKEN_AUTH"] == "true"
        assert "RAY_AUTH_TOKEN" not in env(container)
        assert mounts(container)[TOKEN_PATH] == "ray-token"
    token = {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}}
    for pod in (head_pod(cluster), worker_pod(cluster)):
        assert volumes(pod)["ray-token"] == {"projected": {"sources": [token]}}


@pytest.mark.parametrize("options", [{"mode": "disabled"}, {}, {"enableK8sTokenAuth": True}])
def test_without_the_mode_nobody_shows_a_token(options: JSON) -> None:
    for container in talkers(with_auth(**options)):
        assert not {"RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_ENABLE_K8S_TOKEN_AUTH"} & set(env_names(container))


def test_a_token_of_the_users_own_stays() -> None:
    container = ray(head_pod(with_auth(mode="token").with_head_env("RAY_AUTH_TOKEN", "mine")))
    assert env(container)["RAY_AUTH_TOKEN"] == "mine"
    assert env(container)["RAY_AUTH_MODE"] == "token"


def test_tokens_come_before_the_rest_of_the_environment() -> None:
    assert env_names(ray(worker_pod(with_auth(mode="token"))))[:3] == ["RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "FQ_RAY_IP"]


def with_redis(**options: Any) -> ClusterBuilder:
    return a_cluster().with_spec(gcsFaultToleranceOptions={"redisAddress": "redis:6379", **options})


def by_annotation(**annotations: str) -> ClusterBuilder:
    marks = {f"ray.io/{name.replace('_', '-')}": value for name, value in annotations.items()}
    return a_cluster().annotated({"ray.io/ft-enabled": "true"} | marks)


def with_rocksdb(**storage: Any) -> ClusterBuilder:
    return a_cluster().with_spec(gcsFaultToleranceOptions={"backend": "rocksdb", "storage": storage})


def start(cluster: ClusterBuilder) -> str:
    command: str = env(ray(head_pod(cluster)))["KUBERAY_GEN_RAY_START_CMD"]
    return command


def test_a_head_keeps_its_state_in_redis() -> None:
    cluster = with_redis(redisUsername={"value": "me"}, redisPassword=PASSWORD)
    container = ray(head_pod(cluster))
    assert env_names(container)[:4] == [
        "RAY_external_storage_namespace",
        "RAY_REDIS_ADDRESS",
        "REDIS_USERNAME",
        "REDIS_PASSWORD",
    ]
    assert env(container)["RAY_REDIS_ADDRESS"] == "redis:6379"
    assert env(container)["REDIS_USERNAME"] == "me"
    assert env(container)["REDIS_PASSWORD"] == PASSWORD["valueFrom"]
    assert " --redis-password=$REDIS_PASSWORD  --redis-username=$REDIS_USERNAME " in start(cluster)


def test_a_redis_without_credentials_gets_none() -> None:
    assert "redis-" not in start(with_redis())
    assert not {"REDIS_USERNAME", "REDIS_PASSWORD"} & set(env_names(ray(head_pod(with_redis()))))


@pytest.mark.parametrize(
    ("cluster", "prefix"),
    [
        (with_redis(), UID),
        (with_redis(externalStorageNamespace="mine"), "mine"),
        (by_annotation(), UID),
        (by_annotation(external_storage_namespace="noted"), "noted"),
        (by_annotation(external_storage_namespace=""), ""),
    ],
)
def test_the_keys_in_redis_have_the_prefix(cluster: ClusterBuilder, prefix: str) -> None:
    pod = head_pod(cluster)
    assert env(ray(pod))["RAY_external_storage_namespace"] == prefix
    assert pod["metadata"]["annotations"]["ray.io/external-storage-namespace"] == prefix
    assert pod["metadata"]["annotations"]["ray.io/ft-enabled"] == "true"


def test_the_older_way_takes_the_password_from_the_options_of_ray() -> None:
    cluster = by_annotation().with_head(rayStartParams={"redis-password": "pw"})
    assert env(ray(head_pod(cluster)))["REDIS_PASSWORD"] == "pw"
    assert " --redis-password=pw " in start(cluster)


def test_the_older_way_leaves_a_password_of_the_environment_alone() -> None:
    cluster = by_annotation().with_head(rayStartParams={"redis-password": "$REDIS_PASSWORD"})
    container = ray(head_pod(cluster.with_head_env("REDIS_PASSWORD", "pw")))
    assert env(container)["REDIS_PASSWORD"] == "pw"


def test_a_head_keeps_its_state_in_rocksdb() -> None:
    pod = head_pod(with_rocksdb())
    assert env_names(ray(pod))[:2] == ["RAY_gcs_storage", "RAY_gcs_storage_path"]
    assert env(ray(pod))["RAY_gcs_storage"] == "rocksdb"
    assert env(ray(pod))["RAY_gcs_storage_path"] == "/data/gcs"
    assert mounts(ray(pod))["/data/gcs"] == "gcs-storage"
    assert volumes(pod)["gcs-storage"] == {"persistentVolumeClaim": {"claimName": "rc-gcs-pvc"}}
    assert pod["metadata"]["annotations"]["ray.io/ft-enabled"] == "true"
    assert "ray.io/external-storage-namespace" not in pod["metadata"]["annotations"]


def test_rocksdb_may_live_in_a_folder_of_the_users_claim() -> None:
    pod = head_pod(with_rocksdb(claimName="mine", subPath="gcs"))
    assert volumes(pod)["gcs-storage"] == {"persistentVolumeClaim": {"claimName": "mine"}}
    assert ray(pod)["volumeMounts"][0] == {"name": "gcs-storage", "mountPath": "/data/gcs", "subPath": "gcs"}


@pytest.mark.parametrize("cluster", [with_redis(), by_annotation(), with_rocksdb()])
def test_workers_are_patient_with_a_head_that_comes_back(cluster: ClusterBuilder) -> None:
    pod = worker_pod(cluster)
    assert env_names(ray(pod))[0] == "RAY_gcs_rpc_server_reconnect_timeout_s"
    assert env(ray(pod))["RAY_gcs_rpc_server_reconnect_timeout_s"] == "600"
    assert "gcs-storage" not in volumes(pod)
    assert "RAY_REDIS_ADDRESS" not in env(ray(pod))
    mine = {"env": [{"name": "RAY_gcs_rpc_server_reconnect_timeout_s", "value": "5"}]}
    assert env(ray(worker_pod(cluster.with_workers(container=mine))))["RAY_gcs_rpc_server_reconnect_timeout_s"] == "5"


def test_workers_of_other_clusters_are_not() -> None:
    assert "RAY_gcs_rpc_server_reconnect_timeout_s" not in env(ray(worker_pod(a_cluster())))
