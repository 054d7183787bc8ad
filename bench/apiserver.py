"""The API server with a thousand clusters: lists over V1 and V2, memory without work, and how soon it answers."""

from __future__ import annotations

import http.client
import json
import math
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bed.control_plane import ControlPlane
from bed.crds import install_ray_crds
from bed.daemons import LOOPBACK
from bed.kuberay_apiserver import kuberay_apiserver_on
from bed.ports import free_port
from bed.rest import Rest
from bench.cpu_limit import cpu_limit
from bench.figures import Figure
from bench.resources import cpu_seconds, rss_mb
from bench.servers import a_control_plane
from raykeeper.client import WorkerGroup, ray_cluster
from support.api_processes import COMMAND, api_server_on

CLUSTERS = int(os.environ.get("RAYKEEPER_BENCH_CLUSTERS", "1000"))
LOOKS = 15
SETTLE_SECONDS = 5.0
V1, V2 = "/apis/v1/namespaces/bench/clusters", "/apis/ray.io/v1/namespaces/bench/rayclusters"
MANAGED_BY_V1 = {"app.kubernetes.io/managed-by": "kuberay-apiserver"}
STARTS = 3


def run() -> Iterator[Figure]:
    """Ours and KubeRay's 1.6.2 beside each other, on one control plane."""
    with a_control_plane() as plane, tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        install_ray_crds(plane)
        yield from _start(plane, folder)
        _fill(plane)
        ours = stack.enter_context(api_server_on(plane, folder, "--auth=none"))
        time.sleep(SETTLE_SECONDS)
        yield Figure("API server without work", rss_mb(ours.process.pid), "MB RSS", 90)
        theirs = stack.enter_context(kuberay_apiserver_on(plane))
        for path, version, bar in ((V1, "V1", 5.0), (V2, "V2", 0.7)):
            mine, cpu = _timed(ours.ports.http, path, lambda: cpu_seconds(ours.process.pid))
            other, _ = _timed(theirs.http, path, lambda: 0.0)
            p95, their_p95 = _p95(mine), _p95(other)
            told = f"KubeRay {their_p95:,.0f} ms; {LOOKS / cpu:.1f} requests/s per core" if cpu else ""
            yield Figure(f"list of {CLUSTERS:,} clusters over {version}, p95", p95, "ms", baseline=told)
            yield Figure(f"list over {version}, times as fast as KubeRay", their_p95 / p95, "x", bar, "more")


def _fill(plane: ControlPlane) -> None:
    plane.admin.post("/api/v1/namespaces", {"metadata": {"name": "bench"}})
    for number in range(CLUSTERS):
        manifest = ray_cluster(f"c-{number:04}", labels=MANAGED_BY_V1, workers=[WorkerGroup(name="small")])
        plane.admin.post(V2, manifest)


def _timed(port: int, path: str, cpu: Callable[[], float]) -> tuple[list[float], float]:
    """Milliseconds of each look, and processor seconds of all. The first look, which fills caches, is not counted."""
    _look(port, path)
    before, took = cpu(), []
    for _ in range(LOOKS):
        began = time.monotonic()
        _look(port, path)
        took.append((time.monotonic() - began) * 1000)
    return took, cpu() - before


def _look(port: int, path: str) -> None:
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=300)
    try:
        connection.request("GET", path)
        answer = json.loads(connection.getresponse().read())
    finally:
        connection.close()
    found = len(answer.get("clusters", answer.get("items", ())))
    if found != CLUSTERS:
        raise ValueError(f"{path} has {found} clusters instead of {CLUSTERS}")


def _p95(took: list[float]) -> float:
    return sorted(took)[math.ceil(len(took) * 0.95) - 1]


def _start(plane: ControlPlane, folder: Path) -> Iterator[Figure]:
    free = min(_seconds_to_ready(plane, folder, None) for _ in range(STARTS))
    yield Figure("API server, start to ready", free, "s", 2.0)
    with cpu_limit(200) as processes:
        if processes is not None:
            yield Figure("API server, start to ready at 200m", _seconds_to_ready(plane, folder, processes), "s", 10.0)


def _seconds_to_ready(plane: ControlPlane, folder: Path, processes: Path | None) -> float:
    """From the start of the process, in the group with the limit if there is one."""
    port, began = free_port(), time.monotonic()
    with _process(plane, folder, port, processes):
        server = Rest(f"http://{LOOPBACK}:{port}")
        while not server.answers("/readyz"):
            time.sleep(0.01)
        return time.monotonic() - began


@contextmanager
def _process(plane: ControlPlane, folder: Path, port: int, processes: Path | None) -> Iterator[None]:
    addresses = (f"--httpPortFlag={LOOPBACK}:{port}", f"--rpcPortFlag={LOOPBACK}:{free_port()}", "--auth=none")
    environment = {**os.environ, "KUBECONFIG": str(plane.admin_kubeconfig)}
    join = (lambda: processes.write_text(str(os.getpid()))) if processes else None
    with (folder / "start.log").open("wb") as log:
        process = subprocess.Popen(
            [*COMMAND, "apiserver", *addresses],
            stdout=log,
            stderr=log,
            env=environment,
            preexec_fn=join,
        )
    try:
        yield
    finally:
        process.kill()
        process.wait()
