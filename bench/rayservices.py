"""What five hundred RayServices cost that serve and do not change."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

import msgspec

from bed.control_plane import ControlPlane
from bed.counted import a_registry
from bed.crds import install_ray_crds
from bed.floor import PODS_PER_NODE
from bed.kwok import Kwok
from bed.ports import free_port
from bed.waiting import wait_until
from bench.figures import Figure
from bench.rayclusters import written
from bench.resources import cpu_seconds, peak_mb
from bench.servers import a_client, a_control_plane, in_parallel
from raykeeper.api.meta import JSON, Object
from raykeeper.api.rayservice import RAY_SERVICES
from raykeeper.kube.informers.informer import Informer

SERVICES = 500
SPACE = "default"
DEADLINE_SECONDS = 900.0  # the API server alone takes two cores some minutes for so many clusters
REST_SECONDS = 60.0
OBJECTS = RAY_SERVICES.read_as(dict)
CONFIG = "applications: [{name: shop, import_path: 'model:app'}]"


class _State(msgspec.Struct, rename="camel"):
    service_status: str = ""


def run() -> Iterator[Figure]:
    """Heads without workers, which answer at once; all that is asked of them counts."""
    heads, metrics = free_port(), free_port()
    with _a_plane() as plane, _program("serve_heads", heads), _operator(plane, heads, metrics) as operator:
        began = time.monotonic()
        asyncio.run(_all_serve(plane))
        ready = time.monotonic() - began
        writes = _when_quiet(metrics)
        cpu, asked, moment = cpu_seconds(operator.pid), _asked(heads), time.monotonic()
        time.sleep(REST_SECONDS)
        seconds = time.monotonic() - moment
        percent = (cpu_seconds(operator.pid) - cpu) / seconds * 100
        each = (_asked(heads) - asked) / SERVICES / seconds * 5
        name = f"{SERVICES} RayServices at rest"
        about = f"{peak_mb(operator.pid):.0f} MB RSS; all served after {ready:.0f} s"
        yield Figure(f"{name}: processor", percent, "% of a core", 10, "less", about)
        yield Figure(f"{name}: requests to a head in 5 s", each, "requests", 1, "less")
        yield Figure(f"{name}: writes in {REST_SECONDS:g} s", sum(written(metrics)) - writes, "writes", 0, "less")


@contextlib.contextmanager
def _a_plane() -> Iterator[ControlPlane]:
    with a_control_plane() as plane:
        install_ray_crds(plane)
        Kwok(plane).up(nodes=SERVICES // PODS_PER_NODE + 1)
        yield plane


@contextlib.contextmanager
def _program(name: str, *arguments: object, **popen: Any) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", f"bench.programs.{name}", *map(str, arguments)]
    with subprocess.Popen(command, **popen) as process:
        try:
            yield process
        finally:
            process.kill()


@contextlib.contextmanager
def _operator(plane: ControlPlane, heads: int, metrics: int) -> Iterator[subprocess.Popen[bytes]]:
    usual = ["--health-probe-bind-address=0", "--leader-election-namespace=default"]
    flags = [f"--metrics-addr=127.0.0.1:{metrics}", *usual]
    environment = {**os.environ, "KUBECONFIG": str(plane.admin_kubeconfig)}
    log = plane.folder / "operator.log"
    with (
        log.open("wb") as output,
        _program("operator_near_heads", heads, *flags, env=environment, stdout=output) as process,
    ):
        wait_until("the operator leads", lambda: b'"leading"' in log.read_bytes(), timeout=60)
        yield process


async def _all_serve(plane: ControlPlane) -> None:
    serving: set[str] = set()

    def note(_old: Object | None, new: Object | None) -> None:
        status = msgspec.json.decode(new.status or b"{}", type=_State) if new else _State()
        if new is not None and status.service_status == "Running":
            serving.add(new.metadata.name)

    async with a_client(plane.admin_kubeconfig) as kube, asyncio.timeout(DEADLINE_SECONDS):
        informer = Informer(kube, RAY_SERVICES, a_registry())
        informer.on_change(note)
        following = asyncio.create_task(informer.run())
        await informer.wait_synced()
        await in_parallel(range(SERVICES), lambda number: kube.create(OBJECTS, _service(number), SPACE))
        while len(serving) < SERVICES:  # noqa: ASYNC110 - a watch fills it
            await asyncio.sleep(0.5)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


def _service(number: int) -> JSON:
    template = {"spec": {"containers": [{"name": "ray", "image": "rayproject/ray:2.60.0"}]}}
    cluster = {"rayVersion": "2.60.0", "headGroupSpec": {"template": template}}
    spec = {"serveConfigV2": CONFIG, "rayClusterConfig": cluster}
    return {"apiVersion": "ray.io/v1", "kind": "RayService", "metadata": {"name": f"service-{number}"}, "spec": spec}


def _when_quiet(port: int) -> float:
    """What the operator has written once it writes no more."""
    known, last = sum(written(port)), -1.0
    while known != last:
        time.sleep(15)
        known, last = sum(written(port)), known
    return known


def _asked(port: int) -> int:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/asked", timeout=10) as answer:
        return int(json.loads(answer.read())["asked"])
