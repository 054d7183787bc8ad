"""The operator's ClusterRole holds what the operator does and nothing else; the API server's audit log is witness."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from audit import AuditLog
from bed.control_plane import ControlPlane
from bed.crds import install_ray_crds
from bed.daemons import ControlPlaneSettings
from bed.fixtures import NewControlPlane, make_namespace
from bed.kwok import Kwok
from conditions import eventually
from kube_clients import connected
from openshift import install_routes
from operator_processes import Operators, operators_of
from operator_rights import ON_OPENSHIFT, RULES, Right, granted, rights
from raycluster_scene import CLUSTERS, TEMPLATE, Scene, a_group, a_raycluster
from raykeeper.api import labels
from raykeeper.api.meta import JSON, ObjectKey, Resource
from raykeeper.kube.errors import Forbidden
from raykeeper.kube.resources import (
    INGRESSES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    ROUTES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
)

OPERATOR = "raykeeper-operator"
SPACE = "roles"
ROLE = (*RULES, ON_OPENSHIFT)
FINALIZERS = Right("ray.io", "rayclusters/finalizers", "update")
NEVER_ASKED = {
    FINALIZERS: "asked for by an admission plugin, not by a request; shown by a test of its own",
    Right("", "pods/resize", "patch"): "given to the autoscaler",
    Right("", "pods", "get"): "given to the autoscaler, and used when nobody answered a create",
    Right("ray.io", "rayclusters", "get"): "given to the autoscaler",
}
"""Reviewed: rights that no request in the log needs, and why they are there all the same."""

DEMANDING = a_raycluster(
    a_group("small", 1),
    a_group("tpu", 1, numOfHosts=2),
    headGroupSpec={"template": TEMPLATE, "enableIngress": True},
    enableInTreeAutoscaling=True,
    authOptions={"mode": "token"},
    upgradeStrategy={"type": "Recreate"},
    gcsFaultToleranceOptions={"backend": "rocksdb"},
)
"""A child of each kind."""
VOLUME: JSON = {
    "metadata": {"name": "for-the-claim"},
    "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/none"}},
}
CHILDREN: tuple[tuple[Resource[Any], str], ...] = (
    (SERVICE_ACCOUNTS, "demo"),
    (ROLES, "demo"),
    (ROLE_BINDINGS, "demo"),
    (ROUTES, "demo-head-route"),
    (SECRETS, "demo"),
    (SERVICES, "demo-head-svc"),
    (PERSISTENT_VOLUME_CLAIMS, "demo-gcs-pvc"),
)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> AuditLog:
    return AuditLog(tmp_path_factory.mktemp("audit"), OPERATOR)


@pytest.fixture(scope="module")
def plane(log: AuditLog, new_control_plane: NewControlPlane) -> Iterator[ControlPlane]:
    """An API server that writes down what the operator asks for, as strict about owners as OpenShift's."""
    strict = "--enable-admission-plugins=NodeRestriction,OwnerReferencesPermissionEnforcement"
    plane = new_control_plane(ControlPlaneSettings(extra_flags={"kube-apiserver": (*log.flags(), strict)}))
    install_ray_crds(plane)
    install_routes(plane)
    kwok = Kwok(plane)
    kwok.up(nodes=1)
    plane.admin.post("/api/v1/persistentvolumes", VOLUME)
    make_namespace(plane, SPACE)
    yield plane
    kwok.down()


def grant(plane: ControlPlane, user: str, left_out: set[Right]) -> Path:
    """A kubeconfig of a user who has the operator's role, without some of it."""
    rules = [rule for rule in ROLE if rights([rule]).isdisjoint(left_out)]
    for collection, body in granted(user, rules, {"kind": "User", "name": user}):
        plane.admin.post(collection, body)
    return plane.kubeconfig(user, groups=())


@pytest.fixture
def operators(plane: ControlPlane, tmp_path: Path) -> Iterator[Operators]:
    with operators_of(plane, tmp_path) as operators:
        yield operators


@pytest.fixture
async def scene(plane: ControlPlane) -> AsyncIterator[Scene]:
    async with connected(plane.admin_kubeconfig) as kube:
        yield Scene(kube, SPACE)


async def unlabelled_and_found(scene: Scene, kind: Resource[Any], name: str) -> None:
    """Take the label from a child by which the operator watches, and return once the operator has put it back."""
    key, objects = ObjectKey(SPACE, name), kind.read_as(dict)
    await eventually(lambda: scene.kube.find(objects, key))
    await scene.kube.merge_patch(objects, key, {"metadata": {"labels": {labels.CLUSTER: None}}})

    async def is_back() -> bool:
        return labels.CLUSTER in (await scene.kube.get(objects, key))["metadata"].get("labels", {})

    await eventually(is_back)


