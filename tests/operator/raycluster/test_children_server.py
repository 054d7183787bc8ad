"""On a real API server: children are accepted as they are made, do not drift by themselves, and are repaired."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import pytest

from bed.control_plane import ControlPlane
from bed.rest import Refused
from rayclusters.children_cases import CASES, RANDOM_BYTES, with_ports
from rayclusters.drifts import CHANGES, LEFT_ALONE, MEDDLINGS, Change, Meddling
from rayclusters.manifests import ClusterBuilder, a_cluster
from rayclusters.validation_cases import CASES as VALIDATION_CASES
from rayclusters.validation_cases import Case
from raykeeper.api.meta import JSON
from raykeeper.api.raycluster import RAY_CLUSTERS, RayCluster
from raykeeper.operator.raycluster.children.desired import ChildSettings, child_drift, desired_children
from raykeeper.operator.shared.children.drift import Patch, Replace
from raykeeper.operator.shared.children.keys import ChildKey, child_key
from raykeeper.operator.shared.owner import Owner

PLURALS = {
    "ServiceAccount": "api/v1/namespaces/{}/serviceaccounts",
    "Secret": "api/v1/namespaces/{}/secrets",
    "Service": "api/v1/namespaces/{}/services",
    "PersistentVolumeClaim": "api/v1/namespaces/{}/persistentvolumeclaims",
    "Role": "apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "RoleBinding": "apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
    "Ingress": "apis/networking.k8s.io/v1/namespaces/{}/ingresses",
}


@dataclass(frozen=True)
class World:
    """One namespace of the real API server."""

    plane: ControlPlane
    namespace: str

    def store(self, builder: ClusterBuilder) -> RayCluster:
        """The RayCluster as the server keeps it. It must be there: the garbage collector deletes children without."""
        manifest = builder.named(builder.manifest["metadata"]["name"], self.namespace).manifest
        return msgspec.convert(self.plane.admin.post(RAY_CLUSTERS.path(self.namespace), manifest), RayCluster)

    def create(self, child: JSON) -> JSON:
        return self.plane.admin.post(self._collection(child["kind"]), child)

    def get(self, key: ChildKey) -> JSON:
        return self.plane.admin.get(f"{self._collection(key.kind)}/{key.name}")

    def patch(self, key: ChildKey, body: JSON) -> JSON:
        return self.plane.admin.patch(f"{self._collection(key.kind)}/{key.name}", body)

    def replace(self, child: JSON) -> JSON:
        key = child_key(child)
        self.plane.admin.delete(f"{self._collection(key.kind)}/{key.name}")
        return self.create(child)

    def _collection(self, kind: str) -> str:
        return "/" + PLURALS[kind].format(self.namespace)


@pytest.fixture
def world(ray_crds: ControlPlane, namespace: str) -> World:
    return World(ray_crds, namespace)


def child_of(cluster: RayCluster, key: ChildKey, settings: ChildSettings | None = None) -> JSON:
    children = desired_children(cluster, settings or ChildSettings(), RANDOM_BYTES)
    return next(child for child in children.desired if child_key(child) == key)


@pytest.mark.parametrize("name", [name for name in CASES if name != "route"])  # the bed has no OpenShift
def test_children_are_accepted_and_do_not_drift_by_themselves(name: str, world: World) -> None:
    builder, settings = CASES[name]
    cluster = world.store(builder)
    for desired in desired_children(cluster, settings, RANDOM_BYTES).desired:
        world.create(desired)
        assert child_drift(Owner.of(cluster), desired, world.get(child_key(desired))) is None


@pytest.mark.parametrize("case", MEDDLINGS, ids=lambda case: case.sentence)
def test_meddling_is_taken_back_by_one_patch(case: Meddling, world: World) -> None:
    cluster = world.store(case.cluster)
    desired = child_of(cluster, case.child)
    world.create(desired)
    repair = child_drift(Owner.of(cluster), desired, world.patch(case.child, case.patch))
    assert isinstance(repair, Patch)
    assert child_drift(Owner.of(cluster), desired, world.patch(case.child, repair.body)) is None


@pytest.mark.parametrize("case", LEFT_ALONE, ids=lambda case: case.sentence)
def test_what_is_not_ours_is_left_alone(case: Meddling, world: World) -> None:
    cluster = world.store(case.cluster)
    desired = child_of(cluster, case.child)
    world.create(desired)
    assert child_drift(Owner.of(cluster), desired, world.patch(case.child, case.patch)) is None


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.sentence)
def test_a_changed_spec_reaches_the_child_by_one_patch_or_a_replacement(change: Change, world: World) -> None:
    before = world.store(change.before)
    changed = change.after.build()
    metadata = msgspec.structs.replace(before.metadata, annotations=changed.metadata.annotations)
    after = msgspec.structs.replace(changed, metadata=metadata)
    actual = world.create(child_of(before, change.child, change.before_settings))
    desired = child_of(after, change.child, change.after_settings)
    repair = child_drift(Owner.of(after), desired, actual)
    assert repair is not None
    if isinstance(repair, Replace):
        assert change.replaced_because
        repaired = world.replace(desired)
    else:
        repaired = world.patch(change.child, repair.body)
    assert child_drift(Owner.of(after), desired, repaired) is None


def test_only_a_replacement_can_give_a_headless_service_an_address(world: World) -> None:
    """The reason why it is not patched: the API server says no."""
    cluster = world.store(a_cluster())
    world.create(child_of(cluster, ChildKey("Service", "rc-head-svc")))
    with pytest.raises(Refused, match="422"):
        world.patch(ChildKey("Service", "rc-head-svc"), {"spec": {"type": "NodePort", "clusterIP": None}})


def test_node_ports_survive_a_repair(world: World) -> None:
    builder = with_ports(("dashboard", 8265)).with_head(serviceType="NodePort")
    cluster, key = world.store(builder), ChildKey("Service", "rc-head-svc")
    desired = child_of(cluster, key)
    node_ports = {port["name"]: port["nodePort"] for port in world.create(desired)["spec"]["ports"]}
    kept = [{"name": "dashboard", "port": 8265, "nodePort": node_ports["dashboard"]}]
    repair = child_drift(Owner.of(cluster), desired, world.patch(key, {"spec": {"ports": kept}}))
    assert isinstance(repair, Patch)
    repaired = world.patch(key, repair.body)["spec"]["ports"]
    assert {port["name"]: port["nodePort"] for port in repaired}["dashboard"] == node_ports["dashboard"]
    assert len(repaired) == 2


@pytest.mark.parametrize("case", VALIDATION_CASES, ids=lambda case: case.sentence)
def test_the_crd_leaves_the_rules_of_the_operator_to_the_operator(case: Case, world: World) -> None:
    """So that a manifest which KubeRay's API accepts is accepted; the operator then says in words what is wrong."""
    for builder in (case.accepted, case.refused):
        manifest = builder.named(builder.manifest["metadata"]["name"], world.namespace).manifest
        world.plane.admin.post(f"{RAY_CLUSTERS.path(world.namespace)}?dryRun=All", manifest)
