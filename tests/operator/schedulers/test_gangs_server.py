"""RayClusters and RayJobs of operators with a batch scheduler, on a real API server with the schedulers' own CRDs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from bed.control_plane import ControlPlane
from rayclusters.histories import BY_ACK, IN_S3
from raykeeper.api import labels
from raykeeper.api.meta import JSON, ObjectKey, Resource
from raykeeper.api.quantity import parse_quantity
from raykeeper.kube.resources import PODS
from raykeeper.operator.schedulers import choice, scheduler_plugins, volcano
from raykeeper.operator.schedulers.volcano import Volcano
from raykeeper.operator.settings import OperatorSettings
from support.conditions import eventually
from support.gangs import MARKS
from support.kube_clients import connected
from support.operating import KUBERNETES, Given, operating, with_scheduler
from support.operator_processes import operators_of
from support.raycluster_scene import CLUSTERS, TEMPLATE, Scene, a_group, a_raycluster
from support.rayjob_scene import CLUSTER_SPEC, RAY_JOB_OBJECTS, JobScene, a_job_scene, a_rayjob
from support.rayservice_scene import RAY_SERVICE_OBJECTS, a_cluster_config, a_rayservice, a_service_scene

pytestmark = pytest.mark.usefixtures("kwok", "scheduler_crds", "pods_are_bound")

VOLCANOS: Final = volcano.POD_GROUPS.read_as(dict)
PLUGINS: Final = scheduler_plugins.POD_GROUPS.read_as(dict)
INSTANCES: Final = {
    "volcano": "volcano",
    "yunikorn": "yunikorn",
    "scheduler-plugins": "scheduler-plugins-scheduler",
    "kai-scheduler": "kai-scheduler",
}
OBJECTS: Final[dict[str, tuple[Resource[JSON], str]]] = {
    "volcano": (VOLCANOS, "ray-demo-pg"),
    "scheduler-plugins": (PLUGINS, "demo"),
}
SECONDS: Final = 120.0


@pytest.fixture
async def scene(ray_crds: ControlPlane, namespace: str) -> AsyncIterator[Scene]:
    async with connected(ray_crds.admin_kubeconfig) as kube:
        yield Scene(kube, namespace)


@pytest.fixture
async def job_scene(ray_crds: ControlPlane) -> AsyncIterator[JobScene]:
    async with a_job_scene(ray_crds) as found:
        yield found


def labelled(body: JSON, marks: dict[str, str] | None = None) -> JSON:
    return {**body, "metadata": {**body["metadata"], "labels": MARKS if marks is None else marks}}


async def has_members(scene: Scene | JobScene, kind: Resource[JSON], name: str, members: int) -> JSON:
    """The PodGroup once it asks for so many."""

    async def look() -> JSON | None:
        found = await scene.kube.find(kind, ObjectKey(scene.namespace, name))
        return found if found and found["spec"].get("minMember") == members else None

    return await eventually(look, seconds=SECONDS) or {}


@pytest.mark.parametrize("name", INSTANCES)
async def test_a_cluster_starts_grows_rests_and_goes(name: str, ray_crds: ControlPlane, scene: Scene) -> None:
    await scene.apply(labelled(a_raycluster(a_group("small", 2))))
    async with operating(ray_crds.admin_kubeconfig, scene.namespace, **with_scheduler(name)):
        await scene.becomes("ready", seconds=SECONDS)
        assert {pod["spec"]["schedulerName"] for pod in await scene.pods()} == {INSTANCES[name]}
        if name in OBJECTS:
            made = await has_members(scene, *OBJECTS[name], 3)
        await scene.patch(workerGroupSpecs=[a_group("small", 4)])
        if name in OBJECTS:
            await has_members(scene, *OBJECTS[name], 5)
        await scene.patch(suspend=True)
        await scene.becomes("suspended", seconds=SECONDS)
        if name == "volcano":
            await has_members(scene, *OBJECTS[name], 0)
        await scene.patch(suspend=False)
        await scene.becomes("ready", seconds=SECONDS)
        if name in OBJECTS:
            kept = await has_members(scene, *OBJECTS[name], 5)
            assert kept["metadata"]["uid"] == made["metadata"]["uid"]  # never deleted while its cluster lives
        await scene.kube.delete(CLUSTERS, scene.key)
        if name in OBJECTS:
            await is_gone(scene, *OBJECTS[name])


async def is_gone(scene: Scene | JobScene, kind: Resource[JSON], name: str) -> None:
    async def look() -> bool:
        return await scene.kube.find(kind, ObjectKey(scene.namespace, name)) is None

    await eventually(look, seconds=SECONDS)


@pytest.mark.parametrize("mode", ["K8sJobMode", "HTTPMode", "SidecarMode", "InteractiveMode"])
async def test_a_job_and_its_cluster_are_one_gang_of_volcano(mode: str, job_scene: JobScene) -> None:
    cluster = {**CLUSTER_SPEC, "workerGroupSpecs": [a_group("small", 2)]}
    async with job_scene.operating(**with_scheduler("volcano")):
        await job_scene.apply(labelled(a_rayjob(mode, rayClusterSpec=cluster, shutdownAfterJobFinishes=True)))
        await has_members(job_scene, VOLCANOS, "ray-counter-pg", 3)
        await job_scene.becomes("Waiting" if mode == "InteractiveMode" else "Running")
        assert len(await job_scene.kube.list(VOLCANOS, job_scene.namespace)) == 1
        pods = await job_scene.kube.list(PODS.read_as(dict), job_scene.namespace)
        groups = [pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] for pod in pods]
        assert set(groups) == {"ray-counter-pg"}
        await job_scene.patch(suspend=True)
        await job_scene.becomes("Suspended")
        await has_members(job_scene, VOLCANOS, "ray-counter-pg", 0)
        await job_scene.patch(suspend=False)
        await has_members(job_scene, VOLCANOS, "ray-counter-pg", 3)


async def test_a_job_that_is_tried_again_keeps_its_gang_and_leaves_none_when_it_goes(job_scene: JobScene) -> None:
    job_scene.head.outcome = "FAILED"
    body = labelled(a_rayjob(backoffLimit=1, shutdownAfterJobFinishes=True))
    async with job_scene.operating(**with_scheduler("volcano")):
        await job_scene.apply(body)
        first = await has_members(job_scene, VOLCANOS, "ray-counter-pg", 1)

        async def has_failed_once() -> bool:
            return (await job_scene.status()).get("failed") == 1

        await eventually(has_failed_once, seconds=SECONDS)
        job_scene.head.outcome = "RUNNING"
        await job_scene.becomes("Running", "RUNNING")
        again = await has_members(job_scene, VOLCANOS, "ray-counter-pg", 1)
        assert again["metadata"]["uid"] == first["metadata"]["uid"]
        assert len(await job_scene.kube.list(VOLCANOS, job_scene.namespace)) == 1
        await job_scene.kube.delete(RAY_JOB_OBJECTS, job_scene.key)
        await is_gone(job_scene, VOLCANOS, "ray-counter-pg")
        await job_scene.has_clusters(0)


def too_large(replicas: int) -> JSON:
    """A cluster whose workers fit on no node."""
    container = {**TEMPLATE["spec"]["containers"][0], "resources": {"requests": {"cpu": "9000"}}}
    group = a_group("gpu", replicas, template={"spec": {"containers": [container]}})
    return {**CLUSTER_SPEC, "workerGroupSpecs": [group]}


async def test_a_job_that_waits_in_a_queue_says_which_gang_waits_for_what(job_scene: JobScene) -> None:
    key = ObjectKey(job_scene.namespace, "ray-counter-pg")
    async with job_scene.operating(**with_scheduler("volcano")):
        await job_scene.apply(labelled(a_rayjob(rayClusterSpec=too_large(2))))
        await job_scene.says("Reconciling", "PodGroup ray-counter-pg is Pending in queue research; group gpu: 2 of 2")
        assert (await job_scene.condition("Reconciling"))["reason"] == "Queued"
        (cluster,) = await job_scene.clusters()
        of_cluster = Scene(job_scene.kube, job_scene.namespace, cluster["metadata"]["name"])
        told = await of_cluster.condition("Scheduled", "False")
        assert told["message"].startswith("PodGroup ray-counter-pg is Pending in queue research; group gpu: 2 of 2")
        said = {"type": "Unschedulable", "status": "True", "message": "queue research is over its quota", "reason": "x"}
        await job_scene.kube.merge_patch(VOLCANOS, key, {"status": {"phase": "Pending", "conditions": [said]}})
        await job_scene.says("Reconciling", "is Pending in queue research: queue research is over its quota; group gpu")


@pytest.mark.parametrize(("name", "kind"), [("volcano", VOLCANOS), ("scheduler-plugins", PLUGINS)])
async def test_a_service_leaves_no_gang_of_a_cluster_that_is_gone(
    name: str, kind: Resource[JSON], ray_crds: ControlPlane
) -> None:
    def group(cluster: str) -> str:
        return f"ray-{cluster}-pg" if name == "volcano" else cluster

    async with a_service_scene(ray_crds) as scene:

        async def has_gangs(*clusters: str) -> None:
            async def look() -> bool:
                found = await scene.kube.list(kind, scene.namespace)
                return {one["metadata"]["name"] for one in found} == set(map(group, clusters))

            await eventually(look, seconds=SECONDS)

        await scene.apply(labelled(a_rayservice(rayClusterDeletionDelaySeconds=0)))
        async with scene.operating(**with_scheduler(name)):
            first = await scene.serves()
            await has_gangs(first)
            await scene.patch(rayClusterConfig=a_cluster_config(image="rayproject/ray:2.61.0"))
            second = await scene.has_pending()
            await has_gangs(first, second)
            assert await scene.serves(other_than=first) == second
            await has_gangs(second)
            await scene.patch(suspend=True)
            await scene.says("Suspended", "True")
            await has_gangs()
            await scene.patch(suspend=False)
            await has_gangs(await scene.serves(other_than=second))
            await scene.kube.delete(RAY_SERVICE_OBJECTS, scene.key)
            await has_gangs()


@pytest.mark.parametrize("name", INSTANCES)
async def test_a_job_in_a_pod_of_its_own_runs_with_every_scheduler(name: str, job_scene: JobScene) -> None:
    """KubeRay leaves those of scheduler-plugins and KAI in Initializing."""
    async with job_scene.operating(**with_scheduler(name)):
        await job_scene.apply(labelled(a_rayjob("K8sJobMode")))
        await job_scene.becomes("Running")
        submitter = await job_scene.submitter()
    assert submitter is not None
    assert submitter["spec"]["template"]["spec"]["schedulerName"] == INSTANCES[name]


@pytest.mark.parametrize("name", INSTANCES)
async def test_a_job_on_anothers_cluster_runs_with_every_scheduler(name: str, job_scene: JobScene) -> None:
    """KubeRay's Volcano refuses it, and its YuniKorn panics."""
    await job_scene.kube.create(CLUSTERS, labelled(a_raycluster(name="shared")), job_scene.namespace)
    async with job_scene.operating(**with_scheduler(name)):
        selector = {"clusterSelector": {labels.CLUSTER: "shared"}, "rayClusterSpec": None}
        await job_scene.apply(labelled(a_rayjob("K8sJobMode", **selector)))
        await job_scene.becomes("Running")


