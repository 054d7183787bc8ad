"""Refused pods, lost races and failing pods: it comes right, costs few requests, and the user reads why."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncIterator, Iterator
from datetime import datetime, timedelta

import pytest

from bed.control_plane import ControlPlane
from bed.faults import Fault, HttpFaults
from raykeeper.api import labels
from raykeeper.api.meta import JSON, Object, ObjectKey
from raykeeper.kube.resources import EVENTS, PODS, SERVICES
from raykeeper.operator.kinds import WATCHED_PODS
from raykeeper.operator.raycluster.pod import REPLACED_AFTER
from support.admission import SENTENCE, UNWANTED, refusing_pods
from support.conditions import eventually, until
from support.kube_clients import connected
from support.operating import operating
from support.raycluster_scene import CLUSTERS, TEMPLATE, Scene, a_group, a_raycluster

pytestmark = pytest.mark.usefixtures("kwok")


@pytest.fixture
def wire(ray_crds: ControlPlane) -> Iterator[HttpFaults]:
    """What the operator says to the API server goes through here."""
    with HttpFaults(ray_crds, random.Random(4)) as proxy:
        yield proxy


@pytest.fixture
async def scene(ray_crds: ControlPlane, namespace: str) -> AsyncIterator[Scene]:
    async with connected(ray_crds.admin_kubeconfig) as kube:
        yield Scene(kube, namespace)


def sent(wire: HttpFaults, method: str, path: str) -> int:
    """How many requests went to a path; a regular expression."""
    return sum(1 for verb, where in wire.requests if verb == method and re.search(path, where))


async def notes(scene: Scene, reason: str) -> list[str]:
    """What the Events of that reason say, once there is one."""

    async def look() -> list[str]:
        found = await scene.kube.list(EVENTS, scene.namespace)
        return [event["note"] for event in found if event["reason"] == reason]

    return await eventually(look)


async def test_pods_that_admission_refuses_are_tried_ever_more_rarely_and_made_once_they_are_allowed(
    ray_crds: ControlPlane, wire: HttpFaults, scene: Scene
) -> None:
    unwanted = {"metadata": {"labels": UNWANTED}, **TEMPLATE}
    through_proxy = ray_crds.kubeconfig(server=wire.server)
    async with operating(through_proxy, scene.namespace) as operator:
        async with refusing_pods(scene.kube, scene.namespace):
            await scene.apply(a_raycluster(a_group("small", 20, template=unwanted)))
            condition = await scene.condition("ReplicaFailure", "True")
            assert condition["reason"] == "FailedCreateWorkerPod"
            assert SENTENCE in condition["message"]
            await scene.condition("HeadPodReady", "True")
            queue = operator.controllers[0].queue
            await until(lambda: queue.failures(scene.key) >= 7)
            (note,) = await notes(scene, "FailedToCreateWorkerPod")
            assert SENTENCE in note
            passes = queue.failures(scene.key)
            # One pod in each pass tries whether it is allowed by now; a few passes come from what the head pod does.
            assert sent(wire, "POST", "/pods") <= passes + 12
            assert sent(wire, "PATCH", "/rayclusters/demo/status") <= 8
        cluster = await scene.becomes("ready")
    assert "ReplicaFailure" not in [one["type"] for one in cluster["status"]["conditions"]]
    assert len(await scene.names("small")) == 20


async def test_a_group_whose_pods_are_refused_keeps_no_other_from_its_own(ray_crds: ControlPlane, scene: Scene) -> None:
    unwanted = {"metadata": {"labels": UNWANTED}, **TEMPLATE}
    async with (
        operating(ray_crds.admin_kubeconfig, scene.namespace),
        refusing_pods(scene.kube, scene.namespace),
    ):
        await scene.apply(a_raycluster(a_group("gpu", 300, template=unwanted), a_group("cpu", 5)))
        await scene.has_pods("cpu", 5)
        condition = await scene.condition("ReplicaFailure", "True")
        assert (condition["reason"], SENTENCE in condition["message"]) == ("FailedCreateWorkerPod", True)


async def test_a_pod_that_must_not_be_deleted_keeps_no_other_from_going(ray_crds: ControlPlane, scene: Scene) -> None:
    unwanted = {"metadata": {"labels": UNWANTED}, **TEMPLATE}
    async with (
        operating(ray_crds.admin_kubeconfig, scene.namespace),
        refusing_pods(scene.kube, scene.namespace, "DELETE"),
    ):
        await scene.apply(a_raycluster(a_group("kept", 2, template=unwanted), a_group("free", 4)))
        await scene.becomes("ready")
        await scene.patch(workerGroupSpecs=[a_group("kept", 0, template=unwanted), a_group("free", 1)])
        await scene.has_pods("free", 1)
        condition = await scene.condition("ReplicaFailure", "True")
        assert (condition["reason"], SENTENCE in condition["message"]) == ("FailedDeleteWorkerPod", True)
    assert len(await scene.names("kept")) == 2


async def test_lost_races_with_other_writers_are_run_again(
    ray_crds: ControlPlane, wire: HttpFaults, scene: Scene
) -> None:
    faults = [
        wire.inject(Fault(409, method, f"/namespaces/{scene.namespace}/", probability=0.3))
        for method in ("POST", "PATCH", "DELETE")
    ]
    async with operating(ray_crds.kubeconfig(server=wire.server), scene.namespace):
        redis: JSON = {"gcsFaultToleranceOptions": {"redisAddress": "redis:6379"}}
        await scene.apply(a_raycluster(a_group("small", 5), **redis))
        await scene.becomes("ready")
        await scene.patch(workerGroupSpecs=[a_group("small", 2)])
        await scene.becomes("ready")
        kept = await scene.names("small")
        await scene.patch(suspend=True)
        await scene.becomes("suspended")
        await scene.patch(suspend=False)
        cluster = await scene.becomes("ready")
        now = await scene.has_pods("small", 2)
        assert now.isdisjoint(kept)
        assert "ReplicaFailure" not in [one["type"] for one in cluster["status"]["conditions"]]
        await scene.kube.delete(CLUSTERS, scene.key)

        async def is_gone() -> bool:
            return await scene.kube.find(CLUSTERS, scene.key) is None

        await eventually(is_gone)
    assert all(fault.hits for fault in faults), "the races were not lost"


class Misfortune:
    """Lets every fifth worker pod fail once it runs."""

    def __init__(self, scene: Scene) -> None:
        self.struck: set[str] = set()
        self._scene = scene
        self._seen = 0
        self._patches: list[asyncio.Task[Object]] = []

    async def settle(self) -> None:
        """Return once all who were chosen have been struck."""
        await asyncio.gather(*self._patches)

    def note(self, old: Object | None, new: Object | None) -> None:
        if old is not None or new is None or new.metadata.labels[labels.NODE_TYPE] != labels.WORKER:
            return
        self._seen += 1
        if self._seen % 5 == 0:
            self.struck.add(new.metadata.name)
            fail: JSON = {"metadata": {"annotations": {"bed/fail": "true"}}}
            key = ObjectKey(self._scene.namespace, new.metadata.name)
            self._patches.append(asyncio.create_task(self._scene.kube.merge_patch(PODS, key, fail)))


async def test_a_cluster_of_which_every_fifth_pod_fails_gets_all_its_pods(
    ray_crds: ControlPlane, wire: HttpFaults, scene: Scene
) -> None:
    misfortune = Misfortune(scene)

    async def is_whole() -> bool:
        return misfortune.struck.isdisjoint(await scene.names("small")) and await scene.is_now("ready")

    async with operating(ray_crds.kubeconfig(server=wire.server), scene.namespace) as operator:
        operator.informers.of(WATCHED_PODS).on_change(misfortune.note)
        await scene.apply(a_raycluster(a_group("small", 30)))
        await eventually(is_whole)
        await misfortune.settle()
        assert len(misfortune.struck) >= 6
        assert len(await scene.names("small")) == 30
        assert all("it has ended and will not be restarted" in note for note in await notes(scene, "DeletedWorkerPod"))
    assert sent(wire, "POST", "/pods") == 31 + len(misfortune.struck), "one pod for each that failed, and no more"
    assert sent(wire, "DELETE", "/pods") == len(misfortune.struck)


async def test_a_head_that_fails_at_once_is_made_again_after_a_moment_and_workers_stay(
    ray_crds: ControlPlane, scene: Scene
) -> None:
    failing = {"metadata": {"annotations": {"bed/fail": "true"}}, **TEMPLATE}
    heads: dict[str, datetime] = {}

    def note(_: Object | None, pod: Object | None) -> None:
        if pod is not None and pod.metadata.labels[labels.NODE_TYPE] == labels.HEAD:
            heads[pod.metadata.uid] = datetime.fromisoformat(pod.metadata.creation_timestamp or "")

    async with operating(ray_crds.admin_kubeconfig, scene.namespace) as operator:
        operator.informers.of(WATCHED_PODS).on_change(note)
        await scene.apply(a_raycluster(a_group("small", 2), headGroupSpec={"template": failing}))
        workers = await scene.has_pods("small", 2)
        await until(lambda: len(heads) == 3)
        assert await scene.names("small") == workers
    first, second, third = heads.values()
    # Kubernetes tells the time of a creation in whole seconds.
    assert min(second - first, third - second) >= REPLACED_AFTER - timedelta(seconds=1)


async def test_a_service_that_cannot_be_repaired_stops_no_pod_work(
    ray_crds: ControlPlane, wire: HttpFaults, scene: Scene
) -> None:
    async with operating(ray_crds.kubeconfig(server=wire.server), scene.namespace):
        await scene.apply(a_raycluster(a_group("small", 2)))
        await scene.becomes("ready")
        refusal = wire.inject(Fault(422, "PATCH", f"/namespaces/{scene.namespace}/services/"))
        await scene.patch(headServiceAnnotations={"a": "1"}, workerGroupSpecs=[a_group("small", 4)])
        await scene.has_pods("small", 4)
        await scene.patch(workerGroupSpecs=[a_group("small", 1)])
        await scene.has_pods("small", 1)
        assert await notes(scene, "FailedToUpdateService")
    assert refusal.hits


async def test_a_cluster_without_an_ingress_works_while_admission_refuses_it(
    ray_crds: ControlPlane, wire: HttpFaults, scene: Scene
) -> None:
    refusal = wire.inject(Fault(500, "POST", f"/namespaces/{scene.namespace}/ingresses"))
    async with operating(ray_crds.kubeconfig(server=wire.server), scene.namespace):
        await scene.apply(
            a_raycluster(a_group("small", 1), headGroupSpec={"template": TEMPLATE, "enableIngress": True})
        )
        await scene.condition("RayClusterProvisioned", "True")
        ready = await scene.condition("Ready", "False")
        assert ready["reason"] == "ChildRefused"
        assert ready["message"].startswith("1 of 1 workers are ready; ")
        status = (await scene.cluster())["status"]
        assert "ReplicaFailure" not in [one["type"] for one in status["conditions"]]
        assert status.get("state", "") == "", "as in KubeRay, while anything of it is refused"
        assert await notes(scene, "FailedToCreateIngress")
    assert refusal.hits


async def test_no_pod_is_made_while_the_head_service_is_missing_but_pods_go(
    ray_crds: ControlPlane, wire: HttpFaults, scene: Scene
) -> None:
    async with operating(ray_crds.kubeconfig(server=wire.server), scene.namespace):
        await scene.apply(a_raycluster(a_group("small", 2)))
        await scene.becomes("ready")
        wire.inject(Fault(403, "POST", f"/namespaces/{scene.namespace}/services"))
        await scene.kube.delete(SERVICES, ObjectKey(scene.namespace, "demo-head-svc"))
        assert await notes(scene, "FailedToCreateService")
        await scene.patch(workerGroupSpecs=[a_group("small", 1), a_group("large", 1)])
        await scene.has_pods("small", 1)
        assert await scene.names("large") == set()
        condition = await scene.condition("ReplicaFailure", "True")
        assert condition["reason"] == "FailedCreateChild"


async def test_no_pod_is_made_while_the_finalizer_is_refused_but_pods_go(
    ray_crds: ControlPlane, wire: HttpFaults, scene: Scene
) -> None:
    redis: JSON = {"gcsFaultToleranceOptions": {"redisAddress": "redis:6379"}}
    async with operating(ray_crds.kubeconfig(server=wire.server), scene.namespace):
        await scene.apply(a_raycluster(a_group("small", 2), **redis))
        await scene.becomes("ready")
        wire.inject(Fault(403, "PATCH", f"/namespaces/{scene.namespace}/rayclusters/demo$"))
        await scene.kube.merge_patch(CLUSTERS, scene.key, {"metadata": {"finalizers": None}})
        await scene.patch(workerGroupSpecs=[a_group("small", 1), a_group("large", 1)])
        await scene.has_pods("small", 1)
        assert await scene.names("large") == set()
        assert (await scene.condition("ReplicaFailure", "True"))["reason"] == "FailedCreateChild"
