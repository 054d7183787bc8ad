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
from bed.counted import a_registry, counting
from bed.crds import install_ray_crds
from bed.floor import PODS_PER_NODE, measure_floor
from bed.kwok import Kwok
from bed.ports import free_port
from bed.waiting import wait_until
from bench.figures import Figure
from bench.resources import cpu_by_daemon, cpu_seconds, cpu_spent, peak_mb, rss_mb
from bench.servers import a_client, a_control_plane, in_parallel
from raykeeper.api.meta import JSON, Object, ObjectKey
from raykeeper.api.raycluster import RAY_CLUSTERS
from raykeeper.kube.client import Kube
from raykeeper.kube.informers.informer import Informer
from raykeeper.kube.resources import NAMESPACES, PODS, SERVICE_ACCOUNTS

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
        before = cpu_by_daemon(plane.folder)
        floor = asyncio.run(measure_floor(plane.admin_kubeconfig, PODS_IN_ALL)).running_seconds
        print(f"processor time of the floor: {cpu_spent(before, cpu_by_daemon(plane.folder))}", file=sys.stderr)
        port = free_port()
        with an_operator(plane, port) as operator:
            yield from asyncio.run(_bring_up(plane, operator, port, floor))
            yield from asyncio.run(_grow(plane))
            yield _steady(operator, port)
        with an_operator(plane, free_port()) as again:
            time.sleep(5)
            yield Figure("operator restarted over 300 clusters", cpu_seconds(again.pid), "s CPU", 3.0, "less")


@contextlib.contextmanager
def an_operator(plane: ControlPlane, port: int) -> Iterator[subprocess.Popen[bytes]]:
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
    before = _written(port)
    async with a_client(plane.admin_kubeconfig) as kube:
        await make_spaces(kube)
        cost = await bring_up(kube, plane, operator.pid, range(CLUSTERS))
    written = _written(port)
    memory, peak = rss_mb(operator.pid), f"peak {peak_mb(operator.pid):.0f} MB"
    objects, events = (written.objects - before.objects) / CLUSTERS, (written.events - before.events) / CLUSTERS
    times = cost.seconds / floor
    return [
        Figure("300 RayClusters ready, as a multiple of the floor", times, "x", 1.6, "less", f"floor {floor:.1f} s"),
        Figure("operator CPU for 300 RayClusters", cost.cpu, "s", 8.0, "less"),
        Figure("operator with 300 RayClusters", memory, "MB RSS", 110, "less", peak),
        Figure("writes for a RayCluster: objects and status", objects, "writes", 7, "less"),
        Figure("writes for a RayCluster: Events", events, "writes", 3, "less"),
    ]


async def make_spaces(kube: Kube) -> None:
    """The namespaces of the clusters, with their service accounts."""
    await in_parallel(range(SPACES), lambda number: kube.create(NAMESPACES, {"metadata": {"name": f"space-{number}"}}))
    accounts = Informer(
        kube, SERVICE_ACCOUNTS.read_as(Object), a_registry(), namespaces=[f"space-{number}" for number in range(SPACES)]
    )
    async with counting(accounts, SPACES, lambda account: account.metadata.name == "default") as all_there:
        await all_there()


class Cost(NamedTuple):
    """What it took until the clusters were ready; `cpu` is the operator's."""

    seconds: float
    cpu: float


async def bring_up(kube: Kube, plane: ControlPlane, operator: int, numbers: range) -> Cost:
    """Create these clusters and wait until all of them are ready; says on the way who used the processors."""

    def is_ready(cluster: Object) -> bool:
        return msgspec.json.decode(cluster.status or b"{}", type=_State).state == "ready"

    async with counting(Informer(kube, RAY_CLUSTERS, a_registry()), numbers.stop, is_ready) as all_ready:
        before, cpu, started = cpu_by_daemon(plane.folder), cpu_seconds(operator), time.monotonic()
        await in_parallel(numbers, lambda number: kube.create(OBJECTS, _cluster(number), f"space-{number % SPACES}"))
        await all_ready()
        cost = Cost(time.monotonic() - started, cpu_seconds(operator) - cpu)
    spent = cpu_spent(before, cpu_by_daemon(plane.folder))
    print(f"processor time of {len(numbers)} clusters in {cost.seconds:.1f} s: {spent}", file=sys.stderr)
    return cost


def _cluster(number: int, workers: int = WORKERS) -> JSON:
    group = {"groupName": "small", "replicas": workers, "template": TEMPLATE}
    spec = {"rayVersion": "2.60.0", "headGroupSpec": {"template": TEMPLATE}, "workerGroupSpecs": [group]}
    return {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": f"cluster-{number}"}, "spec": spec}


async def _grow(plane: ControlPlane) -> list[Figure]:
    """One cluster from 3 to 500 workers, until all its pods exist."""
    async with a_client(plane.admin_kubeconfig) as kube:
        group = {"groupName": "small", "replicas": LARGE, "template": TEMPLATE}
        pods = Informer(kube, PODS, a_registry(), namespaces=["space-0"], labels="ray.io/cluster=cluster-0")
        async with counting(pods, 1 + LARGE, lambda _: True) as all_exist:
            started = time.monotonic()
            await kube.merge_patch(OBJECTS, ObjectKey("space-0", "cluster-0"), {"spec": {"workerGroupSpecs": [group]}})
            await all_exist()
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
