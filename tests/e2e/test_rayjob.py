"""RayJobs with real Ray, kept by an operator in a pod: every way to submit, failure, retry, deletion, schedule."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from bed.crds import install_ray_crds
from bed.node.real_node import RealNode
from bed.node.settings import RAY_VERSION
from e2e.cluster import Namespace, is_ready
from e2e.operator_pod import OPERATOR, operator_objects
from e2e.own_image import OWN_IMAGE
from e2e.ray_scene import HEAD_RESOURCES, a_template
from raykeeper.api.meta import JSON, ObjectKey
from raykeeper.kube.client import Kube
from raykeeper.kube.resources import PODS
from support.conditions import eventually
from support.kube_clients import connected
from support.raycluster_scene import CLUSTERS
from support.raycronjob_scene import CRON_OBJECTS
from support.rayjob_scene import RAY_JOB_OBJECTS

SECONDS = 300.0  # a head needs 15 on an idle machine, and three start at once
HEAD: JSON = {"headGroupSpec": {"template": a_template(HEAD_RESOURCES, {})}, "rayVersion": RAY_VERSION}
ODD = (
    r"""printf '%s\n' "a  b" '$HOME' "it's \"quoted\"" 'back\slash\n' $((40 + 2)) "$(echo inner)" '$(HOME)' '$$' """
    "'gr\u00fc\u00dfe \u2603 \u4f60\u597d'"
)
"""What a shell in between, or the kubelet, would change."""
PRINTED = [
    "a  b",
    "$HOME",
    'it\'s "quoted"',
    r"back\slash\n",
    "42",
    "inner",
    "$(HOME)",
    "$$",
    "gr\u00fc\u00dfe \u2603 \u4f60\u597d",
]
"""What it prints, line by line."""


class RealJobs:
    """RayJobs in a namespace of the real node's cluster."""

    def __init__(self, kube: Kube, namespace: Namespace) -> None:
        self.kube = kube
        self.namespace = namespace

    async def apply(self, name: str, **spec: Any) -> None:
        body = {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": name}, "spec": spec}
        await self.kube.create(RAY_JOB_OBJECTS, body, self.namespace.name)

    def key(self, name: str) -> ObjectKey:
        return ObjectKey(self.namespace.name, name)

    async def becomes(self, name: str, state: str, job_status: str | None = None) -> JSON:
        """The status once the job is in this state; fails at once where it ended in another."""

        async def look() -> JSON | None:
            status: JSON = (await self.kube.get(RAY_JOB_OBJECTS, self.key(name))).get("status") or {}
            found = status.get("jobDeploymentStatus", "")
            if found == state and (job_status is None or status.get("jobStatus") == job_status):
                return status
            assert found not in {"Complete", "Failed", "ValidationFailed"} - {state}, (name, status)
            return None

        return await eventually(look, seconds=SECONDS) or {}

    async def submitter_log(self, name: str) -> str:
        """What the pod of the submitter Job printed."""
        (pod,) = await self.kube.list(
            PODS.read_as(dict), self.namespace.name, labels={"batch.kubernetes.io/job-name": name}
        )
        return await asyncio.to_thread(self.namespace.log, pod["metadata"]["name"])


@pytest.fixture
async def jobs(node_with_own_image: RealNode, node_namespace: str) -> AsyncIterator[RealJobs]:
    """A namespace with an operator in it that is ready."""
    plane = node_with_own_image.plane
    install_ray_crds(plane)
    for collection, body in operator_objects(node_namespace, "--feature-gates=SidecarSubmitterRestart=true"):
        plane.admin.post(collection, body)
    namespace = Namespace(plane, node_namespace)
    async with connected(plane.admin_kubeconfig) as kube:
        await asyncio.to_thread(namespace.wait_for_pod, OPERATOR, is_ready)
        yield RealJobs(kube, namespace)
        await jobs_are_gone(kube, node_namespace)


async def jobs_are_gone(kube: Kube, namespace: str) -> None:
    """Delete all while an operator is there for their finalizers."""
    await kube.delete_collection(CRON_OBJECTS, namespace)
    await kube.delete_collection(RAY_JOB_OBJECTS, namespace)

    async def look() -> bool:
        return not await kube.list(RAY_JOB_OBJECTS, namespace)

    await eventually(look)


def light_submitter(*arguments: str) -> JSON:
    container = {"name": "light", "image": OWN_IMAGE, "command": ["/submitter"], "args": list(arguments)}
    return {"spec": {"restartPolicy": "Never", "containers": [container]}}


async def test_jobs_of_all_kinds_run_on_a_cluster_that_asks_for_a_token(jobs: RealJobs) -> None:
    cluster = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "shared"}}
    await jobs.kube.create(
        CLUSTERS, {**cluster, "spec": {**HEAD, "authOptions": {"mode": "token"}}}, jobs.namespace.name
    )
    shared: JSON = {"clusterSelector": {"ray.io/cluster": "shared"}}
    counting = "for n in 1 2 3 4 5; do echo count $n; sleep 0.5; done"
    await jobs.apply("http", submissionMode="HTTPMode", entrypoint=ODD, **shared)
    await jobs.apply("odd", entrypoint=ODD, **shared)
    await jobs.apply("failing", submissionMode="HTTPMode", entrypoint="echo 'too bad'; exit 3", **shared)
    await jobs.apply("endless", submissionMode="HTTPMode", entrypoint="sleep 3600", **shared)
    await jobs.apply("interactive", submissionMode="InteractiveMode", **shared)
    await jobs.apply("tailed", entrypoint="unused", submitterPodTemplate=light_submitter("--", counting), **shared)
    await asyncio.gather(
        prints_what_was_meant(jobs),
        fails(jobs),
        is_stopped_by_its_deletion(jobs),
        is_submitted_by_its_user(jobs),
        is_tailed(jobs),
    )
    await cron_fires(jobs, shared)


