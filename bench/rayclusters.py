"""How fast, and at what cost, the operator brings many RayClusters up; KubeRay's own binary does the same beside it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from bed.control_plane import ControlPlane
from bed.counted import DEADLINE_SECONDS, a_registry, counting
from bed.crds import install_ray_crds
from bed.floor import PODS_PER_NODE, measure_floor
from bed.kuberay import VERSION as KUBERAYS_VERSION
from bed.kuberay import kuberay_on
from bed.kwok import Kwok
from bed.ports import free_port
from bed.waiting import wait_until
from bench.figures import Figure
from bench.raycluster_floor import measure_writes, writes_for
from bench.resources import cpu_by_daemon, cpu_seconds, cpu_spent, peak_mb, rss_mb
from bench.servers import a_client, a_control_plane, in_parallel
from raykeeper.api.labels import CLUSTER
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
KUBERAYS: Mapping[str, Sequence[str]] = {
    f"KubeRay {KUBERAYS_VERSION}": (),
    f"KubeRay {KUBERAYS_VERSION}, tuned": ("--reconcile-concurrency=16", "--qps=500", "--burst=1000"),
}
"""As it comes, and with the limits that are our defaults."""


class _State(msgspec.Struct):
    state: str = ""


def run() -> Iterator[Figure]:
    """300 clusters of 1 + 3 pods in ten namespaces, then one that grows to 500 workers, then peace, then a restart.

    Before that the two floors, and afterwards KubeRay's operator on a control plane of its own.
    """
    with _a_plane() as plane:
        plain = _plain_floor(plane)
        floors = Floors(plain, asyncio.run(_fair_floor(plane)))
        port = free_port()
        with an_operator(plane, port) as process:
            ours = Operator("operator", process.pid, port)
            yield from _judged(asyncio.run(_bring_up(plane, ours)), floors)
            seconds = asyncio.run(_grow(plane))
            yield _steady(process, port)
        floor = f"a bare client beside the same 300 clusters: {asyncio.run(_growth_floor(plane)):.1f} s"
        yield Figure("one cluster from 3 to 500 workers", seconds, "s", 3.5, "less", floor)
        with an_operator(plane, free_port()) as again:
            time.sleep(5)
            yield Figure("operator restarted over 300 clusters", cpu_seconds(again.pid), "s CPU", 3.0, "less")
    for name, flags in KUBERAYS.items():
        with _a_plane() as plane:
            yield from _kuberay(plane, name, flags, floors)


@contextlib.contextmanager
def _a_plane() -> Iterator[ControlPlane]:
    with a_control_plane() as plane:
        install_ray_crds(plane)
        Kwok(plane).up(nodes=(PODS_IN_ALL + 2 * LARGE) // PODS_PER_NODE + 1)  # the growth, and its floor
        yield plane


class Floors(NamedTuple):
    """Seconds for as many plain pods, and for a client that decides nothing to make the writes of as many clusters."""

    plain: float
    fair: float


def _plain_floor(plane: ControlPlane) -> float:
    before = cpu_by_daemon(plane.folder)
    floor = asyncio.run(measure_floor(plane.admin_kubeconfig, PODS_IN_ALL)).running_seconds
    print(f"processor time of the plain floor: {cpu_spent(before, cpu_by_daemon(plane.folder))}", file=sys.stderr)
    return floor


async def _fair_floor(plane: ControlPlane) -> float:
    all_writes = [writes_for(_cluster(number), f"space-{number % SPACES}") for number in range(CLUSTERS)]
    async with a_client(plane.admin_kubeconfig) as kube:
        await make_spaces(kube)
        before = cpu_by_daemon(plane.folder)
        seconds = await measure_writes(kube, all_writes)
        spent = cpu_spent(before, cpu_by_daemon(plane.folder))
        print(f"processor time of the fair floor in {seconds:.1f} s: {spent}", file=sys.stderr)
        await _remove_spaces(kube)
    return seconds


async def _growth_floor(plane: ControlPlane) -> float:
    """Seconds for the pods of such a growth alone, while no operator runs. Nobody owns them: the garbage collector
    would take them away."""
    pods = writes_for(_cluster(CLUSTERS, LARGE), "space-0").pods[1 + WORKERS :]
    for pod in pods:
        del pod["metadata"]["ownerReferences"]
    async with a_client(plane.admin_kubeconfig) as kube:
        started = time.monotonic()
        await in_parallel(range(len(pods)), lambda number: kube.create(PODS, pods[number], "space-0"))
        seconds = time.monotonic() - started
        marks = {CLUSTER: f"cluster-{CLUSTERS}"}
        await kube.delete_collection(PODS, "space-0", labels=marks, grace_seconds=0)
        async with asyncio.timeout(DEADLINE_SECONDS):
            while await kube.list(PODS, "space-0", labels=marks):  # noqa: ASYNC110 - a server is asked
                await asyncio.sleep(0.5)
    return seconds


async def _remove_spaces(kube: Kube) -> None:
    """Return once nothing is left of them: what goes would be paid for by what is measured next."""
    for number in range(SPACES):
        await kube.delete_collection(PODS, f"space-{number}", grace_seconds=0)
        await kube.delete(NAMESPACES, ObjectKey("", f"space-{number}"))
    async with asyncio.timeout(DEADLINE_SECONDS):
        for number in range(SPACES):
            while await kube.find(NAMESPACES, ObjectKey("", f"space-{number}")) is not None:  # noqa: ASYNC110 - a server is asked
                await asyncio.sleep(0.5)


def _kuberay(plane: ControlPlane, name: str, flags: Sequence[str], floors: Floors) -> Iterator[Figure]:
    """The same clusters under KubeRay's operator. Its Events are counted where they lie."""
    with kuberay_on(plane) as kuberay:
        running = kuberay.start(*flags, elected=False)
        assert running.process.id is not None
        theirs = Operator(name, running.process.id.pid, running.metrics_port)
        found = asyncio.run(_bring_up(plane, theirs))
        times = found.cost.seconds / floors.fair
        yield Figure(f"{name}: 300 RayClusters ready, as a multiple of the fair floor", times, "x")
        yield Figure(f"{name}: CPU for 300 RayClusters", found.cost.cpu, "s")
        yield Figure(f"{name}: with 300 RayClusters", found.memory, "MB RSS", baseline=f"peak {found.peak:.0f} MB")
        yield Figure(f"{name}: writes for a RayCluster, Events among them", found.writes / CLUSTERS, "writes")
        yield Figure(f"{name}: one cluster from 3 to 500 workers", asyncio.run(_grow(plane)), "s")


