"""History that a RayJob or RayService asks for by an annotation, on a real API server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from bed.control_plane import ControlPlane
from rayclusters.histories import BY_ACK, ON_ACK, OURS
from raykeeper.api import labels
from raykeeper.api.meta import JSON
from raykeeper.operator.settings import OperatorSettings
from support.conditions import eventually
from support.raycluster_scene import POD_OBJECTS, a_group
from support.rayjob_scene import JobScene, a_job_scene, a_rayjob
from support.rayservice_scene import RAY_SERVICE_OBJECTS, ServiceScene, a_cluster_config, a_rayservice, a_service_scene

pytestmark = pytest.mark.usefixtures("kwok")

REMEMBERING = OperatorSettings(history=ON_ACK)
INCOMPLETE = OperatorSettings(history=replace(ON_ACK, oss_bucket=""))
CONDITION = "HistoryCollected"


@pytest.fixture
async def jobs(ray_crds: ControlPlane) -> AsyncIterator[JobScene]:
    async with a_job_scene(ray_crds) as scene:
        yield scene


@pytest.fixture
async def services(ray_crds: ControlPlane) -> AsyncIterator[ServiceScene]:
    async with a_service_scene(ray_crds) as scene:
        yield scene


async def accounts(scene: JobScene | ServiceScene) -> dict[str, str]:
    """Of all pods that have a collector: name -> ServiceAccount."""
    pods = await scene.kube.list(POD_OBJECTS, scene.namespace, labels=labels.NODE_TYPE)
    collected = [pod for pod in pods if "ray-history-collector" in str(pod["spec"].get("initContainers"))]
    return {pod["metadata"]["name"]: pod["spec"]["serviceAccountName"] for pod in collected}


async def pods_of(scene: ServiceScene) -> set[str]:
    return {pod["metadata"]["uid"] for pod in await scene.kube.list(POD_OBJECTS, scene.namespace)}


async def test_the_clusters_of_a_rayjob_are_collected(jobs: JobScene) -> None:
    body = a_rayjob()
    body["metadata"]["annotations"] = BY_ACK
    await jobs.apply(body)
    async with jobs.operating(settings=REMEMBERING):
        await jobs.becomes("Running")
        (cluster,) = await jobs.clusters()
        assert set((await accounts(jobs)).values()) == {f"ray-historyserver-{cluster['metadata']['name']}"}
        assert await jobs.condition(CONDITION) == {}


async def test_a_rayjob_says_which_setting_is_missing_and_runs(jobs: JobScene) -> None:
    body = a_rayjob()
    body["metadata"]["annotations"] = OURS
    await jobs.apply(body)
    async with jobs.operating(settings=INCOMPLETE):
        await jobs.becomes("Running")
        said = await jobs.condition(CONDITION)
        assert (said["status"], said["reason"]) == ("False", "HistoryNotConfigured")
        assert "--oss-bucket" in said["message"]
        assert "--oss-bucket" in (await jobs.is_told("HistoryNotConfigured"))["note"]
    async with jobs.operating(settings=REMEMBERING):

        async def is_quiet() -> bool:
            return await jobs.condition(CONDITION) == {}

        await jobs.annotate({"looked-at": "again"})
        await eventually(is_quiet)


async def test_a_job_on_the_cluster_of_another_asks_for_nothing(jobs: JobScene) -> None:
    body = a_rayjob(clusterSelector={"ray.io/cluster": "none"})
    body["metadata"]["annotations"] = OURS
    await jobs.apply(body)
    async with jobs.operating(settings=INCOMPLETE):

        async def is_looked_at() -> bool:
            return bool((await jobs.status()).get("conditions"))

        await eventually(is_looked_at)
        assert await jobs.condition(CONDITION) == {}


async def test_a_rayservice_that_is_annotated_later_is_not_upgraded_and_its_new_pods_are_collected(
    services: ServiceScene,
) -> None:
    await services.apply(a_rayservice())
    async with services.operating(settings=REMEMBERING):
        cluster = await services.serves()
        before = await pods_of(services)
        patch: JSON = {"metadata": {"annotations": OURS}}
        await services.kube.merge_patch(RAY_SERVICE_OBJECTS, services.key, patch)

        async def is_passed_on() -> bool:
            found = (await services.clusters())[cluster]
            conditions = found.get("status", {}).get("conditions", [])
            return any((one["type"], one["reason"]) == (CONDITION, "PodsWithoutCollector") for one in conditions)

        await eventually(is_passed_on)
        assert (await pods_of(services), await services.pending()) == (before, "")
        await services.has_clusters(cluster)
        await services.patch(rayClusterConfig=a_cluster_config(a_group("small", 1), a_group("more", 1)))

        async def more_is_collected() -> bool:
            return set((await accounts(services)).values()) == {f"ray-historyserver-{cluster}"}

        await eventually(more_is_collected)
        await services.has_clusters(cluster)
        assert before < await pods_of(services)


async def test_another_setting_of_the_operator_upgrades_no_rayservice(services: ServiceScene) -> None:
    await services.apply(a_rayservice(annotations=BY_ACK))
    async with services.operating(settings=REMEMBERING):
        cluster = await services.serves()
        before = await pods_of(services)
        assert len(await accounts(services)) == 2
    changed = OperatorSettings(history=replace(ON_ACK, oss_bucket="another", collector_image="raykeeper:2"))
    async with services.operating(settings=changed):
        await services.kube.merge_patch(
            RAY_SERVICE_OBJECTS, services.key, {"metadata": {"annotations": {"looked-at": "again"}}}
        )
        assert await services.serves() == cluster
        await services.says("Ready", "True")
        assert (await pods_of(services), await services.pending()) == (before, "")


async def test_a_rayservice_says_which_setting_is_missing_and_serves(services: ServiceScene) -> None:
    await services.apply(a_rayservice(annotations=BY_ACK))
    async with services.operating(settings=INCOMPLETE):
        await services.serves()
        await services.says(CONDITION, "False", "--oss-bucket", "HistoryNotConfigured")
        assert "--oss-bucket" in (await services.is_told("HistoryNotConfigured"))["note"]
        assert await accounts(services) == {}
