"""A RayCluster's children other than pods are KubeRay's, compared as whole objects with golden files."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from rayclusters.children_cases import CASES, RANDOM_BYTES, with_ports, with_rocksdb
from rayclusters.manifests import a_cluster
from raykeeper.operator.raycluster.children.desired import ChildSettings, desired_children
from raykeeper.operator.raycluster.children.rbac import users_service_account
from raykeeper.operator.raycluster.children.storage import users_claim
from raykeeper.operator.raycluster.pods.defaults import PodDefaults
from raykeeper.operator.raycluster.pods.desired import desired_head_pod
from raykeeper.operator.shared.children.metadata import Ownership, ownership
from raykeeper.operator.shared.owner import Owner
from raykeeper.operator.shared.services import desired_head_service
from support.golden import AssertGolden, files_without_test

GOLDEN = Path(__file__).parent / "golden" / "children"


@pytest.mark.parametrize("name", CASES)
def test_children_are_as_in_the_golden_file(name: str, assert_golden: AssertGolden) -> None:
    builder, settings = CASES[name]
    children = desired_children(builder.build(), settings, RANDOM_BYTES)
    assert children.problems == ()
    assert_golden(GOLDEN / f"{name}.yaml", list(children.desired))


def test_every_golden_file_is_compared() -> None:
    assert files_without_test(GOLDEN, CASES) == []


def test_children_are_made_in_the_order_in_which_they_need_each_other() -> None:
    cluster = (
        a_cluster()
        .autoscaled()
        .annotated({"ray.io/enable-serve-service": "true"})
        .with_workers(numOfHosts=2)
        .with_head(enableIngress=True)
        .with_spec(authOptions={}, gcsFaultToleranceOptions={"backend": "rocksdb"})
        .build()
    )
    children = desired_children(cluster, ChildSettings(), RANDOM_BYTES)
    assert [(child["kind"], child["metadata"]["name"]) for child in children.desired] == [
        ("ServiceAccount", "rc"),
        ("Role", "rc"),
        ("RoleBinding", "rc"),
        ("Ingress", "rc-head-ingress"),
        ("Secret", "rc"),
        ("Service", "rc-head-svc"),
        ("Service", "rc-headless"),
        ("Service", "rc-serve-svc"),
        ("PersistentVolumeClaim", "rc-gcs-pvc"),
    ]


def test_making_children_does_not_change_the_cluster() -> None:
    for builder, settings in CASES.values():
        cluster = builder.build()
        desired_children(cluster, settings, RANDOM_BYTES)
        assert cluster == builder.build()


def test_the_token_is_the_base64_of_the_random_bytes() -> None:
    cluster = a_cluster().with_spec(authOptions={"mode": "token"}).build()
    (secret,) = [child for child in desired_children(cluster, ChildSettings(), RANDOM_BYTES).desired if "data" in child]
    token = base64.b64decode(secret["data"]["auth_token"])
    assert base64.b64decode(token) == RANDOM_BYTES


@pytest.mark.parametrize(
    "options",
    [
        {"mode": "disabled"},
        {"mode": "token", "secretName": "mine"},
        {"mode": "token", "enableK8sTokenAuth": True},
    ],
)
def test_no_secret_is_made_where_none_is_read(options: dict[str, object]) -> None:
    cluster = a_cluster().with_spec(authOptions=options).build()
    assert {child["kind"] for child in desired_children(cluster, ChildSettings(), RANDOM_BYTES).desired} == {"Service"}


def test_a_serve_service_without_a_port_is_a_problem_that_keeps_nothing_else_from_being_made() -> None:
    cluster = with_ports(("dashboard", 8265)).annotated({"ray.io/enable-serve-service": "true"}).build()
    children = desired_children(cluster, ChildSettings(), RANDOM_BYTES)
    assert [child["metadata"]["name"] for child in children.desired] == ["rc-head-svc"]
    assert [problem.message for problem in children.problems] == [
        "metadata.annotations[ray.io/enable-serve-service] asks for a service in front of Ray Serve: "
        "name a port of the head's Ray container serve"
    ]


def test_what_the_user_supplies_is_named_so_that_it_can_be_looked_for() -> None:
    assert users_service_account(a_cluster().with_head_pod(serviceAccountName="mine").build()) == "mine"
    assert users_service_account(a_cluster().build()) is None
    assert users_claim(with_rocksdb(claimName="mine").build()) == "mine"
    assert users_claim(with_rocksdb().build()) is None


def test_an_object_belongs_to_the_controller_that_owns_it() -> None:
    cluster = a_cluster().build()
    (service,) = desired_children(cluster, ChildSettings(), RANDOM_BYTES).desired
    reference = service["metadata"]["ownerReferences"][0]
    assert ownership(Owner.of(cluster), service) is Ownership.OURS
    assert ownership(Owner.of(cluster), {"metadata": {}}) is Ownership.NOBODYS
    assert (
        ownership(Owner.of(cluster), {"metadata": {"ownerReferences": [reference | {"controller": False}]}})
        is Ownership.NOBODYS
    )
    assert (
        ownership(Owner.of(cluster), {"metadata": {"ownerReferences": [reference | {"uid": "x"}]}}) is Ownership.FOREIGN
    )


@pytest.mark.parametrize("key", ["app.kubernetes.io/name", "app.kubernetes.io/created-by", "ray.io/identifier"])
def test_the_head_service_finds_a_head_pod_whose_labels_the_user_changed(key: str) -> None:
    by_template = a_cluster().with_head(
        template={"metadata": {"labels": {key: "mine"}}, "spec": {"containers": [{"name": "ray", "image": "ray"}]}}
    )
    for builder in (by_template, a_cluster().with_head(labels={key: "mine"})):
        cluster = builder.build()
        pod = desired_head_pod(cluster, PodDefaults(operator_version="1"), "abcde")
        assert desired_head_service(cluster)["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
