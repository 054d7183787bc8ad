"""Real Kueue and our operator on one API server: clusters wait for quota, make room, come back and grow."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bed.control_plane import ControlPlane
from bed.crds import install_ray_crds
from bed.fixtures import make_namespace
from bed.kueue import kueue_on
from bed.kwok import Kwok
from rayclusters.manifests import ClusterBuilder, a_cluster
from raykeeper.api import labels
from raykeeper.api.meta import JSON, ObjectKey, Resource
from raykeeper.kube.client import Kube
from support.conditions import eventually
from support.kube_clients import connected
from support.operator_processes import operators_of
from support.ray_jobs_head import JobsHead, a_jobs_head
from support.raycluster_scene import CLUSTERS, POD_OBJECTS, Scene
from support.rayjob_scene import RAY_JOB_OBJECTS, JobScene, a_rayjob

GROUP, VERSION = "kueue.x-k8s.io", "v1beta2"
WORKLOADS: Resource[JSON] = Resource(GROUP, VERSION, "workloads", "Workload", dict)
QUEUE_LABEL, PRIORITY_LABEL = "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/priority-class"
ELASTIC = {"kueue.x-k8s.io/elastic-job": "true"}
JOB_QUEUE = {QUEUE_LABEL: "team", PRIORITY_LABEL: "low"}
ONE_CPU = {"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
READY_SECONDS, RECOVERY_SECONDS = 120, 20
SECONDS = 90.0
HELD = "tests.raykeeper.io/held"
"""A finalizer that keeps a pod, as a slow node does."""

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def plane(own_control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """With Kueue, which waits for pods to be ready, four CPUs to share, and our operator's CRDs."""
    install_ray_crds(own_control_plane)
    Kwok(own_control_plane).up(nodes=2)
    waiting = {"timeout": f"{READY_SECONDS}s", "recoveryTimeout": f"{RECOVERY_SECONDS}s", "blockAdmission": False}
    with kueue_on(own_control_plane, {"waitForPodsReady": waiting}):
        for plural, body in shared_queue().items():
            own_control_plane.admin.post(f"/apis/{GROUP}/{VERSION}/{plural}", body)
        for name, value in {"low": 1, "high": 100}.items():
            priority = an_object("WorkloadPriorityClass", name) | {"value": value}
            own_control_plane.admin.post(f"/apis/{GROUP}/{VERSION}/workloadpriorityclasses", priority)
        yield own_control_plane


def an_object(kind: str, name: str, **spec: Any) -> JSON:
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": kind, "metadata": {"name": name}} | (
        {"spec": spec} if spec else {}
    )


def shared_queue() -> dict[str, JSON]:
    """Room for four pods of one CPU; whoever is more important takes it from others."""
    quota = [{"name": "cpu", "nominalQuota": 4}, {"name": "memory", "nominalQuota": "64Gi"}]
    group = {"coveredResources": ["cpu", "memory"], "flavors": [{"name": "default", "resources": quota}]}
    preemption = {"withinClusterQueue": "LowerPriority"}
    queue = an_object("ClusterQueue", "all", namespaceSelector={}, resourceGroups=[group], preemption=preemption)
    return {"resourceflavors": an_object("ResourceFlavor", "default"), "clusterqueues": queue}


@dataclass(frozen=True)
class Team:
    """A namespace with a queue."""

    plane: ControlPlane
    kube: Kube
    namespace: str

    def cluster(self, name: str, workers: int, priority: str = "low") -> ClusterBuilder:
        """One CPU for its head and each worker."""
        builder = a_cluster().named(name, self.namespace).labelled({QUEUE_LABEL: "team", PRIORITY_LABEL: priority})
        builder = builder.with_head(rayStartParams={}).with_head_container(**ONE_CPU)
        return builder.with_workers("small", container=ONE_CPU, replicas=workers, maxReplicas=5, rayStartParams={})

    async def apply(self, builder: ClusterBuilder) -> Scene:
        scene = Scene(self.kube, self.namespace, builder.manifest["metadata"]["name"])
        await scene.apply(builder.manifest)
        return scene

    async def workloads(self, scene: Scene | JobScene) -> list[JSON]:
        """Of a cluster or job, those that have not been replaced by a larger or smaller one."""
        found = await self.kube.list(WORKLOADS, self.namespace)
        ours = [one for one in found if one["metadata"]["ownerReferences"][0]["name"] == scene.key.name]
        return [one for one in ours if condition(one, "Finished") != "True"]

    async def has(self, scene: Scene | JobScene, kind: str, status: str) -> None:
        """Return once the cluster's only workload has this condition."""

        async def look() -> bool:
            return [condition(one, kind) for one in await self.workloads(scene)] == [status]

        await eventually(look, seconds=SECONDS)

    async def all_pods(self, scene: Scene) -> list[JSON]:
        """Also those that are going."""
        return await self.kube.list(POD_OBJECTS, self.namespace, labels={labels.CLUSTER: scene.key.name})


