"""How fast, and at what cost, the operator brings many RayClusters up; KubeRay's figures are in the documentation."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from bed.control_plane import ControlPlane
from bed.crds import install_ray_crds
from bed.floor import PODS_PER_NODE, measure_floor
from bed.kwok import Kwok
from bed.ports import free_port
from bed.waiting import wait_until
from bench.figures import Figure
from bench.resources import cpu_seconds, peak_mb, rss_mb
from bench.servers import a_client, a_control_plane, in_parallel
from raykeeper.api.meta import JSON, ObjectKey
from raykeeper.api.raycluster import RAY_CLUSTERS
from raykeeper.kube.client import Kube
from raykeeper.kube.resources import NAMESPACES, PODS

CLUSTERS, WORKERS, SPACES = 300, 3, 10
PODS_IN_ALL = CLUSTERS * (1 + WORKERS)
LARGE = 500
STEADY_SECONDS = 30.0
TEMPLATE = {"spec": {"containers": [{"name": "ray", "image": "rayproject/ray:2.60.0"}]}}
OBJECTS = RAY_CLUSTERS.read_as(dict)


class _State(msgspec.Struct):
    state: str = ""


def run() -> Iterator[Figure]:
    """300 clusters of 1 + 3 pods in ten namespaces, then one that grows to 500 workers, then peace, then a restart."""
    with a_control_plane() as plane:
        install_ray_crds(plane)
        Kwok(plane).up(nodes=(PODS_IN_ALL + LARGE) // PODS_PER_NODE + 1)
        floor = asyncio.run(measure_floor(plane.admin_kubeconfig, PODS_IN_ALL)).running_seconds
        port = free_port()
        with _operator(plane, port) as operator:
            yield from asyncio.run(_bring_up(plane, operator, port, floor))
            yield from asyncio.run(_grow(plane))
            yield _steady(operator, port)
        with _operator(plane, free_port()) as again:
            time.sleep(5)
            yield Figure("operator restarted over 300 clusters", cpu_seconds(again.pid), "s CPU", 3.0, "less")


@contextlib.contextmanager
def _operator(plane: ControlPlane, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Our operator with its default settings, as a process of its own, once it leads."""
    command = [str(Path(sys.executable).parent / "raykeeper"), "operator", f"--metrics-addr=127.0.0.1:{port}"]
    flags = ["--health-probe-bind-address=0", "--leader-election-namespace=default"]
    environment = {**os.environ, "KUBECONFIG": str(plane.admin_kubeconfig)}
    log = plane.folder / f"operator-{port}.log"
    with log.open("wb") as output, subprocess.Popen([*command, *flags], env=environment, stdout=output) as process:
        try:
            wait_until("the operator leads", lambda: b'"leading"' in log.read_bytes(), timeout=60)
            yield process
        finally:
            process.terminate()


async def _bring_up(plane: ControlPlane, operator: subprocess.Popen[bytes], port: int, floor: float) -> list[Figure]:
    async with a_client(plane.admin_kubeconfig) as kube:
        await in_parallel(
            range(SPACES), lambda number: kube.create(NAMESPACES, {"metadata": {"name": f"space-{number}"}})
        )
        await asyncio.sleep(2)  # their service accounts
        cpu, started = cpu_seconds(operator.pid), time.monotonic()
        await in_parallel(
            range(CLUSTERS), lambda number: kube.create(OBJECTS, _cluster(number), f"space-{number % SPACES}")
        )
        await _all_ready(kube, CLUSTERS)
        seconds = time.monotonic() - started
    written, times = _written(port), seconds / floor
    memory, peak = rss_mb(operator.pid), f"peak {peak_mb(operator.pid):.0f} MB"
    return [
        Figure("300 RayClusters ready, as a multiple of the floor", times, "x", 1.6, "less", f"floor {floor:.1f} s"),
        Figure("operator CPU for 300 RayClusters", cpu_seconds(operator.pid) - cpu, "s", 8.0, "less"),
        Figure("operator with 300 RayClusters", memory, "MB RSS", 110, "less", peak),
        Figure("writes for a RayCluster: objects and status", written.objects / CLUSTERS, "writes", 7, "less"),
        Figure("writes for a RayCluster: Events", written.events / CLUSTERS, "writes", 3, "less"),
    ]


def _cluster(number: int, workers: int = WORKERS) -> JSON:
    group = {"groupName": "small", "replicas": workers, "template": TEMPLATE}
    spec = {"rayVersion": "2.60.0", "headGroupSpec": {"template": TEMPLATE}, "workerGroupSpecs": [group]}
    return {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": f"cluster-{number}"}, "spec": spec}


async def _all_ready(kube: Kube, count: int) -> None:
    async with asyncio.timeout(300):
        while True:
            clusters = await kube.list(RAY_CLUSTERS)
            states = [msgspec.json.decode(item.status or b"{}", type=_State).state for item in clusters]
            if states.count("ready") == count:
                return
            await asyncio.sleep(0.2)


async def _grow(plane: ControlPlane) -> list[Figure]:
    """One cluster from 3 to 500 workers, until all its pods exist."""
    async with a_client(plane.admin_kubeconfig) as kube:
        group = {"groupName": "small", "replicas": LARGE, "template": TEMPLATE}
        started = time.monotonic()
        await kube.merge_patch(OBJECTS, ObjectKey("space-0", "cluster-0"), {"spec": {"workerGroupSpecs": [group]}})
        async with asyncio.timeout(120):
            selector = {"ray.io/cluster": "cluster-0"}
            while len(await kube.list(PODS, "space-0", labels=selector)) <= LARGE:  # noqa: ASYNC110 - a server is asked
                await asyncio.sleep(0.1)
        return [Figure("one cluster from 3 to 500 workers", time.monotonic() - started, "s", 6.0, "less")]


def _steady(operator: subprocess.Popen[bytes], port: int) -> Figure:
    """Once the last Events are written, which have all the time they need."""
    known = _written(port)
    time.sleep(5)
    while (now := _written(port)) != known:
        known = now
        time.sleep(5)
    before = cpu_seconds(operator.pid)
    time.sleep(STEADY_SECONDS)
    percent = (cpu_seconds(operator.pid) - before) / STEADY_SECONDS * 100
    return Figure("operator over 300 steady clusters, processor", percent, "% of a core", 0.5, "less")


class Written(NamedTuple):
    """What the operator has written so far, by its own metrics. Renewals of its lease are the only PUTs."""

    objects: float
    events: float


def _written(port: int) -> Written:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        text = answer.read().decode()
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    events = sum(sample.value for sample in samples if sample.name == "raykeeper_events_written_total")
    requests = [sample for sample in samples if sample.name == "rest_client_requests_total"]
    writes = sum(sample.value for sample in requests if sample.labels["method"] in ("POST", "PATCH", "DELETE"))
    return Written(writes - events, events)
