"""The life of a RayJob, stopped after every single write of the operator and gone on with by the next one.

The end is the same, no attempt is given to Ray twice, and no cluster or submitter is made twice.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
import pytest_asyncio

from bed.control_plane import ControlPlane
from bed.kwok import Kwok
from raykeeper.api.meta import JSON, Object
from raykeeper.operator.kinds import WATCHED_JOBS, WATCHED_RAYCLUSTERS
from raykeeper.operator.schedulers.volcano import POD_GROUPS
from raykeeper.operator.settings import OperatorSettings, RayJobSettings
from support.conditions import eventually
from support.crashes import CrashAfter
from support.kube_clients import connected
from support.operating import ClockAhead, Given, Operator, operating_each, with_scheduler
from support.raycluster_scene import CLUSTERS, TEMPLATE, a_group, a_raycluster
from support.rayjob_scene import CLUSTER_SPEC, RAY_JOB_OBJECTS, JobScene, a_job_scene, a_rayjob
from support.side_by_side import Told, selected, told

pytestmark = pytest.mark.timeout(1500)  # the first test lives all lives
FEWEST_WRITES, MOST_WRITES = 5, 60
AT_ONCE = 4
"""Kinds of lives."""
PATIENCE = 400.0
"""Seconds; a life takes five of them, and eighty are lived at once."""


async def nothing(_scene: JobScene) -> None:
    """The scripted head does it all."""


async def is_complete(scene: JobScene) -> bool:
    return (await scene.status()).get("jobDeploymentStatus") == "Complete"


async def is_complete_without_cluster(scene: JobScene) -> bool:
    return await is_complete(scene) and not await scene.clusters()


async def is_complete_without_gang(scene: JobScene) -> bool:
    """Its PodGroup stays as long as the RayJob, and asks for nothing."""
    return await is_complete_without_cluster(scene) and set((await gangs(scene)).values()) == {0}


async def gangs(scene: JobScene) -> dict[str, int]:
    """The members of each PodGroup."""
    groups = await scene.kube.list(POD_GROUPS.read_as(dict), scene.namespace)
    return {group["metadata"]["name"]: group["spec"]["minMember"] for group in groups}


async def has_failed(scene: JobScene) -> bool:
    return (await scene.status()).get("jobDeploymentStatus") == "Failed"


async def has_failed_without_cluster(scene: JobScene) -> bool:
    return await has_failed(scene) and not await scene.clusters()


async def is_gone(scene: JobScene) -> bool:
    return await scene.kube.find(RAY_JOB_OBJECTS, scene.key) is None


@dataclass(frozen=True)
class Life:
    """A RayJob, what happens to it from outside, and how one knows that it is over."""

    body: JSON
    is_over: Callable[[JobScene], Awaitable[bool]] = is_complete
    meanwhile: Callable[[JobScene], Coroutine[None, None, None]] = nothing
    """Done once, by the world, whichever operator looks."""
    outcome: str = "SUCCEEDED"
    submitted: int = 0
    """Jobs that the operator itself gives to Ray."""
    clusters: int = 1
    may_make_fewer: bool = False
    """What happens from outside may come before the first cluster, if the operator was stopped before."""
    submitters: int = 0
    before: JSON | None = None
    """A cluster that is there already."""
    given: Given = field(default_factory=Given)
    """The operators' circumstances."""


@dataclass
class Made:
    """Uids of all that operators ever saw, by namespace."""

    clusters: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    submitters: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def follow(self, operator: Operator) -> None:
        operator.informers.of(WATCHED_RAYCLUSTERS).on_change(_noting(self.clusters))
        operator.informers.of(WATCHED_JOBS).on_change(_noting(self.submitters))


def _noting(uids: defaultdict[str, set[str]]) -> Callable[[Object | None, Object | None], None]:
    def note(_old: Object | None, new: Object | None) -> None:
        if new is not None:
            uids[new.metadata.namespace].add(new.metadata.uid)

    return note


