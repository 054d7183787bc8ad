"""The operator's ClusterRole holds what the operator does and nothing else; the API server's audit log is witness."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from bed.control_plane import ControlPlane
from bed.crds import install_ray_crds
from bed.daemons import ControlPlaneSettings
from bed.fixtures import NewControlPlane, make_namespace
from bed.gateway_api import install_gateway_crds
from bed.kwok import Kwok
from raykeeper.api import labels
from raykeeper.api.meta import JSON, ObjectKey, Resource
from raykeeper.api.rayjob import RAY_JOBS
from raykeeper.kube.errors import Forbidden
from raykeeper.kube.resources import (
    GATEWAYS,
    HTTP_ROUTES,
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
from support.audit import AuditLog
from support.conditions import eventually
from support.gateway_scene import a_routed_service
from support.kube_clients import connected
from support.openshift import install_routes
from support.operator_processes import Operators, operators_of
from support.operator_rights import ON_OPENSHIFT, RULES, WITH_GATEWAYS, Right, granted, rights
from support.raycluster_scene import CLUSTERS, TEMPLATE, Scene, a_group, a_raycluster
from support.raycronjob_scene import CRON_OBJECTS, LEFT_ALONE
from support.rayservice_scene import RAY_SERVICE_OBJECTS

OPERATOR = "raykeeper-operator"
SPACE = "roles"
ROLE = (*RULES, ON_OPENSHIFT, WITH_GATEWAYS)
FINALIZERS = Right("ray.io", "rayclusters/finalizers", "update")
NEVER_ASKED = {
    FINALIZERS: "asked for by an admission plugin, not by a request; shown by a test of its own",
    Right("ray.io", "rayjobs/finalizers", "update"): "asked for by the same plugin",
    Right("ray.io", "raycronjobs/finalizers", "update"): "asked for by the same plugin",
    Right("ray.io", "rayservices/finalizers", "update"): "asked for by the same plugin",
    Right("batch", "jobs", "get"): "used where a Job has the name of a submitter already",
    Right("", "pods/resize", "patch"): "given to the autoscaler",
    Right("", "pods", "get"): "given to the autoscaler, and used when nobody answered a create",
    Right("ray.io", "rayclusters", "get"): "given to the autoscaler",
    Right("ray.io", "rayjobs", "get"): "used where a RayJob has the name of one that is due",
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
REPAIRED: tuple[tuple[Resource[Any], str], ...] = (
    (ROLES, "demo"),
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
    install_gateway_crds(plane)
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
    plane.wait_for_right(user, "list", "rayclusters", "ray.io")
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


async def remade_by_somebody_else(scene: Scene, kind: Resource[Any], name: str) -> None:
    """Take a child's label away, so that the operator makes it again, finds it there and looks whose it is; put it
    back once it did, for the operator never changes a child of this kind.
    """
    key, objects = ObjectKey(SPACE, name), kind.read_as(dict)
    await scene.kube.merge_patch(objects, key, {"metadata": {"labels": {labels.CLUSTER: None}}})
    await scene.kube.merge_patch(CLUSTERS, scene.key, {"metadata": {"annotations": {"looked-at": kind.kind}}})

    async def is_reconciled() -> bool:
        route = await scene.kube.get(ROUTES.read_as(dict), ObjectKey(SPACE, "demo-head-route"))
        return bool(route["metadata"].get("annotations", {}).get("looked-at") == kind.kind)

    await eventually(is_reconciled)
    await scene.kube.merge_patch(objects, key, {"metadata": {"labels": {labels.CLUSTER: "demo"}}})


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
    for kind, name in REPAIRED:
        await unlabelled_and_found(scene, kind, name)
    for kind in (SERVICE_ACCOUNTS, ROLE_BINDINGS):
        await remade_by_somebody_else(scene, kind, "demo")
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


async def job_lives_and_goes(scene: Scene) -> None:
    """A RayJob that is suspended, resumed, and deletes itself when it is late."""
    objects, key = RAY_JOBS.read_as(dict), ObjectKey(SPACE, "counter")

    async def becomes(state: str) -> None:
        async def look() -> bool:
            status = (await scene.kube.get(objects, key)).get("status") or {}
            return bool(status.get("jobDeploymentStatus") == state)

        await eventually(look)

    spec = {"entrypoint": "true", "rayClusterSpec": {"headGroupSpec": {"template": TEMPLATE}}}
    body = {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": key.name}, "spec": spec}
    await scene.kube.create(objects, body | {"spec": spec | {"shutdownAfterJobFinishes": True}}, SPACE)
    await becomes("Running")
    await scene.kube.merge_patch(objects, key, {"spec": {"suspend": True}})
    await becomes("Suspended")
    rule = {"policy": "DeleteSelf", "condition": {"jobDeploymentStatus": "Failed"}}
    late = {
        "activeDeadlineSeconds": 1,
        "shutdownAfterJobFinishes": False,
        "deletionStrategy": {"deletionRules": [rule]},
    }
    await scene.kube.merge_patch(objects, key, {"spec": late | {"suspend": False}})
    await is_without(scene, RAY_JOBS, key.name)


async def service_starts_and_goes(scene: Scene) -> None:
    """A RayService that KubeRay's finalizer holds until the operator takes it off."""
    body = a_routed_service()
    body["metadata"]["finalizers"] = [labels.RAYSERVICE_FINALIZER]
    await scene.kube.create(RAY_SERVICE_OBJECTS, body, SPACE)
    key = ObjectKey(SPACE, "web")

    async def has_cluster() -> bool:
        service = await scene.kube.get(RAY_SERVICE_OBJECTS, key)
        pending = (service.get("status") or {}).get("pendingServiceStatus", {}).get("rayClusterStatus", {})
        return bool(pending.get("state") == "ready")

    await eventually(has_cluster)
    await way_in_is_changed_and_taken_away(scene, key)
    await scene.kube.delete(RAY_SERVICE_OBJECTS, key)
    await is_without(scene, RAY_SERVICE_OBJECTS, key.name)