async def completes(jobs: RealJobs, name: str) -> JSON:
    return await jobs.becomes(name, "Complete", "SUCCEEDED")


async def prints_what_was_meant(jobs: RealJobs) -> None:
    """Given to Ray by the operator, and by a submitter in a pod of its own."""
    followed = await log_of(jobs, "http", await completes(jobs, "http"))
    await completes(jobs, "odd")
    for log in (followed, await jobs.submitter_log("odd")):
        assert [line for line in log.splitlines() if line in PRINTED] == PRINTED, log


async def fails(jobs: RealJobs) -> None:
    status = await jobs.becomes("failing", "Failed", "FAILED")
    assert status["reason"] == "AppFailed"
    assert "exit code 3" in status["message"]


async def is_stopped_by_its_deletion(jobs: RealJobs) -> None:
    status = await jobs.becomes("endless", "Running", "RUNNING")
    await jobs.kube.delete(RAY_JOB_OBJECTS, jobs.key("endless"))

    async def is_gone() -> bool:
        return await jobs.kube.find(RAY_JOB_OBJECTS, jobs.key("endless")) is None

    await eventually(is_gone, seconds=SECONDS)
    assert f"Job '{status['jobId']}' ended: STOPPED" in await log_of(jobs, "endless", status)


async def log_of(jobs: RealJobs, name: str, status: JSON) -> str:
    """What a job on the shared cluster printed, as a submitter tells it that finds the job there."""
    follow = light_submitter("--", "unused")["spec"]["containers"][0]
    follow["env"] = [
        {"name": "RAY_DASHBOARD_ADDRESS", "value": status["dashboardURL"]},
        {"name": "RAY_JOB_SUBMISSION_ID", "value": status["jobId"]},
        {
            "name": "RAY_AUTH_TOKEN",
            "valueFrom": {"secretKeyRef": {"name": "shared", "key": "auth_token"}},
        },
    ]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"witness-{name}"}}
    return await asyncio.to_thread(
        jobs.namespace.output_of, {**pod, "spec": {"restartPolicy": "Never", "containers": [follow]}}
    )


