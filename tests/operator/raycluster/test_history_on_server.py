"""History by annotation on a real API server: what is made, and that nobody's pods are restarted for it."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bed.control_plane import ControlPlane
from rayclusters.histories import BY_ACK, IN_S3, OF_ACK, ON_ACK, OURS
from raykeeper.api import labels
from raykeeper.api.meta import JSON, ObjectKey, Resource
from raykeeper.kube.resources import EVENTS, ROLE_BINDINGS, SERVICE_ACCOUNTS
from raykeeper.operator.settings import HistorySettings, OperatorSettings
from support.conditions import eventually
from support.kube_clients import connected
from support.operating import operating
from support.operator_rights import RULES, granted
from support.raycluster_scene import CLUSTERS, Scene, a_group, a_raycluster

pytestmark = pytest.mark.usefixtures("kwok")

COLLECTOR = "ray-history-collector"
CONDITION = "HistoryCollected"
ACCOUNT = "ray-historyserver-demo"
ROLE = "pod-identity.alibabacloud.com/role-name"


class HistoryScene(Scene):
    """One RayCluster whose history is asked for, or is not."""

    async def annotate(self, annotations: dict[str, str | None]) -> None:
        await self.kube.merge_patch(CLUSTERS, self.key, {"metadata": {"annotations": annotations}})

    async def says(self, reason: str) -> JSON:
        """The condition once it has this reason."""

        async def look() -> JSON | None:
            found = await self.said()
            return found if found and found["reason"] == reason else None

        return await eventually(look) or {}

    async def said(self) -> JSON | None:
        conditions = (await self.cluster()).get("status", {}).get("conditions", [])
        return next((one for one in conditions if one["type"] == CONDITION), None)

    async def says_nothing(self) -> None:
        async def look() -> bool:
            return await self.said() is None

        await eventually(look)

    async def collected(self) -> set[str]:
        """Names of the pods that have a collector."""
        pods = await self.pods()
        return {pod["metadata"]["name"] for pod in pods if COLLECTOR in str(pod["spec"].get("initContainers"))}

    async def uids(self) -> set[str]:
        return {pod["metadata"]["uid"] for pod in await self.pods()}

    async def child(self, resource: Resource[Any], name: str) -> JSON:
        found: JSON = await self.kube.get(resource.read_as(dict), ObjectKey(self.namespace, name))
        return found

    async def notes(self, reason: str) -> list[str]:
        async def look() -> list[str]:
            events = await self.kube.list(EVENTS, self.namespace)
            return [event["note"] for event in events if event["reason"] == reason]

        return await eventually(look)


@pytest.fixture
async def scene(ray_crds: ControlPlane, namespace: str) -> AsyncIterator[HistoryScene]:
    async with connected(ray_crds.admin_kubeconfig) as kube:
        yield HistoryScene(kube, namespace)


def remembering(settings: HistorySettings = ON_ACK) -> OperatorSettings:
    return OperatorSettings(history=settings)


def access_without(plane: ControlPlane, verb: str) -> Path:
    """A kubeconfig of somebody who has the operator's role without one verb on ServiceAccounts."""
    user = f"without-{verb}-{uuid.uuid4().hex[:6]}"
    rules = [
        rule._replace(verbs=tuple(one for one in rule.verbs if one != verb))
        if "serviceaccounts" in rule.kinds
        else rule
        for rule in RULES
    ]
    for collection, body in granted(user, rules, {"kind": "User", "name": user}):
        plane.admin.post(collection, body)
    plane.wait_for_right(user, "list", "rayclusters", "ray.io")
    return plane.kubeconfig(user, groups=())


def remembered(*groups: JSON, annotations: dict[str, str] | None = None, **spec: Any) -> JSON:
    body = a_raycluster(*(groups or (a_group("small", 1),)), **spec)
    body["metadata"]["annotations"] = BY_ACK if annotations is None else annotations
    return body