@contextlib.contextmanager
def an_operator(plane: ControlPlane, port: int, *more: str) -> Iterator[subprocess.Popen[bytes]]:
    """Our operator with its default settings, as a process of its own, once it leads."""
    command = [str(Path(sys.executable).parent / "raykeeper"), "operator", f"--metrics-addr=127.0.0.1:{port}"]
    flags = ["--health-probe-bind-address=0", "--leader-election-namespace=default"]
    environment = {**os.environ, "KUBECONFIG": str(plane.admin_kubeconfig)}
    log = plane.folder / f"operator-{port}.log"
    with (
        log.open("wb") as output,
        subprocess.Popen([*command, *flags, *more], env=environment, stdout=output) as process,
    ):
        try:
            wait_until("the operator leads", lambda: b'"leading"' in log.read_bytes(), timeout=60)
            yield process
        finally:
            process.terminate()


class Cost(NamedTuple):
    """What it took until the clusters were ready; `cpu` is the operator's."""

    seconds: float
    cpu: float


class Operator(NamedTuple):
    """One that runs, and where its metrics are."""

    name: str
    pid: int
    port: int


class Found(NamedTuple):
    """What 300 clusters took an operator."""

    cost: Cost
    memory: float
    peak: float
    objects: float
    events: float

    @property
    def writes(self) -> float:
        return self.objects + self.events


