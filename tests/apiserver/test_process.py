"""The API server as a process: how it starts, what it says about itself, and how it ends."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from prometheus_client.parser import text_string_to_metric_families

from bed.control_plane import ControlPlane
from bed.daemons import LOOPBACK
from bed.ports import free_port
from bed.waiting import PATIENCE_SECONDS, wait_until
from raykeeper.apiserver.services.table import SERVED
from support.api_access import call
from support.api_processes import COMMAND, ApiProcess, api_server_on

LIST = "proto.ComputeTemplateService.ListComputeTemplates"


@pytest.fixture
def server(ray_crds: ControlPlane, tmp_path: Path) -> Iterator[ApiProcess]:
    with api_server_on(ray_crds, tmp_path) as process:
        yield process


def ended(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **variables}
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, check=False, timeout=60, env=environment
    )


def ask(port: int, path: str, **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=30)
    try:
        connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def test_health_and_reflection_are_served_over_grpc(server: ApiProcess) -> None:
    with grpc.insecure_channel(f"{LOOPBACK}:{server.ports.grpc}") as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)
        for name in ("", "proto.ClusterService"):
            answer = stub.Check(health_pb2.HealthCheckRequest(service=name), timeout=30)
            assert answer.status == health_pb2.HealthCheckResponse.SERVING
        described = set(ProtoReflectionDescriptorDatabase(channel).get_services())
        assert {service.full_name for service in SERVED} <= described
        assert "proto.ImageTemplateService" not in described


def test_calls_over_both_protocols_are_counted_under_kuberays_names(server: ApiProcess, namespace: str) -> None:
    for protocol in ("grpc", "http"):
        assert call(server.ports, protocol, LIST, {"namespace": namespace}, {}).code == "OK"
        get = "proto.ClusterService.GetCluster"
        assert call(server.ports, protocol, get, {"namespace": namespace, "name": "x"}, {}).code == "NOT_FOUND"
    families = {
        family.name: family for family in text_string_to_metric_families(server.rest.raw("GET", "/metrics").decode())
    }

    def value(name: str, **labels: str) -> float:
        samples = families[name].samples
        return sum(one.value for one in samples if labels.items() <= one.labels.items() and "created" not in one.name)

    listed = {
        "grpc_type": "unary",
        "grpc_service": "proto.ComputeTemplateService",
        "grpc_method": "ListComputeTemplates",
    }
    assert value("grpc_server_started", **listed) == 2
    assert value("grpc_server_handled", **listed, grpc_code="OK") == 2
    assert value("grpc_server_msg_received", **listed) == 2
    assert value("grpc_server_msg_sent", **listed) == 2
    assert value("grpc_server_handled", grpc_method="GetCluster", grpc_code="NotFound") == 2
    assert value("grpc_server_handling_seconds", le="+Inf", grpc_method="GetCluster") == 2
    assert "process_resident_memory_bytes" in families


def test_probes_and_metrics_have_an_address_of_their_own_which_serves_nothing_else(
    ray_crds: ControlPlane, tmp_path: Path
) -> None:
    port = free_port()
    with api_server_on(ray_crds, tmp_path, "--auth=none", f"--metrics-addr={LOOPBACK}:{port}") as server:
        assert {path: ask(port, path)[0] for path in ("/healthz", "/livez", "/readyz")} == dict.fromkeys(
            ("/healthz", "/livez", "/readyz"), 200
        )
        assert "grpc_server_handled_total" in ask(port, "/metrics")[1]
        for path in ("/apis/v1/namespaces/default/clusters", "/apis/ray.io/v1/rayclusters", "/swagger-ui/", "/", "//"):
            assert ask(server.ports.http, path)[0] != 404 or path in ("/", "//"), "served by the API's own address"
            assert ask(port, path)[0] == 404
        assert server.stop() == 0


def test_the_access_log_says_who_did_what_and_never_how_they_proved_it(ray_crds: ControlPlane, tmp_path: Path) -> None:
    secret = "a-secret-that-must-not-be-seen"
    with api_server_on(ray_crds, tmp_path, "--auth=token", RAYKEEPER_AUTH_TOKEN=secret) as server:
        for shown in (secret, "wrong-but-also-secret"):
            call(server.ports, "http", LIST, {"namespace": "default"}, {"Authorization": f"Bearer {shown}"})
            call(server.ports, "grpc", LIST, {"namespace": "default"}, {"Authorization": shown})
        lines = [line for line in server.lines() if line["msg"] == "call"]
        assert [(line["call"], line["code"], line["caller"], line["protocol"]) for line in lines] == [
            (LIST, "OK", "token 1", "http"),
            (LIST, "OK", "token 1", "grpc"),
            (LIST, "Unauthenticated", "", "http"),
            (LIST, "Unauthenticated", "", "grpc"),
        ]
        assert "secret" not in server.output


def test_calls_under_way_are_answered_before_it_ends(ray_crds: ControlPlane, tmp_path: Path, namespace: str) -> None:
    with api_server_on(ray_crds, tmp_path, "--auth=none") as server:
        slow = socket.create_connection((LOOPBACK, server.ports.http), timeout=60)
        body = json.dumps({"name": "late", "namespace": namespace, "cpu": 1, "memory": 1}).encode()
        path = f"/apis/v1/namespaces/{namespace}/compute_templates"
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        slow.sendall(head.encode() + body[:5])
        wait_until("the head is read", lambda: ask(server.ports.http, "/readyz")[0] == 200, PATIENCE_SECONDS)
        server.process.terminate()
        wait_until("it says that it stops", lambda: "stopping" in server.output, PATIENCE_SECONDS)
        slow.sendall(body[5:])
        answer = slow.recv(65536)
        assert answer.startswith(b"HTTP/1.1 200")
        slow.close()
        assert server.process.wait(PATIENCE_SECONDS) == 0
        assert '"stopped"' in server.output


def test_probes_fail_while_it_is_about_to_end(server: ApiProcess) -> None:
    held = http.client.HTTPConnection(LOOPBACK, server.ports.http, timeout=30)
    held.request("GET", "/healthz")
    held.getresponse().read()
    statuses: list[int] = []

    def watch() -> None:
        while server.process.poll() is None:
            try:
                statuses.append(ask(server.ports.http, "/healthz")[0])
            except OSError:
                return
            time.sleep(0.05)

    watching = threading.Thread(target=watch)
    watching.start()
    assert server.stop() == 0
    watching.join()
    assert statuses[-1] == 503


def test_it_starts_without_kubernetes_and_says_so(tmp_path: Path) -> None:
    port, grpc_port = free_port(), free_port()
    kubeconfig = tmp_path / "config"
    cluster = {
        "name": "c",
        "cluster": {"server": f"https://{LOOPBACK}:{free_port()}", "insecure-skip-tls-verify": True},
    }
    config: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [cluster],
        "users": [{"name": "u", "user": {"token": "x"}}],
        "contexts": [{"name": "k", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "k",
    }
    kubeconfig.write_text(json.dumps(config))
    command = [*COMMAND, "apiserver", f"--httpPortFlag={LOOPBACK}:{port}", f"--rpcPortFlag={LOOPBACK}:{grpc_port}"]
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment) as process:
        try:
            wait_until("it answers", lambda: _answers(port), PATIENCE_SECONDS)
            status, text = ask(port, "/readyz")
            assert status == 503
            assert "no answer yet from" in text
            status, text = ask(port, "/apis/v1/clusters")
            assert status == 503
            assert json.loads(text)["code"] == 14
            assert "connection refused" in text
        finally:
            process.kill()


def _answers(port: int) -> bool:
    try:
        return ask(port, "/healthz")[0] == 200
    except OSError:
        return False


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["apiserver", "--httpPortFlag=:8888"], "say who may by --auth"),
        (["apiserver", "--auth=token"], "RAYKEEPER_AUTH_TOKEN"),
        (["apiserver", "--kubeconfig=/nowhere"], "/nowhere"),
        (["kuberay-apiserver", "-httpPortFlag", "x"], "host:port"),
    ],
)
def test_a_wrong_setting_is_one_line_and_an_exit_code(arguments: list[str], problem: str) -> None:
    outcome = ended(*arguments)
    assert outcome.returncode == 2
    assert problem in outcome.stderr
    assert outcome.stderr.count("\n") == 1


def test_a_taken_port_is_told_by_the_name_of_its_flag(ray_crds: ControlPlane) -> None:
    with socket.create_server((LOOPBACK, 0)) as taken:
        port = taken.getsockname()[1]
        free = f"--rpcPortFlag={LOOPBACK}:{free_port()}"
        outcome = ended("apiserver", f"--httpPortFlag={LOOPBACK}:{port}", free)
        assert outcome.returncode == 2
        assert "--httpPortFlag" in outcome.stderr
        free = f"--httpPortFlag={LOOPBACK}:{free_port()}"
        kubeconfig = str(ray_crds.admin_kubeconfig)
        outcome = ended("apiserver", f"--rpcPortFlag={LOOPBACK}:{port}", free, KUBECONFIG=kubeconfig)
        assert outcome.returncode == 2
        assert "--rpcPortFlag" in outcome.stderr


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "localhost:1"}, 200),
        ({"Host": "[::1]:8888"}, 200),
        ({"Host": "rebound.example"}, 403),
        ({"Host": "127.0.0.1.evil.example"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
    ],
)
def test_without_a_login_web_pages_cannot_use_it(headers: dict[str, str], status: int, server: ApiProcess) -> None:
    assert ask(server.ports.http, "/apis/v1/clusters", **headers)[0] == status


def test_under_kuberays_name_it_warns_until_somebody_decides(ray_crds: ControlPlane, tmp_path: Path) -> None:
    ports = [free_port(), free_port()]
    command = [*COMMAND, "kuberay-apiserver", f"-httpPortFlag=:{ports[0]}", f"-rpcPortFlag=:{ports[1]}"]
    output = tmp_path / "log"
    environment = {**os.environ, "KUBECONFIG": str(ray_crds.admin_kubeconfig)}
    with output.open("wb") as file, subprocess.Popen(command, stdout=file, env=environment) as process:
        try:
            wait_until("it answers", lambda: _answers(ports[0]), PATIENCE_SECONDS)
            assert "set --auth" in output.read_text()
            assert ask(ports[0], "/apis/v1/compute_templates", Host="apiserver.ray-system")[0] == 200
        finally:
            process.kill()