async def way_in_is_changed_and_taken_away(scene: Scene, key: ObjectKey) -> None:
    """Serve runs nowhere here, so the test says that a cluster serves: what comes after that is the operator's."""
    options = {"clusterUpgradeOptions": {"gatewayClassName": "other"}}
    await scene.kube.merge_patch(RAY_SERVICE_OBJECTS, key, {"spec": {"upgradeStrategy": options}})

    async def has_changed() -> bool:
        gateway = await scene.kube.get(GATEWAYS.read_as(dict), ObjectKey(SPACE, "web-gateway"))
        return bool(gateway["spec"]["gatewayClassName"] == "other")

    await eventually(has_changed)
    pending = (await scene.kube.get(RAY_SERVICE_OBJECTS, key))["status"]["pendingServiceStatus"]["rayClusterName"]
    status = {"activeServiceStatus": {"rayClusterName": pending}, "pendingServiceStatus": {"rayClusterName": ""}}
    await scene.kube.merge_patch(RAY_SERVICE_OBJECTS, key, {"status": status}, subresource="status")
    await scene.kube.merge_patch(RAY_SERVICE_OBJECTS, key, {"metadata": {"annotations": {"looked-at": "again"}}})
    await weights_are_put_back(scene, ObjectKey(SPACE, "web-httproute"))
    await scene.kube.merge_patch(RAY_SERVICE_OBJECTS, key, {"spec": {"suspend": True}})
    await is_without(scene, GATEWAYS, "web-gateway")
    await is_without(scene, HTTP_ROUTES, "web-httproute")


