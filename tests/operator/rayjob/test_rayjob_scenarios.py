"""What goes wrong around RayJobs in real clusters, and the end that each job comes to."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import pytest

from bed.control_plane import ControlPlane
from bed.faults import Fault, HttpFaults
from raykeeper.api.meta import JSON, ObjectKey
from raykeeper.kube.resources import JOBS, PODS
from raykeeper.operator.gates import FeatureGates, Gate
from raykeeper.operator.settings import OperatorSettings, RayJobSettings
from support.chronicle import Chronicle
from support.conditions import eventually
from support.operating import ClockAhead, operating
from support.raycluster_scene import CLUSTERS, QUOTAS, TEMPLATE, a_group, a_raycluster
from support.rayjob_scene import CLUSTER_SPEC, JobScene, a_job_scene, a_rayjob

pytestmark = pytest.mark.usefixtures("kwok")
IMPATIENT = replace(OperatorSettings(), rayjob=RayJobSettings(status_check_timeout_seconds=2))
RESTARTING = replace(OperatorSettings(), gates=FeatureGates({Gate.SIDECAR_SUBMITTER_RESTART: True}))
HELD = {"bed/hold": "true"}
UNHELD: JSON = {"metadata": {"annotations": {"bed/hold": None}}}


@pytest.fixture
async def scene(ray_crds: ControlPlane) -> AsyncIterator[JobScene]:
    async with a_job_scene(ray_crds) as scene:
        yield scene


def with_submitter(**annotations: str) -> JSON:
    """A submitter pod that does what its annotations say; `bed/run` goes on until it is deleted."""
    container = {"name": "submitter", "image": "rayproject/ray:2.60.0"}
    return {
        "submitterPodTemplate": {
            "metadata": {"annotations": annotations},
            "spec": {"restartPolicy": "Never", "containers": [container]},
        }
    }


GOES_ON = with_submitter(**{"bed/run": "true"})
FAILS = {**with_submitter(**{"bed/fail": "true"}), "submitterConfig": {"backoffLimit": 0}}


async def runs(scene: JobScene) -> str:
    """The id of the job once Ray runs it."""
    status = await scene.becomes("Running")
    if (await scene.mode()) == "HTTPMode":
        await scene.is_submitted()
    scene.head.move(status["jobId"], "RUNNING")
    await scene.becomes("Running", "RUNNING")
    return str(status["jobId"])


async def lose_the_head(scene: JobScene) -> None:
    """The head pod goes, and the next one knows no job."""
    scene.head.jobs.clear()
    await scene.delete_heads()


@pytest.mark.parametrize("mode", ["HTTPMode", "K8sJobMode", "SidecarMode", "InteractiveMode"])
async def test_1_a_head_that_is_lost_fails_the_attempt_in_every_mode_and_nothing_runs_twice(
    scene: JobScene, mode: str
) -> None:
    await scene.apply(a_rayjob(mode, **(GOES_ON if mode == "K8sJobMode" else {})))
    async with scene.operating():
        if mode == "InteractiveMode":
            await scene.becomes("Waiting")
            scene.head.move("mine", "RUNNING")
            await scene.patch(jobId="mine")
        await runs(scene)
        await lose_the_head(scene)
        status = await scene.becomes("Failed")
        assert status["reason"] == "HeadLost"

        async def has_no_submitter() -> bool:
            return await scene.submitter() is None

        await eventually(has_no_submitter)
    assert len(scene.head.submitted) == (mode == "HTTPMode")


async def test_2_a_cluster_that_somebody_deletes_fails_the_attempt(scene: JobScene) -> None:
    await scene.apply(a_rayjob())
    async with scene.operating():
        await scene.is_submitted()
        await runs(scene)
        (cluster,) = await scene.clusters()
        scene.head.jobs.clear()
        await scene.kube.delete(CLUSTERS, ObjectKey(scene.namespace, cluster["metadata"]["name"]))
        assert (await scene.becomes("Failed"))["reason"] == "HeadLost"
        assert "is gone" in (await scene.is_told("HeadLost"))["note"]
        await scene.has_clusters(0)


async def test_3_a_submitter_that_is_deleted_before_it_submitted_fails_the_attempt(scene: JobScene) -> None:
    await scene.apply(a_rayjob("K8sJobMode", **with_submitter(**HELD)))
    async with scene.operating():
        await scene.becomes("Running")
        await eventually(scene.submitter)
        await scene.kube.delete(JOBS, scene.key, propagation="Background")
        status = await scene.becomes("Failed")
        assert (status["reason"], "was deleted" in status["message"]) == ("SubmissionFailed", True)


async def test_4_a_submitter_that_is_deleted_while_ray_runs_the_job_is_not_missed(scene: JobScene) -> None:
    await scene.apply(a_rayjob("K8sJobMode", **GOES_ON))
    async with scene.operating():
        job_id = await runs(scene)
        await scene.kube.delete(JOBS, scene.key, propagation="Background")
        scene.head.move(job_id, "SUCCEEDED")
        await scene.becomes("Complete", "SUCCEEDED")


async def test_5_a_submitter_that_fails_does_not_fail_a_job_that_ray_runs(scene: JobScene) -> None:
    scene.head.move("mine", "RUNNING")
    await scene.apply(a_rayjob("K8sJobMode", jobId="mine", **FAILS))
    async with scene.operating():
        await scene.becomes("Running", "RUNNING")

        async def has_failed() -> bool:
            conditions = ((await scene.submitter() or {}).get("status") or {}).get("conditions") or []
            return any(one["type"] == "Failed" for one in conditions)

        await eventually(has_failed)
        assert (await scene.status())["jobDeploymentStatus"] == "Running"
        scene.head.move("mine", "SUCCEEDED")
        await scene.becomes("Complete", "SUCCEEDED")


async def test_6_a_submitter_that_fails_before_ray_knows_the_job_fails_it(scene: JobScene) -> None:
    await scene.apply(a_rayjob("K8sJobMode", **FAILS))
    async with scene.operating():
        assert (await scene.becomes("Failed"))["reason"] == "SubmissionFailed"


async def test_7_an_operator_that_was_away_when_the_job_and_its_submitter_ended_believes_ray(scene: JobScene) -> None:
    await scene.apply(a_rayjob("K8sJobMode", backoffLimit=1))
    async with scene.operating():
        job_id = await runs(scene)
    scene.head.move(job_id, "SUCCEEDED")

    async def submitter_has_ended() -> bool:
        return bool(((await scene.submitter() or {}).get("status") or {}).get("completionTime"))

    await eventually(submitter_has_ended)
    async with scene.operating(clock=ClockAhead(timedelta(minutes=2))):  # KubeRay counts thirty seconds
        status = await scene.becomes("Complete", "SUCCEEDED")
        assert (status["failed"], status["succeeded"]) == (0, 1)


async def test_8_a_submission_whose_answer_is_lost_is_not_made_twice(scene: JobScene) -> None:
    scene.head.loses_answers = True
    await scene.apply(a_rayjob())
    async with scene.operating():
        job_id = await scene.is_submitted()
        scene.head.move(job_id, "SUCCEEDED")
        await scene.becomes("Complete", "SUCCEEDED")
    assert scene.head.submitted == [job_id]


async def test_9_an_id_that_ray_knows_already_is_followed(scene: JobScene) -> None:
    scene.head.move("mine", "RUNNING")
    await scene.apply(a_rayjob(jobId="mine"))
    async with scene.operating():
        await scene.becomes("Running", "RUNNING")
        scene.head.move("mine", "SUCCEEDED")
        await scene.becomes("Complete", "SUCCEEDED")
    assert scene.head.submitted == []


async def test_10_a_dashboard_that_stays_silent_fails_the_job_after_the_time_that_was_set(scene: JobScene) -> None:
    await scene.apply(a_rayjob(backoffLimit=3))
    async with scene.operating(settings=IMPATIENT):
        await scene.is_submitted()
        await runs(scene)
        scene.head.failure = "GCS is away"
        status = await scene.becomes("Failed")
        assert status["reason"] == "JobStatusCheckTimeoutExceeded"
        assert (status["failed"], "GCS is away" in status["message"]) == (1, True)
        assert "GCS is away" in (await scene.is_told("JobStatusCheckTimeoutExceeded"))["note"]


async def tell_why_head_waits(scene: JobScene, reason: str, message: str) -> None:
    """Write what the kubelet would about the container of the head, once there is one."""
    (pod,) = await eventually(scene.heads)
    status = {"name": "ray", "image": "", "imageID": "", "ready": False, "restartCount": 0}
    waiting = {"waiting": {"reason": reason, "message": message}}
    key = ObjectKey(scene.namespace, pod["metadata"]["name"])
    patch = {"status": {"containerStatuses": [status | {"state": waiting}]}}
    await scene.kube.merge_patch(PODS.read_as(dict), key, patch, subresource="status")


def a_job_that_cannot_start() -> JSON:
    template = {
        "metadata": {"annotations": HELD},
        "spec": {"containers": [{"name": "ray", "image": "registry.example/none:1"}]},
    }
    return a_rayjob(rayClusterSpec=CLUSTER_SPEC | {"headGroupSpec": {"template": template}})


async def test_11_a_job_says_what_it_waits_for_and_may_fail_as_soon_as_it_is_hopeless(scene: JobScene) -> None:
    await scene.apply(a_job_that_cannot_start())
    async with scene.operating():
        await tell_why_head_waits(scene, "InvalidImageName", "couldn't parse image name")
        await scene.says("Reconciling", "couldn't parse image name")
        assert (await scene.condition("Reconciling"))["reason"] == "InvalidImageName"
        assert (await scene.status())["jobDeploymentStatus"] == "Initializing"
        await scene.annotate({"raykeeper.io/fail-fast": "true"})
        failed = await scene.becomes("Failed")
        assert "InvalidImageName" in failed["message"]


async def test_11_an_image_that_is_refused_for_the_first_time_has_five_minutes(scene: JobScene) -> None:
    clock = ClockAhead(timedelta(hours=1))  # so old is the pod by now
    await scene.apply(a_job_that_cannot_start())
    await scene.annotate({"raykeeper.io/fail-fast": "true"})
    async with scene.operating(clock=clock):
        await tell_why_head_waits(scene, "ErrImagePull", "failed to resolve reference: 401 Unauthorized")
        await scene.says("Reconciling", "401 Unauthorized")
        clock.advance(timedelta(minutes=4))
        await tell_why_head_waits(scene, "ImagePullBackOff", 'Back-off pulling image "registry.example/none:1"')
        await scene.says("Reconciling", "Back-off")
        assert (await scene.status())["jobDeploymentStatus"] == "Initializing"
        clock.advance(timedelta(minutes=1))
        assert (await scene.becomes("Failed"))["reason"] == "CannotStart"


async def test_12_a_quota_that_keeps_the_head_from_starting_is_named(scene: JobScene) -> None:
    quota = {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}
    await scene.kube.create(QUOTAS, quota, scene.namespace)
    await scene.apply(a_rayjob(preRunningDeadlineSeconds=3600))
    async with scene.operating():
        await scene.says("Reconciling", "exceeded quota")


async def test_13_a_sidecar_that_is_started_again_may_fail_and_the_job_goes_on(scene: JobScene) -> None:
    await scene.apply(a_rayjob("SidecarMode"))
    async with scene.operating(settings=RESTARTING):
        job_id = await runs(scene)
        (head,) = await scene.heads()
        policies = {one["name"]: one.get("restartPolicy") for one in head["spec"]["containers"]}
        assert policies == {"ray": None, "ray-job-submitter": "OnFailure"}
        await scene.end_sidecar(1, "connection lost")
        scene.head.move(job_id, "SUCCEEDED")
        await scene.says("Ready", "still prints")
        await scene.end_sidecar(restarts=1)
        assert (await scene.becomes("Complete", "SUCCEEDED"))["succeeded"] == 1


async def test_14_a_sidecar_that_fails_after_its_last_restart_fails_the_attempt(scene: JobScene) -> None:
    await scene.apply(a_rayjob("SidecarMode"))
    async with scene.operating(settings=RESTARTING):
        await scene.becomes("Running")
        await scene.end_sidecar(1, "no way in")
        await scene.says("Ready", "1 of 2 times")
        await scene.end_sidecar(1, "no way in", restarts=2)
        status = await scene.becomes("Failed")
        assert (status["reason"], "no way in" in status["message"]) == ("SubmissionFailed", True)


async def test_15_of_two_jobs_with_one_id_on_one_cluster_the_second_fails_and_is_not_called_a_success(
    scene: JobScene,
) -> None:
    shared: JSON = {"clusterSelector": {"ray.io/cluster": "shared"}, "rayClusterSpec": None, "jobId": "mine"}
    await scene.kube.create(CLUSTERS, a_raycluster(name="shared"), scene.namespace)
    await scene.apply(a_rayjob(**shared))
    async with scene.operating():
        await scene.is_submitted()
        scene.head.move("mine", "SUCCEEDED")
        await scene.becomes("Complete", "SUCCEEDED")
        await scene.apply({**a_rayjob(entrypoint="python other.py", **shared), "metadata": {"name": "again"}})
        scene.key = ObjectKey(scene.namespace, "again")
        status = await scene.becomes("Failed")
    assert (status["reason"], status.get("jobStatus", "")) == ("SubmissionFailed", "")
    assert "job id mine is taken on RayCluster shared: RayJob counter has it" in status["message"]


async def test_16_a_cluster_that_is_lost_while_a_user_prepares_his_job_is_made_again(scene: JobScene) -> None:
    await scene.apply(a_rayjob("InteractiveMode"))
    async with scene.operating():
        first = await scene.becomes("Waiting")
        (cluster,) = await scene.clusters()
        await scene.kube.delete(CLUSTERS, ObjectKey(scene.namespace, first["rayClusterName"]))

        async def is_another() -> bool:
            return any(one["metadata"]["uid"] != cluster["metadata"]["uid"] for one in await scene.clusters())

        await eventually(is_another)
        await scene.becomes("Waiting")
        await scene.patch(jobId="mistyped")
        await scene.says("Ready", "Ray does not know job mistyped")
        scene.head.move("mine", "SUCCEEDED")
        await scene.patch(jobId="mine")
        assert (await scene.becomes("Complete", "SUCCEEDED"))["jobId"] == "mine"


async def test_17_an_edit_in_the_middle_changes_nothing_of_what_runs_and_is_told(scene: JobScene) -> None:
    await scene.apply(a_rayjob())
    async with scene.operating():
        job_id = await runs(scene)
        cluster = (await scene.status())["rayClusterName"]
        await scene.patch(entrypoint="python other.py", submissionMode="K8sJobMode", jobId="other")
        assert "keeps the entrypoint" in (await scene.is_told("SpecChanged"))["note"]
        scene.head.move(job_id, "SUCCEEDED")
        status = await scene.becomes("Complete", "SUCCEEDED")
    assert (status["jobId"], status["rayClusterName"]) == (job_id, cluster)
    assert (scene.head.submitted, await scene.submitter()) == ([job_id], None)


async def test_18_a_pod_of_somebody_else_that_has_the_labels_of_a_head_is_no_head(scene: JobScene) -> None:
    held: JSON = {"template": {"metadata": {"annotations": HELD}, **TEMPLATE}}
    await scene.apply(a_rayjob(rayClusterSpec=CLUSTER_SPEC | {"headGroupSpec": held}))
    async with scene.operating():
        (head,) = await eventually(scene.heads)
        marks = {"ray.io/cluster": (await scene.status())["rayClusterName"], "ray.io/node-type": "head"}
        stray = ObjectKey(scene.namespace, "stray")

        async def is_younger() -> bool:
            pod = await scene.kube.create(PODS, {"metadata": {"name": "stray", "labels": marks}, **TEMPLATE}, stray[0])
            if pod.metadata.creation_timestamp == head["metadata"]["creationTimestamp"]:
                await scene.kube.delete(PODS, stray, grace_seconds=0)
                return False
            return True

        await eventually(is_younger)
        await scene.kube.merge_patch(PODS, ObjectKey(scene.namespace, head["metadata"]["name"]), UNHELD)
        job_id = await runs(scene)
        await scene.kube.delete(PODS, stray, grace_seconds=0)
        scene.head.move(job_id, "SUCCEEDED")
        await scene.becomes("Complete", "SUCCEEDED")


async def test_19_a_submitter_that_fails_as_soon_as_ray_has_the_job_does_not_fail_it(scene: JobScene) -> None:
    await scene.apply(a_rayjob("SidecarMode", backoffLimit=1))
    async with scene.operating():
        job_id = (await scene.becomes("Running"))["jobId"]
        asked = scene.head.asked

        async def is_asked_again() -> bool:
            return scene.head.asked > asked

        await eventually(is_asked_again)  # and says that it knows no such job
        scene.head.move(job_id, "RUNNING")
        await scene.end_sidecar(1, "connection lost")
        await scene.becomes("Running", "RUNNING")
        scene.head.move(job_id, "SUCCEEDED")
        assert (await scene.becomes("Complete", "SUCCEEDED"))["failed"] == 0


async def test_20_a_submitter_that_the_cache_does_not_show_yet_is_not_taken_for_deleted(scene: JobScene) -> None:
    await scene.apply(a_rayjob("K8sJobMode", **GOES_ON))
    with HttpFaults(scene.plane) as wire:
        wire.inject(Fault(method="GET", path=r"/jobs\?.*watch="))
        through_proxy = scene.plane.kubeconfig(server=wire.server)
        async with operating(through_proxy, scene.namespace, heads_at=scene.url):
            job_id = (await scene.becomes("Running"))["jobId"]
            asked = scene.head.asked

            async def is_asked_again() -> bool:
                return scene.head.asked > asked + 1

            await eventually(is_asked_again)
            assert (await scene.status())["jobDeploymentStatus"] == "Running"
            wire.clear()
            scene.head.move(job_id, "SUCCEEDED")
            await scene.kube.delete(JOBS, scene.key, propagation="Background")
            await scene.becomes("Complete", "SUCCEEDED")


async def test_21_a_head_that_was_started_anew_right_after_the_submission_gets_the_job_no_second_time(
    scene: JobScene,
) -> None:
    await scene.apply(a_rayjob())
    async with scene.operating():
        await scene.is_submitted()
        scene.head.jobs.clear()  # the kubelet has not told of the restart yet
        assert (await scene.becomes("Failed"))["reason"] == "HeadLost"
    assert len(scene.head.submitted) == 1


@pytest.mark.parametrize("mode", ["HTTPMode", "K8sJobMode"])
async def test_22_a_cluster_whose_head_is_down_gets_no_job_though_its_state_is_ready(
    scene: JobScene, mode: str
) -> None:
    shared: JSON = {"clusterSelector": {"ray.io/cluster": "shared"}, "rayClusterSpec": None}
    await scene.kube.create(CLUSTERS, a_raycluster(name="shared"), scene.namespace)
    async with scene.operating():

        async def is_ready() -> bool:
            return [one.get("status", {}).get("state") for one in await scene.clusters()] == ["ready"]

        await eventually(is_ready)
        await scene.set_heads_ready("False")
        await scene.apply(a_rayjob(mode, **shared))
        await scene.says("Reconciling", "the head of RayCluster shared is not ready")
        assert ((await scene.status())["jobDeploymentStatus"], await scene.submitter()) == ("Initializing", None)
        await scene.set_heads_ready("True")
        await scene.becomes("Running")


async def test_23_a_head_with_its_submitter_that_is_lost_before_all_workers_are_there_is_not_made_again(
    scene: JobScene,
) -> None:
    waiting = {"metadata": {"annotations": HELD}, **TEMPLATE}
    cluster = CLUSTER_SPEC | {"workerGroupSpecs": [a_group("small", 1, template=waiting)]}
    await scene.apply(a_rayjob("SidecarMode", rayClusterSpec=cluster))
    chronicle = Chronicle(scene.plane, scene.namespace, [PODS.read_as(dict)])
    async with scene.operating():
        await scene.says("Reconciling", "is not ready")
        await eventually(scene.heads)
        await lose_the_head(scene)
        assert (await scene.becomes("Failed"))["reason"] == "HeadLost"
    heads = {change.name for change in chronicle.changes() if "-head-" in change.name}
    assert len(heads) == 1, "each would give the job to Ray"


@pytest.mark.parametrize("mode", ["HTTPMode", "K8sJobMode"])
async def test_24_a_job_is_suspended_only_when_its_pods_are_gone(scene: JobScene, mode: str) -> None:
    """Kueue gives its quota to others from then on."""
    stuck = {"metadata": {"annotations": {"bed/stuck": "true"}}, **TEMPLATE}
    cluster = CLUSTER_SPEC | {"headGroupSpec": {"template": stuck}}
    body = a_rayjob(mode, rayClusterSpec=cluster, shutdownAfterJobFinishes=True)
    await scene.apply(body)
    async with scene.operating():
        await scene.becomes("Running")
        await scene.patch(suspend=True)

        async def is_going() -> bool:
            return all("deletionTimestamp" in pod["metadata"] for pod in await scene.heads())

        await eventually(is_going)
        assert (await scene.status())["jobDeploymentStatus"] == "Suspending"
        for pod in await scene.heads():
            key = ObjectKey(scene.namespace, pod["metadata"]["name"])
            await scene.kube.merge_patch(PODS, key, {"metadata": {"annotations": {"bed/stuck": None}}})
        await scene.becomes("Suspended")
        assert await scene.heads() == []