async def sidecar_ends(scene: JobScene) -> None:
    await scene.end_sidecar()


async def user_submits(scene: JobScene) -> None:
    await scene.becomes("Waiting", seconds=PATIENCE)
    scene.head.move("mine", "RUNNING")
    await scene.patch(jobId="mine")


async def is_submitted(scene: JobScene) -> bool:
    return bool(scene.head.submitted)


async def is_suspended_once(scene: JobScene) -> None:
    await eventually(lambda: is_submitted(scene), seconds=PATIENCE)
    await scene.patch(suspend=True)
    await scene.becomes("Suspended", seconds=PATIENCE)
    scene.head.outcome = "SUCCEEDED"
    await scene.patch(suspend=False)


async def is_suspended_early(scene: JobScene) -> None:
    """Before there is a head; what kept it from starting is taken away meanwhile."""
    await scene.becomes("Initializing", seconds=PATIENCE)
    await scene.patch(suspend=True)
    await scene.becomes("Suspended", seconds=PATIENCE)
    await scene.patch(suspend=False, rayClusterSpec=CLUSTER_SPEC | {"headGroupSpec": {"template": UNHELD}})


async def is_resumed(scene: JobScene) -> None:
    await scene.becomes("Suspended", seconds=PATIENCE)
    await scene.patch(suspend=False)


async def is_suspended_while_it_waits(scene: JobScene) -> None:
    await scene.becomes("Waiting", seconds=PATIENCE)
    await scene.patch(suspend=True)
    await scene.becomes("Suspended", seconds=PATIENCE)
    await scene.patch(suspend=False)
    await user_submits(scene)


async def is_too_slow(scene: JobScene) -> None:
    await scene.becomes("Initializing", seconds=PATIENCE)
    await scene.patch(activeDeadlineSeconds=1)


async def is_mended(scene: JobScene) -> None:
    await scene.becomes("ValidationFailed", seconds=PATIENCE)
    await scene.patch(runtimeEnvYAML=None)


async def loses_its_head_once(scene: JobScene) -> None:
    await scene.becomes("Running", "RUNNING", seconds=PATIENCE)
    scene.head.jobs.clear()
    await scene.delete_heads()
    await fails_once(scene)


async def becomes_silent(scene: JobScene) -> None:
    await scene.becomes("Running", "RUNNING", seconds=PATIENCE)
    scene.head.failure = "GCS is away"


async def fails_once(scene: JobScene) -> None:
    """The first attempt fails, the second one does not."""

    async def has_failed_once() -> bool:
        return (await scene.status()).get("failed") == 1

    await eventually(has_failed_once, seconds=PATIENCE)
    scene.head.outcome = "SUCCEEDED"


async def runs_out_of_time(scene: JobScene) -> None:
    await scene.becomes("Running", "RUNNING", seconds=PATIENCE)
    scene.head.outcome = ""
    await scene.patch(activeDeadlineSeconds=1)


async def waits_out_of_time(scene: JobScene) -> None:
    await scene.becomes("Waiting", seconds=PATIENCE)
    await scene.patch(preRunningDeadlineSeconds=1)


async def is_deleted(scene: JobScene) -> None:
    status = await scene.becomes("Running", "RUNNING", seconds=PATIENCE)
    scene.head.outcome = ""
    scene.head.move(status["jobId"], "RUNNING")
    await scene.kube.delete(RAY_JOB_OBJECTS, scene.key)


def with_head(**annotations: str) -> JSON:
    template = {"metadata": {"annotations": annotations}, **TEMPLATE}
    return {"rayClusterSpec": CLUSTER_SPEC | {"headGroupSpec": {"template": template}}}


