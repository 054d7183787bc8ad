"""Every way to bring a job to Ray, and every way to clean up after it, on a real API server with a scripted head."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from bed.control_plane import ControlPlane
from raykeeper.api.meta import JSON, ObjectKey
from raykeeper.kube.resources import SECRETS
from raykeeper.operator.settings import OperatorSettings, RayJobSettings
from support.conditions import eventually
from support.operating import ClockAhead
from support.raycluster_scene import CLUSTERS, a_group, a_raycluster
from support.rayjob_scene import CLUSTER_SPEC, JobScene, a_job_scene, a_rayjob

pytestmark = pytest.mark.usefixtures("kwok")
SHARED: JSON = {"clusterSelector": {"ray.io/cluster": "shared"}, "rayClusterSpec": None}


@pytest.fixture
async def scene(ray_crds: ControlPlane) -> AsyncIterator[JobScene]:
    async with a_job_scene(ray_crds) as scene:
        yield scene


async def test_a_submitter_beside_the_head_gives_the_job_to_ray(scene: JobScene) -> None:
    await scene.apply(a_rayjob("SidecarMode", shutdownAfterJobFinishes=True))
    async with scene.operating():
        status = await scene.becomes("Running")
        (pod,) = await scene.heads()
        assert [one["name"] for one in pod["spec"]["containers"]] == ["ray", "ray-job-submitter"]
        assert pod["spec"]["restartPolicy"] == "Never"
        scene.head.move(status["jobId"], "SUCCEEDED", "done")
        await scene.says("Reconciling", "still prints what the job wrote")
        await scene.end_sidecar()
        assert (await scene.becomes("Complete", "SUCCEEDED"))["message"] == "done"
        await scene.has_clusters(0)
    assert (scene.head.submitted, await scene.submitter()) == ([], None)


async def test_a_sidecar_that_failed_before_it_submitted_fails_the_job(scene: JobScene) -> None:
    await scene.apply(a_rayjob("SidecarMode"))
    async with scene.operating():
        await scene.becomes("Running")
        await scene.end_sidecar(1, "no such file")
        status = await scene.becomes("Failed")
        assert (status["reason"], "no such file" in status["message"]) == ("SubmissionFailed", True)


async def test_a_user_submits_the_job_himself_and_tells_its_id(scene: JobScene) -> None:
    await scene.apply(a_rayjob("InteractiveMode", entrypoint=""))
    async with scene.operating():
        status = await scene.becomes("Waiting")
        assert status["dashboardURL"].endswith(":8265")
        await scene.says("Reconciling", "set spec.jobId")
        scene.head.move("mine", "RUNNING")
        await scene.patch(jobId="mine")
        await scene.becomes("Running", "RUNNING")
        scene.head.move("mine", "SUCCEEDED")
        assert (await scene.becomes("Complete", "SUCCEEDED"))["jobId"] == "mine"
    assert scene.head.submitted == []


async def test_a_job_that_waits_for_its_id_is_suspended_and_honours_its_deadline(scene: JobScene) -> None:
    await scene.apply(a_rayjob("InteractiveMode", shutdownAfterJobFinishes=True))
    async with scene.operating():
        await scene.becomes("Waiting")
        await scene.patch(suspend=True)
        await scene.becomes("Suspended")
        await scene.patch(suspend=False, activeDeadlineSeconds=600)
        await scene.becomes("Waiting")
    async with scene.operating(clock=ClockAhead(timedelta(minutes=11))):
        assert (await scene.becomes("Failed"))["reason"] == "DeadlineExceeded"


async def test_a_job_runs_on_a_cluster_that_is_there_and_leaves_it_alone(scene: JobScene) -> None:
    await scene.apply(a_rayjob(**SHARED))
    async with scene.operating():
        await scene.says("Reconciling", "there is no RayCluster shared")
        await scene.kube.create(CLUSTERS, a_raycluster(name="shared"), scene.namespace)
        job_id = await scene.is_submitted()
        scene.head.move(job_id, "SUCCEEDED")
        status = await scene.becomes("Complete", "SUCCEEDED")
        assert status["rayClusterName"] == "shared"
    (left,) = await scene.clusters()
    assert ("ownerReferences" in left["metadata"], "deletionTimestamp" in left["metadata"]) == (False, False)


async def test_a_job_on_anothers_cluster_that_is_deleted_is_stopped_there(scene: JobScene) -> None:
    await scene.kube.create(CLUSTERS, a_raycluster(name="shared"), scene.namespace)
    await scene.apply(a_rayjob(activeDeadlineSeconds=600, **SHARED))
    async with scene.operating():
        job_id = await scene.is_submitted()
        scene.head.move(job_id, "RUNNING")
        await scene.becomes("Running", "RUNNING")
    async with scene.operating(clock=ClockAhead(timedelta(minutes=11))):
        assert (await scene.becomes("Failed"))["reason"] == "DeadlineExceeded"
    assert scene.head.stopped == [job_id]


async def test_a_head_that_asks_for_a_token_is_shown_the_clusters_own(scene: JobScene) -> None:
    scene.head.token = "not known yet"
    await scene.apply(a_rayjob(rayClusterSpec=CLUSTER_SPEC | {"authOptions": {"mode": "token"}}))
    async with scene.operating():
        status = await scene.becomes("Running")
        secret = await scene.kube.get(SECRETS.read_as(dict), ObjectKey(scene.namespace, status["rayClusterName"]))
        scene.head.token = token_in(secret)
        job_id = await scene.is_submitted()
        scene.head.move(job_id, "SUCCEEDED")
        await scene.becomes("Complete", "SUCCEEDED")


def token_in(secret: JSON) -> str:
    return base64.b64decode(secret["data"]["auth_token"]).decode()


def by_rules(*rules: tuple[str, int]) -> JSON:
    """Deletion rules for jobs that succeeded: what, and after how many seconds."""
    made = [{"policy": policy, "condition": {"jobStatus": "SUCCEEDED", "ttlSeconds": ttl}} for policy, ttl in rules]
    return {"deletionStrategy": {"deletionRules": made}}


async def test_after_its_end_workers_go_first_then_the_cluster_then_the_job_itself(scene: JobScene) -> None:
    spec = CLUSTER_SPEC | {"workerGroupSpecs": [a_group("small", 1)]}
    rules = by_rules(("DeleteWorkers", 0), ("DeleteCluster", 3600), ("DeleteSelf", 7200))
    scene.head.outcome = "SUCCEEDED"
    await scene.apply(a_rayjob(rayClusterSpec=spec, **rules))
    async with scene.operating():
        await scene.becomes("Complete")

        async def has_no_workers() -> bool:
            (cluster,) = await scene.clusters()
            return all(group.get("suspend") for group in cluster["spec"]["workerGroupSpecs"])

        await eventually(has_no_workers)
        assert len(await scene.heads()) == 1
    async with scene.operating(clock=ClockAhead(timedelta(hours=1.5))):
        await scene.has_clusters(0)
        assert (await scene.status())["jobDeploymentStatus"] == "Complete"
    async with scene.operating(clock=ClockAhead(timedelta(hours=2.5))):
        await scene.is_gone()


@pytest.mark.parametrize(
    ("spec", "outcome", "is_kept"),
    [
        ({"shutdownAfterJobFinishes": True}, "SUCCEEDED", False),
        ({}, "SUCCEEDED", True),
        (
            {"deletionStrategy": {"onSuccess": {"policy": "DeleteNone"}, "onFailure": {"policy": "DeleteCluster"}}},
            "SUCCEEDED",
            True,
        ),
        (
            {"deletionStrategy": {"onSuccess": {"policy": "DeleteNone"}, "onFailure": {"policy": "DeleteCluster"}}},
            "FAILED",
            False,
        ),
    ],
    ids=["shutdown", "nothing", "older policies, success", "older policies, failure"],
)
async def test_the_cluster_goes_as_it_was_asked_for(
    scene: JobScene, spec: dict[str, Any], outcome: str, is_kept: bool
) -> None:
    scene.head.outcome = outcome
    await scene.apply(a_rayjob(**spec))
    async with scene.operating():
        await scene.becomes("Complete" if outcome == "SUCCEEDED" else "Failed")
        if not is_kept:
            await scene.has_clusters(0)
    async with scene.operating() as operator:
        await operator.informers.wait_synced()
        assert len(await scene.clusters()) == is_kept


async def test_rules_that_forget_an_end_are_told_at_once(scene: JobScene) -> None:
    await scene.apply(a_rayjob(**by_rules(("DeleteCluster", 0))))
    async with scene.operating():
        event = await scene.is_told("UnmatchedDeletionRules")
        assert "no rule for a job that fails" in event["note"]
        job_id = await scene.is_submitted()
        assert (await scene.status())["jobDeploymentStatus"] == "Running", "told long before its end"
        scene.head.move(job_id, "FAILED")
        await scene.becomes("Failed")


async def test_a_job_may_go_with_its_cluster_by_the_operators_setting(scene: JobScene) -> None:
    settings = replace(OperatorSettings(), rayjob=RayJobSettings(deletes_finished=True))
    scene.head.outcome = "SUCCEEDED"
    await scene.apply(a_rayjob(shutdownAfterJobFinishes=True))
    async with scene.operating(settings=settings):
        await scene.is_gone()
        await scene.has_clusters(0)


async def test_the_next_attempt_may_run_on_the_same_cluster(scene: JobScene) -> None:
    await scene.apply(a_rayjob("K8sJobMode", backoffLimit=1, retryRayClusterStrategy="ReuseRayCluster", jobId="mine"))
    async with scene.operating():
        first = await scene.becomes("Running")
        scene.head.move("mine", "FAILED", "bad luck")
        await scene.becomes("Retrying")
        second = await scene.becomes("Running")
        assert (second["jobId"], second["rayClusterName"]) == ("mine-1", first["rayClusterName"])
        scene.head.move("mine-1", "SUCCEEDED")
        status = await scene.becomes("Complete", "SUCCEEDED")
        assert (status["failed"], status["succeeded"]) == (1, 1)
        assert [one["jobId"] for one in status["failedAttempts"]] == ["mine"]
    assert len(await scene.clusters()) == 1


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"runtimeEnvYAML": "a: ["}, "spec.runtimeEnvYAML"),
        ({"runtimeEnvYAML": "☃ `id` $(id)"}, "spec.runtimeEnvYAML"),
        ({"entrypointResources": "{'TPU'"}, "spec.entrypointResources"),
        ({"entrypointResources": '{"TPU": "☃"}'}, "spec.entrypointResources"),
        ({"submissionMode": "Telepathy"}, "spec.submissionMode"),
        ({"submissionMode": "$(id)"}, "spec.submissionMode"),
        ({"clusterSelector": {"ray.io/cluster": ""}, "rayClusterSpec": None}, "spec.clusterSelector"),
        ({"rayClusterSpec": None}, "spec.rayClusterSpec"),
        ({"backoffLimit": -1}, "spec.backoffLimit"),
        ({"activeDeadlineSeconds": 0}, "spec.activeDeadlineSeconds"),
        ({"ttlSecondsAfterFinished": 5}, "spec.ttlSecondsAfterFinished"),
        ({"suspend": True}, "spec.suspend"),
    ],
)
async def test_bad_input_is_named_by_its_field_and_nothing_is_made(
    scene: JobScene, spec: dict[str, Any], field: str
) -> None:
    await scene.apply(a_rayjob(**spec))
    async with scene.operating():
        status = await scene.becomes("ValidationFailed")
        assert field in status["message"]
        assert field in (await scene.condition("Stalled"))["message"]
        assert (await scene.is_told("InvalidRayJobSpec"))["note"]
    assert (await scene.clusters(), await scene.submitter()) == ([], None)