async def is_submitted_by_its_user(jobs: RealJobs) -> None:
    """InteractiveMode: the user gives Ray a job under an id and writes that into the RayJob."""
    await jobs.becomes("interactive", "Waiting")
    http = await jobs.becomes("http", "Complete")
    await jobs.kube.merge_patch(RAY_JOB_OBJECTS, jobs.key("interactive"), {"spec": {"jobId": http["jobId"]}})
    assert (await completes(jobs, "interactive"))["jobId"] == http["jobId"]


async def is_tailed(jobs: RealJobs) -> None:
    await completes(jobs, "tailed")
    log = await jobs.submitter_log("tailed")
    # Between them may stand the line in which Ray names the entrypoint, which it writes a moment later.
    assert [line for line in log.splitlines() if line.startswith("count ")] == [f"count {n}" for n in range(1, 6)]
    assert log.endswith("ended: SUCCEEDED\n")


async def cron_fires(jobs: RealJobs, shared: JSON) -> None:
    template = {"submissionMode": "HTTPMode", "entrypoint": "echo tick", **shared}
    spec = {"schedule": "@every 2s", "concurrencyPolicy": "Forbid", "jobTemplate": template}
    body = {"apiVersion": "ray.io/v1", "kind": "RayCronJob", "metadata": {"name": "often"}, "spec": spec}
    await jobs.kube.create(CRON_OBJECTS, body, jobs.namespace.name)

    async def has_succeeded() -> bool:
        status = (await jobs.kube.get(CRON_OBJECTS, jobs.key("often"))).get("status") or {}
        return "lastSuccessfulTime" in status

    await eventually(has_succeeded, seconds=SECONDS)


async def test_an_attempt_that_failed_is_repeated_on_a_new_cluster(jobs: RealJobs) -> None:
    """The data that the first attempt misses are there before the second begins."""
    template = a_template(HEAD_RESOURCES, {})
    template["spec"]["volumes"] = [{"name": "data", "configMap": {"name": "data", "optional": True}}]
    template["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    cluster: JSON = {**HEAD, "headGroupSpec": {"template": template}}
    ends: JSON = {"backoffLimit": 1, "shutdownAfterJobFinishes": True}
    await jobs.apply("moved", submissionMode="HTTPMode", entrypoint="cat /data/word", rayClusterSpec=cluster, **ends)
    between = await jobs.becomes("moved", "Retrying")
    first = between["failedAttempts"][0]
    assert (first["reason"], first["rayClusterName"]) == ("AppFailed", between["rayClusterName"])
    data = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "data"}, "data": {"word": "found"}}
    await asyncio.to_thread(jobs.namespace.create, data)
    status = await completes(jobs, "moved")
    assert (status["failed"], status["succeeded"]) == (1, 1)
    assert status["failedAttempts"] == [first]
    assert status["rayClusterName"] != first["rayClusterName"]
    assert status["jobId"] != first["jobId"]
    assert await jobs.kube.find(CLUSTERS, jobs.key(first["rayClusterName"])) is None


async def test_jobs_bring_their_own_clusters_and_a_failed_attempt_is_repeated(jobs: RealJobs) -> None:
    second_time_lucky = "test -e /tmp/tried || { touch /tmp/tried; exit 1; }"
    retried: JSON = {"backoffLimit": 1, "retryRayClusterStrategy": "ReuseRayCluster"}
    await jobs.apply("retried", entrypoint=second_time_lucky, rayClusterSpec=HEAD, **retried)
    ends = {"shutdownAfterJobFinishes": True}
    await jobs.apply("beside", submissionMode="SidecarMode", entrypoint=ODD, rayClusterSpec=HEAD, **ends)
    beside, again = await asyncio.gather(completes(jobs, "beside"), completes(jobs, "retried"))
    assert beside["succeeded"] == 1
    assert (again["failed"], again["succeeded"]) == (1, 1)
    assert again["failedAttempts"][0]["rayClusterName"] == again["rayClusterName"]

    async def is_gone() -> bool:
        return await jobs.kube.find(CLUSTERS, jobs.key(beside["rayClusterName"])) is None

    await eventually(is_gone, seconds=SECONDS)
