"""What KubeRay's dashboard asks for, from a browser, through V2."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any

import pytest

from bed.control_plane import ControlPlane
from bed.daemons import LOOPBACK
from raykeeper.client import WorkerGroup, cluster_spec, ray_cluster, ray_job
from support.api_processes import ApiProcess, api_server_on

DASHBOARD = "http://localhost:3000"


@pytest.fixture(scope="module")
def server(ray_crds: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    flags = ("--auth=none", f"--cors-allow-origin={DASHBOARD}")
    with api_server_on(ray_crds, tmp_path_factory.mktemp("apiserver"), *flags) as process:
        yield process


def ask(server: ApiProcess, method: str, path: str, body: Any = None) -> tuple[int, Any, str | None]:
    """Status, JSON and the origin that may read it, as a browser asks from the dashboard's page."""
    connection = http.client.HTTPConnection(LOOPBACK, server.ports.http, timeout=30)
    headers = {"Origin": DASHBOARD, "Content-Type": "application/json"}
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read() or b"null"), answer.headers.get("Access-Control-Allow-Origin")
    finally:
        connection.close()


def a_job() -> Any:
    """As its form makes one."""
    workers = [WorkerGroup(name="small-wg", replicas=1, max_replicas=3)]
    return ray_job("train", "python train.py", cluster=cluster_spec(image="rayproject/ray:2.46.0", workers=workers))


def test_the_jobs_page_creates_lists_and_deletes(server: ApiProcess, namespace: str) -> None:
    api = f"/apis/ray.io/v1/namespaces/{namespace}/rayjobs"
    made, job, origin = ask(server, "POST", api, a_job())
    assert (made, job["kind"], origin) == (201, "RayJob", DASHBOARD)
    for path in (api, "/apis/ray.io/v1/rayjobs"):
        status, listed, _ = ask(server, "GET", path)
        assert status == 200
        assert "train" in [
            item["metadata"]["name"] for item in listed["items"] if item["metadata"]["namespace"] == namespace
        ]
    assert ask(server, "DELETE", f"{api}/train")[0] == 200
    assert ask(server, "GET", api)[1]["items"] == []


def test_the_clusters_page_lists_links_and_deletes(server: ApiProcess, ray_crds: ControlPlane, namespace: str) -> None:
    api = f"/apis/ray.io/v1/namespaces/{namespace}/rayclusters"
    ray_crds.admin.post(api, ray_cluster("demo", labels={"ray.io/originated-from-crd": "RayCluster"}))
    head = {"serviceName": "demo-head-svc"}
    ray_crds.admin.patch(f"{api}/demo/status", {"status": {"state": "ready", "head": head}})
    [cluster] = ask(server, "GET", api)[1]["items"]
    assert cluster["status"]["head"] == head
    ports = cluster["spec"]["headGroupSpec"]["template"]["spec"]["containers"][0]["ports"]
    assert "dashboard" in [port["name"] for port in ports]
    # The link to Ray's dashboard: refused for a Service that is not there, and not by a missing route.
    proxied = f"/api/v1/namespaces/{namespace}/services/demo-head-svc:8265/proxy/"
    status, answer, _ = ask(server, "GET", proxied)
    assert (status, answer["kind"]) == (404, "Status")
    assert ask(server, "DELETE", f"{api}/demo")[0] == 200


def test_a_refusal_has_the_message_that_the_page_shows(server: ApiProcess, namespace: str) -> None:
    api = f"/apis/ray.io/v1/namespaces/{namespace}/rayjobs"
    wrong = a_job()
    wrong["spec"]["suspend"] = "no"
    status, answer, origin = ask(server, "POST", api, wrong)
    assert (status, origin) == (422, DASHBOARD)
    assert "spec.suspend" in answer["message"]


def test_a_browser_may_ask_before_it_deletes(server: ApiProcess, namespace: str) -> None:
    connection = http.client.HTTPConnection(LOOPBACK, server.ports.http, timeout=30)
    headers = {"Origin": DASHBOARD, "Access-Control-Request-Method": "DELETE"}
    connection.request("OPTIONS", f"/apis/ray.io/v1/namespaces/{namespace}/rayjobs/train", headers=headers)
    answer = connection.getresponse()
    assert answer.status in (200, 204)
    assert "DELETE" in (answer.headers.get("Access-Control-Allow-Methods") or "")
    connection.close()