def condition(workload: JSON, kind: str) -> str | None:
    conditions = workload.get("status", {}).get("conditions", [])
    return next((one["status"] for one in conditions if one["type"] == kind), None)


@pytest.fixture
async def idle_team(plane: ControlPlane) -> AsyncIterator[Team]:
    """A namespace of this test, where no operator works."""
    namespace = f"team-{uuid.uuid4().hex[:6]}"
    make_namespace(plane, namespace)
    queue = an_object("LocalQueue", "team", clusterQueue="all")
    plane.admin.post(f"/apis/{GROUP}/{VERSION}/namespaces/{namespace}/localqueues", queue)
    async with connected(plane.admin_kubeconfig) as kube:
        yield Team(plane, kube, namespace)


@pytest.fixture
async def team(idle_team: Team, tmp_path: Path) -> AsyncIterator[Team]:
    """With our operator at work; its clusters are gone afterwards, and so is their quota."""
    with operators_of(idle_team.plane, tmp_path) as operators:
        flags = ("--enable-leader-election=false", f"--watch-namespace={idle_team.namespace}")
        operators.start(*flags).wait_ready()
        yield idle_team
        await end_all(idle_team.kube, idle_team.namespace)


async def end_all(kube: Kube, namespace: str) -> None:
    for kind in (RAY_JOB_OBJECTS, CLUSTERS):
        await kube.delete_collection(kind, namespace)

    async def look() -> bool:
        return not await kube.list(CLUSTERS, namespace) and not await kube.list(WORKLOADS, namespace)

    await eventually(look, seconds=SECONDS)


async def test_a_cluster_starts_once_there_is_quota_for_it(team: Team) -> None:
    first = await team.apply(team.cluster("first", workers=2))
    await first.becomes("ready", SECONDS)
    await team.has(first, "PodsReady", "True")
    second = await team.apply(team.cluster("second", workers=1))
    await second.becomes("suspended", SECONDS)
    await team.has(second, "QuotaReserved", "False")
    assert await team.all_pods(second) == []
    await team.kube.delete(CLUSTERS, first.key)
    await second.becomes("ready", SECONDS)
    await team.has(second, "Admitted", "True")


async def test_quota_goes_to_a_more_important_cluster_only_when_the_last_pod_is_gone(team: Team) -> None:
    low = await team.apply(team.cluster("low", workers=2))
    await low.becomes("ready", SECONDS)
    held = ObjectKey(team.namespace, next(iter(await low.names("small"))))
    await team.kube.merge_patch(POD_OBJECTS, held, {"metadata": {"finalizers": [HELD]}})
    high = await team.apply(team.cluster("high", workers=1, priority="high"))
    await team.has(low, "Evicted", "True")

    async def is_last() -> bool:
        left = await team.all_pods(low)
        return [pod["metadata"]["name"] for pod in left] == [held.name]

    await eventually(is_last, seconds=SECONDS)
    await low.condition("RayClusterSuspending", "True")
    await team.has(low, "QuotaReserved", "True")
    await team.has(high, "QuotaReserved", "False")
    await team.kube.merge_patch(POD_OBJECTS, held, {"metadata": {"finalizers": []}})
    await low.becomes("suspended", SECONDS)
    await high.becomes("ready", SECONDS)
    await team.has(low, "QuotaReserved", "False")
    assert await team.all_pods(low) == []


async def test_a_preempted_cluster_comes_back(team: Team) -> None:
    low = await team.apply(team.cluster("low", workers=2))
    await low.becomes("ready", SECONDS)
    high = await team.apply(team.cluster("high", workers=1, priority="high"))
    await high.becomes("ready", SECONDS)
    await low.becomes("suspended", SECONDS)
    await team.kube.delete(CLUSTERS, high.key)
    await low.becomes("ready", SECONDS)
    await team.has(low, "PodsReady", "True")
    assert len(await low.pods()) == 3


