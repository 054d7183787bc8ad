"""Whoever changes nothing but the image leaves the operator KubeRay's ClusterRole, which allows not every repair."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bed.control_plane import ControlPlane
from raykeeper.api import labels
from raykeeper.api.meta import JSON, ObjectKey
from raykeeper.kube.resources import EVENTS, ROLE_BINDINGS, ROLES, SECRETS, SERVICE_ACCOUNTS
from raykeeper.operator.gates import FeatureGates, Gate
from raykeeper.operator.settings import OperatorSettings
from support.conditions import eventually
from support.kube_clients import connected
from support.operating import operating
from support.operator_rights import KUBERAYS_RULES, granted
from support.raycluster_scene import CLUSTERS, TEMPLATE, Scene, a_group, a_raycluster

pytestmark = pytest.mark.usefixtures("kwok")

ON_A_VOLUME = OperatorSettings(gates=FeatureGates({Gate.EMBEDDED_GCS_STORAGE: True}))
DEMANDING: JSON = {
    "headGroupSpec": {"template": TEMPLATE, "enableIngress": True},
    "enableInTreeAutoscaling": True,
    "authOptions": {"mode": "token"},
    "upgradeStrategy": {"type": "Recreate"},
}
REDIS: JSON = {"gcsFaultToleranceOptions": {"redisAddress": "redis:6379"}}


@pytest.fixture
def access(ray_crds: ControlPlane) -> Path:
    """A kubeconfig of somebody who has KubeRay's role."""
    user = f"kuberay-operator-{uuid.uuid4().hex[:6]}"
    for collection, body in granted(user, KUBERAYS_RULES, {"kind": "User", "name": user}):
        ray_crds.admin.post(collection, body)
    return ray_crds.kubeconfig(user, groups=())


@pytest.fixture
async def scene(ray_crds: ControlPlane, namespace: str) -> AsyncIterator[Scene]:
    async with connected(ray_crds.admin_kubeconfig) as kube:
        yield Scene(kube, namespace)


async def is_told(scene: Scene, reason: str) -> bool:
    return reason in [event["reason"] for event in await scene.kube.list(EVENTS, scene.namespace)]


async def test_a_cluster_with_a_child_of_each_kind_lives_and_dies(access: Path, scene: Scene) -> None:
    async with operating(access, scene.namespace):
        await scene.apply(a_raycluster(a_group("small", 1), a_group("tpu", 1, numOfHosts=2), **DEMANDING, **REDIS))
        await scene.becomes("ready")
        await scene.patch(suspend=True)
        await scene.becomes("suspended")
        await scene.patch(suspend=False, enableInTreeAutoscaling=False, workerGroupSpecs=[a_group("small", 1)])
        await scene.becomes("ready")
        await scene.kube.delete(CLUSTERS, scene.key)

        async def is_gone() -> bool:
            return await scene.kube.find(CLUSTERS, scene.key) is None

        await eventually(is_gone)


async def test_a_claim_is_made_and_let_go_of(access: Path, scene: Scene) -> None:
    async with operating(access, scene.namespace, settings=ON_A_VOLUME):
        await scene.apply(a_raycluster(gcsFaultToleranceOptions={"backend": "rocksdb"}))
        await eventually(lambda: is_told(scene, "CreatedPVC"))
        await scene.patch(gcsFaultToleranceOptions={"storage": {"deletionPolicy": "Retain"}})
        await eventually(lambda: is_told(scene, "UpdatedPVC"))


async def test_a_role_and_a_secret_are_repaired_and_nothing_is_refused(access: Path, scene: Scene) -> None:
    key = ObjectKey(scene.namespace, "demo")

    async def rules() -> bool:
        return bool((await scene.kube.get(ROLES, key)).get("rules"))

    async def token() -> bool:
        return bool((await scene.kube.get(SECRETS, key)).get("data"))

    async with operating(access, scene.namespace):
        await scene.apply(
            a_raycluster(a_group("small", 1), enableInTreeAutoscaling=True, authOptions={"mode": "token"})
        )
        await scene.becomes("ready")
        await scene.kube.merge_patch(ROLES, key, {"rules": []})
        await eventually(rules)
        await scene.kube.merge_patch(SECRETS, key, {"data": None})
        await eventually(token)
        await scene.kube.merge_patch(SERVICE_ACCOUNTS, key, {"metadata": {"labels": {labels.CLUSTER: None}}})
        await scene.patch(
            headGroupSpec={"template": {"spec": {**TEMPLATE["spec"], "serviceAccountName": "default"}}},
            workerGroupSpecs=[a_group("small", 3)],
        )
        await scene.becomes("ready")

        async def is_bound_to_the_other_account() -> bool:
            binding = await scene.kube.get(ROLE_BINDINGS, key)
            return [subject["name"] for subject in binding["subjects"]] == ["default"]

        await eventually(is_bound_to_the_other_account)
    reasons = {event["reason"] for event in await scene.kube.list(EVENTS, scene.namespace)}
    assert not {reason for reason in reasons if reason.startswith("FailedTo")}
