"""RayServices on a real API server, with heads that speak Serve's API."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from bed.control_plane import ControlPlane
from raykeeper.operator.settings import HistorySettings, OperatorSettings
from support.conditions import eventually
from support.rayservice_scene import ServiceScene, a_cluster_config, a_rayservice, a_serve_config, a_service_scene

pytestmark = pytest.mark.usefixtures("kwok")


@pytest.fixture
async def scene(ray_crds: ControlPlane) -> AsyncIterator[ServiceScene]:
    async with a_service_scene(ray_crds) as scene:
        yield scene


async def test_a_service_serves_and_says_so(scene: ServiceScene) -> None:
    await scene.apply(a_rayservice())
    async with scene.operating():
        active = await scene.serves()
        status = await scene.status()
        assert status["observedGeneration"] == 1
        assert status["activeServiceStatus"]["rayClusterStatus"]["state"] == "ready"
        application = status["activeServiceStatus"]["applicationStatuses"]["shop"]
        assert (application["status"], application["serveDeploymentStatuses"]["Model"]["status"]) == (
            "RUNNING",
            "HEALTHY",
        )
        assert (await scene.condition("UpgradeInProgress"))["reason"] == "NoPendingCluster"
        await scene.says("ServeApplicationsHealthy", "True")
        services = await scene.services()
        assert services["web-serve-svc"]["spec"]["selector"] == {"ray.io/cluster": active, "ray.io/serve": "true"}
        assert services["web-head-svc"]["spec"]["selector"]["ray.io/cluster"] == active
        await scene.head_has_label(active, "true")
        await eventually(lambda: has_endpoints(scene, 2))
        await scene.is_told("CreatedRayCluster")
        await scene.is_told("UpdatedServeApplications")
    assert len(scene.head(active).configs) == 1


async def has_endpoints(scene: ServiceScene, count: int) -> bool:
    return bool((await scene.status()).get("numServeEndpoints") == count)


async def test_each_cluster_is_linked_to_its_history_where_the_operator_knows_it(scene: ServiceScene) -> None:
    settings = replace(OperatorSettings(), history=HistorySettings(url="https://history/base"))
    await scene.apply(a_rayservice())
    async with scene.operating(settings=settings):
        old = await scene.serves()
        await scene.patch(rayClusterConfig=a_cluster_config(image="rayproject/ray:2.61.0"))
        new = await scene.has_pending()
        status = await scene.status()
    base = f"https://history/base/s/{scene.namespace}"
    assert status["activeServiceStatus"]["historyURL"] == f"{base}/{old}/latest/"
    assert status["pendingServiceStatus"]["historyURL"] == f"{base}/{new}/latest/"


async def test_a_changed_config_is_sent_to_the_cluster_that_serves(scene: ServiceScene) -> None:
    await scene.apply(a_rayservice())
    async with scene.operating():
        active = await scene.serves()
        await scene.patch(serveConfigV2="# a comment changes nothing\n" + a_serve_config())
        await scene.patch(serveConfigV2=a_serve_config("shop", "search"))

        async def has_both() -> bool:
            applications = (await scene.status())["activeServiceStatus"].get("applicationStatuses", {})
            return set(applications) == {"shop", "search"}

        await eventually(has_both)
        assert await scene.active() == active
        await scene.has_clusters(active)
    assert [len(config["applications"]) for config in scene.head(active).configs] == [1, 2]


async def test_a_changed_cluster_takes_over_once_it_serves(scene: ServiceScene) -> None:
    await scene.apply(a_rayservice(rayClusterDeletionDelaySeconds=0))
    async with scene.operating():
        old = await scene.serves()
        await scene.patch(rayClusterConfig=a_cluster_config(image="rayproject/ray:2.61.0"))
        new = await scene.serves(other_than=old)
        assert await scene.selected("web-head-svc") == new
        await scene.has_clusters(new)
        assert (await scene.condition("UpgradeInProgress"))["status"] == "False"
