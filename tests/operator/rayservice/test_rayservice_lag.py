"""RayServices of an operator whose caches are seconds behind: it must not do twice what it does not see yet."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from bed.control_plane import ControlPlane
from bed.faults.http import HttpFaults
from raykeeper.api.meta import Object
from raykeeper.operator.kinds import WATCHED_RAYCLUSTERS
from support.conditions import eventually
from support.operating import Operator, operating
from support.rayservice_scene import ServiceScene, a_cluster_config, a_rayservice, a_serve_config, a_service_scene

pytestmark = pytest.mark.usefixtures("kwok")
LAG_SECONDS = 3.0


@pytest.fixture
def wire(ray_crds: ControlPlane) -> Iterator[HttpFaults]:
    with HttpFaults(ray_crds) as wire:
        wire.watch_lag_seconds = LAG_SECONDS
        yield wire


@pytest.fixture
async def scene(ray_crds: ControlPlane) -> AsyncIterator[ServiceScene]:
    async with a_service_scene(ray_crds) as scene:
        yield scene


def made(operator: Operator) -> set[str]:
    """Fills with the uids of all RayClusters that the operator sees."""
    uids: set[str] = set()

    def note(_old: Object | None, new: Object | None) -> None:
        if new is not None:
            uids.add(new.metadata.uid)

    operator.informers.of(WATCHED_RAYCLUSTERS).on_change(note)
    return uids


async def has_application(scene: ServiceScene, name: str) -> bool:
    return name in (await scene.status())["activeServiceStatus"].get("applicationStatuses", {})


async def loses_its_head(scene: ServiceScene, cluster: str) -> None:
    """Return once another head takes requests."""
    before = (await scene.head_pod(cluster))["metadata"]["uid"]
    await scene.delete_head(cluster)
    await eventually(lambda: has_another_head(scene, cluster, before), seconds=scene.patience)
    await scene.head_has_label(cluster, "true")


async def has_another_head(scene: ServiceScene, cluster: str, uid: str) -> bool:
    return bool((await scene.head_pod(cluster))["metadata"]["uid"] != uid)


async def test_whatever_is_changed_each_cluster_is_made_once_and_each_config_sent_once(
    wire: HttpFaults, scene: ServiceScene
) -> None:
    await scene.apply(a_rayservice(rayClusterDeletionDelaySeconds=0))
    kubeconfig = scene.plane.kubeconfig(server=wire.server)
    async with operating(kubeconfig, scene.namespace, heads_at=scene.heads.url_of) as operator:
        uids = made(operator)
        first = await scene.serves()
        assert len(scene.head(first).configs) == 1
        await scene.patch(serveConfigV2=a_serve_config("search"))
        await eventually(lambda: has_application(scene, "search"), seconds=scene.patience)
        await scene.patch(rayClusterConfig=a_cluster_config(image="rayproject/ray:2.61.0"))
        second = await scene.serves(other_than=first)
        await scene.has_clusters(second)
        assert [len(scene.head(name).configs) for name in (first, second)] == [2, 1]
        assert len(uids) == 2
        ready = await scene.condition("Ready")
        await loses_its_head(scene, second)
        assert await scene.serves() == second
        # Its worker took requests all the time.
        assert (await scene.condition("Ready"))["lastTransitionTime"] == ready["lastTransitionTime"]
        await scene.patch(suspend=True)
        await scene.says("Suspended", "True")
        await scene.has_clusters()
        await scene.patch(suspend=False)
        third = await scene.serves(other_than=second)
        await scene.has_clusters(third)
        assert len(uids) == 3


async def test_a_service_whose_only_pod_is_lost_is_not_ready_until_another_takes_requests(
    wire: HttpFaults, scene: ServiceScene
) -> None:
    await scene.apply(a_rayservice(rayClusterConfig=a_cluster_config(workerGroupSpecs=[])))
    kubeconfig = scene.plane.kubeconfig(server=wire.server)
    async with operating(kubeconfig, scene.namespace, heads_at=scene.heads.url_of):
        cluster = await scene.serves()
        before = (await scene.head_pod(cluster))["metadata"]["uid"]
        await scene.delete_head(cluster)
        await scene.says("Ready", "False", reason="ZeroServeEndpoints")
        assert await scene.serves() == cluster
        assert await has_another_head(scene, cluster, before)