async def weights_are_put_back(scene: Scene, key: ObjectKey) -> None:
    route = await eventually(lambda: scene.kube.find(HTTP_ROUTES.read_as(dict), key))
    rules = (route or {})["spec"]["rules"]
    rules[0]["backendRefs"][0]["weight"] = 7
    await scene.kube.merge_patch(HTTP_ROUTES.read_as(dict), key, {"spec": {"rules": rules}})

    async def are_back() -> bool:
        found = (await scene.kube.get(HTTP_ROUTES.read_as(dict), key))["spec"]["rules"]
        return bool(found[0]["backendRefs"][0]["weight"] == 100)

    await eventually(are_back)


HISTORY_FLAGS = (
    "--history-collector-image=raykeeper:1",
    "--oss-bucket=history",
    "--oss-region=cn-hangzhou",
    "--history-secret-name=keys",
)


async def history_is_kept_by_role(scene: Scene, role: str) -> None:
    """A ServiceAccount is made for a cluster that asks for history, and follows the operator's settings."""
    if await scene.kube.find(CLUSTERS, scene.key) is None:
        body = a_raycluster(name=scene.key.name)
        body["metadata"]["annotations"] = {labels.HISTORY: "true"}
        await scene.apply(body)
        await scene.becomes("ready")
    key = ObjectKey(SPACE, f"ray-historyserver-{scene.key.name}")

    async def has_role() -> bool:
        account = await scene.kube.get(SERVICE_ACCOUNTS.read_as(dict), key)
        return bool(account["metadata"]["annotations"]["pod-identity.alibabacloud.com/role-name"] == role)

    await eventually(has_role)


async def cron_fires(scene: Scene) -> None:
    spec = {"schedule": "@every 1s", "concurrencyPolicy": "Forbid", "jobTemplate": LEFT_ALONE}
    body = {"apiVersion": "ray.io/v1", "kind": "RayCronJob", "metadata": {"name": "often"}, "spec": spec}
    await scene.kube.create(CRON_OBJECTS, body, SPACE)

    async def is_told() -> bool:
        cron = await scene.kube.get(CRON_OBJECTS, ObjectKey(SPACE, "often"))
        return bool((cron.get("status") or {}).get("active"))

    await eventually(is_told)
    await scene.kube.delete(CRON_OBJECTS, ObjectKey(SPACE, "often"))


async def test_every_right_of_the_role_is_used_and_none_is_missing(
    plane: ControlPlane, log: AuditLog, operators: Operators, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    access = grant(plane, OPERATOR, left_out=set())
    gate = "--feature-gates=GCSFaultToleranceEmbeddedStorage=true"
    flags = (gate, f"--leader-election-namespace={SPACE}", *HISTORY_FLAGS)
    first = operators.start(*flags, "--cloud-role-name=first", kubeconfig=access)
    given = await live_through_much(scene)
    await history_is_kept_by_role(Scene(scene.kube, SPACE, "remembered"), "first")
    await live_and_die_with_redis(Scene(scene.kube, SPACE, "redis"))
    await job_lives_and_goes(scene)
    await service_starts_and_goes(scene)
    await cron_fires(scene)
    await asyncio.to_thread(first.stop)
    monkeypatch.setenv("USE_INGRESS_ON_OPENSHIFT", "true")
    operators.start(*flags, "--cloud-role-name=second", kubeconfig=access)
    await history_is_kept_by_role(Scene(scene.kube, SPACE, "remembered"), "second")
    await is_without(scene, ROUTES, "demo-head-route")
    await unlabelled_and_found(scene, INGRESSES, "demo-head-ingress")
    await scene.patch(headGroupSpec={"enableIngress": False})
    await is_without(scene, INGRESSES, "demo-head-ingress")
    has = rights(ROLE)
    assert log.refused() == set()
    assert given <= has, "nobody can give what he does not have"
    # This API server streams lists as part of a watch; older ones are asked for them.
    unused = {right for right in has - log.used() if right.verb != "list"}
    assert unused <= NEVER_ASKED.keys(), "some of those are used where a server is slow to answer"


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
