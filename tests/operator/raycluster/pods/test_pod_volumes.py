"""Volumes and ports that Ray pods get, and when they do not."""

from __future__ import annotations

from typing import Any

import pytest

from rayclusters.manifests import ClusterBuilder, a_cluster
from rayclusters.ray_pods import env, head_pod, mounts, named, ray, volumes, worker_pod
from raykeeper.api.meta import JSON

COLLECTOR = {"collectorOptions": {"image": "collector"}}
MY_TMP: JSON = {"name": "mine", "mountPath": "/tmp/ray", "subPath": "ray", "readOnly": False}


def with_resources(**resources: Any) -> ClusterBuilder:
    return a_cluster().with_head_container(resources=resources)


@pytest.mark.parametrize(
    ("resources", "size"),
    [
        ({"limits": {"memory": "5Gi"}, "requests": {"memory": "2Gi"}}, {"sizeLimit": "5Gi"}),
        ({"requests": {"memory": "2Gi"}}, {"sizeLimit": "2Gi"}),
        ({"limits": {"memory": 0}, "requests": {"memory": "2Gi"}}, {"sizeLimit": "2Gi"}),
        ({"limits": {"cpu": 1}}, {}),
        ({}, {}),
    ],
)
def test_shared_memory_is_as_large_as_the_container(resources: JSON, size: JSON) -> None:
    pod = head_pod(with_resources(**resources))
    assert mounts(ray(pod)) == {"/dev/shm": "shared-mem"}
    assert volumes(pod) == {"shared-mem": {"emptyDir": {"medium": "Memory", **size}}}


@pytest.mark.parametrize("path", ["/dev/shm", "/dev/shm/"])
def test_shared_memory_of_the_user_stays(path: str) -> None:
    mount = {"name": "mine", "mountPath": path}
    pod = head_pod(a_cluster().with_head_container(volumeMounts=[mount]).with_head_pod(volumes=[{"name": "mine"}]))
    assert ray(pod)["volumeMounts"] == [mount]
    assert list(volumes(pod)) == ["mine"]


def test_an_object_store_elsewhere_needs_no_shared_memory() -> None:
    pod = head_pod(a_cluster().with_head(rayStartParams={"plasma-directory": "/data"}))
    assert mounts(ray(pod)) == {}
    assert volumes(pod) == {}


def test_a_volume_of_the_user_with_our_name_is_used() -> None:
    pod = head_pod(a_cluster().with_head_pod(volumes=[{"name": "shared-mem", "emptyDir": {"sizeLimit": "1Gi"}}]))
    assert mounts(ray(pod)) == {"/dev/shm": "shared-mem"}
    assert volumes(pod) == {"shared-mem": {"emptyDir": {"sizeLimit": "1Gi"}}}


def test_the_autoscaler_sees_rays_files() -> None:
    pod = head_pod(a_cluster().autoscaled())
    assert mounts(ray(pod))["/tmp/ray"] == "ray-logs"
    assert mounts(named(pod, "autoscaler")) == {"/tmp/ray": "ray-logs"}
    assert volumes(pod)["ray-logs"] == {"emptyDir": {}}


def test_a_worker_of_an_autoscaled_cluster_shares_nothing() -> None:
    assert "ray-logs" not in volumes(worker_pod(a_cluster().autoscaled()))


@pytest.mark.parametrize("pod_of", [head_pod, worker_pod])
def test_the_collector_sees_rays_files(pod_of: Any) -> None:
    pod = pod_of(a_cluster().with_spec(historyServerOptions=COLLECTOR))
    assert mounts(ray(pod))["/tmp/ray"] == "ray-logs"
    assert mounts(named(pod, "ray-history-collector"))["/tmp/ray"] == "ray-logs"


