"""Children that a spec does not ask for any more go, once nothing needs them; nothing else ever does."""

from __future__ import annotations

import pytest

from rayclusters.children_cases import RANDOM_BYTES, with_ingress
from rayclusters.manifests import ClusterBuilder, a_cluster
from raykeeper.api.meta import JSON
from raykeeper.operator.raycluster.children.desired import ChildSettings, desired_children
from raykeeper.operator.raycluster.children.obsolete import Usage, obsolete_children
from raykeeper.operator.shared.children.keys import ChildKey, child_key

IDLE = Usage(has_pods=False, has_autoscaler=False)
RUNNING = Usage(has_pods=True, has_autoscaler=False)
AUTOSCALING = Usage(has_pods=True, has_autoscaler=True)


def children_of(builder: ClusterBuilder, settings: ChildSettings | None = None) -> dict[ChildKey, JSON]:
    children = desired_children(builder.build(), settings or ChildSettings(), RANDOM_BYTES).desired
    return {child_key(child): child for child in children}


def obsolete(before: ClusterBuilder, after: ClusterBuilder, usage: Usage) -> list[ChildKey]:
    cluster = after.build()
    return obsolete_children(
        cluster, desired_children(cluster, ChildSettings(), RANDOM_BYTES), children_of(before), usage
    )


@pytest.mark.parametrize(
    ("before", "gone"),
    [
        (with_ingress(), [("Ingress", "rc-head-ingress")]),
        (a_cluster().annotated({"ray.io/enable-serve-service": "true"}), [("Service", "rc-serve-svc")]),
        (a_cluster().with_workers(numOfHosts=2), [("Service", "rc-headless")]),
        (a_cluster().autoscaled(), [("RoleBinding", "rc"), ("Role", "rc"), ("ServiceAccount", "rc")]),
    ],
)
def test_what_is_no_longer_asked_for_goes(before: ClusterBuilder, gone: list[tuple[str, str]]) -> None:
    assert obsolete(before, a_cluster(), RUNNING) == gone


def test_the_autoscalers_rights_stay_while_it_runs() -> None:
    assert obsolete(a_cluster().autoscaled(), a_cluster(), AUTOSCALING) == []


def test_an_account_is_obsolete_once_the_user_chose_another() -> None:
    chosen = a_cluster().autoscaled().with_head_pod(serviceAccountName="mine")
    assert obsolete(a_cluster().autoscaled(), chosen, RUNNING) == [("ServiceAccount", "rc")]


def test_a_route_takes_the_place_of_an_ingress_and_back() -> None:
    cluster = with_ingress().build()
    on_openshift = desired_children(cluster, ChildSettings(uses_routes=True), RANDOM_BYTES)
    elsewhere = desired_children(cluster, ChildSettings(), RANDOM_BYTES)
    assert obsolete_children(cluster, on_openshift, children_of(with_ingress()), RUNNING) == [
        ("Ingress", "rc-head-ingress")
    ]
    assert obsolete_children(
        cluster, elsewhere, children_of(with_ingress(), ChildSettings(uses_routes=True)), RUNNING
    ) == [("Route", "rc-head-route")]


def test_secrets_and_claims_are_never_obsolete() -> None:
    before = a_cluster().with_spec(authOptions={"mode": "token"}, gcsFaultToleranceOptions={"backend": "rocksdb"})
    assert obsolete(before, a_cluster(), IDLE) == []


def test_a_service_that_a_rayservice_made_for_its_gateway_stays() -> None:
    served = a_cluster().annotated({"ray.io/enable-serve-service": "true"})
    before = children_of(served)
    before[ChildKey("Service", "rc-serve-svc")]["metadata"]["labels"]["ray.io/originated-from-crd"] = "RayService"
    cluster = a_cluster().build()
    children = desired_children(cluster, ChildSettings(), RANDOM_BYTES)
    assert obsolete_children(cluster, children, before, IDLE) == []


def test_objects_that_others_let_the_cluster_own_are_not_ours_to_delete() -> None:
    cluster = a_cluster().build()
    children = desired_children(cluster, ChildSettings(), RANDOM_BYTES)
    others = [ChildKey("Service", "rc-oauth"), ChildKey("Route", "ray-dashboard-rc"), ChildKey("Ingress", "mine")]
    assert obsolete_children(cluster, children, {key: {} for key in others}, IDLE) == []


def test_a_renamed_head_service_goes_when_no_pod_knows_it_any_more() -> None:
    renamed = a_cluster().with_head(headService={"metadata": {"name": "my-head"}})
    other: JSON = {"metadata": {"name": "x"}, "spec": {"selector": {"a": "b"}}}
    actual = children_of(a_cluster()) | children_of(renamed) | {ChildKey("Service", "x"): other}
    cluster = renamed.build()
    children = desired_children(cluster, ChildSettings(), RANDOM_BYTES)
    assert obsolete_children(cluster, children, actual, RUNNING) == []
    assert obsolete_children(cluster, children, actual, IDLE) == [("Service", "rc-head-svc")]
