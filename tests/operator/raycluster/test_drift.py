"""What is ours in a child comes back after any change; what others put there stays."""

from __future__ import annotations

import copy

import pytest

from rayclusters.children_cases import CASES, RANDOM_BYTES, with_ingress, with_rocksdb
from rayclusters.drifts import (
    AUTOSCALED,
    CHANGES,
    LEFT_ALONE,
    MEDDLINGS,
    MENDED_BY_REPLACEMENT,
    NODE_PORT,
    Change,
    Meddling,
    merged,
)
from rayclusters.manifests import ClusterBuilder, a_cluster
from raykeeper.api.meta import JSON
from raykeeper.operator.raycluster.children.desired import ChildSettings, child_drift, desired_children
from raykeeper.operator.raycluster.children.rbac import desired_role_binding, role_binding_drift
from raykeeper.operator.raycluster.children.route import desired_route, route_drift
from raykeeper.operator.raycluster.children.storage import claim_differences, claim_drift, desired_claim
from raykeeper.operator.shared.children.drift import Patch, Replace
from raykeeper.operator.shared.children.keys import ChildKey, child_key
from raykeeper.operator.shared.children.service_drift import service_drift
from raykeeper.operator.shared.owner import Owner
from raykeeper.operator.shared.services import desired_head_service

OTHER_BYTES = bytes(32)


def child(builder: ClusterBuilder, key: ChildKey, settings: ChildSettings | None = None) -> JSON:
    """A child as the operator wants it, with a token that it has never seen."""
    children = desired_children(builder.build(), settings or ChildSettings(), OTHER_BYTES)
    return next(child for child in children.desired if child_key(child) == key)


def stored(desired: JSON) -> JSON:
    """A child as the API server keeps it, with what it fills in."""
    result = copy.deepcopy(desired)
    result["metadata"] |= {"uid": "u", "resourceVersion": "1", "creationTimestamp": "2026-01-01T00:00:00Z"}
    if result["kind"] == "Service":
        result["spec"] = _stored_service(result["spec"])
    return result


def _stored_service(spec: JSON) -> JSON:
    filled: JSON = {"type": "ClusterIP", "clusterIP": "10.0.0.1", "sessionAffinity": "None"} | spec
    filled["ports"] = [{"protocol": "TCP", "targetPort": port["port"], **port} for port in spec.get("ports", [])]
    if filled["type"] in ("NodePort", "LoadBalancer"):
        filled["ports"] = [{"nodePort": 30000 + i, **port} for i, port in enumerate(filled["ports"])]
    return filled


@pytest.mark.parametrize("name", CASES)
def test_a_child_that_was_just_made_has_not_drifted(name: str) -> None:
    builder, settings = CASES[name]
    cluster = builder.build()
    for desired in desired_children(cluster, settings, RANDOM_BYTES).desired:
        assert child_drift(Owner.of(cluster), desired, stored(desired)) is None


@pytest.mark.parametrize("case", MEDDLINGS, ids=lambda case: case.sentence)
def test_meddling_is_taken_back(case: Meddling) -> None:
    cluster, desired = case.cluster.build(), child(case.cluster, case.child)
    actual = merged(stored(desired), case.patch)
    repair = child_drift(Owner.of(cluster), desired, actual)
    assert isinstance(repair, Patch)
    assert child_drift(Owner.of(cluster), desired, merged(actual, repair.body)) is None


@pytest.mark.parametrize("case", MENDED_BY_REPLACEMENT, ids=lambda case: case.sentence)
def test_what_may_not_be_changed_is_made_anew(case: Meddling) -> None:
    desired = child(case.cluster, case.child)
    actual = merged(stored(desired), case.patch)
    assert isinstance(child_drift(Owner.of(case.cluster.build()), desired, actual), Replace)


@pytest.mark.parametrize("case", LEFT_ALONE, ids=lambda case: case.sentence)
def test_what_is_not_ours_is_left_alone(case: Meddling) -> None:
    desired = child(case.cluster, case.child)
    assert child_drift(Owner.of(case.cluster.build()), desired, merged(stored(desired), case.patch)) is None