async def _bring_up(plane: ControlPlane, operator: Operator) -> Found:
    before = written(operator.port)
    async with a_client(plane.admin_kubeconfig) as kube:
        await make_spaces(kube)
        cost = await bring_up(kube, plane, operator.pid, range(CLUSTERS))
    after = written(operator.port)
    memory, peak = rss_mb(operator.pid), peak_mb(operator.pid)
    return Found(cost, memory, peak, after.objects - before.objects, after.events - before.events)


def _judged(found: Found, floors: Floors) -> list[Figure]:
    seconds = found.cost.seconds
    fair, plain = f"fair floor {floors.fair:.1f} s", f"floor {floors.plain:.1f} s"
    peak = f"peak {found.peak:.0f} MB"
    return [
        Figure(
            "300 RayClusters ready, as a multiple of the fair floor", seconds / floors.fair, "x", 1.15, "less", fair
        ),
        Figure("300 RayClusters ready, as a multiple of the floor", seconds / floors.plain, "x", None, "less", plain),
        Figure("operator CPU for 300 RayClusters", found.cost.cpu, "s", 8.0, "less"),
        Figure("operator with 300 RayClusters", found.memory, "MB RSS", 110, "less", peak),
        Figure("writes for a RayCluster: objects and status", found.objects / CLUSTERS, "writes", 7, "less"),
        Figure("writes for a RayCluster: Events", found.events / CLUSTERS, "writes", 3, "less"),
    ]


async def make_spaces(kube: Kube) -> None:
    """The namespaces of the clusters, with their service accounts."""
    await in_parallel(range(SPACES), lambda number: kube.create(NAMESPACES, {"metadata": {"name": f"space-{number}"}}))
    accounts = Informer(
        kube, SERVICE_ACCOUNTS.read_as(Object), a_registry(), namespaces=[f"space-{number}" for number in range(SPACES)]
    )
    async with counting(accounts, SPACES, lambda account: account.metadata.name == "default") as all_there:
        await all_there()


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


async def _grow(plane: ControlPlane) -> float:
    """Seconds until all pods exist of a cluster that grows from 3 to 500 workers."""
    async with a_client(plane.admin_kubeconfig) as kube:
        group = {"groupName": "small", "replicas": LARGE, "template": TEMPLATE}
        pods = Informer(kube, PODS, a_registry(), namespaces=["space-0"], labels="ray.io/cluster=cluster-0")
        async with counting(pods, 1 + LARGE, lambda _: True) as all_exist:
            started = time.monotonic()
            await kube.merge_patch(OBJECTS, ObjectKey("space-0", "cluster-0"), {"spec": {"workerGroupSpecs": [group]}})
            await all_exist()
            return time.monotonic() - started


def _steady(operator: subprocess.Popen[bytes], port: int) -> Figure:
    """Once the last Events are written, which have all the time they need."""
    known = written(port)
    time.sleep(5)
    while (now := written(port)) != known:
        known = now
        time.sleep(5)
    before = cpu_seconds(operator.pid)
    time.sleep(STEADY_SECONDS)
    percent = (cpu_seconds(operator.pid) - before) / STEADY_SECONDS * 100
    return Figure("operator over 300 steady clusters, processor", percent, "% of a core", 0.5, "less")


class Written(NamedTuple):
    """What an operator has written so far, by its own metrics.

    Our only PUTs renew the lease. KubeRay writes its statuses so, runs without a lease, and counts its Events among
    the objects.
    """

    objects: float
    events: float


def written(port: int) -> Written:
    """What the operator whose metrics are at this port has written so far."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        text = answer.read().decode()
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    events = sum(sample.value for sample in samples if sample.name == "raykeeper_events_written_total")
    requests = [sample for sample in samples if sample.name == "rest_client_requests_total"]
    is_ours = any(sample.name == "raykeeper_events_written_total" for sample in samples)
    methods = {"POST", "PATCH", "DELETE"} | (set() if is_ours else {"PUT"})
    writes = sum(sample.value for sample in requests if sample.labels["method"] in methods)
    return Written(writes - events, events)
