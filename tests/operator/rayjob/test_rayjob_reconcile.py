"""RayJobs on a real API server, with a head that speaks Ray's job API."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from bed.control_plane import ControlPlane
from raykeeper.operator.settings import HistorySettings, OperatorSettings
from support.conditions import eventually
from support.crashes import CrashAfter
from support.rayjob_scene import CLUSTER_SPEC, RAY_JOB_OBJECTS, JobScene, a_job_scene, a_rayjob

pytestmark = pytest.mark.usefixtures("kwok")


@pytest.fixture
async def scene(ray_crds: ControlPlane) -> AsyncIterator[JobScene]:
    async with a_job_scene(ray_crds) as scene:
        yield scene


async def test_a_job_is_given_to_ray_and_its_end_is_told(scene: JobScene) -> None:
    await scene.apply(a_rayjob(shutdownAfterJobFinishes=True))
    async with scene.operating():
        job_id = await scene.is_submitted()
        scene.head.move(job_id, "RUNNING", "working")
        status = await scene.becomes("Running", "RUNNING")
        assert status["rayClusterStatus"]["state"] == "ready"
        assert (await scene.condition("Ready"))["status"] == "True"
        scene.head.move(job_id, "SUCCEEDED", "done")
        status = await scene.becomes("Complete", "SUCCEEDED")
        assert (status["succeeded"], status["failed"], status["message"]) == (1, 0, "done")
        assert status["observedGeneration"] == 1
        await scene.has_clusters(0)
    assert scene.head.submitted == [job_id]


async def test_the_status_links_to_the_history_where_the_operator_knows_it(scene: JobScene) -> None:
    settings = replace(OperatorSettings(), history=HistorySettings(url="https://history/base"))
    await scene.apply(a_rayjob())
    async with scene.operating(settings=settings):
        status = await scene.becomes("Initializing")
    assert status["historyURL"] == f"https://history/base/rayjobs/{scene.namespace}/counter"


async def test_a_submitter_job_is_made_and_ray_is_believed(scene: JobScene) -> None:
    await scene.apply(a_rayjob("K8sJobMode"))
    async with scene.operating():
        status = await scene.becomes("Running")
        submitter = await eventually(scene.submitter) or {}
        assert submitter["metadata"]["ownerReferences"][0]["kind"] == "RayJob"
        scene.head.move(status["jobId"], "FAILED", "ValueError")
        status = await scene.becomes("Failed", "FAILED")
        assert (status["reason"], status["message"], status["failed"]) == ("AppFailed", "ValueError", 1)
    assert scene.head.submitted == [], "the submitter does it"


async def test_a_lost_head_fails_the_attempt_and_the_next_gets_another_cluster(scene: JobScene) -> None:
    await scene.apply(a_rayjob(backoffLimit=1))
    async with scene.operating():
        first = await scene.is_submitted()
        scene.head.move(first, "RUNNING")
        before = await scene.becomes("Running", "RUNNING")
        scene.head.jobs.clear()
        await scene.delete_heads()
        await scene.becomes("Retrying")
        second = await scene.is_submitted(2)
        status = await scene.becomes("Running")
        assert status["rayClusterName"] != before["rayClusterName"]
        assert [one["rayClusterName"] for one in status["failedAttempts"]] == [before["rayClusterName"]]
        assert status["failedAttempts"][0]["reason"] == "HeadLost"
        scene.head.move(second, "SUCCEEDED")
        await scene.becomes("Complete")
    assert scene.head.submitted == [first, second]


async def test_an_operator_that_was_away_around_the_end_believes_ray(scene: JobScene) -> None:
    await scene.apply(a_rayjob("K8sJobMode"))
    async with scene.operating():
        status = await scene.becomes("Running")
        scene.head.move(status["jobId"], "RUNNING")
        await scene.becomes("Running", "RUNNING")
    scene.head.move(status["jobId"], "SUCCEEDED")
    async with scene.operating():
        await scene.becomes("Complete", "SUCCEEDED")


async def test_a_dashboard_that_answers_500_with_json_tells_nothing(scene: JobScene) -> None:
    await scene.apply(a_rayjob())
    async with scene.operating():
        job_id = await scene.is_submitted()
        scene.head.move(job_id, "RUNNING")
        await scene.becomes("Running", "RUNNING")
        scene.head.failure = "GCS is away"

        async def is_noted() -> bool:
            return "jobStatusCheckFailureStartTime" in await scene.status()

        await eventually(is_noted)
        assert (await scene.status())["jobStatus"] == "RUNNING"
        assert "GCS is away" in (await scene.condition("Reconciling"))["message"]
        scene.head.failure = ""
        scene.head.move(job_id, "SUCCEEDED")
        await scene.becomes("Complete", "SUCCEEDED")


async def test_a_job_is_suspended_and_resumed(scene: JobScene) -> None:
    await scene.apply(a_rayjob(shutdownAfterJobFinishes=True))
    async with scene.operating():
        first = await scene.is_submitted()
        await scene.patch(suspend=True)
        status = await scene.becomes("Suspended")
        assert "rayClusterName" not in status
        await scene.has_clusters(0)
        await scene.patch(suspend=False)
        second = await scene.is_submitted(2)
        assert first != second
        scene.head.move(second, "SUCCEEDED")
        await scene.becomes("Complete")


async def test_what_makes_no_sense_is_refused_and_recovers(scene: JobScene) -> None:
    await scene.apply(a_rayjob(runtimeEnvYAML="a: ["))
    async with scene.operating():
        status = await scene.becomes("ValidationFailed")
        assert "spec.runtimeEnvYAML" in status["message"]
        assert await scene.clusters() == []
        await scene.patch(runtimeEnvYAML="")
        job_id = await scene.is_submitted()
        await scene.patch(backoffLimit=-1)

        async def is_told() -> bool:
            return "spec.backoffLimit" in (await scene.condition("RayJobInvalid")).get("message", "")

        await eventually(is_told)
        scene.head.move(job_id, "SUCCEEDED")
        await scene.becomes("Complete")


@pytest.mark.parametrize("has_begun", [False, True])
async def test_a_job_whose_spec_can_no_longer_be_read_is_told_and_can_be_deleted(
    scene: JobScene, has_begun: bool
) -> None:
    cluster = {**CLUSTER_SPEC, "headGroupSpec": {**CLUSTER_SPEC["headGroupSpec"], "rayStartParams": {}}}
    await scene.apply(a_rayjob(rayClusterSpec=cluster, suspend=not has_begun, shutdownAfterJobFinishes=True))
    async with scene.operating():
        if has_begun:
            scene.head.move(await scene.is_submitted(), "RUNNING")
            await scene.becomes("Running", "RUNNING")
        else:
            await scene.becomes("Suspended")
        nonsense = {"backoffLimit": "many"}  # the schema of v1alpha1 lets it pass
        await scene.kube.merge_patch(replace(RAY_JOB_OBJECTS, version="v1alpha1"), scene.key, {"spec": nonsense})
        assert "spec cannot be read" in (await scene.is_told("InvalidRayJobSpec"))["note"]
        await scene.says("RayJobInvalid" if has_begun else "Stalled", "spec cannot be read")
        await scene.kube.delete(RAY_JOB_OBJECTS, scene.key)
        await scene.is_gone()
        await scene.has_clusters(0)
    assert scene.head.stopped == scene.head.submitted


async def test_a_job_that_ray_refuses_fails_with_rays_words(scene: JobScene) -> None:
    scene.head.refusal = "runtime_env is wrong"
    await scene.apply(a_rayjob())
    async with scene.operating():
        status = await scene.becomes("Failed")
        assert status["reason"] == "SubmissionFailed"
        assert "runtime_env is wrong" in status["message"]


async def test_a_deleted_job_is_stopped_first(scene: JobScene) -> None:
    await scene.apply(a_rayjob())
    async with scene.operating():
        job_id = await scene.is_submitted()
        scene.head.move(job_id, "RUNNING")
        await scene.becomes("Running", "RUNNING")
        await scene.kube.delete(RAY_JOB_OBJECTS, scene.key)

        async def is_gone() -> bool:
            return await scene.kube.find(RAY_JOB_OBJECTS, scene.key) is None

        await eventually(is_gone)
    assert scene.head.stopped == [job_id]


async def test_a_job_of_multikueue_is_left_alone(scene: JobScene) -> None:
    await scene.apply(a_rayjob(managedBy="kueue.x-k8s.io/multikueue"))
    async with scene.operating() as operator:
        await operator.informers.wait_synced()
        await asyncio.sleep(2)  # there is nothing to wait for: nothing may happen
    assert await scene.status() == {}


@pytest.mark.parametrize("writes", range(6))
async def test_an_attempt_is_submitted_once_wherever_the_operator_stopped(scene: JobScene, writes: int) -> None:
    await scene.apply(a_rayjob(shutdownAfterJobFinishes=True))
    fence = CrashAfter(writes)

    async def is_over() -> bool:
        return fence.is_spent or bool(scene.head.submitted)

    async with scene.operating(fence=fence):
        await eventually(is_over)
    async with scene.operating():
        job_id = await scene.is_submitted()
        names = {cluster["metadata"]["name"] for cluster in await scene.clusters()}
        assert names == {(await scene.status())["rayClusterName"]}
        scene.head.move(job_id, "SUCCEEDED")
        await scene.becomes("Complete", "SUCCEEDED")
        await scene.has_clusters(0)
    assert scene.head.submitted == [job_id]
