"""Gangs under real schedulers, Kubernetes' own with its workload API among them: all pods of a RayCluster or none.

Each test has one node, with room for eight pods.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from bed.control_plane import ControlPlane
from bed.crds import install_ray_crds
from bed.daemons import ControlPlaneSettings
from bed.fixtures import NewControlPlane, make_namespace
from bed.kwok import Kwok
from bed.scheduler_plugins import scheduler_plugins_on
from bed.schedulers import WORKLOAD_API
from bed.volcano import Volcano, volcano_on
from bed.yunikorn import yunikorn_on
from raykeeper.api import labels
from raykeeper.api.meta import JSON, ObjectKey, Resource
from raykeeper.kube.client import Kube
from raykeeper.operator.schedulers import kubernetes_was, volcano
from support.conditions import eventually
from support.kube_clients import connected
from support.operator_processes import operators_of
from support.raycluster_scene import CLUSTERS, POD_OBJECTS, Scene, a_group, a_raycluster

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

STARTED: Final[Mapping[str, Callable[[ControlPlane], AbstractContextManager[Any]]]] = {
    "kubernetes-was": nullcontext,
    "volcano": volcano_on,
    "scheduler-plugins": scheduler_plugins_on,
    "yunikorn": yunikorn_on,
}
GROUPS: Final[Mapping[str, Resource[JSON]]] = {
    "kubernetes-was": kubernetes_was.POD_GROUPS.read_as(dict),
    "volcano": volcano.POD_GROUPS.read_as(dict),
}
REFUSED: Final = {"kubernetes-was": ("PodGroupScheduled", "False"), "volcano": ("Unschedulable", "True")}
"""The condition of a PodGroup by which a scheduler says that it tried to place a gang and could not. Of the others, the
pods say it, or those that hold their places.
"""
PLACEHOLDER: Final = "internal.yunikorn.apache.org/placeholder"
"""Annotation of the pods by which YuniKorn holds the room for a gang, until all of it is there."""
APPLICATION: Final = "yunikorn.apache.org/app-id"
"""Label of those pods: the gang they are for."""
GROWS_WHOLE: Final = ("kubernetes-was", "scheduler-plugins")
"""Schedulers that start all of the pods by which a gang grew, or none."""
AN_EIGHTH: Final = "8"
"""CPUs; a node has 64."""
SECONDS: Final = 120.0


@dataclass(frozen=True)
class Stage:
    """A control plane whose scheduler starts gangs together."""

    scheduler: str
    plane: ControlPlane
    kwok: Kwok
    volcano: Volcano | None = None


@pytest.fixture(scope="module", params=STARTED)
def stage(request: pytest.FixtureRequest, new_control_plane: NewControlPlane) -> Iterator[Stage]:
    plane = new_control_plane(WORKLOAD_API if request.param == "kubernetes-was" else ControlPlaneSettings())
    install_ray_crds(plane)
    kwok = Kwok(plane)
    kwok.up(nodes=0)
    with STARTED[request.param](plane) as running:
        yield Stage(request.param, plane, kwok, running if isinstance(running, Volcano) else None)
    kwok.down()


def flag(scheduler: str) -> str:
    return "--feature-gates=KubernetesWAS=true" if scheduler == "kubernetes-was" else f"--batch-scheduler={scheduler}"


@dataclass(frozen=True)
class Room:
    """A namespace and a node for its pods, with our operator at work."""

    stage: Stage
    kube: Kube
    namespace: str
    node: str

    async def apply(self, name: str, workers: int, large: int = 0, **fields: Any) -> Scene:
        """A RayCluster whose pods each take an eighth of the node; `large` workers are a group of their own."""
        container = {"name": "ray", "image": "ray", "resources": {"requests": {"cpu": AN_EIGHTH, "memory": "1Gi"}}}
        template = {"spec": {"containers": [container], "nodeSelector": {"room": self.node}}}
        limits = {"template": template, "minReplicas": 0, "maxReplicas": 8}
        groups = [a_group("small", workers, **limits), *([a_group("large", large, **limits)] if large else [])]
        usual = {labels.GANG_SCHEDULING_ENABLED: "true"}
        marks = usual | fields.pop("marks", {})
        autoscaler = {"resources": {"requests": {"cpu": "0"}, "limits": {}}}
        head = {"template": template}
        body = a_raycluster(*groups, name=name, headGroupSpec=head, autoscalerOptions=autoscaler, **fields)
        body["metadata"]["labels"] = marks
        scene = Scene(self.kube, self.namespace, name)
        await scene.apply(body)
        return scene

    async def fill(self) -> ObjectKey:
        """Somebody else's pod on an eighth of the node."""
        container = {"name": "a", "image": "a", "resources": {"requests": {"cpu": AN_EIGHTH}}}
        body = {"metadata": {"name": "filler"}, "spec": {"nodeName": self.node, "containers": [container]}}
        await self.kube.create(POD_OBJECTS, body, self.namespace)
        return ObjectKey(self.namespace, "filler")

    async def is_refused(self, scene: Scene, pods: int) -> None:
        """Return once all pods are there, and the scheduler has tried in vain to place them."""

        async def look() -> bool:
            return len(await scene.pods()) == pods and await self._has_tried(scene)

        await eventually(look, seconds=SECONDS)

    async def _has_tried(self, scene: Scene) -> bool:
        if self.stage.scheduler in GROUPS:
            groups = await self.kube.list(GROUPS[self.stage.scheduler], self.namespace)
            ours = [one for one in groups if one["metadata"]["ownerReferences"][0]["name"] == scene.key.name]
            told = [one for group in ours for one in group.get("status", {}).get("conditions", [])]
            return REFUSED[self.stage.scheduler] in [(one["type"], one["status"]) for one in told]
        pods = await self.kube.list(POD_OBJECTS, self.namespace)
        waiting = [pod for pod in pods if is_tried_for(pod, scene.key.name) and not pod["spec"].get("nodeName")]
        # YuniKorn does not try the pods of a gang while some of those wait that hold the room for it.
        tried = [pod for pod in waiting if is_placeholder(pod)] or waiting
        return bool(tried) and all(is_unschedulable(pod) for pod in tried)