def with_submitter(**annotations: str) -> JSON:
    """A submitter pod that does what its annotations say."""
    pod = {"restartPolicy": "Never", "containers": [{"name": "submitter", "image": "rayproject/ray:2.60.0"}]}
    template = {"metadata": {"annotations": annotations}, "spec": pod}
    return {"submitterPodTemplate": template, "submitterConfig": {"backoffLimit": 0}}


def deleting(*rows: tuple[str, JSON]) -> JSON:
    return {"deletionStrategy": {"deletionRules": [{"policy": policy, "condition": when} for policy, when in rows]}}


def impatient(**settings: Any) -> Given:
    return Given(settings=replace(OperatorSettings(), rayjob=RayJobSettings(**settings)))


UNHELD: JSON = {"metadata": {"annotations": {"bed/hold": None}}, **TEMPLATE}
HELD = with_head(**{"bed/hold": "true"})
WORKERS: JSON = {"rayClusterSpec": CLUSTER_SPEC | {"workerGroupSpecs": [a_group("small", 1)]}}
SHARED: JSON = {"clusterSelector": {"ray.io/cluster": "shared"}, "rayClusterSpec": None}
ENDS: JSON = {"shutdownAfterJobFinishes": True}
COMMON_LIVES = {
    "HTTPMode": Life(a_rayjob(**ENDS), is_complete_without_cluster, submitted=1),
    "K8sJobMode": Life(a_rayjob("K8sJobMode", **ENDS), is_complete_without_cluster, submitters=1),
    "SidecarMode": Life(a_rayjob("SidecarMode", **ENDS), is_complete_without_cluster, sidecar_ends),
    "InteractiveMode": Life(a_rayjob("InteractiveMode"), is_complete, user_submits),
    "clusterSelector": Life(a_rayjob(**SHARED), submitted=1, before=a_raycluster(name="shared")),
    "suspend": Life(
        a_rayjob(**ENDS), is_complete_without_cluster, is_suspended_once, outcome="", submitted=2, clusters=2
    ),
    "retry": Life(
        a_rayjob(backoffLimit=1, **ENDS),
        is_complete_without_cluster,
        fails_once,
        outcome="FAILED",
        submitted=2,
        clusters=2,
    ),
    "preRunningDeadlineSeconds": Life(a_rayjob("InteractiveMode"), has_failed, waits_out_of_time),
    "deletion": Life(a_rayjob(), is_gone, is_deleted, outcome="RUNNING", submitted=1),
}
RARER_LIVES = {
    "K8sJobMode, fails": Life(a_rayjob("K8sJobMode"), has_failed, outcome="FAILED", submitters=1),
    "suspend with Volcano": Life(
        a_rayjob(**ENDS),
        is_complete_without_gang,
        is_suspended_once,
        outcome="",
        submitted=2,
        clusters=2,
        given=with_scheduler("volcano"),
    ),
    "retry with Volcano": Life(
        a_rayjob(backoffLimit=1, **ENDS),
        is_complete_without_gang,
        fails_once,
        outcome="FAILED",
        submitted=2,
        clusters=2,
        given=with_scheduler("volcano"),
    ),
    "activeDeadlineSeconds": Life(a_rayjob(), has_failed, runs_out_of_time, outcome="RUNNING", submitted=1),
    "DeleteSelf": Life(a_rayjob(**deleting(("DeleteSelf", {"jobStatus": "SUCCEEDED"}))), is_gone, submitted=1),
    "made suspended": Life(
        a_rayjob(suspend=True, **ENDS), is_complete_without_cluster, is_resumed, submitted=1, outcome="SUCCEEDED"
    ),
    "suspend, Initializing": Life(
        a_rayjob(**ENDS, **HELD),
        is_complete_without_cluster,
        is_suspended_early,
        submitted=1,
        clusters=2,
        may_make_fewer=True,
    ),
    "suspend, Waiting": Life(a_rayjob("InteractiveMode", **ENDS), is_complete, is_suspended_while_it_waits, clusters=2),
    "activeDeadlineSeconds, Initializing": Life(
        a_rayjob(backoffLimit=3, **ENDS, **HELD), has_failed_without_cluster, is_too_slow, may_make_fewer=True
    ),
    "preRunningDeadlineSeconds, Initializing": Life(
        a_rayjob(preRunningDeadlineSeconds=1, **ENDS, **HELD), has_failed_without_cluster, may_make_fewer=True
    ),
    "ValidationFailed, mended": Life(
        a_rayjob(runtimeEnvYAML="[", **ENDS), is_complete_without_cluster, is_mended, submitted=1
    ),
    "STOPPED": Life(a_rayjob(), outcome="STOPPED", submitted=1),
    "HeadLost, then another attempt": Life(
        a_rayjob(backoffLimit=1), is_complete, loses_its_head_once, outcome="RUNNING", submitted=2, clusters=2
    ),
    "ReuseRayCluster": Life(
        a_rayjob("K8sJobMode", backoffLimit=1, retryRayClusterStrategy="ReuseRayCluster"),
        is_complete,
        fails_once,
        outcome="FAILED",
        submitters=2,
    ),
    "submitter fails": Life(
        a_rayjob("K8sJobMode", **with_submitter(**{"bed/fail": "true"})), has_failed, outcome="", submitters=1
    ),
    "submitter ends in vain": Life(
        a_rayjob("K8sJobMode"),
        has_failed,
        outcome="",
        submitters=1,
        given=Given(clock=ClockAhead(timedelta(seconds=40))),
    ),
    "submitter prints for ever": Life(
        a_rayjob("K8sJobMode", **with_submitter(**{"bed/run": "true"})),
        submitters=1,
        given=impatient(transition_grace_seconds=0),
    ),
    "Ray is silent": Life(
        a_rayjob(backoffLimit=3),
        has_failed,
        becomes_silent,
        outcome="RUNNING",
        submitted=1,
        given=impatient(status_check_timeout_seconds=1),
    ),
    "DeleteWorkers, then DeleteCluster": Life(
        a_rayjob(
            **WORKERS,
            **deleting(
                ("DeleteWorkers", {"jobStatus": "SUCCEEDED"}),
                ("DeleteCluster", {"jobStatus": "SUCCEEDED", "ttlSeconds": 1}),
            ),
        ),
        is_complete_without_cluster,
        submitted=1,
    ),
    "DeleteCluster of a job that failed before Ray said so": Life(
        a_rayjob(preRunningDeadlineSeconds=1, **HELD, **deleting(("DeleteCluster", {"jobDeploymentStatus": "Failed"}))),
        has_failed_without_cluster,
        may_make_fewer=True,
    ),
    "onFailure": Life(
        a_rayjob(deletionStrategy={"onSuccess": {"policy": "DeleteNone"}, "onFailure": {"policy": "DeleteCluster"}}),
        has_failed_without_cluster,
        outcome="FAILED",
        submitted=1,
    ),
    "DELETE_RAYJOB_CR_AFTER_JOB_FINISHES": Life(
        a_rayjob(**ENDS), is_gone, submitted=1, given=impatient(deletes_finished=True)
    ),
}
"""The other rows of the table, each of which ends a life in its own way."""
LIVES = {**COMMON_LIVES, **RARER_LIVES}
NAMES = [*COMMON_LIVES, *(pytest.param(name, marks=pytest.mark.soak) for name in RARER_LIVES)]


