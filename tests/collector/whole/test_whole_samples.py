"""Resource samples by real collectors: of a node that a test plays, and of a real Ray in a cgroup of its own."""

from __future__ import annotations

import asyncio
import os
import shlex
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
from aiohttp import web

from bed.fixtures import run_folder
from bed.ports import free_port
from bed.rayenv import RAY_VERSION
from bed.waiting import BUSY_FACTOR, wait_until
from collector.ray_folders import NODE_A, SESSION, a_port_file, a_session
from raykeeper.history.http.keeper_api.operation import PREFIX
from raykeeper.layout.keys import SessionId
from raykeeper.layout.samples import STEP_SECONDS
from support.asking import ask
from support.collector_processes import CollectorProcess, ended
from support.own_cgroups import own_cgroup
from support.ray_clusters import TOKEN, RayNode, ray_cluster
from support.scripted_server import Handler, served
from support.stored_sessions import StoredSession
from support.whole_history import built_server

BURNING = Path(__file__).with_name("programs") / "burning_work.py"
GROWN_MB, BURNING_SECONDS = 400, 120.0
MIB = 1 << 20
CLUSTER = "train"
OLDEST = "2.52.0"
PLENTY_SECONDS = 300.0
METRICS = b"""ray_node_cpu_count{SessionName="%b"} 4.0
ray_node_cpu_utilization{SessionName="%b"} 50.0
ray_node_mem_used 1.0e+09
ray_node_mem_total 4.0e+09
""" % (SESSION.encode(), SESSION.encode())


def a_collector(folder: Path, root: Path, sink: int, dashboard: str = "http://127.0.0.1:9") -> CollectorProcess:
    """Of a head, into a folder."""
    environment = {
        "RAY_TMP_ROOT": str(root),
        "RAY_CLUSTER_NAMESPACE": "team-a",
        "RAY_AUTH_TOKEN": TOKEN,
        "RAY_DASHBOARD_ADDRESS": dashboard,
    }
    flags = ["--role=head", f"--ray-cluster-name={CLUSTER}", f"--store-url=file://{folder}/store"]
    own = [f"--events-port={sink}", f"--event-data-dir={folder}/spool", "--metrics-addr=127.0.0.1:0"]
    return CollectorProcess(folder / "collector.log", [*flags, *own], environment)


@asynccontextmanager
async def a_node(folder: Path, handler: Handler) -> AsyncIterator[tuple[CollectorProcess, StoredSession]]:
    """A collector beside a node whose metrics are what a handler answers."""
    root = folder / "ray"
    session = a_session(root)
    a_port_file(session, NODE_A, "gcs_server")
    async with served(handler) as address:
        (session / f"metrics_export_port_{NODE_A}").write_text(address.rpartition(":")[2])
        collector = a_collector(folder, root, free_port())
        with ended(collector):
            collector.start().wait_for("collecting")
            yield collector, StoredSession(folder / "store", SessionId("team-a", CLUSTER, SESSION))


async def until(what: str, stored: StoredSession, rows: int) -> dict[int, int | None]:
    """CPU by time, once there are so many rows of it."""

    def known() -> dict[int, int | None]:
        samples = stored.samples(NODE_A)
        return {at: sample["cpu"] for at, sample in samples.items()} if len(samples) >= rows else {}

    return await asyncio.to_thread(wait_until, what, known, PLENTY_SECONDS)


@pytest.mark.timeout(600)
async def test_a_killed_collector_loses_no_row_and_a_graceful_end_leaves_them_in_a_block(tmp_path: Path) -> None:
    async def respond(_: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=METRICS)

    async with a_node(tmp_path, respond) as (collector, stored):
        before = await until("two rows are in a heartbeat", stored, 2)
        collector.kill()
        collector.start().wait_for("collecting")
        after = await until("two more rows are in a heartbeat", stored, len(before) + 2)
        assert before.items() <= after.items()
        assert set(after.values()) == {200}
        assert await asyncio.to_thread(collector.end) == 0
    assert after.items() <= {at: one["cpu"] for at, one in stored.sealed_samples(NODE_A).items()}.items()
    node = stored.node(NODE_A)
    assert node is not None
    assert node.samples == b""


@pytest.mark.timeout(600)
async def test_hostile_metrics_cost_their_columns_and_nothing_else(tmp_path: Path) -> None:
    asked = 0

    async def hostile(request: web.BaseRequest) -> web.StreamResponse:
        nonlocal asked
        asked += 1
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        junk = [b"ray_resources{" * 10_000, b"ray_node_mem_used NaN\n" * 10_000, b"\x00" * 100_000, b"\n" * 100_000]
        try:
            while True:
                await response.write(junk[asked % len(junk)])
        except ConnectionError:
            return response

    async with a_node(tmp_path, hostile) as (collector, stored):
        rows = await until("three rows are in a heartbeat", stored, 3)
        assert set(rows.values()) == {None}
        slowest = 0.0
        for _ in range(20):
            began = time.monotonic()
            assert "raykeeper_collector_samples_total" in await asyncio.to_thread(collector.ask, "/metrics")
            slowest = max(slowest, time.monotonic() - began)
            await asyncio.sleep(0.2)
        assert slowest < 0.5 * BUSY_FACTOR
        assert collector.peak_bytes < 100 * 10**6
        samples = stored.samples(NODE_A)
        assert all(sample["disk_total"] for sample in samples.values())
        assert await asyncio.to_thread(collector.end) == 0


NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="a cgroup of its own needs root")


@contextmanager
def a_burning_ray(folder: Path, version: str) -> Iterator[tuple[RayNode, CollectorProcess, Path]]:
    """A real head in a cgroup of its own, told that it is in a pod; a job on it that begins to burn before long."""
    in_a_pod = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "RAY_metrics_report_interval_ms": "10000"}
    with own_cgroup() as group, ray_cluster(folder / "ray", version, in_a_pod) as cluster:
        sink, since = free_port(), folder / "burning-since"
        collector = a_collector(folder, cluster.head_root, sink, cluster.dashboard)
        with ended(collector):
            collector.start().wait_for("listening for Ray")
            head = cluster.start_head(sink, group.enter)
            stored = stored_of(folder, head)
            wait_until("the idle head was sampled", lambda: len(whole_rows(stored, head)) >= 2, PLENTY_SECONDS)
            command = [str(cluster.python), str(BURNING), str(GROWN_MB), str(BURNING_SECONDS), str(since)]
            cluster.submit("burns", shlex.join(command))
            wait_until("the job burns", since.exists, PLENTY_SECONDS)
            yield head, collector, since
            head.kill()  # a collector that ends beside a living Ray leaves its very last log lines behind, and says so
            assert collector.end() == 0, collector.output.read_text()
            cluster.take_down()


def stored_of(folder: Path, head: RayNode) -> StoredSession:
    return StoredSession(folder / "store", SessionId("team-a", CLUSTER, head.session.name))


def whole_rows(stored: StoredSession, head: RayNode) -> dict[int, dict[str, int]]:
    """Rows with figures of Ray's agent, by time."""
    samples = stored.samples(head.node_ids()[-1])
    return {at: sample for at, sample in samples.items() if sample["cpu"] is not None and sample["memory"] is not None}


@pytest.mark.bed
@NEEDS_ROOT
@pytest.mark.timeout(900)
@pytest.mark.parametrize("version", [RAY_VERSION, pytest.param(OLDEST, marks=pytest.mark.soak)])
async def test_a_burning_cpu_and_grown_memory_of_a_real_ray_are_in_the_curve_within_two_samples(
    request: pytest.FixtureRequest, version: str
) -> None:
    folder = run_folder(request.config) / f"burning-{version}-{os.getpid()}"
    folder.mkdir()
    with a_burning_ray(folder, version) as (head, collector, since):
        stored = stored_of(folder, head)
        began = float(since.read_text())
        calm = [row for at, row in whole_rows(stored, head).items() if at + STEP_SECONDS < began - 30]
        calm = calm or list(whole_rows(stored, head).values())[:1]
        before = min(row["memory"] for row in calm)

        def grown() -> list[int]:
            return [at for at, row in whole_rows(stored, head).items() if row["memory"] >= before + 0.9 * GROWN_MB]

        first = min(wait_until("the memory is in the curve", grown, PLENTY_SECONDS))
        assert first - began <= 2 * STEP_SECONDS * BUSY_FACTOR
        assert whole_rows(stored, head)[max(grown())]["cpu"] > max(row["cpu"] for row in calm)

        def reserved() -> bool:
            """A raylet that has just begun says it a little later."""
            return any(row["cpu_reserved"] == 100 for at, row in whole_rows(stored, head).items() if at > began)

        wait_until("the task's CPU is reserved", reserved, PLENTY_SECONDS)
        seen = stored.samples(head.node_ids()[-1])
        collector.kill()
        collector.start().wait_for("collecting")
        wait_until("it goes on", lambda: len(whole_rows(stored, head)) > len(seen), PLENTY_SECONDS)
        assert seen.keys() <= stored.samples(head.node_ids()[-1]).keys()
    await assert_history_shows(folder, stored, first)


async def assert_history_shows(folder: Path, stored: StoredSession, grown_at: int) -> None:
    """The history server draws what was sampled."""
    base = f"{PREFIX}/sessions/team-a/{CLUSTER}/{stored.id.session}"
    (folder / "cache").mkdir()
    async with built_server(folder / "store", folder / "cache") as app:
        curves = (await ask(app, f"{base}/curves?points=2000")).body
        of_job = (await ask(app, f"{base}/jobs/burns/usage")).body
    assert (curves["source"], curves["width_seconds"]) == ("sampled", STEP_SECONDS)
    memory = next(curve for curve in curves["curves"] if curve["name"] == "memory")
    place = curves["at"].index(grown_at)
    known = [number for number in memory["mean"][:place] if number is not None]
    assert memory["mean"][place] - min(known) >= 0.85 * GROWN_MB * MIB
    cpu = next(row for row in of_job["hours"] if row["name"] == "CPU")
    assert cpu["used"] > 0
    assert cpu["asked"] > 0
