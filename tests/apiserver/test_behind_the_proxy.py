"""The API server and the security proxy as real processes, with the arguments and variables that the chart renders."""

from __future__ import annotations

import http.client
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from bed.control_plane import ControlPlane
from bed.daemons import LOOPBACK
from bed.kuberay_apiserver import ServerPorts
from bed.ports import free_port
from bed.waiting import PATIENCE_SECONDS, wait_until
from support.api_access import call
from support.api_processes import COMMAND
from support.helm_charts import Chart, Json

TOKEN: Final = "the-token-of-the-secret"
PAGE: Final = "https://page.example"
SHOWN: Final = {"Authorization": TOKEN}
PREFLIGHT: Final = {
    "Origin": PAGE,
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization,content-type",
}
LIST: Final = "proto.ComputeTemplateService.ListComputeTemplates"


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: str


@dataclass(frozen=True)
class Pod:
    """Both containers; their ports are those of a real pod on one machine."""

    api: int
    proxy: ServerPorts
    metrics: int

    def ask(self, method: str, path: str, headers: Mapping[str, str] | None = None, port: int = 0) -> Answer:
        connection = http.client.HTTPConnection(LOOPBACK, port or self.proxy.http, timeout=60)
        try:
            connection.request(method, path, headers=dict(headers or {}))
            response = connection.getresponse()
            return Answer(response.status, dict(response.getheaders()), response.read().decode())
        finally:
            connection.close()

    def answers(self, path: str, port: int) -> bool:
        try:
            return self.ask("GET", path, port=port).status == 200
        except OSError:
            return False


def started(container: Json, folder: Path, opened: ExitStack, program: str, **variables: str) -> None:
    """A container's process; a value from the Secret is the token."""
    given = {one["name"]: one.get("value", TOKEN) for one in container.get("env", [])}
    file = opened.enter_context((folder / f"{program}.log").open("wb"))
    command = [*COMMAND, program, *container.get("args", [])]
    process = subprocess.Popen(command, stdout=file, stderr=file, env={**os.environ, **given, **variables})
    opened.callback(process.wait)
    opened.callback(process.kill)


@pytest.fixture
def pod(ray_crds: ControlPlane, tmp_path: Path) -> Iterator[Pod]:
    """As `helm install --set cors.allowOrigin=…` starts it."""
    names = ("http", "grpc", "metrics")
    ports = {name: free_port() for name in (*names, "HTTP_LOCAL_PORT", "GRPC_LOCAL_PORT")}
    values: dict[str, Any] = {
        "cors": {"allowOrigin": PAGE},
        "containerPort": [{"name": name, "containerPort": ports[name]} for name in names],
        "security": {"env": {name: ports[name] for name in ("HTTP_LOCAL_PORT", "GRPC_LOCAL_PORT")}},
    }
    (deployment,) = (item for item in Chart("kuberay-apiserver").render(values) if item["kind"] == "Deployment")
    server, proxy = deployment["spec"]["template"]["spec"]["containers"]
    pod = Pod(ports["http"], ServerPorts(ports["HTTP_LOCAL_PORT"], ports["GRPC_LOCAL_PORT"]), ports["metrics"])
    with ExitStack() as opened:
        started(server, tmp_path, opened, "kuberay-apiserver", KUBECONFIG=str(ray_crds.admin_kubeconfig))
        started(proxy, tmp_path, opened, "security-proxy")
        wait_until("the probe succeeds", lambda: pod.answers("/readyz", pod.metrics), PATIENCE_SECONDS)
        wait_until("the proxy passes it on", lambda: pod.answers("/readyz", pod.proxy.http), PATIENCE_SECONDS)
        yield pod


def test_who_shows_the_token_is_served_over_both_protocols_and_nobody_else(pod: Pod, namespace: str) -> None:
    for protocol in ("http", "grpc"):
        assert call(pod.proxy, protocol, LIST, {"namespace": namespace}, SHOWN).code == "OK"
        assert call(pod.proxy, protocol, LIST, {"namespace": namespace}, {}).code == "UNAUTHENTICATED"
    assert pod.ask("GET", "/metrics", port=pod.metrics).status == 200
    assert pod.ask("GET", f"/apis/v1/namespaces/{namespace}/clusters", port=pod.metrics).status == 404


def test_a_page_of_the_allowed_origin_can_call(pod: Pod, namespace: str) -> None:
    for path in (f"/apis/v1/namespaces/{namespace}/clusters", f"/apis/ray.io/v1/namespaces/{namespace}/rayclusters"):
        asked = pod.ask("OPTIONS", path, PREFLIGHT)
        assert (asked.status, asked.headers["Access-Control-Allow-Origin"]) == (204, PAGE)
        assert asked.headers["Access-Control-Allow-Headers"] == "authorization,content-type"
        answer = pod.ask("GET", path, {**SHOWN, "Origin": PAGE})
        assert (answer.status, answer.headers["Access-Control-Allow-Origin"]) == (200, PAGE)
        assert pod.ask("GET", path, {"Origin": PAGE}).status == 401


def test_a_page_of_the_proxys_own_site_needs_no_permission(pod: Pod, namespace: str) -> None:
    """Such as the page of all operations behind an Ingress: the server on loopback must not call it foreign."""
    headers = {**SHOWN, "Host": "ray-api.example.com", "Origin": "https://ray-api.example.com"}
    assert pod.ask("GET", f"/apis/v1/namespaces/{namespace}/clusters", headers).status == 200


def test_the_server_itself_listens_on_loopback_alone(pod: Pod) -> None:
    """By the kernel's own list: no other address, in either family."""
    listening = {
        line.split()[1]
        for family in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{family}").read_text().splitlines()[1:]
        if line.split()[3] == "0A"
    }
    assert {address for address in listening if address.endswith(f":{pod.api:04X}")} == {f"0100007F:{pod.api:04X}"}
