"""The hash of a spec changes when pods would, and only then."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from rayclusters.manifests import ClusterBuilder, a_cluster
from raykeeper.operator.shared.spec_hash import spec_hash

CLUSTER = a_cluster().with_workers("small", replicas=1).with_head_container(resources={"limits": {"memory": "1Gi"}})
PINNED = "4VR0N0R327MPVSSTJASFO1DOSANQ2EDR"
"""Another hash under the same version would delete all pods of running clusters with the strategy Recreate."""

Change = Callable[[ClusterBuilder], ClusterBuilder]


def hash_of(cluster: ClusterBuilder) -> str:
    return spec_hash(cluster.build().spec)


def in_group(**fields: Any) -> Change:
    return lambda cluster: ClusterBuilder(_changed(cluster, lambda spec: spec["workerGroupSpecs"][0].update(fields)))


def in_worker_pod(**fields: Any) -> Change:
    def change(spec: Any) -> None:
        spec["workerGroupSpecs"][0]["template"]["spec"].update(fields)

    return lambda cluster: ClusterBuilder(_changed(cluster, change))


def _changed(cluster: ClusterBuilder, change: Callable[[Any], None]) -> Any:
    manifest = cluster.with_spec().manifest
    change(manifest["spec"])
    return manifest


def test_it_is_what_earlier_versions_wrote() -> None:
    assert hash_of(CLUSTER) == PINNED


def test_it_is_the_same_in_another_process() -> None:
    program = (
        "import sys; sys.path[:0] = ['tests', 'src']\n"
        "from rayclusters.manifests import a_cluster\n"
        "from raykeeper.operator.shared.spec_hash import spec_hash\n"
        "print(spec_hash(a_cluster().with_workers('small', replicas=1)"
        ".with_head_container(resources={'limits': {'memory': '1Gi'}}).build().spec))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONHASHSEED": "7"}, capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == hash_of(CLUSTER)


@pytest.mark.parametrize(
    "change",
    [
        in_group(replicas=5),
        in_group(minReplicas=1),
        in_group(maxReplicas=9),
        in_group(scaleStrategy={"workersToDelete": ["a"]}),
        in_worker_pod(tolerations=[{"operator": "Exists"}]),
        in_worker_pod(schedulingGates=[{"name": "kueue"}]),
        lambda cluster: cluster.with_head_pod(tolerations=[{"operator": "Exists"}], schedulingGates=[{"name": "g"}]),
        lambda cluster: cluster.with_spec(upgradeStrategy={"type": "Recreate"}),
        lambda cluster: cluster.with_spec(suspend=False),
        lambda cluster: cluster.annotated({"a": "b"}).labelled({"a": "b"}),
    ],
)
def test_what_makes_no_difference_to_a_pod_does_not_count(change: Change) -> None:
    assert hash_of(change(CLUSTER)) == hash_of(CLUSTER)


@pytest.mark.parametrize(
    "change",
    [
        lambda cluster: cluster.with_head_container(resources={"limits": {"memory": "1024Mi"}}),
        in_group(numOfHosts=1, rayStartParams={}, priority=0),
        in_worker_pod(nodeSelector=None),
        in_worker_pod(containers=[{"name": "small", "image": "rayproject/ray:2.60.0", "resources": {}}]),
        in_group(
            template={
                "metadata": {"creationTimestamp": None},
                "spec": {"containers": [{"image": "rayproject/ray:2.60.0", "name": "small"}]},
            }
        ),
    ],
)
def test_what_go_clients_write_back_does_not_count(change: Change) -> None:
    assert hash_of(change(CLUSTER)) == hash_of(CLUSTER)


@pytest.mark.parametrize(
    "change",
    [
        lambda cluster: cluster.with_head_container(image="other"),
        lambda cluster: cluster.with_head_container(resources={"limits": {"memory": "2Gi"}}),
        lambda cluster: cluster.with_head_env("A", "1"),
        lambda cluster: cluster.with_head(rayStartParams={"port": "1"}),
        lambda cluster: cluster.with_spec(rayVersion="2.60.0"),
        lambda cluster: cluster.with_workers("more"),
        in_group(groupName="renamed"),
        in_group(numOfHosts=2),
        in_worker_pod(nodeSelector={"a": "b"}),
        in_worker_pod(volumes=[{"name": "v", "emptyDir": {}}]),
    ],
)
def test_what_makes_a_difference_counts(change: Change) -> None:
    assert hash_of(change(CLUSTER)) != hash_of(CLUSTER)


def test_an_empty_object_that_says_something_counts() -> None:
    empty = in_worker_pod(volumes=[{"name": "v", "emptyDir": {}}])(CLUSTER)
    none = in_worker_pod(volumes=[{"name": "v"}])(CLUSTER)
    assert hash_of(empty) != hash_of(none)


def test_appended_groups_are_told_from_changed_ones_by_the_hash_of_the_first() -> None:
    before = a_cluster().with_workers("small").build().spec
    after = a_cluster().with_workers("small").with_workers("large").build().spec
    assert spec_hash(before) != spec_hash(after)
    assert spec_hash(after, groups=1) == spec_hash(before)
