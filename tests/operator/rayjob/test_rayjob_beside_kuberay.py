"""KubeRay's own operator and ours on RayJobs: side by side they make the same children, and one goes on where the
other stopped without making anything twice.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

import pytest
from prometheus_client.parser import text_string_to_metric_families

from bed.control_plane import ControlPlane
from bed.kuberay import KubeRay, KubeRayOperator, kuberay_on, sample_objects
from rayclusters.compared_children import differences, without_choices
from rayclusters.reviewed_differences import Review
from raykeeper.api.meta import JSON, ObjectKey
from raykeeper.kube.resources import JOBS, PODS, SERVICES
from support.chronicle import Chronicle
from support.conditions import eventually
from support.operating import operating
from support.rayjob_scene import CLUSTER_OBJECTS, CLUSTER_SPEC, RAY_JOB_OBJECTS, JobScene, a_job_scene, a_rayjob

pytestmark = [pytest.mark.interop, pytest.mark.usefixtures("kwok")]
REVIEWED: Final = Path(__file__).parent / "kuberay_differences.yaml"
OWN_SUBMITTER: Final = {
    "metadata": {"labels": {"team": "a"}},
    "spec": {
        "restartPolicy": "Never",
        "containers": [{"name": "mine", "image": "mine:1", "command": ["/submitter"], "args": ["--", "python job.py"]}],
    },
}
SAMPLES: Final[dict[str, JSON]] = {
    "plain": a_rayjob("K8sJobMode"),
    "http": a_rayjob("HTTPMode"),
    "beside": a_rayjob("SidecarMode"),
    "interactive": a_rayjob("InteractiveMode"),
    "guarded": a_rayjob("K8sJobMode", rayClusterSpec=CLUSTER_SPEC | {"authOptions": {"mode": "token"}}),
    "templated": a_rayjob("K8sJobMode", submitterPodTemplate=OWN_SUBMITTER, submitterConfig={"backoffLimit": 5}),
    "detailed": a_rayjob(
        "K8sJobMode",
        metadata={"team": "a"},
        runtimeEnvYAML="env_vars:\n  A: b\n",
        entrypointNumCpus=0.5,
        entrypointResources='{"TPU": 1}',
        jobId="mine",
    ),
}


@pytest.fixture
async def theirs(ray_crds: ControlPlane) -> AsyncIterator[JobScene]:
    async with a_job_scene(ray_crds) as scene:
        yield scene


@pytest.fixture
async def ours(ray_crds: ControlPlane) -> AsyncIterator[JobScene]:
    async with a_job_scene(ray_crds) as scene:
        yield scene


@pytest.fixture
def kuberay(ray_crds: ControlPlane) -> Iterator[KubeRay]:
    with kuberay_on(ray_crds) as kuberay:
        yield kuberay


async def start(kuberay: KubeRay, scene: JobScene) -> KubeRayOperator:
    flags = (f"--watch-namespace={scene.namespace}", "--reconcile-concurrency=8")
    return await asyncio.to_thread(kuberay.start, *flags, elected=False)


async def test_of_the_same_rayjobs_both_make_the_same_children(
    theirs: JobScene, ours: JobScene, kuberay: KubeRay
) -> None:
    for scene in (theirs, ours):
        for name, body in SAMPLES.items():
            metadata = {"name": name, "labels": {"of": name}, "annotations": {"note": "kept"}}
            await scene.apply({**body, "metadata": metadata})
    await start(kuberay, theirs)
    async with operating(ours.plane.admin_kubeconfig, ours.namespace):
        found = [await asyncio.gather(*(children(scene, name) for name in SAMPLES)) for scene in (theirs, ours)]
    review = Review.read(REVIEWED)
    for name, their_children, our_children in zip(SAMPLES, *found, strict=True):
        review.look_at(differences(name, their_children, our_children))
    assert not review.unexplained, "\n".join(map(str, review.unexplained))
    assert review.unused() == []


async def children(scene: JobScene, name: str) -> list[JSON]:
    """What was made of a RayJob once it waits for Ray, without names and ids that are random."""
    mode = SAMPLES[name]["spec"]["submissionMode"]

    async def look() -> list[JSON] | None:
        job = await scene.kube.get(RAY_JOB_OBJECTS, ObjectKey(scene.namespace, name))
        status = job.get("status") or {}
        cluster = ObjectKey(scene.namespace, status.get("rayClusterName") or "none")
        kinds = [(CLUSTER_OBJECTS, cluster)]
        if mode != "InteractiveMode":
            kinds.append((SERVICES.read_as(dict), ObjectKey(scene.namespace, f"{name}-head-svc")))
        if mode == "K8sJobMode":
            kinds.append((JOBS.read_as(dict), ObjectKey(scene.namespace, name)))
        whole: list[JSON] = []
        for kind, key in kinds:
            item = await scene.kube.find(kind, key)
            whole += [{**item, "kind": kind.kind}] if item is not None else []
        return [comparable(scene, job, item) for item in whole] if len(whole) == len(kinds) else None

    return await eventually(look) or []


def comparable(scene: JobScene, job: JSON, item: JSON) -> JSON:
    text = json.dumps(without_choices(item), sort_keys=True)
    words = {
        item["metadata"]["uid"]: "UID",
        job["metadata"]["uid"]: "OWNER",
        scene.namespace: "NAMESPACE",
        job["status"]["rayClusterName"]: "GENERATED",
    }
    if not job["spec"].get("jobId"):
        words[job["status"].get("jobId") or "-none-"] = "GENERATED"
    for random, word in words.items():
        text = text.replace(random, word)
    found: JSON = json.loads(text)
    return found


def kuberays_samples() -> dict[str, JSON]:
    """KubeRay's own RayJobs that bring a cluster, named after their files."""
    found: dict[str, JSON] = {}
    for path, sample in sample_objects().items():
        if sample["kind"] == "RayJob" and "rayClusterSpec" in sample["spec"]:
            name = "s-" + re.sub("[^a-z0-9]+", "-", path.removesuffix(".yaml").lower())[-36:].strip("-")
            metadata = {**sample["metadata"], "name": name}
            metadata.pop("generateName", None)
            found[name] = {**sample, "metadata": metadata}
    return found


