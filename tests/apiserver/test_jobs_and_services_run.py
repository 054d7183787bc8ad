"""Jobs and services made over V1 meet the operator and a head: what V1 tells of them then, in both protocols."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import pytest

from bed.control_plane import ControlPlane
from support.api_access import Outcome, call
from support.api_processes import ApiProcess, api_server_on
from support.api_scenarios import PROTOCOLS, Protocol
from support.conditions import eventually
from support.rayjob_scene import JobScene, a_job_scene
from support.rayservice_scene import ServiceScene, a_serve_config, a_service_scene

pytestmark = [pytest.mark.usefixtures("kwok"), pytest.mark.parametrize("protocol", PROTOCOLS)]

CLUSTER_SPEC = {
    "headGroupSpec": {"computeTemplate": "small", "image": "rayproject/ray:2.60.0", "rayStartParams": {"a": "b"}},
    "workerGroupSpec": [
        {"groupName": "small", "computeTemplate": "small", "replicas": 1, "minReplicas": 1, "maxReplicas": 5}
    ],
}
EVENT_FIELDS = {"id", "name", "createdAt", "firstTimestamp", "lastTimestamp", "reason", "message", "type", "count"}


@pytest.fixture(scope="module")
def server(ray_crds: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    with api_server_on(ray_crds, tmp_path_factory.mktemp("apiserver"), "--auth=none") as server:
        yield server


@pytest.fixture
async def job_scene(ray_crds: ControlPlane) -> AsyncIterator[JobScene]:
    async with a_job_scene(ray_crds) as scene:
        yield scene


@pytest.fixture
async def service_scene(ray_crds: ControlPlane) -> AsyncIterator[ServiceScene]:
    async with a_service_scene(ray_crds) as scene:
        yield scene


class Client:
    """Calls of V1 in one protocol and one namespace."""

    def __init__(self, server: ApiProcess, protocol: Protocol, namespace: str) -> None:
        self._server = server
        self._protocol = protocol
        self._common = {"namespace": namespace, "user": "kubeuser", "version": "2.60.0", "clusterSpec": CLUSTER_SPEC}

    async def ask(self, method: str, /, **request: Any) -> Any:
        """The answer of a call that succeeds."""
        outcome = await self.outcome(method, **request)
        assert outcome.code == "OK", f"{method}: {outcome}"
        return json.loads(outcome.text)

    async def outcome(self, method: str, /, **request: Any) -> Outcome:
        full = {"namespace": self._common["namespace"], **request}
        return await asyncio.to_thread(call, self._server.ports, self._protocol, f"proto.{method}", full, {})

    async def make_template(self) -> None:
        template = {"name": "small", "namespace": self._common["namespace"], "cpu": 1, "memory": 2}
        await self.ask("ComputeTemplateService.CreateComputeTemplate", computeTemplate=template)

    async def make_job(self, **fields: Any) -> Any:
        await self.make_template()
        job = {**self._common, "name": "counter", "entrypoint": "python job.py", **fields}
        return await self.ask("RayJobService.CreateRayJob", job=job)

    async def job(self) -> Any:
        return await self.ask("RayJobService.GetRayJob", name="counter")

    async def jobs(self) -> Any:
        return (await self.ask("RayJobService.ListRayJobs"))["jobs"]

    def a_service(self, config: str) -> dict[str, Any]:
        return {**self._common, "name": "web", "serveConfigV2": config}

    async def make_service(self) -> Any:
        await self.make_template()
        return await self.ask("RayServeService.CreateRayService", service=self.a_service(a_serve_config("shop")))

    async def service(self) -> Any:
        return await self.ask("RayServeService.GetRayService", name="web")


OF_THE_OPERATOR = ("jobId", "jobStatus", "jobDeploymentStatus", "message", "startTime", "endTime", "rayClusterName")
"""Fields of a RayJob that V1 has from its status, under the same names."""


def told_by_the_operator(status: Mapping[str, Any]) -> dict[str, Any]:
    return {name: status[name] for name in OF_THE_OPERATOR if status.get(name)}


async def test_a_job_is_told_as_it_runs_and_when_it_has_succeeded(
    protocol: Protocol, server: ApiProcess, job_scene: JobScene
) -> None:
    """As KubeRay's clients ask for it: they know no other way to submit than a pod of its own."""
    client, head = Client(server, protocol, job_scene.namespace), job_scene.head
    made = await client.make_job(jobSubmitter={"image": "rayproject/ray:2.60.0"}, shutdownAfterJobFinishes=True)
    assert not set(made) & set(OF_THE_OPERATOR)
    async with job_scene.operating():
        job_id = (await job_scene.becomes("Running"))["jobId"]
        head.move(job_id, "RUNNING", "working")
        status = await job_scene.becomes("Running", "RUNNING")
        job = await client.job()
        assert job == {**made, **told_by_the_operator(status)}
        assert (job["jobId"], job["message"], "endTime" in job) == (job_id, "working", False)
        cluster = await client.ask("ClusterService.GetCluster", name=job["rayClusterName"])
        assert cluster["clusterState"] == "ready"
        assert {event["reason"] for event in cluster["events"]} >= {"CreatedHeadPod", "CreatedWorkerPod"}
        head.move(job_id, "SUCCEEDED", "done")
        status = await job_scene.becomes("Complete", "SUCCEEDED")
        job = await client.job()
        assert job == {**made, **told_by_the_operator(status)}
        assert (job["message"], job["endTime"]) == ("done", status["endTime"])
        assert await client.jobs() == [job]
        await job_scene.has_clusters(0)
        assert await client.ask("RayJobService.DeleteRayJob", name="counter") == {}
        await job_scene.is_gone()
    assert (await client.outcome("RayJobService.GetRayJob", name="counter")).code == "NOT_FOUND"


