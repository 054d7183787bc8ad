"""KubeRay's own Go client at our API server: the stories of its end-to-end tests, with the operator and heads."""

from __future__ import annotations

import asyncio
import json
import subprocess
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bed.binaries import BINARIES, build
from bed.control_plane import ControlPlane
from bed.daemons import LOOPBACK
from bed.fixtures import make_namespace, remove_namespace
from support.api_processes import ApiProcess, api_server_on
from support.conditions import eventually
from support.head_scenarios import ReachableHead, a_reachable_head
from support.operating import operating
from support.rayjob_scene import JobScene, a_job_scene
from support.rayservice_scene import ServiceScene, a_serve_config, a_service_scene

pytestmark = [pytest.mark.interop, pytest.mark.usefixtures("kwok"), pytest.mark.timeout(600)]


@dataclass(frozen=True)
class GoClient:
    """A running program with KubeRay's client in it; it refuses answers with fields that it does not know."""

    process: subprocess.Popen[str]

    async def told(self, method: str, /, **request: Any) -> Any:
        """Everything that came of a call."""
        return await asyncio.to_thread(self._told, method, request)

    def _told(self, method: str, request: dict[str, Any]) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"method": method, "request": request}) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    async def ask(self, method: str, /, **request: Any) -> Any:
        """The answer of a call that succeeds; None of one that has no answer."""
        told = await self.told(method, **request)
        assert "error" not in told, f"{method}: {told}"
        return told.get("answer")

    async def status_of(self, method: str, /, **request: Any) -> int:
        """Of a call that is refused, with a text that the client could read."""
        told = await self.told(method, **request)
        assert told["status"]["message"], f"{method}: {told}"
        assert told.get("isNotFound", False) == (told["httpStatus"] == 404)
        return int(told["httpStatus"])


