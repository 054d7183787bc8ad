"""Changes of a RayCluster that are interrupted after every single write, and what is left of them in the end."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from bed.control_plane import ControlPlane
from bed.fixtures import make_namespace, remove_namespace
from raykeeper.api import labels
from raykeeper.api.meta import JSON, Object
from raykeeper.kube.client import Kube
from raykeeper.kube.errors import NotLeading
from raykeeper.operator.api_server_facts import ApiServerFacts
from raykeeper.operator.kinds import WATCHED_JOBS, WATCHED_PODS
from raykeeper.operator.raycluster.observe import CHILD_KINDS
from support.conditions import eventually
from support.kube_clients import connected
from support.operating import KUBERNETES, Given, Operator, operating
from support.raycluster_scene import CLUSTERS, Scene

AT_ONCE = 4
"""Interruptions that are played side by side: each waits most of the time."""
PATIENCE = 400.0
"""Seconds; a change takes three of them, and many are played at once."""
MOST_WRITES = 40
"""More than any change takes."""

Portrait = dict[str, Any]


class CrashAfter:
    """Lets so many writes pass, and then none: to the world it looks as if the process died right there."""

    def __init__(self, writes: int | None) -> None:
        """None: all of them pass, and are counted."""
        self.is_spent = False
        self.passed = 0
        self._most = writes

    def check(self) -> None:
        if self.passed == self._most:
            self.is_spent = True
            raise NotLeading("the test crashes here")
        self.passed += 1


@dataclass(frozen=True)
class Story:
    """A cluster as it was, what is changed about it, and how one knows that the change is done."""

    change: Callable[[Scene], Awaitable[None]]
    is_done: Callable[[Scene], Awaitable[bool]]
    made: int
    """Ray pods that must have been made in all, those before the change among them."""
    gone: int
    """How many of them must be gone."""
    before: JSON | None = None
    """None: there is no cluster before the change."""
    state_before: str = "ready"
    jobs: int = 0
    """Jobs that must have been made."""
    given: Given = field(default_factory=Given)
    """The operators' circumstances."""


@dataclass
class Diary:
    """Every pod and every Job of a namespace that ever was, whichever operator looked."""

    pods: set[str] = field(default_factory=set)
    jobs: set[str] = field(default_factory=set)

    def follow(self, operator: Operator) -> None:
        operator.informers.of(WATCHED_PODS).on_change(self._note_pod)
        operator.informers.of(WATCHED_JOBS).on_change(self._note_job)

    def _note_pod(self, old: Object | None, new: Object | None) -> None:
        pod = new or old
        if pod is not None and pod.metadata.labels.get(labels.NODE_TYPE) in (labels.HEAD, labels.WORKER):
            self.pods.add(pod.metadata.uid)

    def _note_job(self, old: Object | None, new: Object | None) -> None:
        job = new or old
        if job is not None:
            self.jobs.add(job.metadata.uid)


async def play(plane: ControlPlane, story: Story) -> int:
    """Interrupt the change after no write, after one, after two and so on, and check the end of each.

    Returns after how many writes it was not interrupted any more: so many does the change take.
    """
    async with connected(plane.admin_kubeconfig) as kube:
        ends: list[tuple[bool, Portrait]] = []
        while not any(is_undisturbed for is_undisturbed, _ in ends):
            assert len(ends) < MOST_WRITES, "the change never ends"
            numbers = range(len(ends), len(ends) + AT_ONCE)
            ends += await asyncio.gather(*(_interrupted(plane, kube, story, writes) for writes in numbers))
    undisturbed = next(number for number, (is_undisturbed, _) in enumerate(ends) if is_undisturbed)
    for writes, (_, portrait) in enumerate(ends):
        assert portrait == ends[undisturbed][1], f"stopped after {writes} writes"
    return undisturbed


async def _interrupted(plane: ControlPlane, kube: Kube, story: Story, writes: int) -> tuple[bool, Portrait]:
    """Whether there was no interruption, and the end."""
    async with _a_namespace(plane) as namespace:
        scene, diary, fence = Scene(kube, namespace), Diary(), CrashAfter(writes)
        await _prepare(plane, scene, story, diary)
        await story.change(scene)

        async def is_over() -> bool:
            return fence.is_spent or await story.is_done(scene)

        crashing = Given(**story.given, fence=fence)
        async with operating(plane.admin_kubeconfig, namespace, **crashing) as first:
            diary.follow(first)
            await eventually(is_over, seconds=PATIENCE)
        async with operating(plane.admin_kubeconfig, namespace, **story.given) as second:
            diary.follow(second)
            await second.informers.wait_synced()
            await eventually(lambda: story.is_done(scene), seconds=PATIENCE)
            portrait = await _portrait(scene, story.given.get("api_server", KUBERNETES))
            left = {pod["metadata"]["uid"] for pod in await scene.pods()}
        counts = (len(diary.pods), len(diary.pods - left), len(diary.jobs))
        assert counts == (story.made, story.gone, story.jobs), f"pods made, gone, Jobs made; after {writes} writes"
        return not fence.is_spent, portrait


async def _prepare(plane: ControlPlane, scene: Scene, story: Story, diary: Diary) -> None:
    if story.before is None:
        return
    await scene.apply(story.before)
    async with operating(plane.admin_kubeconfig, scene.namespace, **story.given) as operator:
        diary.follow(operator)
        await scene.becomes(story.state_before, seconds=PATIENCE)


@contextlib.asynccontextmanager
async def _a_namespace(plane: ControlPlane) -> AsyncIterator[str]:
    """Operators look at whole namespaces, so each interruption has one of its own."""
    name = f"crash-{uuid4().hex[:10]}"
    await asyncio.to_thread(make_namespace, plane, name)
    try:
        yield name
    finally:
        await asyncio.to_thread(remove_namespace, plane, name)


async def _portrait(scene: Scene, api_server: ApiServerFacts) -> Portrait:
    """What must be the same in the end, whatever happened on the way; Kubernetes collects what a deleted one left."""
    cluster = await scene.kube.find(CLUSTERS, scene.key)
    if cluster is None:
        return {}
    groups = Counter(pod["metadata"]["labels"][labels.GROUP] for pod in await scene.pods())
    children: set[str] = set()
    for kind in CHILD_KINDS:
        if kind.is_served(api_server):
            found = await scene.kube.list(kind.resource.read_as(dict), scene.namespace, labels=kind.labels)
            sizes = [_gang_size(item.get("spec", {})) for item in found]
            names = [f"{kind.resource.kind} {item['metadata']['name']}" for item in found]
            children |= {f"{name} {size}".strip() for name, size in zip(names, sizes, strict=True)}
    return {"pods": groups, "children": children, **_told(cluster)}


def _gang_size(spec: JSON) -> Any:
    """Of a PodGroup, whosever it is."""
    return spec.get("minMember") or spec.get("schedulingPolicy", {}).get("gang", {}).get("minCount", "")


def _told(cluster: JSON) -> Portrait:
    """What the cluster says about itself, without names and times."""
    status = cluster.get("status", {})
    conditions = {(one["type"], one["status"], one["reason"]) for one in status.get("conditions", [])}
    finalizers = cluster["metadata"].get("finalizers", [])
    return {"state": status.get("state"), "conditions": conditions, "finalizers": finalizers}