def is_tried_for(pod: JSON, cluster: str) -> bool:
    """Whether the scheduler places a pod for the gang: one of its own, or one that holds the room."""
    marks = pod["metadata"].get("labels", {})
    if is_placeholder(pod):
        return bool(marks.get(APPLICATION) == f"ray-{pod['metadata']['namespace']}-{cluster}")
    return bool(marks.get(labels.CLUSTER) == cluster)


def is_placeholder(pod: JSON) -> bool:
    return bool(pod["metadata"].get("annotations", {}).get(PLACEHOLDER) == "true")


def is_unschedulable(pod: JSON) -> bool:
    told = pod["status"].get("conditions", [])
    return any(one["type"] == "PodScheduled" and one.get("reason") == "Unschedulable" for one in told)


async def placed(scene: Scene) -> int:
    """Pods that have a node."""
    return sum(1 for pod in await scene.pods() if pod["spec"].get("nodeName"))


@pytest.fixture
async def room(stage: Stage, tmp_path: Path) -> AsyncIterator[Room]:
    name = f"room-{uuid.uuid4().hex[:6]}"
    make_namespace(stage.plane, name)
    stage.kwok.add_node(name, labels={"room": name})
    async with connected(stage.plane.admin_kubeconfig) as kube:
        with operators_of(stage.plane, tmp_path) as operators:
            flags = ("--enable-leader-election=false", f"--watch-namespace={name}", flag(stage.scheduler))
            operators.start(*flags).wait_ready()
            yield Room(stage, kube, name, name)
            await kube.delete_collection(CLUSTERS, name)
            await eventually(lambda: is_empty(kube, name), seconds=SECONDS)
    stage.kwok.remove_node(name)


async def is_empty(kube: Kube, namespace: str) -> bool:
    return not await kube.list(CLUSTERS, namespace) and not [
        pod for pod in await kube.list(POD_OBJECTS, namespace) if pod["metadata"]["name"] != "filler"
    ]


