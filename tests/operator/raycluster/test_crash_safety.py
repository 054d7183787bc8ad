"""A reconcile may be stopped after every single write: the next process goes on, and the end is the same."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from bed.control_plane import ControlPlane
from conditions import eventually
from kube_clients import connected
from operating import Operator, operating
from raycluster_scene import Scene, a_group, a_raycluster
from raykeeper.api import labels
from raykeeper.api.meta import Object
from raykeeper.kube.errors import NotLeading
from raykeeper.operator.kinds import WATCHED_PODS

pytestmark = pytest.mark.usefixtures("kwok")

MOST_WRITES = 12
"""More than any of the changes below takes, so that the last run is one without a crash."""


class CrashAfter:
    """Lets so many writes pass, and then none: to the world it looks as if the process died right there."""

    def __init__(self, writes: int) -> None:
        self.is_spent = False
        self._left = writes

    def check(self) -> None:
        if self._left == 0:
            self.is_spent = True
            raise NotLeading("the test crashes here")
        self._left -= 1


class PodDiary:
    """Every pod that ever was, and every one that went."""

    def __init__(self, operator: Operator) -> None:
        self.made: set[str] = set()
        self.gone: set[str] = set()
        operator.informers.of(WATCHED_PODS).on_change(self.note)

    def note(self, old: Object | None, new: Object | None) -> None:
        pod = new or old
        if pod is not None:
            self.made.add(pod.metadata.uid)
            if new is None or new.metadata.deletion_timestamp is not None:
                self.gone.add(pod.metadata.uid)


CHANGES: dict[str, tuple[dict[str, Any], dict[str, Any], int, int]] = {
    # what: the spec before, the change, and how many pods must then have been made and have gone in all
    "scale up": (a_raycluster(a_group("small", 1)), {"workerGroupSpecs": [a_group("small", 4)]}, 5, 0),
    "scale down": (a_raycluster(a_group("small", 4)), {"workerGroupSpecs": [a_group("small", 1)]}, 5, 3),
    "another group": (
        a_raycluster(a_group("small", 2)),
        {"workerGroupSpecs": [a_group("large", 2)]},
        5,
        2,
    ),
    "multi-host": (a_raycluster(), {"workerGroupSpecs": [a_group("tpu", 2, numOfHosts=2)]}, 5, 0),
}


@pytest.fixture
async def scenes(ray_crds: ControlPlane, namespace: str) -> AsyncIterator[list[Scene]]:
    """One cluster for each number of writes before the crash."""
    async with connected(ray_crds.admin_kubeconfig) as kube:
        yield [Scene(kube, namespace, f"after-{writes}") for writes in range(MOST_WRITES)]


async def crash(plane: ControlPlane, scene: Scene, writes: int) -> None:
    """Run an operator until it dies after so many writes, or has nothing left to do."""
    fence = CrashAfter(writes)

    async def is_over() -> bool:
        return fence.is_spent or await scene.is_now("ready")

    async with operating(plane.admin_kubeconfig, scene.namespace, fence=fence):
        await eventually(is_over)


async def test_a_new_cluster_is_the_same_wherever_its_making_was_interrupted(
    ray_crds: ControlPlane, scenes: list[Scene]
) -> None:
    for writes, scene in enumerate(scenes):
        await scene.apply(a_raycluster(a_group("small", 3), name=scene.key.name))
        await crash(ray_crds, scene, writes)
        async with operating(ray_crds.admin_kubeconfig, scene.namespace) as operator:
            diary = PodDiary(operator)
            await operator.informers.wait_synced()
            await scene.becomes("ready")
            assert len(await scene.names("small")) == 3, f"after {writes} writes"
            assert len(await scene.names(labels.HEAD_GROUP)) == 1
        assert (len(diary.made), diary.gone) == (4, set()), f"after {writes} writes"
        await scene.remove()


@pytest.mark.parametrize("what", CHANGES)
async def test_a_change_is_the_same_wherever_it_was_interrupted(
    what: str, ray_crds: ControlPlane, scenes: list[Scene]
) -> None:
    before, change, made, gone = CHANGES[what]
    for writes, scene in enumerate(scenes):
        await scene.apply(before | {"metadata": {"name": scene.key.name}})
        async with operating(ray_crds.admin_kubeconfig, scene.namespace):
            await scene.becomes("ready")
        known = {pod["metadata"]["uid"] for pod in await scene.pods()}
        await scene.patch(**change)
        await crash(ray_crds, scene, writes)
        async with operating(ray_crds.admin_kubeconfig, scene.namespace) as operator:
            diary = PodDiary(operator)
            await operator.informers.wait_synced()
            await scene.becomes("ready")
            now = {pod["metadata"]["uid"] for pod in await scene.pods()}
        assert len(known | diary.made | now) == made, f"{what}: pods made, stopped after {writes} writes"
        assert len((known | diary.made) - now) == gone, f"{what}: pods gone, stopped after {writes} writes"
        await scene.remove()