async def test_of_kuberays_own_samples_both_make_the_same_clusters(
    theirs: JobScene, ours: JobScene, kuberay: KubeRay
) -> None:
    samples = kuberays_samples()
    assert len(samples) >= 20
    for scene in (theirs, ours):
        for sample in samples.values():
            await scene.apply(sample)
    await start(kuberay, theirs)
    async with operating(ours.plane.admin_kubeconfig, ours.namespace):
        found = [await asyncio.gather(*(cluster_of(scene, name) for name in samples)) for scene in (theirs, ours)]
    review = Review.read(REVIEWED)
    for name, their_cluster, our_cluster in zip(samples, *found, strict=True):
        review.look_at(differences(name, [their_cluster], [our_cluster]))
    assert not review.unexplained, "\n".join(map(str, review.unexplained))


async def cluster_of(scene: JobScene, name: str) -> JSON:
    """The cluster that was made of a RayJob, without names and ids that are random."""

    async def look() -> JSON | None:
        job = await scene.kube.get(RAY_JOB_OBJECTS, ObjectKey(scene.namespace, name))
        status = job.get("status") or {}
        assert status.get("jobDeploymentStatus") != "ValidationFailed", (name, status)
        item = await scene.kube.find(
            CLUSTER_OBJECTS, ObjectKey(scene.namespace, status.get("rayClusterName") or "none")
        )
        return comparable(scene, job, {**item, "kind": CLUSTER_OBJECTS.kind}) if item is not None else None

    return await eventually(look) or {}


MODES: Final = ("HTTPMode", "K8sJobMode", "SidecarMode", "InteractiveMode")
KINDS: Final = (CLUSTER_OBJECTS, JOBS.read_as(dict))


async def ends_well(scene: JobScene, mode: str) -> None:
    """The scripted head ends the job, as soon as whoever submits it in this mode did so."""
    if mode == "InteractiveMode":
        await scene.patch(jobId="mine")
    scene.head.outcome, scene.head.knows_all = "SUCCEEDED", mode != "HTTPMode"
    if mode == "SidecarMode":
        await scene.end_sidecar()
    await scene.becomes("Complete", "SUCCEEDED")
    assert len(scene.head.submitted) == (mode == "HTTPMode")


@pytest.mark.parametrize("mode", MODES)
async def test_what_kuberay_began_goes_on_without_a_second_cluster_or_submitter(
    theirs: JobScene, kuberay: KubeRay, mode: str
) -> None:
    await theirs.apply(a_rayjob(mode, shutdownAfterJobFinishes=True))
    operator = await start(kuberay, theirs)
    await theirs.becomes("Waiting" if mode == "InteractiveMode" else "Running")
    await asyncio.to_thread(operator.process.kill)
    chronicle = Chronicle(theirs.plane, theirs.namespace, KINDS)
    async with theirs.operating():
        await ends_well(theirs, mode)
        await theirs.has_clusters(0)
    assert made(chronicle) == []