async def test_one_annotation_brings_collectors_and_an_account_that_goes_with_the_cluster(
    ray_crds: ControlPlane, scene: HistoryScene
) -> None:
    async with operating(ray_crds.admin_kubeconfig, scene.namespace, settings=remembering()):
        await scene.apply(remembered())
        await scene.becomes("ready")
        message = (await scene.says("AllPodsCollected"))["message"]
        assert message.endswith(f"/s/{scene.namespace}/demo/latest/")
        assert len(await scene.collected()) == 2
        assert {pod["spec"]["serviceAccountName"] for pod in await scene.pods()} == {ACCOUNT}
        account = await scene.child(SERVICE_ACCOUNTS, ACCOUNT)
        assert account["metadata"]["annotations"][ROLE] == "ray-history"
        (owner,) = account["metadata"]["ownerReferences"]
        assert owner["uid"] == (await scene.cluster())["metadata"]["uid"]
        await scene.kube.delete(CLUSTERS, scene.key)

        async def is_gone() -> bool:
            return await scene.kube.find(SERVICE_ACCOUNTS, ObjectKey(scene.namespace, ACCOUNT)) is None

        await eventually(is_gone)


async def test_the_manifest_of_alibabas_documentation_is_taken_as_it_is(
    ray_crds: ControlPlane, scene: HistoryScene
) -> None:
    text = OF_ACK.read_text().replace("namespace: default", f"namespace: {scene.namespace}")
    created = await asyncio.to_thread(ray_crds.kubectl, "create", "--filename=-", "--output=name", stdin=text)
    name = created.strip().partition("/")[2]
    cluster = HistoryScene(scene.kube, scene.namespace, name)
    async with operating(ray_crds.admin_kubeconfig, scene.namespace, settings=remembering()):
        await cluster.says("AllPodsCollected")
        await cluster.has_pods("cpu", 2)
        assert len(await cluster.collected()) == 3
        assert {pod["spec"]["serviceAccountName"] for pod in await cluster.pods()} == {f"ray-historyserver-{name}"}


@pytest.mark.parametrize("strategy", [None, {"type": "Recreate"}])
async def test_no_pod_is_restarted_when_history_is_switched_on_or_off_or_its_settings_change(
    ray_crds: ControlPlane, scene: HistoryScene, strategy: JSON | None
) -> None:
    spec = {"upgradeStrategy": strategy} if strategy else {}
    async with operating(ray_crds.admin_kubeconfig, scene.namespace, settings=remembering()):
        await scene.apply(remembered(annotations={}, **spec))
        await scene.becomes("ready")
        before = await scene.uids()
        await scene.annotate(dict(OURS))
        assert "2 pods" in (await scene.says("PodsWithoutCollector"))["message"]
        await scene.patch(workerGroupSpecs=[a_group("small", 2)])
        await scene.has_pods("small", 2)
        await scene.becomes("ready")
        assert before < await scene.uids()
        assert len(await scene.collected()) == 1
        assert "2 pods" in (await scene.says("PodsWithoutCollector"))["message"]
        await scene.annotate({labels.HISTORY: None})
        await scene.says("SwitchedOff")
        assert before < await scene.uids()
        await scene.patch(workerGroupSpecs=[a_group("small", 0)])
        await scene.says_nothing()
    changed = replace(ON_ACK, oss_bucket="another", collector_image="raykeeper:2")
    async with operating(ray_crds.admin_kubeconfig, scene.namespace, settings=remembering(changed)):
        await scene.annotate(dict(OURS))
        await scene.says("PodsWithoutCollector")
        assert await scene.uids() < before