class Lived:
    """One life of a RayJob, in a namespace of its own."""

    def __init__(self, scene: JobScene, life: Life, writes: int | None) -> None:
        self.scene = scene
        self.life = life
        self.fence = CrashAfter(writes)
        scene.head.outcome = life.outcome
        scene.head.knows_all = not life.submitted

    async def begin(self) -> None:
        if self.life.before is not None:
            await self.scene.kube.create(CLUSTERS, self.life.before, self.scene.namespace)
        await self.scene.apply(self.life.body)

    def given(self, *, is_first: bool) -> Given:
        """What is its own; the second operator is not stopped."""
        at = self.scene.url
        return Given(heads_at=at, fence=self.fence) if is_first else Given(heads_at=at)

    async def is_over(self) -> bool:
        return await self.life.is_over(self.scene)

    async def has_stopped(self) -> bool:
        return self.fence.is_spent or await self.is_over()

    def end(self, made: Made) -> None:
        namespace, life = self.scene.namespace, self.life
        submitters, clusters = len(made.submitters[namespace]), len(made.clusters[namespace])
        expected = min(clusters, life.clusters) if life.may_make_fewer else life.clusters
        counts = (len(self.scene.head.submitted), clusters, submitters)
        assert counts == (life.submitted, expected, life.submitters), f"stopped after {self.fence.passed} writes"


