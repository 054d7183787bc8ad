"""The scenario that needs a Ray head: a real one, which both API servers reach."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bed.control_plane import ControlPlane
from bed.fixtures import make_namespace, remove_namespace
from bed.kuberay_apiserver import ServerPorts
from bed.rest import Rest
from bed.waiting import PATIENCE_SECONDS, wait_until
from ray_head.live_head import live_head
from support.api_scenarios import Protocol, Run

FOLDER = Path(__file__).parent.parent / "apiserver" / "head_scenarios"
ANSWERS = Path(__file__).parent.parent / "apiserver" / "kuberay_head_answers"
SCENARIO = "submissions"


@dataclass(frozen=True)
class ReachableHead:
    """A head that listens on all addresses: the API server passes requests on to no loopback."""

    host: str
    port: int

    @property
    def as_proxy(self) -> str:
        """The dashboard in the place of an HTTP proxy: KubeRay's server asks for a name inside the cluster, which
        nobody knows here, and a dashboard does not mind the name."""
        return f"http://127.0.0.1:{self.port}"

    def lead(self, plane: ControlPlane, ports: ServerPorts, namespace: str) -> None:
        """Become the head of the cluster `test-job`."""
        self._run(plane, ports, "http", namespace).tell("a_head_for_a_cluster", FOLDER)

    def tell(self, plane: ControlPlane, ports: ServerPorts, protocol: Protocol, name: str) -> dict[str, Any]:
        """The answers to the scenario."""
        namespace = f"{name}-{protocol}-submissions"
        make_namespace(plane, namespace)
        try:
            return self._run(plane, ports, protocol, namespace).tell(SCENARIO, FOLDER)
        finally:
            remove_namespace(plane, namespace)

    def _run(self, plane: ControlPlane, ports: ServerPorts, protocol: Protocol, namespace: str) -> Run:
        return Run(plane, ports, protocol, namespace, values={"host": self.host, "port": self.port})


@contextmanager
def a_reachable_head(folder: Path) -> Iterator[ReachableHead]:
    """A real Ray without tokens."""
    environment = {"RAY_AUTH_MODE": "disabled", "RAY_AUTH_TOKEN": ""}
    with live_head(folder, environment, "--dashboard-host=0.0.0.0") as head:
        _warm_up(Rest(head.address))
        yield ReachableHead(own_address(), urlsplit(head.address).port or 0)


def _warm_up(dashboard: Rest) -> None:
    """Have one job run: the first takes a head longer than the two seconds that KubeRay waits."""
    job = dashboard.post("/api/jobs/", {"entrypoint": "true"})["submission_id"]
    has_ended = lambda: dashboard.get(f"/api/jobs/{job}")["status"] == "SUCCEEDED"  # noqa: E731 - read once
    wait_until("a first job has run", has_ended, PATIENCE_SECONDS)


def own_address() -> str:
    """An address of this machine that is not loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # sends nothing; only asks which address would be used
        return str(probe.getsockname()[0])