def kuberays_pod_group(scene: Scene, uid: str, *, has_controller: bool) -> JSON:
    """As KubeRay 1.6 leaves it: without labels, that of scheduler-plugins with a plain owner."""
    owner: JSON = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "demo", "uid": uid}
    name = "ray-demo-pg" if has_controller else "demo"
    if has_controller:
        owner |= {"controller": True, "blockOwnerDeletion": True}
    metadata = {"name": name, "namespace": scene.namespace, "ownerReferences": [owner]}
    return {"metadata": metadata, "spec": {"minMember": 1, "minResources": {"cpu": "1"}}}


@pytest.mark.parametrize("name", OBJECTS)
async def test_a_pod_group_that_kuberay_made_is_taken_over(name: str, ray_crds: ControlPlane, scene: Scene) -> None:
    await scene.apply(labelled(a_raycluster(a_group("small", 2))))
    uid = (await scene.cluster())["metadata"]["uid"]
    kind, object_name = OBJECTS[name]
    before = {"apiVersion": kind.api_version, "kind": kind.kind}
    before |= kuberays_pod_group(scene, uid, has_controller=name == "volcano")
    made = await scene.kube.create(kind, before, scene.namespace)
    async with operating(ray_crds.admin_kubeconfig, scene.namespace, **with_scheduler(name)):
        taken = await has_members(scene, kind, object_name, 3)
        await scene.becomes("ready", seconds=SECONDS)
    assert taken["metadata"]["uid"] == made["metadata"]["uid"]
    assert [owner["uid"] for owner in taken["metadata"]["ownerReferences"]] == [uid]
    assert taken["metadata"]["ownerReferences"][0]["controller"] is True


