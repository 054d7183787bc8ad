"""What a controller costs that has nothing to do."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bed.control_plane import ControlPlane
from bench.figures import Figure
from bench.resources import cpu_seconds, rss_mb
from bench.servers import a_control_plane

SETTLE_SECONDS = 5.0
WATCHED_SECONDS = 60.0
BARE = "import aiohttp, msgspec, prometheus_client, time; time.sleep(600)"


def run() -> Iterator[Figure]:
    """A controller process with three informers, leader election, Events and probes, watched for a minute."""
    with a_control_plane() as plane, tempfile.TemporaryDirectory() as folder:
        _mount_service_account(plane, Path(folder))
        with _ended(_start_controller(plane, Path(folder))) as idle, _ended(_start_bare()) as bare:
            time.sleep(SETTLE_SECONDS)
            before = cpu_seconds(idle.pid)
            time.sleep(WATCHED_SECONDS)
            percent = (cpu_seconds(idle.pid) - before) / WATCHED_SECONDS * 100
            memory, bare_memory = rss_mb(idle.pid), rss_mb(bare.pid)
    baseline = f"Python with aiohttp, msgspec, prometheus-client {bare_memory:.0f} MB"
    yield Figure("idle controller process", memory, "MB RSS", 80, "less", baseline)
    yield Figure("idle controller process, processor", percent, "% of a core", 0.5, "less")


def _mount_service_account(plane: ControlPlane, folder: Path) -> None:
    """The files that a pod of an administrator's service account would find."""
    plane.kubectl("create", "serviceaccount", "idle")
    plane.kubectl(
        "create", "clusterrolebinding", "idle", "--clusterrole=cluster-admin", "--serviceaccount=default:idle"
    )
    (folder / "token").write_text(plane.token("default", "idle"))
    (folder / "ca.crt").write_bytes(plane.keys.authority.certificate.read_bytes())
    (folder / "namespace").write_text("default")


def _start_controller(plane: ControlPlane, folder: Path) -> subprocess.Popen[str]:
    address = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(plane.ports.apiserver)}
    environment = {name: value for name, value in os.environ.items() if name != "KUBECONFIG"} | address
    command = [sys.executable, "-m", "bench.programs.controller", str(folder)]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if line == "ready\n":
            return process
    raise RuntimeError("the idle controller ended before it was ready")


def _start_bare() -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", BARE], text=True)


@contextlib.contextmanager
def _ended(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    with process:
        try:
            yield process
        finally:
            process.kill()
