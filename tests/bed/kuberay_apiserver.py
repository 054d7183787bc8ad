"""KubeRay's own API server and security proxy: ours are compared with them."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bed.binaries import BINARIES, build
from bed.control_plane import ControlPlane
from bed.daemons import LOOPBACK
from bed.golang import module_folder
from bed.ports import free_port
from bed.processes import Process
from bed.rest import Rest
from bed.waiting import wait_until

VERSION = BINARIES["kuberay-apiserver"].version


@dataclass(frozen=True)
class ServerPorts:
    """Where one listens, on loopback."""

    http: int
    grpc: int


@contextmanager
def kuberay_apiserver_on(plane: ControlPlane, *flags: str, **variables: str) -> Iterator[ServerPorts]:
    """One that answers, as an administrator; gone afterwards, however it ends."""
    build(["kuberay-apiserver"])
    ports = ServerPorts(free_port(), free_port())
    documents = module_folder("github.com/ray-project/kuberay", VERSION) / "proto" / "swagger"
    command: list[str | Path] = [
        BINARIES["kuberay-apiserver"].path,
        f"-httpPortFlag={LOOPBACK}:{ports.http}",
        f"-rpcPortFlag=:{ports.grpc}",  # its gateway puts "localhost" before this
        f"-localSwaggerPath={documents}",
        *flags,
    ]
    environment = {"KUBECONFIG": str(plane.admin_kubeconfig), **variables}
    process = Process(f"kuberay-apiserver-{uuid.uuid4().hex[:6]}", command, plane.folder, environment)
    with _running(process):
        _wait(process, ports.http, "/apis/v1/compute_templates")  # also its gRPC server answers then
        yield ports


@contextmanager
def kuberay_security_proxy_on(plane: ControlPlane, behind: ServerPorts, token: str, prefix: str) -> Iterator[int]:
    """KubeRay's proxy in front of an API server: its HTTP port. Its gRPC side never worked."""
    build(["kuberay-security-proxy"])
    port = free_port()
    variables = {
        "HTTP_LOCAL_PORT": str(port),
        "HTTP_REMOTE_PORT": str(behind.http),
        "SECURITY_TOKEN": token,
        "SECURITY_PREFIX": prefix,
        "ENABLE_GRPC": "false",
    }
    name = f"kuberay-security-proxy-{uuid.uuid4().hex[:6]}"
    process = Process(name, [BINARIES["kuberay-security-proxy"].path], plane.folder, variables)
    with _running(process):
        proxy = Rest(f"http://{LOOPBACK}:{port}", headers={"Authorization": token})
        wait_until(f"the proxy answers (log: {process.log_file})", lambda: proxy.answers("/healthz"), timeout=60.0)
        yield port


@contextmanager
def _running(process: Process) -> Iterator[None]:
    process.start()
    try:
        yield
    finally:
        process.kill()


def _wait(process: Process, port: int, path: str) -> None:
    server = Rest(f"http://{LOOPBACK}:{port}")
    wait_until(f"{process.name} answers (log: {process.log_file})", lambda: server.answers(path), timeout=120.0)