async def live(plane: ControlPlane, life: Life, *writes: int | None) -> list[tuple[CrashAfter, dict[str, Any]]]:
    """How the RayJob ended when its operator was stopped after so many writes, for each of these numbers.

    One operator looks after all these namespaces until it was stopped in each of them; then the next one does.
    """
    async with AsyncExitStack() as stack:
        kube = await stack.enter_async_context(connected(plane.admin_kubeconfig))
        scenes = await asyncio.gather(*(stack.enter_async_context(a_job_scene(plane, kube)) for _ in writes))
        lives = [Lived(scene, life, number) for scene, number in zip(scenes, writes, strict=True)]
        made = Made()
        await asyncio.gather(*(one.begin() for one in lives))
        world = [asyncio.create_task(life.meanwhile(scene)) for scene in scenes]
        for is_first in (True, False):
            each = {one.scene.namespace: one.given(is_first=is_first) for one in lives}
            async with operating_each(plane.admin_kubeconfig, each, **life.given) as operator:
                made.follow(operator)
                await operator.informers.wait_synced()
                for one in lives:
                    await eventually(one.has_stopped if is_first else one.is_over, seconds=PATIENCE)
        await asyncio.gather(*world)
        for one in lives:
            one.end(made)
        return [(one.fence, await portrait(one.scene)) for one in lives]


async def portrait(scene: JobScene) -> dict[str, Any]:
    """What must be the same in the end; nothing of a job that is gone."""
    if await is_gone(scene):
        return {}
    status = await scene.status()
    conditions = {(one["type"], one["status"], one["reason"]) for one in status["conditions"]}
    told = {name: status.get(name) for name in ("jobDeploymentStatus", "jobStatus", "reason", "succeeded", "failed")}
    return {**told, "conditions": conditions, "clusters": len(await scene.clusters()), "gangs": await gangs(scene)}


@dataclass(frozen=True)
class Ends:
    """How one life ended that nobody disturbed, and all those that were stopped."""

    undisturbed: tuple[CrashAfter, dict[str, Any]]
    stopped: list[tuple[CrashAfter, dict[str, Any]]]


async def live_all(plane: ControlPlane, life: Life) -> Ends:
    [undisturbed] = await live(plane, life, None)
    writes = undisturbed[0].passed
    assert FEWEST_WRITES <= writes <= MOST_WRITES, "the writes that the test is about were not made"
    return Ends(undisturbed, await live(plane, life, *range(writes)))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ends(
    request: pytest.FixtureRequest, ray_crds: ControlPlane, kwok: Kwok, scheduler_crds: object, pods_are_bound: object
) -> Told[Ends]:
    return await told({name: partial(live_all, ray_crds, LIVES[name]) for name in selected(request, "name")}, AT_ONCE)


@pytest.mark.parametrize("name", NAMES)
def test_the_end_is_the_same_wherever_the_operator_was_stopped(name: str, ends: Told[Ends]) -> None:
    _, end = ends[name].undisturbed
    for fence, another in ends[name].stopped:
        assert another == end, f"stopped after {fence.passed} writes"