@pytest.mark.parametrize("told", ["", "RUNNING"])
async def test_a_job_that_kuberay_gave_to_ray_is_followed_and_not_given_again(
    theirs: JobScene, kuberay: KubeRay, told: str
) -> None:
    """Whether or not KubeRay had come to write down what Ray said."""
    job_id = await given_by_kuberay(theirs, kuberay, told)
    theirs.head.move(job_id, "RUNNING")
    chronicle = Chronicle(theirs.plane, theirs.namespace, KINDS)
    async with theirs.operating():
        await theirs.becomes("Running", "RUNNING")
        theirs.head.move(job_id, "SUCCEEDED")
        await theirs.becomes("Complete", "SUCCEEDED")
        await theirs.has_clusters(0)
    assert theirs.head.submitted == []
    assert made(chronicle) == []


async def test_a_job_that_kuberay_gave_to_a_head_that_is_lost_is_not_given_to_the_next(
    theirs: JobScene, kuberay: KubeRay
) -> None:
    await given_by_kuberay(theirs, kuberay, "RUNNING")
    async with theirs.operating():
        status = await theirs.becomes("Failed")
    assert (status["reason"], theirs.head.submitted) == ("HeadLost", [])


async def given_by_kuberay(scene: JobScene, kuberay: KubeRay, told: str) -> str:
    """The id of a job in HTTPMode as KubeRay leaves it once it has submitted it: its own head is out of its reach."""
    await scene.apply(a_rayjob(shutdownAfterJobFinishes=True))
    operator = await start(kuberay, scene)
    status = await scene.becomes("Running")
    await asyncio.to_thread(operator.process.kill)
    if told:
        patch = {"status": {"jobStatus": told}}
        await scene.kube.merge_patch(RAY_JOB_OBJECTS, scene.key, patch, subresource="status")
    return str(status["jobId"])


@pytest.mark.parametrize("state", ["Initializing", "Suspended"])
async def test_what_kuberay_prepared_or_suspended_is_begun(theirs: JobScene, kuberay: KubeRay, state: str) -> None:
    held = {"metadata": {"annotations": {"bed/hold": "true"}}, **CLUSTER_SPEC["headGroupSpec"]["template"]}
    cluster = CLUSTER_SPEC | {"headGroupSpec": {"template": held}}
    is_suspended = state == "Suspended"
    spec: JSON = {"suspend": is_suspended, **({} if is_suspended else {"rayClusterSpec": cluster})}
    await theirs.apply(a_rayjob(shutdownAfterJobFinishes=True, **spec))
    operator = await start(kuberay, theirs)
    await theirs.becomes(state)
    if not is_suspended:
        await eventually(theirs.heads)
    await asyncio.to_thread(operator.process.kill)
    chronicle = Chronicle(theirs.plane, theirs.namespace, KINDS)
    await theirs.patch(suspend=False)
    for pod in await theirs.heads():
        key = ObjectKey(theirs.namespace, pod["metadata"]["name"])
        await theirs.kube.merge_patch(PODS.read_as(dict), key, {"metadata": {"annotations": {"bed/hold": None}}})
    async with theirs.operating():
        await ends_well(theirs, "HTTPMode")
    assert len(made(chronicle)) == is_suspended


@pytest.mark.parametrize("mode", MODES)
async def test_what_we_began_is_left_as_it_is_by_kuberay_and_taken_back(
    ours: JobScene, kuberay: KubeRay, mode: str
) -> None:
    await ours.apply(a_rayjob(mode, shutdownAfterJobFinishes=True))
    async with ours.operating():
        await ours.becomes("Waiting" if mode == "InteractiveMode" else "Running")
        if mode == "HTTPMode":
            await ours.is_submitted()
    chronicle = Chronicle(ours.plane, ours.namespace, KINDS)
    operator = await start(kuberay, ours)

    async def has_looked() -> bool:
        return passes(await asyncio.to_thread(operator.metrics)) >= 2

    await eventually(has_looked)
    await asyncio.to_thread(operator.process.kill)
    async with ours.operating():
        await ends_well(ours, mode)
    assert made(chronicle) == []