@pytest.mark.parametrize("case", MEDDLINGS, ids=lambda case: case.sentence)
def test_a_repair_keeps_what_others_added(case: Meddling) -> None:
    cluster, desired = case.cluster.build(), child(case.cluster, case.child)
    others = {"metadata": {"labels": {"team": "ml"}, "annotations": {"cloud.example.com/lb": "1"}}}
    actual = merged(merged(stored(desired), case.patch), others)
    repair = child_drift(Owner.of(cluster), desired, actual)
    assert isinstance(repair, Patch)
    repaired = merged(actual, repair.body)["metadata"]
    assert repaired["labels"]["team"] == "ml"
    assert repaired["annotations"]["cloud.example.com/lb"] == "1"


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.sentence)
def test_a_changed_spec_reaches_the_child(change: Change) -> None:
    cluster = change.after.build()
    actual = stored(child(change.before, change.child, change.before_settings))
    desired = child(change.after, change.child, change.after_settings)
    repair = child_drift(Owner.of(cluster), desired, actual)
    if change.replaced_because:
        assert isinstance(repair, Replace)
        assert change.replaced_because in repair.because
        assert repair.cuts_connections == change.cuts_connections
    else:
        assert isinstance(repair, Patch)
        assert child_drift(Owner.of(cluster), desired, merged(actual, repair.body)) is None


def test_a_patch_holds_only_what_differs() -> None:
    desired = child(a_cluster(), ChildKey("Service", "rc-head-svc"))
    actual = merged(
        stored(desired), {"metadata": {"labels": {"ray.io/cluster": "x"}}, "spec": {"selector": {"a": "b"}}}
    )
    assert service_drift(desired, actual) == Patch(
        {"metadata": {"labels": {"ray.io/cluster": "rc"}}, "spec": {"selector": {"a": None}}}
    )


def test_the_order_of_ports_does_not_count() -> None:
    desired = desired_head_service(a_cluster().build())
    actual = stored(desired)
    actual["spec"]["ports"].reverse()
    assert service_drift(desired, actual) is None


def test_node_ports_survive_a_repair_of_other_ports() -> None:
    desired = child(NODE_PORT, ChildKey("Service", "rc-head-svc"))
    actual = stored(desired)
    actual["spec"]["ports"].pop()
    repair = service_drift(desired, actual)
    assert isinstance(repair, Patch)
    node_ports = {port["name"]: port.get("nodePort") for port in repair.body["spec"]["ports"]}
    assert node_ports == {"client": 30000, "dashboard": 30001, "gcs-server": 30002, "metrics": 30003, "serve": None}


def test_node_ports_go_with_the_type_that_needs_them() -> None:
    actual = stored(desired_head_service(NODE_PORT.build()))
    repair = service_drift(desired_head_service(a_cluster().build(), headless=False), actual)
    assert repair == Patch({"spec": {"type": "ClusterIP"}})


def test_a_service_with_an_address_keeps_it_while_pods_run_but_is_repaired_otherwise() -> None:
    """So it was made by KubeRay before 1.3, and all its workers are connected through the address."""
    actual = stored(desired_head_service(a_cluster().build(), headless=False))
    actual = merged(actual, {"metadata": {"labels": {"ray.io/cluster": None}}})
    assert service_drift(desired_head_service(a_cluster().build()), actual) == Replace(
        "it has an address and should be headless",
        cuts_connections=True,
        meanwhile=Patch({"metadata": {"labels": {"ray.io/cluster": "rc"}}}),
    )


def test_an_address_that_the_user_chose_cannot_be_given_to_a_service_that_has_another() -> None:
    cluster = a_cluster().with_head(headService={"spec": {"clusterIP": "10.0.0.9"}}).build()
    actual = stored(desired_head_service(a_cluster().build(), headless=False))
    assert service_drift(desired_head_service(cluster), actual) == Replace(
        "its address should be 10.0.0.9", cuts_connections=True
    )