async def test_settings_that_are_missing_are_named_and_pods_start_without_history(
    ray_crds: ControlPlane, scene: HistoryScene
) -> None:
    incomplete = replace(ON_ACK, oss_bucket="")
    async with operating(ray_crds.admin_kubeconfig, scene.namespace, settings=remembering(incomplete)):
        await scene.apply(remembered())
        await scene.becomes("ready")
        said = await scene.says("HistoryNotConfigured")
        assert "--oss-bucket (chart: history.OSSBucket) is not set" in said["message"]
        assert "--oss-bucket" in (await scene.notes("HistoryNotConfigured"))[0]
        assert await scene.collected() == set()
        assert {pod["spec"]["serviceAccountName"] for pod in await scene.pods()} == {"default"}
    async with operating(ray_crds.admin_kubeconfig, scene.namespace, settings=remembering()):
        await scene.says("PodsWithoutCollector")


async def test_an_account_of_the_users_is_used_as_it_is(ray_crds: ControlPlane, scene: HistoryScene) -> None:
    theirs: JSON = {"metadata": {"name": ACCOUNT, "annotations": {ROLE: "their-own"}}}
    made = await scene.kube.create(SERVICE_ACCOUNTS.read_as(dict), theirs, scene.namespace)
    async with operating(ray_crds.admin_kubeconfig, scene.namespace, settings=remembering()):
        await scene.apply(remembered())
        await scene.becomes("ready")
        await scene.says("AllPodsCollected")
    found = await scene.child(SERVICE_ACCOUNTS, ACCOUNT)
    assert (found["metadata"]["uid"], found["metadata"]["annotations"]) == (
        made["metadata"]["uid"],
        {ROLE: "their-own"},
    )


async def test_another_role_reaches_the_accounts_that_we_made(ray_crds: ControlPlane, scene: HistoryScene) -> None:
    async with operating(ray_crds.admin_kubeconfig, scene.namespace, settings=remembering()):
        await scene.apply(remembered())
        await scene.becomes("ready")
    uid = (await scene.child(SERVICE_ACCOUNTS, ACCOUNT))["metadata"]["uid"]
    changed = remembering(replace(ON_ACK, cloud_role_name="another"))
    async with operating(ray_crds.admin_kubeconfig, scene.namespace, settings=changed):

        async def has_changed() -> bool:
            found = (await scene.child(SERVICE_ACCOUNTS, ACCOUNT))["metadata"]
            return bool((found["uid"], found["annotations"][ROLE]) == (uid, "another"))

        await eventually(has_changed)


async def test_images_are_pulled_by_the_secrets_of_the_accounts_that_are_replaced(
    ray_crds: ControlPlane, scene: HistoryScene
) -> None:
    mine: JSON = {"metadata": {"name": "mine"}, "imagePullSecrets": [{"name": "registry-of-mine"}]}
    await scene.kube.create(SERVICE_ACCOUNTS.read_as(dict), mine, scene.namespace)
    usual = {"imagePullSecrets": [{"name": "registry-of-all"}]}

    async def patched() -> bool:  # the API server's controller makes it a moment after the namespace
        default = ObjectKey(scene.namespace, "default")
        if await scene.kube.find(SERVICE_ACCOUNTS, default) is None:
            return False
        await scene.kube.merge_patch(SERVICE_ACCOUNTS, default, usual)
        return True

    await eventually(patched)
    body = remembered()
    head = body["spec"]["headGroupSpec"]["template"]
    body["spec"]["headGroupSpec"]["template"] = {"spec": {**head["spec"], "serviceAccountName": "mine"}}
    async with operating(ray_crds.admin_kubeconfig, scene.namespace, settings=remembering()):
        await scene.apply(body)
        await scene.becomes("ready")
    pulls = (await scene.child(SERVICE_ACCOUNTS, ACCOUNT))["imagePullSecrets"]
    assert {pull["name"] for pull in pulls} == {"registry-of-mine", "registry-of-all"}
    assert all(pod["spec"]["imagePullSecrets"] == pulls for pod in await scene.pods())