async def test_a_gang_of_eight_starts_none_with_room_for_seven_and_all_with_room_for_eight(room: Room) -> None:
    filler = await room.fill()
    scene = await room.apply("demo", workers=7)
    await room.is_refused(scene, pods=8)
    assert await placed(scene) == 0
    told = await scene.condition("Scheduled", "False")
    assert room.stage.scheduler == "yunikorn" or "PodGroup" in told["message"]
    assert "group small: 7 of 7 pods have no node" in told["message"]
    await room.kube.delete(POD_OBJECTS, filler)
    await scene.becomes("ready", SECONDS)
    assert await placed(scene) == 8
    await scene.condition("Scheduled", "True")


async def test_two_gangs_that_fit_only_one_after_the_other_never_hold_each_other_up(room: Room) -> None:
    first, second = [await room.apply(name, workers=4) for name in ("first", "second")]
    ready = await one_is_ready(first, second)
    other = second if ready is first else first
    await room.is_refused(other, pods=5)
    assert (await placed(ready), await placed(other)) == (5, 0)
    await room.kube.delete(CLUSTERS, ready.key)
    await other.becomes("ready", SECONDS)
    assert await placed(other) == 5


async def one_is_ready(*scenes: Scene) -> Scene:
    async def look() -> Scene | None:
        states = await asyncio.gather(*(scene.is_now("ready") for scene in scenes))
        return next((scene for scene, is_ready in zip(scenes, states, strict=True) if is_ready), None)

    found = await eventually(look, seconds=SECONDS)
    assert found is not None
    return found


async def test_a_gang_that_grows_gets_all_of_the_new_pods_or_none(room: Room) -> None:
    filler = await room.fill()
    scene = await room.apply("demo", workers=3)
    await scene.becomes("ready", SECONDS)
    before = await scene.names("small")
    await grow(scene, 7)
    await room.is_refused(scene, pods=8)
    assert before <= await scene.names("small")
    if room.stage.scheduler in GROWS_WHOLE:
        assert await placed(scene) == 4
    await room.kube.delete(POD_OBJECTS, filler)
    await scene.becomes("ready", SECONDS)
    assert await placed(scene) == 8


async def grow(scene: Scene, workers: int) -> None:
    groups = (await scene.cluster())["spec"]["workerGroupSpecs"]
    await scene.patch(workerGroupSpecs=[groups[0] | {"replicas": workers}])


@pytest.mark.parametrize("stage", ["volcano"], indirect=True)  # kube-scheduler has no queues
async def test_a_queue_takes_back_what_another_borrowed_down_to_its_gang(room: Room) -> None:
    assert room.stage.volcano is not None
    lender, borrower = (f"{role}-{room.namespace}" for role in ("lender", "borrower"))
    for queue, weight in ((lender, 3), (borrower, 1)):
        await asyncio.to_thread(room.stage.volcano.add_queue, queue, weight)
    # Its gang is the head and no worker: the other seven may go.
    loose = await room.apply("loose", workers=7, marks={volcano.QUEUE: borrower}, enableInTreeAutoscaling=True)
    await loose.becomes("ready", SECONDS)
    assert await placed(loose) == 8
    gang = await room.apply("gang", workers=3, marks={volcano.QUEUE: lender})
    await gang.becomes("ready", SECONDS)
    assert await placed(gang) == 4
    assert await placed(loose) == 4


@pytest.mark.parametrize("stage", ["volcano"], indirect=True)
async def test_groups_that_are_gangs_for_themselves_do_not_wait_for_each_other(room: Room) -> None:
    await room.fill()
    scene = await room.apply("demo", workers=2, large=8, marks={volcano.GANGS: volcano.GROUPS})
    await room.is_refused(scene, pods=11)

    async def look() -> bool:
        return await placed(scene) == 3

    await eventually(look, seconds=SECONDS)
    with_node = {pod["metadata"]["labels"][labels.GROUP] for pod in await scene.pods() if pod["spec"].get("nodeName")}
    assert with_node == {labels.HEAD_GROUP, "small"}


@pytest.mark.parametrize("stage", ["volcano"], indirect=True)
async def test_a_gang_of_subgroups_starts_as_one(room: Room) -> None:
    filler = await room.fill()
    scene = await room.apply("demo", workers=4, large=3, marks={volcano.GANGS: volcano.SUBGROUPS})
    await room.is_refused(scene, pods=8)
    assert await placed(scene) == 0
    await room.kube.delete(POD_OBJECTS, filler)
    await scene.becomes("ready", SECONDS)
    assert await placed(scene) == 8
