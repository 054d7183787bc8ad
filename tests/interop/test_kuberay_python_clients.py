"""KubeRay's own Python clients, unmodified and with their own tests, at our API server and operator."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
import yaml
from aiohttp import web

from bed.control_plane import ControlPlane
from bed.daemons import LOOPBACK
from bed.kuberay_clients import clients_folder, run_their_tests
from support.api_processes import ApiProcess, api_server_on
from support.operating import operating
from support.ray_jobs_head import JobsHead, a_jobs_head

pytestmark = [pytest.mark.interop, pytest.mark.usefixtures("kwok"), pytest.mark.timeout(1200)]

NAMESPACE = "default"
"""Theirs is in all their tests."""
THEIR_PORT = 31888
"""Where their client looks for an API server unless told otherwise, and their tests do not tell."""
BROKEN = "test_templates"
"""Fails with any server, and without one: their client writes the key "extended resources", which nobody reads."""
JOB_SECONDS = 15.0
"""So long a job runs: their tests look at it while it does, and wait for its end."""


class BusyHead(JobsHead):
    """A head that knows every job, and whose jobs run for a while and succeed."""

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        parts = request.path.strip("/").split("/")[2:]
        if request.method == "GET" and parts:
            known = self.jobs.get(parts[0])
            if known is None:
                self.move(parts[0], "RUNNING")
            elif known["status"] == "RUNNING" and time.time() * 1000 - known["start_time"] > JOB_SECONDS * 1000:
                self.move(parts[0], "SUCCEEDED")
        return await super().handle(request)


def kubeconfig_of(server: ApiProcess, folder: Path) -> Path:
    """Our V2 in the place of Kubernetes."""
    named = {
        "clusters": [{"name": "ours", "cluster": {"server": f"http://{LOOPBACK}:{server.ports.http}"}}],
        "users": [{"name": "nobody", "user": {}}],
        "contexts": [{"name": "ours", "context": {"cluster": "ours", "user": "nobody"}}],
    }
    file = folder / "kubeconfig"
    file.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", "current-context": "ours", **named}))
    return file


@pytest.mark.parametrize("tests", ["test_director.py", "test_utils.py"])
def test_the_python_client_builds_clusters(tests: str, ray_crds: ControlPlane) -> None:
    folder = clients_folder() / "python-client"
    run_their_tests(folder / "python_client_test" / tests, folder, ray_crds.admin_kubeconfig)


@pytest.mark.parametrize("tests", ["test_cluster_api.py", "test_job_api.py"])
async def test_the_python_client_works_at_v2_and_with_the_operator(
    tests: str, ray_crds: ControlPlane, tmp_path: Path
) -> None:
    folder = clients_folder() / "python-client"
    with api_server_on(ray_crds, tmp_path, "--auth=none") as server:
        async with a_jobs_head(BusyHead()) as url, operating(ray_crds.admin_kubeconfig, NAMESPACE, heads_at=url):
            file, kubeconfig = folder / "python_client_test" / tests, kubeconfig_of(server, tmp_path)
            await asyncio.to_thread(run_their_tests, file, folder, kubeconfig)


def run_apiserver_client(name: str, kubeconfig: Path, only: str = "", broken: str = "") -> None:
    folder = clients_folder() / "python-apiserver-client"
    run_their_tests(folder / "test" / name, folder / "src", kubeconfig, only=only, broken=broken)


def test_the_client_of_the_api_server_builds_its_messages(ray_crds: ControlPlane) -> None:
    run_apiserver_client("api_params_test.py", ray_crds.admin_kubeconfig, broken=BROKEN)


async def test_the_client_of_the_api_server_makes_clusters(ray_crds: ControlPlane, tmp_path: Path) -> None:
    with api_server_on(ray_crds, tmp_path, "--auth=none", http_port=THEIR_PORT):
        async with operating(ray_crds.admin_kubeconfig, NAMESPACE):
            file, kubeconfig = "kuberay_api_test.py", ray_crds.admin_kubeconfig
            await asyncio.to_thread(run_apiserver_client, file, kubeconfig, only="cluster")


def test_the_client_of_the_api_server_makes_templates_as_far_as_it_can(ray_crds: ControlPlane, tmp_path: Path) -> None:
    with api_server_on(ray_crds, tmp_path, "--auth=none", http_port=THEIR_PORT) as server:
        run_apiserver_client("kuberay_api_test.py", ray_crds.admin_kubeconfig, only="templates", broken=BROKEN)
        place = f"/apis/v1/namespaces/{NAMESPACE}/compute_templates/default-template"
        made = server.rest.get(place)
        server.rest.delete(place)
    assert (made["cpu"], made["memory"], made["gpu"], "extendedResources" in made) == (2, 8, 1, False)
    assert made["tolerations"] == [{"key": "blah1", "operator": "Exists", "effect": "NoExecute"}]