async def is_without(scene: Scene, kind: Resource[Any], name: str) -> None:
    async def look() -> bool:
        return await scene.kube.find(kind, ObjectKey(SPACE, name)) is None

    await eventually(look)


async def adopt_head(scene: Scene) -> None:
    """Let the head pod look as if KubeRay had made it, and return once the operator has put its own marks there."""
    (head,) = await scene.names(labels.HEAD_GROUP)
    key, objects = ObjectKey(SPACE, head), PODS.read_as(dict)
    await scene.kube.merge_patch(objects, key, {"metadata": {"annotations": {labels.KUBERAY_VERSION: "v1.7.0"}}})

    async def is_adopted() -> bool:
        pod = await scene.kube.get(objects, key)
        return bool(pod["metadata"]["annotations"][labels.KUBERAY_VERSION] != "v1.7.0")

    await eventually(is_adopted)


async def live_through_much(scene: Scene) -> set[Right]:
    """Children made, found, repaired and removed; suspension; Redis. Returns what was given to the autoscaler."""
    await scene.apply(DEMANDING)
    await scene.becomes("ready")
    for kind, name in CHILDREN:
        await unlabelled_and_found(scene, kind, name)
    role: JSON = await scene.kube.get(ROLES, ObjectKey(SPACE, "demo"))
    await adopt_head(scene)
    await scene.patch(suspend=True)
    await scene.becomes("suspended")
    await scene.patch(suspend=False, enableInTreeAutoscaling=False, workerGroupSpecs=[a_group("small", 1)])
    await scene.becomes("ready")
    for gone in (ROLE_BINDINGS, ROLES, SERVICE_ACCOUNTS):
        await is_without(scene, gone, "demo")
    await is_without(scene, SERVICES, "demo-headless")
    return {
        Right(group, kind, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for kind in rule["resources"]
        for verb in rule["verbs"]
    }


async def live_and_die_with_redis(scene: Scene) -> None:
    await scene.apply(
        a_raycluster(name=scene.key.name, gcsFaultToleranceOptions={"redisAddress": "redis:6379"}, authOptions={})
    )
    await scene.becomes("ready")
    await scene.kube.delete(CLUSTERS, scene.key)
    await is_without(scene, CLUSTERS, scene.key.name)


async def test_every_right_of_the_role_is_used_and_none_is_missing(
    plane: ControlPlane, log: AuditLog, operators: Operators, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    access = grant(plane, OPERATOR, left_out=set())
    flags = ("--feature-gates=GCSFaultToleranceEmbeddedStorage=true", f"--leader-election-namespace={SPACE}")
    first = operators.start(*flags, kubeconfig=access)
    given = await live_through_much(scene)
    await live_and_die_with_redis(Scene(scene.kube, SPACE, "redis"))
    await asyncio.to_thread(first.stop)
    monkeypatch.setenv("USE_INGRESS_ON_OPENSHIFT", "true")
    operators.start(*flags, kubeconfig=access)
    await is_without(scene, ROUTES, "demo-head-route")
    await unlabelled_and_found(scene, INGRESSES, "demo-head-ingress")
    await scene.patch(headGroupSpec={"enableIngress": False})
    await is_without(scene, INGRESSES, "demo-head-ingress")
    has = rights(ROLE)
    assert log.refused() == set()
    assert given <= has, "nobody can give what he does not have"
    assert has - log.used() == NEVER_ASKED.keys()


async def test_a_strict_api_server_asks_for_the_right_to_hold_up_the_end_of_a_raycluster(
    plane: ControlPlane, scene: Scene
) -> None:
    await Scene(scene.kube, SPACE, "owner").apply(a_raycluster(name="owner", suspend=True))
    uid = (await scene.kube.get(CLUSTERS, ObjectKey(SPACE, "owner")))["metadata"]["uid"]
    owner = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "owner", "uid": uid, "blockOwnerDeletion": True}
    child: JSON = {"metadata": {"name": "child", "ownerReferences": [owner]}}
    async with connected(grant(plane, "without-finalizers", left_out={FINALIZERS})) as kube:
        with pytest.raises(Forbidden, match="cannot set blockOwnerDeletion"):
            await kube.create(SERVICE_ACCOUNTS, child, SPACE, dry_run=True)
    async with connected(grant(plane, "with-finalizers", left_out=set())) as kube:
        await kube.create(SERVICE_ACCOUNTS, child, SPACE, dry_run=True)