async def test_a_job_that_failed_is_told_with_what_ray_says_of_it(
    protocol: Protocol, server: ApiProcess, job_scene: JobScene
) -> None:
    client = Client(server, protocol, job_scene.namespace)
    made = await client.make_job(submissionMode="HTTPMode", metadata={"owner": "tests"})
    async with job_scene.operating():
        job_id = await job_scene.is_submitted()
        job_scene.head.move(job_id, "FAILED", "ValueError: no such data")
        status = await job_scene.becomes("Failed", "FAILED")
        job = await client.job()
        assert job == {**made, **told_by_the_operator(status)}
        assert (job["jobId"], job["message"]) == (job_id, "ValueError: no such data")
        assert await client.jobs() == [job]


async def test_a_service_is_told_with_its_cluster_its_applications_and_events(
    protocol: Protocol, server: ApiProcess, service_scene: ServiceScene
) -> None:
    client = Client(server, protocol, service_scene.namespace)
    made = await client.make_service()
    assert made["rayServiceStatus"] == {}
    async with service_scene.operating():
        active = await service_scene.serves()
        for reason in ("UpdatedServeApplications", "CreatedWorkerPod"):
            await service_scene.is_told(reason)
        service = await client.service()
        status = service["rayServiceStatus"]
        assert service == {**made, "rayServiceStatus": status}
        events = status.pop("rayServiceEvents")
        kubernetes = (await service_scene.status())["activeServiceStatus"]
        assert status == {
            "rayClusterName": active,
            "rayClusterState": "ready",
            "serviceEndpoint": kubernetes["rayClusterStatus"]["endpoints"],
            "serveApplicationStatus": [
                {
                    "name": "shop",
                    "status": "RUNNING",
                    "serveDeploymentStatus": [{"deploymentName": "Model", "status": "HEALTHY"}],
                }
            ],
        }
        # Of the service itself and of the cluster that serves.
        assert {event["reason"] for event in events} >= {"UpdatedServeApplications", "CreatedWorkerPod"}
        for event in events:
            assert event.keys() == EVENT_FIELDS
            assert event["name"] == f"web-{event['id']}"
        [listed] = (await client.ask("RayServeService.ListRayServices"))["services"]
        assert listed["rayServiceStatus"]["serveApplicationStatus"] == status["serveApplicationStatus"]
        assert {event["id"] for event in events} <= {
            one["id"] for one in listed["rayServiceStatus"]["rayServiceEvents"]
        }


async def test_a_service_is_replaced_falls_ill_and_is_deleted(
    protocol: Protocol, server: ApiProcess, service_scene: ServiceScene
) -> None:
    client = Client(server, protocol, service_scene.namespace)
    await client.make_service()

    async def applications() -> list[tuple[str, str, str]]:
        found = (await client.service())["rayServiceStatus"]["serveApplicationStatus"]
        return [(one["name"], one["status"], one.get("message", "")) for one in found]

    async with service_scene.operating():
        head = service_scene.head(await service_scene.serves())
        replacement = client.a_service(a_serve_config("shop", "cart"))
        replaced = await client.ask("RayServeService.UpdateRayService", name="web", service=replacement)
        assert replaced["serveConfigV2"] == replacement["serveConfigV2"]

        async def has_both() -> bool:
            return await applications() == [("cart", "RUNNING", ""), ("shop", "RUNNING", "")]

        await eventually(has_both)
        assert len(head.configs) == 2
        assert len(await service_scene.clusters()) == 1
        head.states["cart"] = "DEPLOY_FAILED"
        head.message = "no such module"

        async def is_ill() -> bool:
            return ("cart", "DEPLOY_FAILED", "no such module") in await applications()

        await eventually(is_ill)
        assert await client.ask("RayServeService.DeleteRayService", name="web") == {}
        await service_scene.is_gone()
    assert (await client.outcome("RayServeService.GetRayService", name="web")).code == "NOT_FOUND"
