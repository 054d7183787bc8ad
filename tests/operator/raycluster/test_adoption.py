"""Which objects that have a child's name are taken for it, used as they are, or left alone."""

from __future__ import annotations

import copy

import pytest

from rayclusters.children_cases import RANDOM_BYTES, with_ingress, with_rocksdb
from rayclusters.manifests import ClusterBuilder, a_cluster
from raykeeper.api.meta import JSON
from raykeeper.api.raycluster import RayCluster
from raykeeper.operator.raycluster.children.desired import ChildSettings, child_drift, child_problems, desired_children
from raykeeper.operator.raycluster.children.requirements import requirements
from raykeeper.operator.shared.children.adoption import Standing, standing, taking_patch
from raykeeper.operator.shared.children.keys import ChildKey, child_key
from raykeeper.operator.shared.history import History
from raykeeper.operator.shared.owner import Owner

ROCKSDB: JSON = {"backend": "rocksdb", "storage": {"claimName": "mine"}}
EVERYTHING = with_ingress().autoscaled().with_spec(rayVersion="2.60.0", authOptions={"mode": "token"})
ANOTHER: JSON = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "another"}


def child(cluster: RayCluster, kind: str) -> JSON:
    children = desired_children(cluster, ChildSettings(), RANDOM_BYTES).desired
    return next(one for one in children if one["kind"] == kind)


def found(desired: JSON, *owners: JSON, labels: JSON | None = None) -> JSON:
    """The object as it would be there with other owners."""
    there = copy.deepcopy(desired)
    there["metadata"] |= {"uid": "u-1", "resourceVersion": "7", "ownerReferences": list(owners)}
    if labels is not None:
        there["metadata"]["labels"] = labels
    return there


@pytest.mark.parametrize("kind", ["Role", "Ingress", "Service"])
def test_a_child_that_a_deleted_cluster_left_behind_is_taken_over(kind: str) -> None:
    cluster = EVERYTHING.build()
    desired = child(cluster, kind)
    there = found(desired, ANOTHER)
    assert standing(Owner.of(cluster), desired, there) is Standing.CHILD
    owner = desired["metadata"]["ownerReferences"][0]
    assert taking_patch(Owner.of(cluster), desired, there, child_drift) == {
        "metadata": {"uid": "u-1", "resourceVersion": "7", "ownerReferences": [ANOTHER, owner]}
    }


@pytest.mark.parametrize("kind", ["ServiceAccount", "RoleBinding"])
def test_what_is_never_changed_is_used_as_a_deleted_cluster_left_it(kind: str) -> None:
    cluster = EVERYTHING.build()
    desired = child(cluster, kind)
    assert standing(Owner.of(cluster), desired, found(desired)) is Standing.SUPPLIED


@pytest.mark.parametrize("kind", ["ServiceAccount", "Role", "RoleBinding", "Secret"])
def test_what_a_user_made_beforehand_is_used_as_it_is(kind: str) -> None:
    cluster = EVERYTHING.build()
    desired = child(cluster, kind)
    assert standing(Owner.of(cluster), desired, found(desired, labels={})) is Standing.SUPPLIED
    assert standing(Owner.of(cluster), desired, found(desired, ANOTHER | {"controller": True})) is Standing.SUPPLIED


def test_a_secret_is_not_taken_over_for_it_would_go_with_the_cluster() -> None:
    cluster = EVERYTHING.build()
    desired = child(cluster, "Secret")
    assert standing(Owner.of(cluster), desired, found(desired)) is Standing.SUPPLIED


@pytest.mark.parametrize("kind", ["Ingress", "Service"])
def test_what_belongs_to_others_is_in_the_way(kind: str) -> None:
    cluster = EVERYTHING.build()
    desired = child(cluster, kind)
    assert standing(Owner.of(cluster), desired, found(desired, labels={})) is Standing.FOREIGN
    assert standing(Owner.of(cluster), desired, found(desired, ANOTHER | {"controller": True})) is Standing.FOREIGN


def test_a_child_that_is_ours_is_only_repaired() -> None:
    cluster = a_cluster().build()
    desired = child(cluster, "Service")
    there = found(desired, *desired["metadata"]["ownerReferences"], labels={})
    assert standing(Owner.of(cluster), desired, there) is Standing.CHILD
    assert taking_patch(Owner.of(cluster), desired, there, child_drift) == {
        "metadata": {"labels": desired["metadata"]["labels"]}
    }


def test_a_claim_that_is_not_as_asked_for_is_told() -> None:
    cluster = with_rocksdb(size="2Gi").build()
    children = desired_children(cluster, ChildSettings(), RANDOM_BYTES)
    there = child(with_rocksdb().build(), "PersistentVolumeClaim")
    (problem,) = child_problems(Owner.of(cluster), children, {child_key(there): there})
    assert problem.reason == "FailedToCreatePVC"
    assert "asks for 1Gi, not 2Gi" in problem.message
    assert child_problems(Owner.of(cluster), children, {ChildKey("Service", "x"): {}}) == []


@pytest.mark.parametrize(
    ("builder", "needed"),
    [
        (a_cluster(), []),
        (a_cluster().autoscaled(), []),
        (a_cluster().with_head_pod(serviceAccountName="mine"), []),
        (
            a_cluster().autoscaled().with_head_pod(serviceAccountName="mine"),
            [("ServiceAccount", "mine", "AutoscalerServiceAccountNotFound", True)],
        ),
        (with_rocksdb(), []),
        (
            a_cluster().with_spec(gcsFaultToleranceOptions=ROCKSDB),
            [("PersistentVolumeClaim", "mine", "FailedToCreatePVC", False)],
        ),
    ],
)
def test_what_users_say_they_supply_is_looked_for(
    builder: ClusterBuilder, needed: list[tuple[str, str, str, bool]]
) -> None:
    found = [
        (one.resource.kind, one.name, one.reason, one.is_vital) for one in requirements(builder.build(), History())
    ]
    assert found == needed