async def test_a_pod_group_of_somebody_else_is_left_alone_and_named(ray_crds: ControlPlane, scene: Scene) -> None:
    metadata = {"name": "ray-demo-pg", "namespace": scene.namespace}
    theirs = {"apiVersion": VOLCANOS.api_version, "kind": "PodGroup", "metadata": metadata, "spec": {"minMember": 7}}
    await scene.kube.create(VOLCANOS, theirs, scene.namespace)
    await scene.apply(a_raycluster())
    async with operating(ray_crds.admin_kubeconfig, scene.namespace, **with_scheduler("volcano")):
        told = await scene.condition("ReplicaFailure", "True")
    assert "PodGroup ray-demo-pg is there already" in told["message"]
    assert await scene.pods() == []
    assert (await scene.kube.get(VOLCANOS, ObjectKey(scene.namespace, "ray-demo-pg")))["spec"]["minMember"] == 7


async def test_without_its_definition_pods_wait_and_a_condition_says_so(
    ray_crds: ControlPlane, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    class OfTomorrow(Volcano):
        """A Volcano whose PodGroups the API server does not have yet."""

        kinds = (replace(volcano.POD_GROUPS, version="v9"),)

    monkeypatch.setitem(choice.SCHEDULERS, "volcano", OfTomorrow)
    await scene.apply(a_raycluster())
    given = Given(settings=OperatorSettings(batch_scheduler="volcano"), api_server=KUBERNETES)
    async with operating(ray_crds.admin_kubeconfig, scene.namespace, **given):
        told = await scene.condition("ReplicaFailure", "True")
        assert "the API server does not know podgroups.scheduling.volcano.sh" in told["message"]
        assert await scene.pods() == []
        monkeypatch.undo()
    # It goes on without being watched, where it came after the operator's start.
    async with operating(ray_crds.admin_kubeconfig, scene.namespace, **given):
        await scene.becomes("ready", seconds=SECONDS)
        await scene.patch(workerGroupSpecs=[a_group("small", 2)])
        await has_members(scene, VOLCANOS, "ray-demo-pg", 3)


async def test_kinds_that_are_missing_are_told_once_at_the_start_and_in_a_condition(
    ray_crds: ControlPlane, scene: Scene, tmp_path: Path
) -> None:
    flags = ("--enable-leader-election=false", f"--watch-namespace={scene.namespace}")
    body = a_raycluster()
    body["metadata"]["labels"] = {labels.GANG_SCHEDULING_ENABLED: "true"}
    await scene.apply(body)
    with operators_of(ray_crds, tmp_path) as operators:
        operator = operators.start(*flags, "--feature-gates=KubernetesWAS=true")
        await asyncio.to_thread(operator.wait_ready)
        told = await scene.condition("ReplicaFailure", "True")
        lines = [line for line in operator.lines() if "the batch scheduler is not installed" in line["msg"]]
    assert "does not know workloads.scheduling.k8s.io (v1alpha2)" in told["message"]
    assert [line["missing"] for line in lines] == [
        ["workloads.scheduling.k8s.io (v1alpha2)", "podgroups.scheduling.k8s.io (v1alpha2)"]
    ]


async def test_a_label_that_volcano_cannot_read_is_told_and_mended(ray_crds: ControlPlane, scene: Scene) -> None:
    marks = {volcano.TOPOLOGY_MODE: "hard", volcano.HIGHEST_TIER: "top"}
    await scene.apply(labelled(a_raycluster(), marks))
    async with operating(ray_crds.admin_kubeconfig, scene.namespace, **with_scheduler("volcano")):
        told = await scene.condition("RayClusterInvalid", "True")
        assert volcano.HIGHEST_TIER in told["message"]
        patch = {"metadata": {"labels": {volcano.HIGHEST_TIER: "2"}}}
        await scene.kube.merge_patch(CLUSTERS, scene.key, patch)
        made = await has_members(scene, VOLCANOS, "ray-demo-pg", 1)
    assert made["spec"]["networkTopology"] == {"mode": "hard", "highestTierAllowed": 2}


async def test_a_group_of_yunikorn_with_sidecars_has_room_for_them(ray_crds: ControlPlane, scene: Scene) -> None:
    """YuniKorn replaces a placeholder by the pod: what the pod asks for must fit into it."""
    body = a_raycluster(headGroupSpec={"template": TEMPLATE}, enableInTreeAutoscaling=True)
    await scene.apply(labelled(body))
    async with operating(ray_crds.admin_kubeconfig, scene.namespace, **with_scheduler("yunikorn")):
        await scene.becomes("ready", seconds=SECONDS)
        (head,) = await scene.pods()
    groups = head["metadata"]["annotations"]["yunikorn.apache.org/task-groups"]
    assert '"minResource":{"cpu":"500m","memory":"512Mi"}' in groups


def with_history() -> Given:
    given = with_scheduler("volcano")
    return Given(settings=replace(given["settings"], history=IN_S3), api_server=given["api_server"])


async def test_what_the_collectors_of_an_annotated_cluster_ask_for_is_reserved(
    ray_crds: ControlPlane, scene: Scene
) -> None:
    body = a_raycluster(a_group("small", 2))
    body["metadata"]["annotations"] = BY_ACK
    await scene.apply(body)
    async with operating(ray_crds.admin_kubeconfig, scene.namespace, **with_history()):
        made = await has_members(scene, VOLCANOS, "ray-demo-pg", 3)
        assert made["spec"]["minResources"] == {"cpu": "180m", "memory": "270Mi"}


async def test_so_is_that_of_the_cluster_of_an_annotated_job(job_scene: JobScene) -> None:
    plain, annotated = a_rayjob("K8sJobMode"), a_rayjob("K8sJobMode")
    plain["metadata"]["name"] = "plain"
    annotated["metadata"]["annotations"] = BY_ACK
    await job_scene.apply(plain)
    await job_scene.apply(annotated)
    async with job_scene.operating(**with_history()):
        less = await has_members(job_scene, VOLCANOS, "ray-plain-pg", 1)
        more = await has_members(job_scene, VOLCANOS, "ray-counter-pg", 1)
    cpus = [parse_quantity(made["spec"]["minResources"]["cpu"]).milli_value() for made in (less, more)]
    assert cpus[1] - cpus[0] == 60
