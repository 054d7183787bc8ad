"""Scripts that were written for KubeRay's Python client, with other imports: builders and their helpers."""

from __future__ import annotations

from typing import Any

import pytest

from raykeeper.client import check_manifest
from raykeeper.client.python_client.utils.kuberay_cluster_builder import ClusterBuilder, Director
from raykeeper.client.python_client.utils.kuberay_cluster_utils import ClusterUtils

LONG = "too" + "o" * 40 + "-loo" + "o" * 20 + "ng"


@pytest.mark.parametrize(
    ("size", "replicas", "limits"),
    [
        ("small", 1, {"cpu": "2", "memory": "2G"}),
        ("medium", 3, {"cpu": "4", "memory": "4G"}),
        ("large", 6, {"cpu": "6", "memory": "8G"}),
    ],
)
def test_a_director_builds_clusters_of_usual_sizes(size: str, replicas: int, limits: dict[str, str]) -> None:
    cluster = getattr(Director(), f"build_{size}_cluster")(name="demo", k8s_namespace="team", labels={"a": "b"})
    check_manifest(cluster)
    assert (cluster["metadata"]["name"], cluster["metadata"]["namespace"]) == ("demo", "team")
    group = cluster["spec"]["workerGroupSpecs"][0]
    assert (group["groupName"], group["replicas"], group["minReplicas"]) == ("demo-workers", replicas, 0)
    assert group["template"]["spec"]["containers"][0]["resources"]["limits"] == limits


def test_a_basic_cluster_is_a_head_alone() -> None:
    cluster = Director().build_basic_cluster(name="demo")
    assert cluster is not None
    assert "workerGroupSpecs" not in cluster["spec"]
    assert cluster["spec"]["headGroupSpec"]["serviceType"] == "ClusterIP"


def test_a_builder_keeps_every_group_and_guesses_bounds() -> None:
    builder = ClusterBuilder().build_meta("demo").build_head().build_worker("one", replicas=3).build_worker("two")
    groups = builder.get_cluster()["spec"]["workerGroupSpecs"]
    assert [(group["groupName"], group["minReplicas"], group["maxReplicas"]) for group in groups] == [
        ("one", 2, 9),
        ("two", 1, 3),
    ]
    assert builder.succeeded


def test_workers_without_a_head_and_a_head_without_an_image_do_not_succeed() -> None:
    assert not ClusterBuilder().build_meta("demo").build_worker("one").succeeded
    assert not ClusterBuilder().build_meta("demo").build_head(ray_image="").succeeded


@pytest.fixture
def cluster() -> Any:
    return Director().build_small_cluster(name="demo")


def test_replicas_are_updated_by_the_name_of_the_group(cluster: Any) -> None:
    changed, worked = ClusterUtils().update_worker_group_replicas(cluster, "demo-workers", 10, 1, 5)
    group = changed["spec"]["workerGroupSpecs"][0]
    assert (worked, group["replicas"], group["maxReplicas"], group["minReplicas"]) == (True, 5, 10, 1)
    assert ClusterUtils().update_worker_group_replicas(cluster, "nope", 10, 1, 5) == (cluster, False)


def test_resources_are_updated_of_the_first_the_named_or_all_containers(cluster: Any) -> None:
    containers = cluster["spec"]["workerGroupSpecs"][0]["template"]["spec"]["containers"]
    containers.append({"name": "side-car", "image": "x", "resources": {"requests": {"cpu": "500m"}, "limits": {}}})
    update, group = ClusterUtils().update_worker_group_resources, "demo-workers"
    assert update(cluster, group, "3", "5G", "5", "10G")[1]
    assert [one["resources"]["requests"]["cpu"] for one in containers] == ["3", "500m"]
    assert update(cluster, group, "4", "5G", "5", "10G", container_name="side-car")[1]
    assert [one["resources"]["requests"]["cpu"] for one in containers] == ["3", "4"]
    assert update(cluster, group, "6", "5G", "5", "10G", container_name="all_containers")[1]
    assert [one["resources"]["requests"]["cpu"] for one in containers] == ["6", "6"]
    assert not update(cluster, group, "6", "5G", "5", "10G", container_name="wrong")[1]


def test_groups_are_duplicated_and_deleted(cluster: Any) -> None:
    utils = ClusterUtils()
    assert utils.duplicate_worker_group(cluster, "demo-workers", "more")[1]
    first, second = cluster["spec"]["workerGroupSpecs"]
    assert (second["groupName"], second["template"]) == ("more", first["template"])
    for name in ("demo-workers", "more"):
        assert utils.delete_worker_group(cluster, name)[1]
    with pytest.raises(AssertionError):
        utils.delete_worker_group(cluster, "more")


@pytest.mark.parametrize(
    ("text", "name", "label"),
    [
        ("name", True, True),
        ("name-", False, False),
        (".name", False, False),
        ("name_x", False, True),
        ("good.name", True, True),
        ("line\n", False, False),
        (LONG, False, False),
    ],
)
def test_names_and_labels_are_checked(text: str, name: bool, label: bool) -> None:
    assert (ClusterUtils().is_valid_name(text), ClusterUtils().is_valid_label(text)) == (name, label)
