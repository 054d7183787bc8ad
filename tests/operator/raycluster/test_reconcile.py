"""The operator at work on a real API server, with nodes that make pods run."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from bed.control_plane import ControlPlane
from raykeeper.api import labels
from raykeeper.api.meta import JSON, ObjectKey
from raykeeper.kube.resources import EVENTS, PODS, SERVICES
from raykeeper.operator.gates import FeatureGates, Gate
from raykeeper.operator.settings import OperatorSettings
from support.conditions import eventually, until
from support.kube_clients import connected
from support.operating import operating
from support.raycluster_scene import (
    CLUSTERS,
    POD_OBJECTS,
    QUOTAS,
    SERVICE_OBJECTS,
    TEMPLATE,
    Scene,
    a_group,
    a_raycluster,
)

pytestmark = pytest.mark.usefixtures("kwok")


@pytest.fixture
async def scene(ray_crds: ControlPlane, namespace: str) -> AsyncIterator[Scene]:
    async with connected(ray_crds.admin_kubeconfig) as kube, operating(ray_crds.admin_kubeconfig, namespace):
        yield Scene(kube, namespace)


async def is_told(scene: Scene, reason: str) -> bool:
    """Whether an Event of that reason was written."""
    return reason in [event["reason"] for event in await scene.kube.list(EVENTS, scene.namespace)]


async def test_a_cluster_becomes_ready(scene: Scene) -> None:
    await scene.apply(a_raycluster(a_group("small", 3)))
    status = (await scene.becomes("ready"))["status"]
    assert status["readyWorkerReplicas"] == status["desiredWorkerReplicas"] == 3
    assert status["head"]["podName"] in await scene.names(labels.HEAD_GROUP)
    assert status["endpoints"]["dashboard"] == "8265"


async def test_it_scales_up_and_down_without_touching_the_others(scene: Scene) -> None:
    await scene.apply(a_raycluster(a_group("small", 2)))
    await scene.becomes("ready")
    before = await scene.names("small")
    await scene.patch(workerGroupSpecs=[a_group("small", 5)])
    await scene.becomes("ready")
    five = await scene.has_pods("small", 5)
    assert before < five
    await scene.patch(workerGroupSpecs=[a_group("small", 1)])
    await scene.becomes("ready")
    assert await scene.has_pods("small", 1) < five


async def test_pods_of_a_removed_group_go_and_reordering_kills_nobody(scene: Scene) -> None:
    groups = [a_group("one"), a_group("two"), a_group("three")]
    await scene.apply(a_raycluster(*groups))
    await scene.becomes("ready")
    kept = await scene.names("one") | await scene.names("three")
    await scene.patch(workerGroupSpecs=[groups[2], groups[0]])
    await scene.has_pods("two", 0)
    await scene.becomes("ready")
    assert await scene.names("one") | await scene.names("three") == kept


async def test_a_deleted_pod_and_a_failed_pod_are_replaced(scene: Scene) -> None:
    await scene.apply(a_raycluster(a_group("small", 1)))
    await scene.becomes("ready")
    (worker,) = await scene.names("small")
    await scene.kube.delete(PODS, ObjectKey(scene.namespace, worker))
    assert worker not in await scene.has_pods("small", 1)
    await scene.becomes("ready")
    (head,) = await scene.names(labels.HEAD_GROUP)
    await scene.kube.merge_patch(
        PODS, ObjectKey(scene.namespace, head), {"status": {"phase": "Failed"}}, subresource="status"
    )
    await scene.is_gone(head, labels.HEAD_GROUP)
    await scene.becomes("ready")


async def test_suspend_and_resume(scene: Scene) -> None:
    await scene.apply(a_raycluster(a_group("small", 2)))
    await scene.becomes("ready")
    await scene.patch(suspend=True)
    await scene.becomes("suspended")
    assert await scene.pods() == []
    await scene.condition("RayClusterSuspended", "True")
    await eventually(lambda: is_told(scene, "DeletedPod"))
    await scene.patch(suspend=False)
    await scene.becomes("ready")
    await scene.condition("RayClusterSuspended", "False")


async def test_a_cluster_is_ready_until_the_last_pod_of_its_suspension_is_gone(scene: Scene) -> None:
    """Kueue gives the quota of a cluster to the next one as soon as its state is another."""
    await scene.apply(a_raycluster(a_group("small", 1)))
    await scene.becomes("ready")
    (worker,) = await scene.names("small")
    held = {"metadata": {"finalizers": ["example.com/held"]}}
    await scene.kube.merge_patch(PODS, ObjectKey(scene.namespace, worker), held)
    await scene.patch(suspend=True)
    await scene.has_pods(labels.HEAD_GROUP, 0)
    await scene.has_pods("small", 0)
    assert (await scene.condition("Ready", "False"))["reason"] == "Suspending"
    assert (await scene.cluster())["status"]["state"] == "ready"
    await scene.kube.merge_patch(PODS, ObjectKey(scene.namespace, worker), {"metadata": {"finalizers": None}})
    await scene.becomes("suspended")


async def test_without_the_gate_of_conditions_a_cluster_works_and_has_none(
    ray_crds: ControlPlane, namespace: str
) -> None:
    settings = OperatorSettings(gates=FeatureGates({Gate.STATUS_CONDITIONS: False}))
    async with connected(ray_crds.admin_kubeconfig) as kube:
        scene = Scene(kube, namespace)
        async with operating(ray_crds.admin_kubeconfig, namespace, settings=settings):
            await scene.apply(a_raycluster(a_group("small", 1)))
            assert "conditions" not in (await scene.becomes("ready"))["status"]
            await scene.patch(suspend=True)
            await scene.becomes("suspended")
            await scene.patch(suspend=False)
            assert "conditions" not in (await scene.becomes("ready"))["status"]


async def test_a_status_that_contradicts_itself_is_told_and_put_right_without_touching_a_pod(scene: Scene) -> None:
    await scene.apply(a_raycluster(a_group("small", 1)))
    conditions = (await scene.becomes("ready"))["status"]["conditions"]
    pods = {pod["metadata"]["uid"] for pod in await scene.pods()}
    both = [one | {"status": "True"} if "Suspend" in one["type"] else one for one in conditions]
    await scene.kube.merge_patch(CLUSTERS, scene.key, {"status": {"conditions": both}}, subresource="status")
    await scene.kube.merge_patch(CLUSTERS, scene.key, {"metadata": {"annotations": {"look": "here"}}})
    await scene.condition("RayClusterSuspending", "False")
    await scene.condition("RayClusterSuspended", "False")
    assert {pod["metadata"]["uid"] for pod in await scene.pods()} == pods

    await eventually(lambda: is_told(scene, "InvalidRayClusterStatus"))


async def test_a_cluster_that_is_no_longer_ready_says_so_and_keeps_its_state(scene: Scene) -> None:
    await scene.apply(a_raycluster(a_group("small", 1)))
    await scene.becomes("ready")
    (worker,) = await scene.names("small")
    unready = {"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "ContainersNotReady"}]}}
    await scene.kube.merge_patch(PODS, ObjectKey(scene.namespace, worker), unready, subresource="status")
    condition = await scene.condition("Ready", "False")
    assert condition["message"].startswith(f"0 of 1 workers are ready; pod {worker}: ContainersNotReady")
    status = (await scene.cluster())["status"]
    assert (status["state"], status.get("readyWorkerReplicas", 0)) == ("ready", 0)


async def test_a_drifted_head_service_is_repaired_and_a_deleted_one_made_again(scene: Scene) -> None:
    await scene.apply(a_raycluster())
    await scene.becomes("ready")
    key = ObjectKey(scene.namespace, "demo-head-svc")
    uid = (await scene.kube.get(SERVICES, key)).metadata.uid
    await scene.kube.merge_patch(SERVICES, key, {"spec": {"selector": {labels.NODE_TYPE: "worker"}}})

    async def service() -> JSON:
        return await scene.kube.find(SERVICE_OBJECTS, key) or {"spec": {"selector": {}}, "metadata": {"uid": uid}}

    async def is_repaired() -> bool:
        return bool((await service())["spec"]["selector"].get(labels.NODE_TYPE) == "head")

    async def is_made_again() -> bool:
        return bool((await service())["metadata"]["uid"] != uid)

    await eventually(is_repaired)
    await scene.kube.delete(SERVICES, key)
    await eventually(is_made_again)


async def test_a_renamed_head_service_goes_once_no_pod_knows_the_head_by_it(scene: Scene) -> None:
    await scene.apply(a_raycluster())
    await scene.becomes("ready")
    await scene.patch(headGroupSpec={"headService": {"metadata": {"name": "my-head"}}})

    async def services() -> set[str]:
        return {one["metadata"]["name"] for one in await scene.kube.list(SERVICE_OBJECTS, scene.namespace)}

    async def has_both() -> bool:
        return await services() == {"demo-head-svc", "my-head"}

    async def has_the_new_one() -> bool:
        return await services() == {"my-head"}

    await eventually(has_both)
    await scene.patch(suspend=True)
    await scene.becomes("suspended")
    await scene.patch(suspend=False)
    await scene.becomes("ready")
    await eventually(has_the_new_one)


async def test_an_invalid_spec_is_said_in_a_condition_and_an_event_and_recovers_when_mended(scene: Scene) -> None:
    wrong: JSON = {
        "headGroupSpec": {"template": TEMPLATE, "rayStartParams": {"num-cpus": "1"}, "resources": {"CPU": "1"}}
    }
    await scene.apply(a_raycluster(**wrong))
    condition = await scene.condition("RayClusterInvalid", "True")
    assert "spec.headGroupSpec" in condition["message"]
    assert await scene.pods() == []
    await scene.patch(headGroupSpec={"resources": None})
    cluster = await scene.becomes("ready")
    assert "RayClusterInvalid" not in [one["type"] for one in cluster["status"]["conditions"]]


async def test_an_exceeded_quota_is_a_condition_and_does_not_hammer(scene: Scene) -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {"pods": "2"}}}
    await scene.kube.create(QUOTAS, quota, scene.namespace)
    await scene.apply(a_raycluster(a_group("small", 50)))
    condition = await scene.condition("ReplicaFailure", "True")
    assert condition["reason"] == "FailedCreateWorkerPod"
    assert "exceeded quota" in condition["message"]
    assert len(await scene.pods()) == 2


async def test_a_cluster_managed_by_another_is_left_alone(scene: Scene) -> None:
    await scene.apply(a_raycluster(managedBy="kueue.x-k8s.io/multikueue"))
    await scene.apply(a_raycluster(name="other") | {"metadata": {"name": "other"}})
    await eventually(lambda: scene.kube.list(POD_OBJECTS, scene.namespace, labels={labels.CLUSTER: "other"}))
    assert await scene.pods() == []
    assert "status" not in await scene.cluster()


async def test_a_steady_cluster_costs_no_writes(ray_crds: ControlPlane, namespace: str) -> None:
    async with connected(ray_crds.admin_kubeconfig) as kube:
        scene = Scene(kube, namespace)
        async with operating(ray_crds.admin_kubeconfig, namespace):
            await scene.apply(a_raycluster(a_group("small", 2)))
            version = (await scene.becomes("ready"))["metadata"]["resourceVersion"]
        pods = await scene.names("small")
        async with operating(ray_crds.admin_kubeconfig, namespace) as again:
            labels_ = {"controller": "raycluster", "result": "requeue_after"}
            registry = again.metrics.registry
            await until(lambda: registry.get_sample_value("controller_runtime_reconcile_total", labels_))
        assert await scene.names("small") == pods
        assert (await scene.cluster())["metadata"]["resourceVersion"] == version, "a restart wrote something"
