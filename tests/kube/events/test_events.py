"""Events on the real API server, which validates them strictly, is out of reach at times, and deletes namespaces."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from bed.control_plane import ControlPlane
from bed.faults.tcp import TcpProxy
from bed.waiting import BUSY_FACTOR
from raykeeper.clock import Clock, SystemClock
from raykeeper.kube.client import Kube
from raykeeper.kube.connect.connection import load_connection
from raykeeper.kube.events.series import ObjectRef
from raykeeper.kube.events.writer import EVENT_BURST, EventRecorder, EventWriter
from raykeeper.kube.metrics import KubeMetrics
from support.clocks import ManualClock
from support.conditions import until


class Bench:
    """A recorder with its writer, and what the metrics and the API server say about it."""

    def __init__(self, plane: ControlPlane, namespace: str, kube: Kube, clock: Clock) -> None:
        self.registry = CollectorRegistry()
        self.writer = EventWriter(kube, "operator-0", clock=clock, metrics=KubeMetrics(self.registry))
        self.recorder: EventRecorder = self.writer.recorder("raycluster-controller")
        self.cluster = ObjectRef("ray.io/v1", "RayCluster", namespace, "demo", "6d1b0c1e-0000-4000-8000-000000000001")
        self._plane = plane
        self._namespace = namespace

    def events(self) -> list[dict[str, Any]]:
        path = f"/apis/events.k8s.io/v1/namespaces/{self._namespace}/events"
        items: list[dict[str, Any]] = self._plane.admin.get(path)["items"]
        return [item for item in items if item["reportingController"] == "raycluster-controller"]

    def written(self) -> float:
        return self.registry.get_sample_value("raykeeper_events_written_total") or 0.0

    def dropped(self, cause: str) -> float:
        return self.registry.get_sample_value("raykeeper_events_dropped_total", {"cause": cause}) or 0.0


@asynccontextmanager
async def a_bench(
    plane: ControlPlane, namespace: str, *, clock: Clock | None = None, kubeconfig: Path | None = None
) -> AsyncIterator[Bench]:
    """The writer runs inside the block and is stopped at its end."""
    connection = await load_connection(kubeconfig or plane.admin_kubeconfig)
    async with Kube(connection, metrics=KubeMetrics(CollectorRegistry())) as kube:
        bench = Bench(plane, namespace, kube, clock or SystemClock())
        running = asyncio.create_task(bench.writer.run())
        try:
            yield bench
        finally:
            running.cancel()
            await asyncio.wait({running})


async def test_an_event_has_everything_the_server_asks_for(control_plane: ControlPlane, namespace: str) -> None:
    async with a_bench(control_plane, namespace) as bench:
        pod = ObjectRef("v1", "Pod", namespace, "demo-head", "6d1b0c1e-0000-4000-8000-000000000002")
        bench.recorder.normal(bench.cluster, "CreatedHeadPod", "created head pod", action="Create", related=pod)
        bench.recorder.warning(bench.cluster, "FailedToCreate" + "x" * 200, "long " * 500)
        await until(lambda: bench.written() == 2)
    warning, normal = sorted(bench.events(), key=lambda event: event["type"], reverse=True)
    assert normal["note"] == "created head pod"
    assert normal["action"] == "Create"
    assert (normal["regarding"]["name"], normal["related"]["name"]) == ("demo", "demo-head")
    assert normal["reportingInstance"] == "operator-0"
    assert normal["metadata"]["name"].startswith("demo.")
    assert "series" not in normal
    assert warning["note"].endswith("…")
    assert warning["reason"].endswith("…")


async def test_repeats_are_one_event_with_a_growing_count(control_plane: ControlPlane, namespace: str) -> None:
    async with a_bench(control_plane, namespace) as bench:
        bench.recorder.warning(bench.cluster, "FailedToCreatePod", "quota exceeded")
        await until(lambda: bench.written() == 1)
        for _ in range(41):
            bench.recorder.warning(bench.cluster, "FailedToCreatePod", "quota exceeded")
    (event,) = bench.events()
    assert event["series"]["count"] == 42, "the count not written yet is written when we stop"


async def test_a_count_that_is_due_is_written_though_its_event_does_not_happen_again(
    control_plane: ControlPlane, namespace: str
) -> None:
    clock = ManualClock()
    async with a_bench(control_plane, namespace, clock=clock) as bench:
        bench.recorder.normal(bench.cluster, "DeletedPod", "deleted pod")
        await until(lambda: bench.written() == 1)
        bench.recorder.normal(bench.cluster, "DeletedPod", "deleted pod")
        clock.advance(11)
        bench.recorder.normal(bench.cluster, "Other", "wakes the writer, whose clock only the test moves")
        await until(lambda: bench.written() == 3)
        counts = {event["reason"]: event.get("series", {}).get("count") for event in bench.events()}
        assert counts == {"DeletedPod": 2, "Other": None}


async def test_an_event_that_expired_on_the_server_is_made_again(control_plane: ControlPlane, namespace: str) -> None:
    async with a_bench(control_plane, namespace) as bench:
        bench.recorder.normal(bench.cluster, "DeletedPod", "deleted pod")
        await until(lambda: bench.written() == 1)
        name = bench.events()[0]["metadata"]["name"]
        control_plane.admin.delete(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events/{name}")
        bench.recorder.normal(bench.cluster, "DeletedPod", "deleted pod")
    assert [event["series"]["count"] for event in bench.events()] == [2]


async def test_events_of_a_cluster_scoped_object_are_in_default(control_plane: ControlPlane) -> None:
    async with a_bench(control_plane, "default") as bench:
        node = ObjectRef("v1", "Node", "", "node-of-test-events", "6d1b0c1e-0000-4000-8000-000000000003")
        bench.recorder.normal(node, "Seen", "seen")
        await until(lambda: bench.written() == 1)
    assert "node-of-test-events" in [event["regarding"]["name"] for event in bench.events()]


async def test_events_for_a_namespace_that_is_gone_are_dropped_counted_and_told_once(
    control_plane: ControlPlane, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with a_bench(control_plane, namespace) as bench:
        gone = ObjectRef("ray.io/v1", "RayCluster", "no-such-namespace", "demo", "uid")
        for number in range(5):
            bench.recorder.normal(gone, f"Reason{number}", "note")
        await until(lambda: bench.dropped("namespace gone") == 5)
        bench.recorder.normal(bench.cluster, "After", "others are still written")
        await until(lambda: bench.written() == 1)
    assert [record.message for record in caplog.records if record.levelname == "WARNING"] == ["events are dropped"]


async def test_events_for_a_terminating_namespace_are_dropped_and_counted(
    control_plane: ControlPlane, namespace: str
) -> None:
    held = {"metadata": {"name": "held", "finalizers": ["test.raykeeper.io/hold"]}}
    control_plane.admin.post(f"/api/v1/namespaces/{namespace}/configmaps", held)
    control_plane.admin.delete(f"/api/v1/namespaces/{namespace}")
    try:
        async with a_bench(control_plane, namespace) as bench:
            bench.recorder.normal(bench.cluster, "DeletedPod", "deleted pod")
            await until(lambda: bench.dropped("forbidden") == 1)
    finally:
        release = {"metadata": {"finalizers": None}}
        control_plane.admin.patch(f"/api/v1/namespaces/{namespace}/configmaps/held", release)


async def test_reporting_does_not_wait_for_a_server_that_stalls(control_plane: ControlPlane, namespace: str) -> None:
    """And what fits into the buffer is written when the server is back."""
    with TcpProxy("127.0.0.1", int(control_plane.server.rpartition(":")[2])) as proxy:
        kubeconfig = control_plane.kubeconfig(server=f"https://127.0.0.1:{proxy.port}")
        async with a_bench(control_plane, namespace, kubeconfig=kubeconfig) as bench:
            bench.recorder.normal(bench.cluster, "First", "first")
            await until(lambda: bench.written() == 1)
            proxy.stall()
            begin = time.perf_counter()
            for number in range(10_000):
                bench.recorder.normal(bench.cluster, "CreatedPod", f"created pod {number}")
            assert time.perf_counter() - begin < 2 * BUSY_FACTOR
            proxy.flow()
            await until(lambda: bench.written() == 12)
    counts = [event["series"]["count"] for event in bench.events() if "series" in event]
    assert counts == [9_990]


async def test_stopping_does_not_wait_long_for_a_server_that_stalls(
    control_plane: ControlPlane, namespace: str
) -> None:
    with TcpProxy("127.0.0.1", int(control_plane.server.rpartition(":")[2])) as proxy:
        kubeconfig = control_plane.kubeconfig(server=f"https://127.0.0.1:{proxy.port}")
        async with a_bench(control_plane, namespace, kubeconfig=kubeconfig) as bench:
            proxy.stall()
            for number in range(3):
                bench.recorder.normal(bench.cluster, f"Reason{number}", "note")
            await asyncio.sleep(0)
            begin = time.monotonic()
        assert time.monotonic() - begin < 5 * BUSY_FACTOR
        assert bench.dropped("shutdown") == 3


async def test_events_keep_to_their_own_budget(control_plane: ControlPlane, namespace: str) -> None:
    async with a_bench(control_plane, namespace) as bench:
        begin = time.monotonic()
        total = EVENT_BURST + 20
        for number in range(total):
            about = ObjectRef("ray.io/v1", "RayCluster", namespace, f"demo-{number}", f"uid-{number}")
            bench.recorder.normal(about, "CreatedPod", "created pod")
        await until(lambda: bench.written() == total)
        assert time.monotonic() - begin >= 0.9, "20 beyond the burst take a second at 20 per second"