def test_a_binding_to_another_role_is_replaced() -> None:
    desired = desired_role_binding(AUTOSCALED.build())
    actual = merged(stored(desired), {"roleRef": {"name": "admin"}})
    repair = role_binding_drift(desired, actual)
    assert repair == Replace("it binds 'admin', and the role of a binding cannot be changed")


def test_a_route_comes_back_and_keeps_its_host() -> None:
    desired = desired_route(with_ingress().build())
    filled = merged(stored(desired), {"spec": {"host": "rc.apps.example.com", "tls": {"termination": "edge"}}})
    assert route_drift(desired, filled) is None
    meddled = merged(filled, {"spec": {"to": {"name": "x"}, "port": {"targetPort": 1}}})
    assert route_drift(desired, meddled) == Patch(
        {"spec": {"to": {"name": "rc-head-svc"}, "port": {"targetPort": 8265}}}
    )


def test_an_existing_claim_is_adopted() -> None:
    cluster = with_rocksdb().build()
    desired = desired_claim(cluster)
    actual = merged(stored(desired), {"metadata": {"ownerReferences": None, "labels": None}})
    assert claim_drift(Owner.of(cluster), desired, actual) == Patch(
        {"metadata": {"labels": {"ray.io/cluster": "rc"}, "ownerReferences": desired["metadata"]["ownerReferences"]}}
    )


def test_a_claim_to_be_retained_is_let_go_of() -> None:
    owned = stored(desired_claim(with_rocksdb().build()))
    cluster = with_rocksdb(deletionPolicy="Retain").build()
    assert claim_drift(Owner.of(cluster), desired_claim(cluster), owned) == Patch(
        {"metadata": {"ownerReferences": None}}
    )
    other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "x"}
    owned["metadata"]["ownerReferences"].append(other)
    assert claim_drift(Owner.of(cluster), desired_claim(cluster), owned) == Patch(
        {"metadata": {"ownerReferences": [other]}}
    )


def test_a_claim_of_another_controller_is_left_alone_and_told() -> None:
    cluster = with_rocksdb().build()
    desired = desired_claim(cluster)
    actual = stored(desired)
    actual["metadata"]["ownerReferences"][0]["uid"] = "another"
    assert claim_drift(Owner.of(cluster), desired, actual) is None
    assert claim_differences(Owner.of(cluster), desired, actual) == [
        "the claim rc-gcs-pvc belongs to another controller"
    ]


def test_what_cannot_be_changed_about_a_claim_is_told() -> None:
    cluster = with_rocksdb(size="2Gi", storageClassName="fast", accessModes=["ReadWriteMany"]).build()
    actual = stored(desired_claim(with_rocksdb(storageClassName="slow").build()))
    assert claim_drift(Owner.of(cluster), desired_claim(cluster), actual) is None
    assert claim_differences(Owner.of(cluster), desired_claim(cluster), actual) == [
        "the claim rc-gcs-pvc asks for 1Gi, not 2Gi; resize or replace it yourself",
        "the claim rc-gcs-pvc has storageClassName slow, not fast; it cannot be changed",
        "the claim rc-gcs-pvc has accessModes ['ReadWriteOnce'], not ['ReadWriteMany']; it cannot be changed",
    ]


def test_access_modes_in_another_order_are_no_difference() -> None:
    modes = ["ReadOnlyMany", "ReadWriteOnce"]
    actual = stored(desired_claim(with_rocksdb(accessModes=modes[::-1]).build()))
    cluster = with_rocksdb(accessModes=modes).build()
    assert claim_differences(Owner.of(cluster), desired_claim(cluster), actual) == []


def test_another_spelling_of_the_same_size_and_a_default_class_are_no_difference() -> None:
    cluster = with_rocksdb(size="1024Mi").build()
    actual = merged(stored(desired_claim(with_rocksdb().build())), {"spec": {"storageClassName": "standard"}})
    assert claim_differences(Owner.of(cluster), desired_claim(cluster), actual) == []
