"""Objects that are there before their RayCluster: made by the user, by others, or left behind by a namesake."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from typing import Any

import pytest

from bed.control_plane import ControlPlane
from bed.faults import HttpFaults
from rayclusters.manifests import a_cluster
from raykeeper.api import labels
from raykeeper.api.meta import JSON, ObjectKey, Resource
from raykeeper.kube.resources import (
    EVENTS,
    INGRESSES,
    PERSISTENT_VOLUME_CLAIMS,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
)
from raykeeper.operator.gates import FeatureGates, Gate
from raykeeper.operator.raycluster.children.rbac import desired_role
from raykeeper.operator.settings import OperatorSettings
from support.conditions import eventually
from support.kube_clients import connected
from support.operating import operating
from support.raycluster_scene import CLUSTERS, TEMPLATE, Scene, a_group, a_raycluster

pytestmark = pytest.mark.usefixtures("kwok")

ON_A_VOLUME = OperatorSettings(gates=FeatureGates({Gate.EMBEDDED_GCS_STORAGE: True}))
RETAINED: JSON = {"backend": "rocksdb", "storage": {"deletionPolicy": "Retain"}}
RULE: JSON = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}


@pytest.fixture
async def scene(ray_crds: ControlPlane, namespace: str) -> AsyncIterator[Scene]:
    async with connected(ray_crds.admin_kubeconfig) as kube:
        yield Scene(kube, namespace)


async def make(scene: Scene, resource: Resource[Any], name: str, **fields: JSON | list[JSON]) -> str:
    """The uid of an object that somebody made."""
    body: JSON = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}, **fields}
    made = await scene.kube.create(resource.read_as(dict), body, scene.namespace)
    return str(made["metadata"]["uid"])


async def uid_of(scene: Scene, resource: Resource[Any], name: str) -> str:
    found = await scene.kube.get(resource.read_as(dict), ObjectKey(scene.namespace, name))
    return str(found["metadata"]["uid"])


async def reasons(scene: Scene) -> list[str]:
    return [event["reason"] for event in await scene.kube.list(EVENTS, scene.namespace)]


async def is_told(scene: Scene, reason: str) -> bool:
    return reason in await reasons(scene)


async def test_rights_and_a_token_that_the_user_made_beforehand_are_used_as_they_are(
    ray_crds: ControlPlane, scene: Scene
) -> None:
    role: JSON = {"kind": "Role", "name": "demo", "apiGroup": "rbac.authorization.k8s.io"}
    theirs = {
        SERVICE_ACCOUNTS: await make(scene, SERVICE_ACCOUNTS, "demo"),
        ROLES: await make(scene, ROLES, "demo", rules=[RULE]),
        ROLE_BINDINGS: await make(scene, ROLE_BINDINGS, "demo", roleRef=role),
        SECRETS: await make(scene, SECRETS, "demo", stringData={"auth_token": "mine"}),
    }
    async with operating(ray_crds.admin_kubeconfig, scene.namespace):
        await scene.apply(a_raycluster(enableInTreeAutoscaling=True, authOptions={"mode": "token"}))
        await scene.becomes("ready")
        await eventually(lambda: is_told(scene, "CreatedService"))
    assert {resource: await uid_of(scene, resource, "demo") for resource in theirs} == theirs
    assert (await scene.kube.get(ROLES.read_as(dict), ObjectKey(scene.namespace, "demo")))["rules"] == [RULE]
    assert not {f"Created{resource.kind}" for resource in theirs} & set(await reasons(scene))


async def test_an_ingress_of_somebody_else_is_told_and_keeps_nothing_else_from_being_made(
    ray_crds: ControlPlane, scene: Scene
) -> None:
    backend: JSON = {"service": {"name": "theirs", "port": {"number": 80}}}
    uid = await make(scene, INGRESSES, "demo-head-ingress", spec={"defaultBackend": backend})
    async with operating(ray_crds.admin_kubeconfig, scene.namespace):
        await scene.apply(a_raycluster(headGroupSpec={"template": TEMPLATE, "enableIngress": True}))
        await scene.becomes("ready")
        await eventually(lambda: is_told(scene, "FailedToCreateIngress"))
    assert await uid_of(scene, INGRESSES, "demo-head-ingress") == uid


async def test_an_autoscaled_head_waits_for_the_service_account_that_the_user_named(
    ray_crds: ControlPlane, scene: Scene
) -> None:
    template: JSON = {"spec": {**TEMPLATE["spec"], "serviceAccountName": "mine"}}
    async with operating(ray_crds.admin_kubeconfig, scene.namespace):
        await scene.apply(a_raycluster(enableInTreeAutoscaling=True, headGroupSpec={"template": template}))
        await eventually(lambda: is_told(scene, "AutoscalerServiceAccountNotFound"))
        assert await scene.pods() == []
        await make(scene, SERVICE_ACCOUNTS, "mine")
        await scene.becomes("ready")


async def test_a_claim_that_the_user_should_have_made_is_told_and_the_head_waits_for_it(
    ray_crds: ControlPlane, scene: Scene
) -> None:
    mine: JSON = {"backend": "rocksdb", "storage": {"claimName": "mine"}}
    async with operating(ray_crds.admin_kubeconfig, scene.namespace, settings=ON_A_VOLUME):
        await scene.apply(a_raycluster(gcsFaultToleranceOptions=mine))
        await eventually(lambda: is_told(scene, "FailedToCreatePVC"))
        assert await scene.has_pods(labels.HEAD_GROUP, 1)


async def test_a_claim_that_is_to_outlive_its_cluster_is_made_once_and_told_where_it_differs(
    ray_crds: ControlPlane, scene: Scene
) -> None:
    with HttpFaults(ray_crds, random.Random(4)) as wire:
        through_proxy = ray_crds.kubeconfig(server=wire.server)
        async with operating(through_proxy, scene.namespace, settings=ON_A_VOLUME):
            await scene.apply(a_raycluster(gcsFaultToleranceOptions=RETAINED))
            await eventually(lambda: is_told(scene, "CreatedPVC"))
            larger = {"storage": {"deletionPolicy": "Retain", "size": "2Gi"}}
            await scene.patch(gcsFaultToleranceOptions=larger)
            await eventually(lambda: is_told(scene, "FailedToCreatePVC"))
        made = [path for method, path in wire.requests if method == "POST" and "persistentvolumeclaims" in path]
        assert len(made) == 1
    claim = await scene.kube.get(PERSISTENT_VOLUME_CLAIMS.read_as(dict), ObjectKey(scene.namespace, "demo-gcs-pvc"))
    assert "ownerReferences" not in claim["metadata"]


async def test_a_cluster_that_is_made_again_takes_in_what_its_namesake_left_behind(
    ray_crds: ControlPlane, scene: Scene
) -> None:
    manifest = a_raycluster(a_group("small", 2), enableInTreeAutoscaling=True)
    async with operating(ray_crds.admin_kubeconfig, scene.namespace):
        await scene.apply(manifest)
        await scene.becomes("ready")
    pods = {pod["metadata"]["uid"] for pod in await scene.pods()}
    kept = (SERVICES, "demo-head-svc"), (ROLES, "demo")
    unchanged = (SERVICE_ACCOUNTS, "demo"), (ROLE_BINDINGS, "demo")
    uids = [await uid_of(scene, resource, name) for resource, name in (*kept, *unchanged)]
    await scene.kube.delete(CLUSTERS, scene.key, propagation="Orphan")

    async def is_gone() -> bool:
        return await scene.kube.find(CLUSTERS, scene.key) is None

    await eventually(is_gone)
    async with operating(ray_crds.admin_kubeconfig, scene.namespace):
        await scene.apply(manifest)
        uid = (await scene.becomes("ready"))["metadata"]["uid"]
        assert {pod["metadata"]["uid"] for pod in await scene.pods()} == pods

        async def owners() -> set[str]:
            children = [await scene.kube.get(one.read_as(dict), ObjectKey(scene.namespace, name)) for one, name in kept]
            objects = [*children, *await scene.pods()]
            return {owner["uid"] for one in objects for owner in one["metadata"].get("ownerReferences", [{"uid": ""}])}

        async def are_all_its_own() -> bool:
            return await owners() == {uid}

        await eventually(are_all_its_own)
    assert [await uid_of(scene, resource, name) for resource, name in (*kept, *unchanged)] == uids


async def test_accounts_and_bindings_that_are_there_are_used_and_never_changed(
    ray_crds: ControlPlane, scene: Scene
) -> None:
    ours = {labels.CLUSTER: "demo", labels.APP_NAME: "kuberay", labels.CREATED_BY: "kuberay-operator"}
    account: JSON = {"metadata": {"name": "demo", "labels": ours}}
    await scene.kube.create(SERVICE_ACCOUNTS, account, scene.namespace)
    with HttpFaults(ray_crds, random.Random(4)) as wire:
        async with operating(ray_crds.kubeconfig(server=wire.server), scene.namespace):
            await scene.apply(a_raycluster(enableInTreeAutoscaling=True))
            await scene.becomes("ready")
        changes = [path for method, path in wire.requests if method in ("PATCH", "PUT")]
    assert not [path for path in changes if "serviceaccounts" in path or "rolebindings" in path]


async def test_a_role_of_somebody_else_is_not_given_to_the_author_of_a_cluster_of_its_name(
    ray_crds: ControlPlane, scene: Scene
) -> None:
    secrets: JSON = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["list"]}
    await make(scene, ROLES, "demo", rules=[secrets])
    async with operating(ray_crds.admin_kubeconfig, scene.namespace):
        await scene.apply(a_raycluster(enableInTreeAutoscaling=True))
        await eventually(lambda: is_told(scene, "FailedToCreateRoleBinding"))
        await scene.becomes("ready")
    assert await scene.kube.find(ROLE_BINDINGS, ObjectKey(scene.namespace, "demo")) is None


async def test_a_role_that_somebody_made_with_the_autoscalers_rules_is_bound(
    ray_crds: ControlPlane, scene: Scene
) -> None:
    rules = desired_role(a_cluster().autoscaled().build())["rules"]
    uid = await make(scene, ROLES, "demo", rules=rules)
    async with operating(ray_crds.admin_kubeconfig, scene.namespace):
        await scene.apply(a_raycluster(enableInTreeAutoscaling=True))
        await eventually(lambda: is_told(scene, "CreatedRoleBinding"))
    assert await uid_of(scene, ROLES, "demo") == uid