HELD_BY: Final = "example.org/hold"
FAILING: Final[JSON] = {
    "submitterConfig": {"backoffLimit": 0},
    "submitterPodTemplate": {
        "metadata": {"annotations": {"bed/fail": "true"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "submitter", "image": "rayproject/ray:2.60.0"}]},
    },
}
LEFT: Final[dict[str, JSON]] = {
    "Suspending": a_rayjob(shutdownAfterJobFinishes=True),
    "Retrying": a_rayjob("K8sJobMode", backoffLimit=1, **FAILING),
    "ValidationFailed": a_rayjob("K8sJobMode", runtimeEnvYAML="["),
    "Failed": a_rayjob("K8sJobMode", **FAILING),
    "Complete": a_rayjob("K8sJobMode"),
}
"""What comes to a state that no mode has to itself."""
MADE_LATER: Final = {"Retrying": 2, "ValidationFailed": 2}
"""Clusters and submitters that whoever goes on makes."""


async def comes_to(scene: JobScene, state: str) -> None:
    """Return once the RayJob is in that state and stays there."""
    if state in ("Suspending", "Retrying"):
        await eventually(scene.clusters)
        await hold_clusters(scene, [HELD_BY])
    if state == "Suspending":
        await scene.patch(suspend=True)
    if state == "Complete":  # the scripted head is out of KubeRay's reach
        await scene.becomes("Running")
        return
    await scene.becomes(state)


async def hold_clusters(scene: JobScene, finalizers: list[str] | None) -> None:
    for cluster in await scene.clusters():
        key = ObjectKey(scene.namespace, cluster["metadata"]["name"])
        await scene.kube.merge_patch(CLUSTER_OBJECTS, key, {"metadata": {"finalizers": finalizers}})


async def is_left_in(scene: JobScene, state: str) -> None:
    if state == "Complete":
        ended = {
            "jobDeploymentStatus": state,
            "jobStatus": "SUCCEEDED",
            "succeeded": 1,
            "endTime": "2026-11-16T11:30:00Z",
        }
        await scene.kube.merge_patch(RAY_JOB_OBJECTS, scene.key, {"status": ended}, subresource="status")


async def goes_on_from(scene: JobScene, state: str) -> None:
    """What the next operator makes of it."""
    match state:
        case "Suspending":
            await hold_clusters(scene, None)
            await scene.becomes("Suspended")
        case "Retrying":
            await hold_clusters(scene, None)
            assert (await scene.becomes("Failed"))["failed"] == 2
        case "ValidationFailed":
            await scene.patch(runtimeEnvYAML=None)
            await scene.becomes("Running")
        case _:
            await scene.patch(shutdownAfterJobFinishes=True)
            await scene.has_clusters(0)
            assert (await scene.status())["jobDeploymentStatus"] == state


@pytest.mark.parametrize("state", LEFT)
async def test_what_kuberay_left_in_any_other_state_goes_on(theirs: JobScene, kuberay: KubeRay, state: str) -> None:
    await theirs.apply(LEFT[state])
    operator = await start(kuberay, theirs)
    await comes_to(theirs, state)
    await asyncio.to_thread(operator.process.kill)
    await is_left_in(theirs, state)
    chronicle = Chronicle(theirs.plane, theirs.namespace, KINDS)
    async with theirs.operating():
        await goes_on_from(theirs, state)
    assert len(made(chronicle)) == MADE_LATER.get(state, 0)


@pytest.mark.parametrize("state", [state for state in LEFT if state != "ValidationFailed"])
async def test_what_we_left_in_any_other_state_goes_on_under_kuberay(
    ours: JobScene, kuberay: KubeRay, state: str
) -> None:
    """But for ValidationFailed, of which KubeRay makes nothing more (B12)."""
    await ours.apply(LEFT[state])
    async with ours.operating():
        await comes_to(ours, state)
    await is_left_in(ours, state)
    chronicle = Chronicle(ours.plane, ours.namespace, KINDS)
    await start(kuberay, ours)
    await goes_on_from(ours, state)
    assert len(made(chronicle)) == MADE_LATER.get(state, 0)
    assert ours.head.submitted == []


def passes(metrics: str) -> float:
    """How often KubeRay looked at RayJobs."""
    return sum(
        sample.value
        for family in text_string_to_metric_families(metrics)
        for sample in family.samples
        if sample.name == "controller_runtime_reconcile_total" and "rayjob" in sample.labels["controller"]
    )


def made(chronicle: Chronicle) -> list[str]:
    return [change.name for change in chronicle.changes() if change.what == "ADDED"]