async def test_an_autoscaler_has_its_rights_under_both_accounts(ray_crds: ControlPlane, scene: HistoryScene) -> None:
    async with operating(ray_crds.admin_kubeconfig, scene.namespace, settings=remembering()):
        await scene.apply(remembered(enableInTreeAutoscaling=True))
        await scene.becomes("ready")
        for binding, account in (("demo", "demo"), (ACCOUNT, ACCOUNT)):
            found = await scene.child(ROLE_BINDINGS, binding)
            assert (found["subjects"][0]["name"], found["roleRef"]["name"]) == (account, "demo")
        await scene.patch(enableInTreeAutoscaling=False, suspend=True)
        await scene.becomes("suspended")

        async def are_gone() -> bool:
            left = await scene.kube.list(ROLE_BINDINGS, scene.namespace, labels={labels.CLUSTER: "demo"})
            return not left

        await eventually(are_gone)


async def test_pods_start_without_history_where_the_operator_may_not_make_its_account(
    ray_crds: ControlPlane, scene: HistoryScene
) -> None:
    async with operating(access_without(ray_crds, "create"), scene.namespace, settings=remembering()):
        await scene.apply(remembered())
        await scene.becomes("ready")
        assert "serviceaccounts" in (await scene.says("ServiceAccountRefused"))["message"]
        assert await scene.collected() == set()
        assert (await scene.notes("FailedToCreateServiceAccount"))[0]
    async with operating(ray_crds.admin_kubeconfig, scene.namespace, settings=remembering()):
        await scene.says("PodsWithoutCollector")


async def test_a_change_of_the_role_that_is_not_allowed_is_told_and_costs_nothing(
    ray_crds: ControlPlane, scene: HistoryScene
) -> None:
    """KubeRay's own ClusterRole, which stays where only the image changes, lets nobody patch a ServiceAccount."""
    access = access_without(ray_crds, "patch")
    async with operating(access, scene.namespace, settings=remembering()):
        await scene.apply(remembered())
        await scene.becomes("ready")
        await scene.says("AllPodsCollected")
    changed = remembering(replace(ON_ACK, cloud_role_name="another"))
    async with operating(access, scene.namespace, settings=changed):
        assert (await scene.notes("FailedToUpdateServiceAccount"))[0]
        await scene.patch(workerGroupSpecs=[a_group("small", 2)])
        await scene.becomes("ready")


async def test_pods_that_keep_to_the_strictest_pod_security_are_not_refused_for_their_history(
    ray_crds: ControlPlane, scene: HistoryScene
) -> None:
    label = "pod-security.kubernetes.io/enforce"
    ray_crds.admin.patch(f"/api/v1/namespaces/{scene.namespace}", {"metadata": {"labels": {label: "restricted"}}})
    strict = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    ray = {"name": "ray", "image": "rayproject/ray:2.60.0", "securityContext": strict}
    template = {"spec": {"containers": [ray]}}
    body = remembered(a_group("small", 1, template=template), headGroupSpec={"template": template})
    settings = remembering(replace(ON_ACK, oidc_provider_arn="acs:ram::1:oidc-provider/ack"))
    async with operating(ray_crds.admin_kubeconfig, scene.namespace, settings=settings):
        await scene.apply(body)
        await scene.becomes("ready")
        await scene.says("AllPodsCollected")


async def test_a_secret_that_is_not_there_is_told(ray_crds: ControlPlane, scene: HistoryScene) -> None:
    async with operating(ray_crds.admin_kubeconfig, scene.namespace, settings=remembering(IN_S3)):
        await scene.apply(remembered())
        await scene.becomes("ready")
        assert "ray-history" in (await scene.notes("HistorySecretNotFound"))[0]
        assert {pod["spec"]["serviceAccountName"] for pod in await scene.pods()} == {"default"}


async def test_an_annotation_that_is_neither_true_nor_false_is_told(
    ray_crds: ControlPlane, scene: HistoryScene
) -> None:
    async with operating(ray_crds.admin_kubeconfig, scene.namespace, settings=remembering()):
        await scene.apply(remembered(annotations={labels.HISTORY: "yes"}))
        await scene.becomes("ready")
        assert 'is "yes"' in (await scene.notes("InvalidRayClusterMetadata"))[0]
        assert await scene.collected() == set()
