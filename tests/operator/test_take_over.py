"""KubeRay's own operator and ours, one after the other on one API server: neither disturbs what the other made."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path

import pytest

from bed.control_plane import ControlPlane
from bed.crds import install_ray_crds
from bed.fixtures import make_namespace
from bed.kuberay import VERSION as KUBERAYS_VERSION
from bed.kuberay import kuberay_on
from bed.kwok import Kwok
from rayclusters.golden_pods import PLAIN
from raykeeper.api import labels
from raykeeper.api.meta import ObjectKey
from support.chronicle import Change, Chronicle
from support.conditions import eventually
from support.kube_clients import connected
from support.operator_processes import operators_of
from support.raycluster_scene import CLUSTERS, POD_OBJECTS, Scene
from support.taking_over import Stage, clusters_end, clusters_rest_and_wake, groups_grow_and_shrink

pytestmark = pytest.mark.interop
OUR_VERSION = f"raykeeper-{version('raykeeper')}"
QUICKLY = "--reconcile-concurrency=8"  # KubeRay's default is one cluster at a time
SLOWLY = (QUICKLY, "--qps=5", "--burst=1")
"""Flags, understood by both, for whom a test stops half-way: it has some seconds to see that half is there."""

BIG = {
    "long": PLAIN.with_workers("small", replicas=24),
    "wide": PLAIN.with_workers("tpu", replicas=5, numOfHosts=4),
}
ALL_PODS = (1 + 24) + (1 + 5 * 4)


@pytest.fixture(scope="module")
def plane(own_control_plane: ControlPlane) -> ControlPlane:
    """Private, since both operators cover all namespaces."""
    install_ray_crds(own_control_plane)
    Kwok(own_control_plane).up(nodes=2)
    return own_control_plane


@pytest.fixture
async def stage(plane: ControlPlane, tmp_path: Path) -> AsyncIterator[Stage]:
    namespace = tmp_path.name.replace("_", "-").rstrip("-")[-40:].lstrip("-")
    make_namespace(plane, namespace)
    async with connected(plane.admin_kubeconfig) as kube:
        with kuberay_on(plane) as kuberay, operators_of(plane, tmp_path) as operators:
            yield Stage(plane, kube, namespace, kuberay, operators)
    plane.kubectl("delete", "leases", "--namespace=default", "--field-selector=metadata.name=ray-operator-leader")


async def test_clusters_that_kuberay_made_are_taken_over_untouched_and_work_on(stage: Stage) -> None:
    theirs = await stage.start_kuberay(QUICKLY, elected=True)
    await stage.apply()
    await stage.settled()
    assert await head_version(stage) == KUBERAYS_VERSION
    chronicle, statuses = stage.chronicle(), await stage.statuses()
    ours = await stage.start_ours(elected=True)
    await asyncio.to_thread(ours.wait_for, "waiting for the lease")
    await asyncio.to_thread(theirs.process.stop)
    await stage.has_looked(ours)
    renewed = Change("MODIFIED", "Pod", await stage.head("renewed"))
    # KubeRay 1.6 gives an Ingress a path of its own; 1.7 and we do not, and bring it to the present one.
    assert set(chronicle.changes()) == {renewed, Change("MODIFIED", "Ingress", "shown-head-ingress")}
    assert await head_version(stage) == OUR_VERSION
    assert await stage.statuses() == statuses
    await groups_grow_and_shrink(stage)
    await clusters_rest_and_wake(stage)
    await clusters_end(stage)


async def test_clusters_that_we_made_are_left_alone_by_kuberay_and_given_back(stage: Stage) -> None:
    ours = await stage.start_ours(elected=True)
    await stage.apply()
    await stage.settled()
    chronicle, statuses = stage.chronicle(), await stage.statuses()
    theirs = await stage.start_kuberay(QUICKLY, elected=True)
    assert await asyncio.to_thread(ours.stop) == 0
    await stage.has_looked(theirs)
    renewed = Change("MODIFIED", "Pod", await stage.head("renewed"))
    assert set(chronicle.changes()) == {renewed}
    assert await head_version(stage) == KUBERAYS_VERSION
    assert await stage.statuses() == statuses
    await groups_grow_and_shrink(stage)
    await clusters_rest_and_wake(stage)
    chronicle = stage.chronicle()
    await asyncio.to_thread(theirs.process.stop)
    await stage.has_looked(await stage.start_ours())
    assert set(chronicle.changes()) == {renewed}
    assert await head_version(stage) == OUR_VERSION
    await clusters_end(stage)


async def head_version(stage: Stage) -> str:
    """Which operator the head pod that carries a hash says it is of."""
    pod = await stage.kube.get(POD_OBJECTS, ObjectKey(stage.namespace, await stage.head("renewed")))
    return str(pod["metadata"]["annotations"][labels.KUBERAY_VERSION])


async def test_what_kuberay_left_half_made_is_finished_without_a_doubled_pod(stage: Stage) -> None:
    chronicle = stage.chronicle()
    theirs = await stage.start_kuberay(*SLOWLY)
    await are_half_made(stage)
    await asyncio.to_thread(theirs.process.kill)
    await stage.start_ours()
    await are_whole(stage, Scene.is_now)
    assert pods_of(chronicle, "ADDED") == {pod["metadata"]["name"] for pod in await stage.pods()}
    assert pods_of(chronicle, "DELETED") == set()


async def test_what_we_left_half_made_is_finished_by_kuberay_without_a_doubled_pod(stage: Stage) -> None:
    ours = await stage.start_ours(*SLOWLY)
    await are_half_made(stage)
    ours.process.kill()
    chronicle = stage.chronicle()
    await stage.start_kuberay(QUICKLY)
    await are_whole(stage, Scene.is_said_to_be)
    # Replicas that span hosts are all or nothing to KubeRay: it makes an incomplete one anew.
    assert {name for name in pods_of(chronicle, "DELETED") if "-tpu-" not in name} == set()


async def are_half_made(stage: Stage) -> None:
    """Ask for two clusters; return once some of their pods are there, the second replica of hosts being incomplete."""
    for name, cluster in BIG.items():
        await stage.scene(name).apply(cluster.named(name, stage.namespace).manifest)

    async def look() -> bool:
        return len(await stage.scene("wide").names("tpu")) >= 6 and len(await stage.scene("long").pods()) >= 3

    await eventually(look)
    assert len(await stage.pods()) < ALL_PODS


async def are_whole(stage: Stage, has_state: Callable[[Scene, str], Awaitable[bool]]) -> None:
    for name in BIG:
        await eventually(partial(has_state, stage.scene(name), "ready"))
    assert len(await stage.pods()) == ALL_PODS


def pods_of(chronicle: Chronicle, what: str) -> set[str]:
    return {change.name for change in chronicle.changes() if change[:2] == (what, "Pod")}


async def test_a_deletion_that_kuberay_began_is_ended(stage: Stage) -> None:
    theirs = await stage.start_kuberay()
    scene = stage.scene("redis")
    await stage.apply(["redis"])
    await stage.settled(["redis"])
    chronicle, before = stage.chronicle(), len(await scene.pods())
    await stage.kube.delete(CLUSTERS, scene.key)

    async def has_begun() -> bool:
        return len(await scene.pods()) < before

    await eventually(has_begun)
    await asyncio.to_thread(theirs.process.kill)
    assert labels.GCS_FT_REDIS_CLEANUP_FINALIZER in (await scene.cluster())["metadata"]["finalizers"]
    await stage.start_ours()

    async def is_gone() -> bool:
        return not await stage.kube.list(CLUSTERS, stage.namespace)

    await eventually(is_gone)
    # By whichever of the two came to it, and not by both.
    assert chronicle.changes().count(Change("ADDED", "Job", "redis-redis-cleanup")) == 1
