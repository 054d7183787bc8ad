"""KubeRay's own operator on a control plane: ours takes over from it, gives back to it and is compared with it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from bed.binaries import BINARIES, build
from bed.control_plane import ControlPlane
from bed.daemons import LOOPBACK
from bed.golang import module_folder
from bed.ports import free_port
from bed.processes import Process
from bed.rest import Json, Rest
from bed.waiting import wait_until

VERSION = BINARIES["kuberay-operator"].version
"""As its pods carry it in `ray.io/kuberay-version`."""


def sample_objects() -> dict[str, Json]:
    """The `ray.io` objects of KubeRay's own sample manifests, by the paths of their files; read, never kept."""
    samples = module_folder("github.com/ray-project/kuberay/ray-operator", VERSION) / "config" / "samples"
    found: dict[str, Json] = {}
    for file in sorted(samples.rglob("*.yaml")):
        parts = [part for part in yaml.safe_load_all(file.read_text()) if part]
        ours = [part for part in parts if str(part.get("apiVersion")).startswith("ray.io/")]
        for number, part in enumerate(ours):
            found[f"{file.relative_to(samples)}{f'#{number}' if number else ''}"] = part
    return found


@dataclass(frozen=True)
class KubeRayOperator:
    """One that runs: `process` stops, kills and pauses it."""

    process: Process
    metrics_port: int

    def metrics(self) -> str:
        """What it tells Prometheus."""
        return Rest(f"http://{LOOPBACK}:{self.metrics_port}").raw("GET", "/metrics").decode()


class KubeRay:
    """Starts KubeRay's operators on one control plane, as an administrator, in the namespace `default`."""

    def __init__(self, plane: ControlPlane) -> None:
        build(["kuberay-operator"])
        self._plane = plane
        self._started: list[Process] = []

    def start(self, *flags: str, elected: bool = True, **variables: str) -> KubeRayOperator:
        """One more, with flags and environment variables; it answers from now on, but may not be elected yet."""
        port, metrics_port = free_port(), free_port()
        command: list[str | Path] = [
            BINARIES["kuberay-operator"].path,
            f"--kubeconfig={self._plane.admin_kubeconfig}",
            f"--metrics-addr={LOOPBACK}:{metrics_port}",
            f"--health-probe-bind-address={LOOPBACK}:{port}",
            "--leader-election-namespace=default",
            f"--enable-leader-election={'true' if elected else 'false'}",
            *flags,
        ]
        process = Process(f"kuberay-{uuid.uuid4().hex[:6]}", command, self._plane.folder, variables)
        self._started.append(process)
        process.start()
        health, metrics = Rest(f"http://{LOOPBACK}:{port}"), Rest(f"http://{LOOPBACK}:{metrics_port}")
        wait_until(
            f"KubeRay's operator runs (log: {process.log_file})",
            lambda: health.answers("/healthz") and metrics.answers("/metrics"),  # two servers, in no order
            timeout=120.0,
        )
        return KubeRayOperator(process, metrics_port)

    def kill_all(self) -> None:
        for process in self._started:
            process.kill()


@contextmanager
def kuberay_on(plane: ControlPlane) -> Iterator[KubeRay]:
    """KubeRay's operators that are gone afterwards, however it ends."""
    kuberay = KubeRay(plane)
    try:
        yield kuberay
    finally:
        kuberay.kill_all()