@contextmanager
def a_go_client(server: ApiProcess) -> Iterator[GoClient]:
    build(["kuberay-client"])
    command = [str(BINARIES["kuberay-client"].path), f"http://{LOOPBACK}:{server.ports.http}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield GoClient(process)
        finally:
            process.kill()


@pytest.fixture(scope="module")
def client(ray_crds: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GoClient]:
    with (
        api_server_on(ray_crds, tmp_path_factory.mktemp("apiserver"), "--auth=none") as server,
        a_go_client(server) as it,
    ):
        yield it


def template(namespace: str, name: str = "small") -> dict[str, Any]:
    tolerations = [{"key": "ray.io/node-type", "operator": "Exists", "effect": "NoSchedule"}]
    return {"name": name, "namespace": namespace, "cpu": 1, "memory": 2, "tolerations": tolerations}


CLUSTER_SPEC: dict[str, Any] = {
    "headGroupSpec": {
        "computeTemplate": "small",
        "image": "rayproject/ray:2.60.0",
        "serviceType": "NodePort",
        "rayStartParams": {"dashboard-host": "0.0.0.0", "metrics-export-port": "8080"},
        "volumes": [
            {
                "mountPath": "/home/ray/samples",
                "volumeType": "CONFIGMAP",
                "name": "code-sample",
                "source": "code",
                "items": {"sample_code.py": "sample_code.py"},
            }
        ],
    },
    "workerGroupSpec": [
        {
            "groupName": "small-wg",
            "computeTemplate": "small",
            "image": "rayproject/ray:2.60.0",
            "replicas": 1,
            "minReplicas": 1,
            "maxReplicas": 1,
            "rayStartParams": {"node-ip-address": "$MY_POD_IP"},
        }
    ],
}


def an_object(namespace: str, name: str, **fields: Any) -> dict[str, Any]:
    common = {"namespace": namespace, "user": "boris", "version": "2.60.0", "clusterSpec": CLUSTER_SPEC}
    return {**common, "name": name, **fields}


async def make_template(client: GoClient, namespace: str) -> None:
    await client.ask("CreateComputeTemplate", namespace=namespace, computeTemplate=template(namespace))


@pytest.fixture
def namespaces(ray_crds: ControlPlane) -> Iterator[list[str]]:
    mark = uuid.uuid4().hex[:6]
    names = [f"go-client-{mark}-{number}" for number in range(3)]
    for name in names:
        make_namespace(ray_crds, name)
    yield names
    for name in names:
        remove_namespace(ray_crds, name)


async def test_templates_are_made_read_listed_deleted_and_refused(client: GoClient, namespaces: list[str]) -> None:
    here, *_ = namespaces
    create, body = "CreateComputeTemplate", template(here)
    assert await client.ask(create, namespace=here, computeTemplate=body) == {**body, "memoryUnit": "Gi"}
    for wrong in ({"name": ""}, {"namespace": ""}, {"namespace": "another"}, {"cpu": 0}, {"memory": 0}):
        assert await client.status_of(create, namespace=here, computeTemplate={**body, **wrong}) == 400, wrong
    assert await client.status_of(create, namespace=here, computeTemplate=body) == 409
    made = await client.ask("GetComputeTemplate", namespace=here, name="small")
    assert made["tolerations"] == body["tolerations"]
    listed = await client.ask("GetAllComputeTemplatesInNamespace", namespace=here)
    assert listed == {"computeTemplates": [made]}
    assert made in (await client.ask("GetAllComputeTemplates"))["computeTemplates"]
    assert await client.status_of("GetComputeTemplate", namespace=here, name="missing") == 404
    assert await client.ask("DeleteComputeTemplate", namespace=here, name="small") is None
    assert await client.status_of("DeleteComputeTemplate", namespace=here, name="small") == 404
    assert await client.status_of("DeleteComputeTemplate", namespace=here, name="") == 400


async def test_a_cluster_gets_ready_and_is_deleted(
    client: GoClient, ray_crds: ControlPlane, namespaces: list[str]
) -> None:
    here, *_ = namespaces
    await make_template(client, here)
    async with operating(ray_crds.admin_kubeconfig, here):
        made = await client.ask("CreateCluster", namespace=here, cluster=an_object(here, "first"))
        assert made["clusterSpec"]["headGroupSpec"]["serviceType"] == "NodePort"

        async def is_ready() -> Any:
            found = await client.ask("GetCluster", namespace=here, name="first")
            return found if found.get("clusterState") == "ready" and found.get("events") else None

        ready = await eventually(is_ready)
        assert ready["clusterSpec"] == made["clusterSpec"]
        assert ready["serviceEndpoint"]
        assert await client.ask("DeleteCluster", namespace=here, name="first") is None

        async def is_gone() -> bool:
            return bool((await client.told("GetCluster", namespace=here, name="first")).get("isNotFound"))

        await eventually(is_gone)
    wrongs: list[dict[str, Any]] = [{"name": ""}, {"namespace": "another"}, {"user": ""}, {"clusterSpec": {}}]
    for wrong in wrongs:
        cluster = {**an_object(here, "wrong"), **wrong}
        assert await client.status_of("CreateCluster", namespace=here, cluster=cluster) == 400, wrong
    unknown = {"headGroupSpec": {**CLUSTER_SPEC["headGroupSpec"], "computeTemplate": "missing"}}
    cluster = an_object(here, "wrong", clusterSpec=unknown)
    assert await client.status_of("CreateCluster", namespace=here, cluster=cluster) == 500
    assert await client.status_of("DeleteCluster", namespace=here, name="missing") == 404


KINDS = [
    ("CreateCluster", "cluster", "ListClusters", "ListAllClusters", "clusters", {}),
    ("CreateRayJob", "job", "ListRayJobs", "ListAllRayJobs", "jobs", {"entrypoint": "true"}),
    (
        *("CreateRayService", "service", "ListRayServices", "ListAllRayServices", "services"),
        {"serveConfigV2": a_serve_config()},
    ),
]


@pytest.mark.parametrize(("create", "field", "in_namespace", "everywhere", "rows", "fields"), KINDS)
async def test_lists_come_in_pages(
    create: str,
    field: str,
    in_namespace: str,
    everywhere: str,
    rows: str,
    fields: dict[str, Any],
    client: GoClient,
    namespaces: list[str],
) -> None:
    names = [("a", namespaces[0]), ("b", namespaces[0]), ("c", namespaces[1]), ("d", namespaces[2])]
    for namespace in namespaces:
        await make_template(client, namespace)
    for name, namespace in names:
        await client.ask(create, **{"namespace": namespace, field: an_object(namespace, name, **fields)})

    async def pages(method: str, **where: Any) -> list[list[tuple[str, str]]]:
        """The names on each page of one."""
        found: list[list[tuple[str, str]]] = []
        token = ""
        size, after = ("pageSize", "pageToken") if rows == "services" else ("limit", "continue")
        while not found or token:
            page = await client.ask(method, **{size: 1, after: token, **where})
            found.append([(row["name"], row["namespace"]) for row in page.get(rows, ())])
            token = page.get("continue") or page.get("nextPageToken") or ""
        return found

    assert await pages(in_namespace, namespace=namespaces[0]) == [[names[0]], [names[1]]]
    all_pages = await pages(everywhere)
    assert all(len(page) == 1 for page in all_pages)
    assert {row for page in all_pages for row in page} >= set(names)
    whole = await client.ask(in_namespace, namespace=namespaces[0])
    assert [row["name"] for row in whole[rows]] == ["a", "b"]


@pytest.fixture
async def job_scene(ray_crds: ControlPlane) -> AsyncIterator[JobScene]:
    async with a_job_scene(ray_crds) as scene:
        yield scene


@pytest.mark.parametrize(("end", "state"), [("SUCCEEDED", "Complete"), ("FAILED", "Failed")])
async def test_a_job_with_a_cluster_of_its_own_runs_to_its_end(
    end: str, state: str, client: GoClient, job_scene: JobScene
) -> None:
    here = job_scene.namespace
    await make_template(client, here)
    submitter = {"image": "rayproject/ray:2.60.0"}
    job = an_object(here, "counter", entrypoint="python job.py", jobSubmitter=submitter, shutdownAfterJobFinishes=True)
    await client.ask("CreateRayJob", namespace=here, job=job)
    async with job_scene.operating():
        status = await job_scene.becomes("Running")
        job_scene.head.move(status["jobId"], end, "the end")
        await job_scene.becomes(state, end)
        found = await client.ask("GetRayJob", namespace=here, name="counter")
        assert (found["jobStatus"], found["jobDeploymentStatus"], found["message"]) == (end, state, "the end")
        assert await client.ask("DeleteRayJob", namespace=here, name="counter") is None
        await job_scene.is_gone()
    assert await client.status_of("GetRayJob", namespace=here, name="counter") == 404
    assert await client.status_of("DeleteRayJob", namespace=here, name="counter") == 404
    assert await client.status_of("CreateRayJob", namespace=here, job={**job, "user": ""}) == 400


@pytest.fixture
async def service_scene(ray_crds: ControlPlane) -> AsyncIterator[ServiceScene]:
    async with a_service_scene(ray_crds) as scene:
        yield scene


async def test_a_service_serves_is_replaced_and_deleted(client: GoClient, service_scene: ServiceScene) -> None:
    here = service_scene.namespace
    await make_template(client, here)
    service = an_object(here, "web", serveConfigV2=a_serve_config("shop"))
    await client.ask("CreateRayService", namespace=here, service=service)
    assert await client.status_of("CreateRayService", namespace=here, service={**service, "serveConfigV2": ""}) == 400
    async with service_scene.operating():
        active = await service_scene.serves()
        found = (await client.ask("GetRayService", namespace=here, name="web"))["rayServiceStatus"]
        assert (found["rayClusterName"], found["serveApplicationStatus"][0]["status"]) == (active, "RUNNING")
        assert found["rayServiceEvents"]
        replacement = {**service, "serveConfigV2": a_serve_config("shop", "cart")}
        replaced = await client.ask("UpdateRayService", namespace=here, name="web", service=replacement)
        assert replaced["serveConfigV2"] == replacement["serveConfigV2"]
        assert await client.ask("DeleteRayService", namespace=here, name="web") is None
        await service_scene.is_gone()
    assert await client.status_of("GetRayService", namespace=here, name="web") == 404


@pytest.fixture(scope="module")
def head(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReachableHead]:
    with a_reachable_head(tmp_path_factory.mktemp("ray")) as head:
        yield head


async def test_jobs_are_submitted_to_a_real_head(
    head: ReachableHead, ray_crds: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    """The head is led to by hand in the place of an operator."""
    flags = ("--auth=none", "--use-kubernetes-proxy")
    with api_server_on(ray_crds, tmp_path, *flags) as server, a_go_client(server) as client:
        await make_template(client, namespace)
        await client.ask("CreateCluster", namespace=namespace, cluster=an_object(namespace, "test-job"))
        await asyncio.to_thread(head.lead, ray_crds, server.ports, namespace)
        try:
            await check_submissions(client, {"namespace": namespace, "clustername": "test-job"})
        finally:
            ray_crds.admin.delete(f"/api/v1/nodes/{namespace}")


async def check_submissions(client: GoClient, where: dict[str, str]) -> None:
    job = {"entrypoint": "echo hello", "runtimeEnv": "env_vars:\n  a: b\n", "entrypointNumCpus": 0.5}
    submission = (await client.ask("SubmitRayJob", **where, jobsubmission=job))["submissionId"]
    one = {**where, "submissionid": submission}

    async def has_succeeded() -> bool:
        return bool((await client.ask("GetRayJobDetails", **one))["status"] == "SUCCEEDED")

    await eventually(has_succeeded)
    assert "hello" in (await client.ask("GetRayJobLog", **one))["log"]
    listed = (await client.ask("ListRayJobsCluster", **where))["submissions"]
    assert submission in [found["submissionId"] for found in listed]
    assert await client.ask("StopRayJob", **one) is None
    assert await client.ask("DeleteRayJobCluster", **one) is None
    assert await client.status_of("GetRayJobDetails", **one) >= 400
    assert await client.status_of("SubmitRayJob", **{**where, "clustername": "missing"}, jobsubmission=job) == 404
