"""Upgrades of RayServices on a real API server: what serves goes on serving, whatever the new cluster does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from bed.control_plane import ControlPlane
from raykeeper.api.meta import JSON, ObjectKey, Resource
from support.conditions import eventually
from support.operating import ClockAhead
from support.raycluster_scene import CLUSTERS, QUOTAS, a_group
from support.rayservice_scene import (
    PATIENCE,
    ServiceScene,
    a_cluster_config,
    a_rayservice,
    a_serve_config,
    a_service_scene,
)

pytestmark = pytest.mark.usefixtures("kwok")
OTHER_IMAGE = a_cluster_config(image="rayproject/ray:2.61.0")
SLICES: Resource[JSON] = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", dict)


@pytest.fixture
async def scene(ray_crds: ControlPlane) -> AsyncIterator[ServiceScene]:
    async with a_service_scene(ray_crds) as scene:
        yield scene


async def test_the_old_cluster_serves_until_serve_runs_on_the_new_one(scene: ServiceScene) -> None:
    await scene.apply(a_rayservice())
    async with scene.operating():
        old = await scene.serves()
        await scene.patch(rayClusterConfig=OTHER_IMAGE, serveConfigV2=a_serve_config("shop", "search"))
        new = await scene.has_pending()
        scene.head(new).state = "DEPLOYING"
        await eventually(lambda: has_config(scene, new), seconds=PATIENCE)
        await scene.says("UpgradeInProgress", "True", reason="BothActivePendingClustersExist")
        assert (await scene.selected(), (await scene.condition("Ready"))["status"]) == (old, "True")
        scene.head(new).state = "RUNNING"
        assert await scene.serves(other_than=old) == new
        assert set(await scene.clusters()) == {old, new}, "the old one has a minute for its requests"
    assert len(scene.head(old).configs) == 1, "a config that comes with a new cluster is not for the old one"
    assert [len(config["applications"]) for config in scene.head(new).configs] == [2]


async def has_config(scene: ServiceScene, cluster: str) -> bool:
    return bool(scene.head(cluster).configs)


async def test_the_time_of_a_replaced_cluster_goes_on_over_a_restart(scene: ServiceScene) -> None:
    await scene.apply(a_rayservice(rayClusterDeletionDelaySeconds=600))
    async with scene.operating():
        old = await scene.serves()
        await scene.patch(rayClusterConfig=OTHER_IMAGE)
        new = await scene.serves(other_than=old)

        async def is_marked() -> bool:
            return "raykeeper.io/replaced-at" in (await scene.clusters())[old]["metadata"]["annotations"]

        await eventually(is_marked, seconds=PATIENCE)
    async with scene.operating(clock=ClockAhead(timedelta(seconds=500))):
        await scene.head_has_label(new, "true")
        assert old in await scene.clusters()
    async with scene.operating(clock=ClockAhead(timedelta(seconds=601))):
        await scene.has_clusters(new)


async def test_endpoints_never_drop_to_zero(scene: ServiceScene) -> None:
    await scene.apply(a_rayservice(rayClusterDeletionDelaySeconds=0))
    seen: list[int] = []

    async def ready_endpoints() -> int:
        slices = await scene.kube.list(SLICES, scene.namespace, labels="kubernetes.io/service-name=web-serve-svc")
        endpoints = [one for part in slices for one in part["endpoints"] or ()]
        return sum(one["conditions"]["ready"] for one in endpoints)

    async def follow() -> None:
        while True:
            seen.append(await ready_endpoints())
            await asyncio.sleep(0.01)

    async with scene.operating():
        old = await scene.serves()
        await eventually(ready_endpoints)  # Kubernetes may be behind with the first ones
        watching = asyncio.create_task(follow())
        await scene.patch(rayClusterConfig=a_cluster_config(a_group(replicas=2), image="rayproject/ray:2.61.0"))
        new = await scene.serves(other_than=old)
        await scene.has_clusters(new)
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
    assert min(seen) > 0


async def test_traffic_waits_for_a_pod_of_the_new_cluster_that_is_ready(scene: ServiceScene) -> None:
    unready = a_group(template={"metadata": {"annotations": {"bed/unready": "yes"}}, **a_group()["template"]})
    await scene.apply(a_rayservice(excludeHeadPodFromServeSvc=True))
    async with scene.operating():
        old = await scene.serves()
        await scene.patch(rayClusterConfig=a_cluster_config(unready))
        new = await scene.has_pending()
        await scene.says("UpgradeInProgress", "True", f"Serve runs on {new}, and none of its pods")
        assert (await scene.selected(), (await scene.condition("Ready"))["status"]) == (old, "True")
        await scene.head_has_label(old, "false")
        await scene.patch(excludeHeadPodFromServeSvc=False)
        assert await scene.serves(other_than=old) == new


async def test_a_new_cluster_without_a_head_keeps_nothing_from_the_one_that_serves(scene: ServiceScene) -> None:
    await scene.apply(a_rayservice())
    async with scene.operating():
        old = await scene.serves()
        await scene.head_has_label(old, "true")
        quota = {"metadata": {"name": "full"}, "spec": {"hard": {"pods": "2"}}}
        await scene.kube.create(QUOTAS, {"apiVersion": "v1", "kind": "ResourceQuota", **quota}, scene.namespace)
        await scene.patch(rayClusterConfig=OTHER_IMAGE)
        await scene.has_pending()
        await scene.says("UpgradeInProgress", "True", "exceeded quota")
        scene.head(old).is_proxy_healthy = False
        await scene.head_has_label(old, "false")
        scene.head(old).is_proxy_healthy = True
        await scene.head_has_label(old, "true")
        patch = {"spec": {"selector": {"ray.io/cluster": "nobody"}}}
        service = ObjectKey(scene.namespace, "web-serve-svc")
        await scene.kube.merge_patch(SERVICES, service, patch)
        await eventually(lambda: leads_to(scene, old), seconds=PATIENCE)
        scene.head(old).deployment_state, scene.head(old).message = "UNHEALTHY", "CUDA out of memory"
        await scene.says("ServeApplicationsHealthy", "True", "deployment Model of shop is UNHEALTHY: CUDA out of mem")


SERVICES: Resource[JSON] = Resource("", "v1", "services", "Service", dict)


async def leads_to(scene: ServiceScene, cluster: str) -> bool:
    return await scene.selected() == cluster


async def test_a_change_that_is_taken_back_costs_nothing(scene: ServiceScene) -> None:
    await scene.apply(a_rayservice())
    async with scene.operating():
        old = await scene.serves()
        await scene.patch(rayClusterConfig=OTHER_IMAGE)
        scene.head(await scene.has_pending()).state = "DEPLOYING"
        await scene.patch(rayClusterConfig=a_cluster_config())
        await scene.has_clusters(old)
        assert (await scene.serves(), await scene.pending()) == (old, "")


async def test_a_third_spec_replaces_the_second_at_once(scene: ServiceScene) -> None:
    await scene.apply(a_rayservice(rayClusterDeletionDelaySeconds=3600))
    async with scene.operating():
        old = await scene.serves()
        await scene.patch(rayClusterConfig=OTHER_IMAGE)
        second = await scene.has_pending()
        scene.head(second).state = "DEPLOYING"
        await scene.patch(rayClusterConfig=a_cluster_config(image="rayproject/ray:2.62.0"))
        third = await scene.serves(other_than=old)
        assert third != second
        await scene.has_clusters(old, third)


async def test_strategy_none_changes_the_config_alone(scene: ServiceScene) -> None:
    await scene.apply(a_rayservice(upgradeStrategy={"type": "None"}))
    async with scene.operating():
        active = await scene.serves()
        await scene.patch(rayClusterConfig=OTHER_IMAGE, serveConfigV2=a_serve_config("search"))

        async def has_changed() -> bool:
            return len(scene.head(active).configs) == 2

        await eventually(has_changed, seconds=PATIENCE)
        assert await scene.serves() == active
        await scene.patch(upgradeStrategy={"type": "NewCluster"})
        assert await scene.serves(other_than=active)


async def test_groups_that_are_appended_join_the_cluster_and_replicas_stay(scene: ServiceScene) -> None:
    await scene.apply(a_rayservice())
    async with scene.operating():
        active = await scene.serves()
        scaled = [a_group(replicas=3)]
        await scene.kube.merge_patch(
            CLUSTERS, ObjectKey(scene.namespace, active), {"spec": {"workerGroupSpecs": scaled}}
        )
        await scene.patch(rayClusterConfig=a_cluster_config(a_group(), a_group("large")))

        async def groups() -> list[tuple[str, int]]:
            found = (await scene.clusters())[active]["spec"]["workerGroupSpecs"]
            return [(group["groupName"], group["replicas"]) for group in found] if len(found) == 2 else []

        assert await eventually(groups, seconds=PATIENCE) == [("small", 3), ("large", 1)]
        assert await scene.serves() == active
        await scene.has_clusters(active)


async def test_a_cluster_that_somebody_deletes_is_made_anew(scene: ServiceScene) -> None:
    await scene.apply(a_rayservice())
    async with scene.operating():
        first = await scene.serves()
        await scene.kube.delete(CLUSTERS, ObjectKey(scene.namespace, first))
        second = await scene.serves(other_than=first)
        await scene.has_clusters(second)


async def test_a_queue_holds_the_cluster_back_and_lets_it_go(scene: ServiceScene) -> None:
    await scene.apply(a_rayservice(rayClusterConfig=a_cluster_config(suspend=True)))
    async with scene.operating():
        held = await scene.has_pending()
        await scene.patch(rayClusterConfig={"suspend": False})
        assert await scene.serves() == held