async def test_a_cluster_that_its_autoscaler_lets_grow_stays_ready_to_kueue(team: Team) -> None:
    scene = await team.apply(team.cluster("grows", workers=1).autoscaled().annotated(ELASTIC))
    await scene.becomes("ready", SECONDS)
    await team.has(scene, "PodsReady", "True")
    [before] = await team.workloads(scene)
    await grow(scene, 2)
    await scene.becomes("ready", SECONDS)

    async def is_replaced() -> bool:
        found = await team.workloads(scene)
        return [one["metadata"]["uid"] for one in found] != [before["metadata"]["uid"]]

    await eventually(is_replaced, seconds=SECONDS)
    await team.has(scene, "Admitted", "True")
    await team.has(scene, "PodsReady", "True")
    assert [condition(one, "Evicted") for one in await team.workloads(scene)] == [None]


async def test_a_cluster_that_wants_more_than_its_quota_keeps_what_it_has(team: Team) -> None:
    # With its autoscaler's half CPU, the head and two workers have three and a half of the four CPUs.
    scene = await team.apply(team.cluster("wants", workers=2).autoscaled().annotated(ELASTIC))
    await scene.becomes("ready", SECONDS)
    await team.has(scene, "PodsReady", "True")
    [admitted] = await team.workloads(scene)
    await grow(scene, 3)
    gated = await scene.condition("Ready", "False")
    assert "SchedulingGated" in gated["message"]
    await asyncio.sleep(1.5 * RECOVERY_SECONDS)  # Kueue evicts whoever is not ready for so long
    [still] = [one for one in await team.workloads(scene) if one["metadata"]["uid"] == admitted["metadata"]["uid"]]
    assert still["status"]["conditions"] == admitted["status"]["conditions"]
    assert (await scene.cluster())["status"]["state"] == "ready"
    running = [pod for pod in await scene.pods() if pod["status"]["phase"] == "Running"]
    assert len(running) == 3


async def grow(scene: Scene, workers: int) -> None:
    """As Ray's autoscaler does it."""
    groups = (await scene.cluster())["spec"]["workerGroupSpecs"]
    groups[0] |= {"replicas": workers}
    await scene.patch(workerGroupSpecs=groups)
    await scene.has_pods("small", workers)


@pytest.fixture
async def job(idle_team: Team) -> AsyncIterator[JobScene]:
    """A RayJob of three CPUs; the head of its cluster is a test's own, its pods are fake."""
    head = JobsHead()
    async with a_jobs_head(head) as url:
        scene = JobScene(idle_team.plane, idle_team.kube, idle_team.namespace, head, url)
        async with scene.operating():
            body = a_rayjob(rayClusterSpec=idle_team.cluster("any", workers=2).manifest["spec"])
            body["spec"]["shutdownAfterJobFinishes"] = True
            body["metadata"]["labels"] = JOB_QUEUE
            await scene.apply(body)
            yield scene
            await end_all(scene.kube, scene.namespace)


async def test_a_rayjob_is_admitted_preempted_in_mid_run_and_resumed(job: JobScene, idle_team: Team) -> None:
    first = await job.is_submitted()
    job.head.move(first, "RUNNING")
    await job.becomes("Running", "RUNNING")
    await idle_team.has(job, "PodsReady", "True")
    [cluster] = await job.clusters()
    high = await idle_team.apply(idle_team.cluster("high", workers=1, priority="high"))
    await idle_team.has(job, "Evicted", "True")
    await job.becomes("Suspended")
    await high.becomes("ready", SECONDS)
    await idle_team.has(job, "QuotaReserved", "False")
    await idle_team.kube.delete(CLUSTERS, high.key)
    second = await job.is_submitted(times=2)
    assert second != first
    assert cluster["metadata"]["uid"] not in [one["metadata"]["uid"] for one in await job.clusters()]
    job.head.move(second, "RUNNING")
    await job.becomes("Running", "RUNNING")
    await idle_team.has(job, "PodsReady", "True")
    job.head.move(second, "SUCCEEDED")
    await job.becomes("Complete", "SUCCEEDED")

    async def is_told() -> bool:
        return await idle_team.workloads(job) == []

    await eventually(is_told, seconds=SECONDS)