@pytest.mark.parametrize("pod_of", [head_pod, worker_pod])
def test_the_collector_has_a_volume_for_its_spool_that_no_other_container_has(pod_of: Any) -> None:
    pod = pod_of(a_cluster().autoscaled().with_spec(historyServerOptions=COLLECTOR))
    collector = named(pod, "ray-history-collector")
    assert mounts(collector)["/var/lib/raykeeper"] == "ray-history-spool"
    assert env(collector)["RAY_COLLECTOR_EVENT_DATA_DIR"] == "/var/lib/raykeeper/event-data"
    assert volumes(pod)["ray-history-spool"] == {"emptyDir": {}}
    others = [*pod["spec"]["containers"], *pod["spec"]["initContainers"]]
    assert [one["name"] for one in others if "ray-history-spool" in mounts(one).values()] == [collector["name"]]


def test_a_spool_folder_that_the_user_named_stays() -> None:
    mine = {"name": "RAY_COLLECTOR_EVENT_DATA_DIR", "value": "/tmp/ray/event-data"}
    options = {"collectorOptions": {"image": "collector", "env": [mine]}}
    pod = head_pod(a_cluster().with_spec(historyServerOptions=options))
    collector = named(pod, "ray-history-collector")
    assert [one for one in collector["env"] if one["name"] == mine["name"]] == [mine]
    assert "ray-history-spool" not in volumes(pod)


def test_a_volume_of_the_user_for_the_spool_is_used() -> None:
    mine = {"name": "ray-history-spool", "emptyDir": {"sizeLimit": "1Gi"}}
    pod = head_pod(a_cluster().with_spec(historyServerOptions=COLLECTOR).with_head_pod(volumes=[mine]))
    assert volumes(pod)["ray-history-spool"] == {"emptyDir": {"sizeLimit": "1Gi"}}


@pytest.mark.parametrize(
    ("source", "has_own"),
    [
        ({}, True),
        ({"emptyDir": {"sizeLimit": "1Gi"}}, True),
        ({"persistentVolumeClaim": {"claimName": "mine"}}, False),
        ({"hostPath": {"path": "/mnt"}}, False),
    ],
)
def test_a_spool_stays_in_rays_folder_where_that_outlives_the_pod(source: JSON, has_own: bool) -> None:
    cluster = a_cluster().with_spec(historyServerOptions=COLLECTOR).with_head_container(volumeMounts=[MY_TMP])
    pod = head_pod(cluster.with_head_pod(volumes=[{"name": "mine", **source}]))
    assert ("ray-history-spool" in volumes(pod)) == has_own
    assert ("RAY_COLLECTOR_EVENT_DATA_DIR" in env(named(pod, "ray-history-collector"))) == has_own


def test_sidecars_see_rays_files_in_the_users_own_volume() -> None:
    cluster = a_cluster().autoscaled().with_spec(historyServerOptions=COLLECTOR)
    pod = head_pod(cluster.with_head_container(volumeMounts=[MY_TMP]).with_head_pod(volumes=[{"name": "mine"}]))
    shared = {"name": "mine", "mountPath": "/tmp/ray", "subPath": "ray"}
    assert ray(pod)["volumeMounts"][0] == MY_TMP
    assert named(pod, "autoscaler")["volumeMounts"] == [shared]
    assert named(pod, "ray-history-collector")["volumeMounts"][0] == shared
    assert "ray-logs" not in volumes(pod)


def test_a_mount_of_the_users_in_the_autoscaler_stays() -> None:
    pod = head_pod(a_cluster().autoscaled(volumeMounts=[MY_TMP]).with_head_pod(volumes=[{"name": "mine"}]))
    assert named(pod, "autoscaler")["volumeMounts"] == [MY_TMP]
    assert mounts(ray(pod))["/tmp/ray"] == "ray-logs"


@pytest.mark.parametrize(
    ("ports", "added"),
    [
        (None, [{"name": "metrics", "containerPort": 8080}]),
        ([{"containerPort": 6379}], [{"name": "metrics", "containerPort": 8080}]),
        ([{"name": "metrics", "containerPort": 9090}], []),
    ],
)
def test_a_port_for_metrics_is_added_where_none_has_that_name(ports: list[JSON] | None, added: list[JSON]) -> None:
    container = ray(worker_pod(a_cluster().with_workers(container={"ports": ports} if ports else {})))
    assert container["ports"] == (ports or []) + added
