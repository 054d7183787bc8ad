"""A real Ray works, and beside it a program does to the collector whatever user code can: nobody else's history
suffers.

`NEIGHBOUR_SECONDS` says how long the long run takes, `NEIGHBOUR_SEED` repeats what was done.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bed.fixtures import run_folder
from bed.ports import free_port
from bed.waiting import wait_until
from raykeeper.layout.keys import SessionId
from support.collector_processes import CollectorProcess, ended
from support.event_scene import RayClient
from support.ray_clusters import TOKEN, RayCluster, RayNode, ray_cluster
from support.ray_event_batches import EventMaker, body_of
from support.stored_sessions import StoredSession

SHORT_SECONDS, SHORT_SEED = 8, 13
LONG_SECONDS = float(os.environ.get("NEIGHBOUR_SECONDS", "600"))
MEMORY_BYTES = 256 << 20
GRACE_SECONDS = 8.0
POST_SECONDS = 0.05
RAY_GIVES_UP_SECONDS = 3.0
BLOCKED_SECONDS = 0.1
POST_P99_SECONDS = 0.2
SLOW_MACHINE = 5.0
"""The short run shares two cores with other tests: its bounds are this many times those of the long one."""
PROGRAMS = Path(__file__).with_name("programs")
HONEST_NODE = "d" * 56
NAMESPACE, CLUSTER = "team-a", "train"
HONEST_WORK = """
import itertools, pathlib, sys, time, ray
ray.init()
@ray.remote(num_cpus=0.1)
def work(number):
    print(f"honest line {number}", flush=True)
for number in itertools.count():
    ray.get([work.remote(10 * number + one) for one in range(10)])
    pathlib.Path(sys.argv[1]).touch()
    if pathlib.Path(sys.argv[2]).exists():
        break
    time.sleep(0.2)
"""
"""Runs until it is told to end; the first file is there once it works."""

pytestmark = [
    pytest.mark.bed,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(os.geteuid() != 0, reason="devices are made by root alone"),
]


@dataclass
class Pod:
    """A head, its collector with a spool of its own, and a store."""

    folder: Path
    cluster: RayCluster
    sink: int = field(default_factory=free_port)
    metrics: int = field(default_factory=free_port)
    posts: list[float] = field(default_factory=list)
    """Seconds that each honest post took."""
    acknowledged: list[str] = field(default_factory=list)
    peak_bytes: int = 0

    def __post_init__(self) -> None:
        self.outside = self.folder / "outside"
        (self.outside / "sub").mkdir(parents=True)
        self.marks = [os.urandom(64) for _ in range(2)]  # as they are in any compressed file: nothing is shorter
        (self.outside / "token").write_bytes(self.marks[0])
        (self.outside / "sub" / "deep.key").write_bytes(self.marks[1])
        flags = ["--role=head", f"--ray-cluster-name={CLUSTER}", f"--store-url=file://{self.folder}/store"]
        flags += [f"--events-port={self.sink}", f"--metrics-addr=127.0.0.1:{self.metrics}", "--poll-interval=5s"]
        flags += ["--seal-age=500ms", "--idle-seal-age=1s", "--user-log-interval=500ms", "--component-log-interval=2s"]
        flags += [f"--grace-period={GRACE_SECONDS}s", f"--event-data-dir={self.folder}/spool"]
        variables = {"RAY_TMP_ROOT": str(self.cluster.head_root), "RAY_CLUSTER_NAMESPACE": NAMESPACE}
        variables |= {"RAY_AUTH_TOKEN": TOKEN, "RAY_DASHBOARD_ADDRESS": self.cluster.dashboard, "POD_NAME": "head"}
        variables["LOOP_LAG_FILE"] = str(self.folder / "lag.json")
        command = (sys.executable, str(PROGRAMS / "measured_collector.py"), "collector")
        self.collector = CollectorProcess(self.folder / "collector.log", flags, variables, command)
        self.head: RayNode
        self.node_id: str
        self.session: Path

    def start(self) -> None:
        self.collector.start().wait_for("listening for Ray")
        self.head = self.cluster.start_head(self.sink)
        [self.node_id] = self.head.node_ids()  # before anybody makes logs of raylets that never were
        self.session = self.head.session

    @property
    def stored(self) -> StoredSession:
        return StoredSession(self.folder / "store", SessionId(NAMESPACE, CLUSTER, self.session.name))

    @property
    def lag(self) -> dict[str, float]:
        told: dict[str, float] = json.loads((self.folder / "lag.json").read_text())
        return told

    def measure(self) -> None:
        """Measure the loop anew: at its start the collector imports what it needs, before there is anything to do."""
        os.kill(self.collector.pid, signal.SIGUSR1)

    @contextmanager
    def attacked(self, seconds: float, seed: int) -> Iterator[None]:
        """The block runs beside the neighbour, and must end first."""
        places = [str(self.cluster.head_root), str(self.outside), str(self.sink), str(self.metrics)]
        argv = [sys.executable, str(PROGRAMS / "hostile_neighbour.py"), *places, str(seconds), str(seed)]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as neighbour:
            try:
                yield
                said, _ = neighbour.communicate(timeout=60)
            finally:
                neighbour.kill()
        print(f"deeds of the neighbour: {said.decode()}")
        assert neighbour.returncode == 0, said.decode()

    async def post_for(self, seconds: float) -> None:
        """Post as Ray does: the same batch again until it is taken."""
        maker, until = EventMaker(session=self.session.name, node=HONEST_NODE), time.monotonic() + seconds
        while time.monotonic() < until:
            events, began = maker.events(5), time.monotonic()
            while not await self.is_taken(body_of(events)):
                pass
            self.posts.append(time.monotonic() - began)
            self.acknowledged += [event["eventId"] for event in events]
            await asyncio.sleep(POST_SECONDS)

    async def is_taken(self, body: bytes) -> bool:
        try:
            async with RayClient(self.sink) as client:
                status = await asyncio.wait_for(client.post(body), RAY_GIVES_UP_SECONDS)
        except (OSError, asyncio.IncompleteReadError, TimeoutError):
            return False
        assert status in (0, 200)  # 0: it was hung up on before it was heard
        return status == 200

    def wait_until_ray_is_stored(self) -> int:
        """How many events of Ray's own there are, once the store has all that its agent published."""

        def count() -> int:
            published = self.head.published_events()
            return published if published == len(set(self.ids_of(self.node_id))) else 0

        return int(wait_until("the store has what Ray has published", count) or 0)

    def ids_of(self, node_id: str) -> Counter[str]:
        return Counter(event["eventId"] for event in self.stored.events().get(node_id, []))

    def honest_files(self) -> dict[str, bytes]:
        logs = self.session / "logs"
        found = [path for path in logs.rglob("*") if path.is_file() and not path.is_symlink()]
        honest = [path for path in found if "evil" not in str(path.relative_to(logs))]
        return {str(path.relative_to(logs)): path.read_bytes() for path in honest}

    def shipped(self) -> bytes:
        return b"".join(path.read_bytes() for path in (self.folder / "store").rglob("*") if path.is_file())


@contextmanager
def a_pod(folder: Path) -> Iterator[Pod]:
    with ray_cluster(folder / "ray") as cluster:
        pod = Pod(folder, cluster)
        with ended(pod.collector):
            yield pod


RUNS = [
    pytest.param((SHORT_SECONDS, SHORT_SEED), id="short"),
    pytest.param((LONG_SECONDS, 0), id="long", marks=pytest.mark.soak),
]


@pytest.mark.parametrize("run", RUNS)
async def test_a_hostile_neighbour_costs_nobody_anything(
    run: tuple[float, int], request: pytest.FixtureRequest
) -> None:
    seconds, fixed = run
    seed = int(os.environ.get("NEIGHBOUR_SEED", "0")) or fixed or random.SystemRandom().randrange(1, 2**32)
    print(f"NEIGHBOUR_SEED={seed} NEIGHBOUR_SECONDS={seconds:g}")
    folder = run_folder(request.config) / f"neighbour-{os.getpid()}-{seconds:g}"
    folder.mkdir()
    with a_pod(folder) as pod:
        await asyncio.to_thread(pod.start)
        wait_until("the session is recorded", lambda: pod.stored.record())
        works, is_over = folder / "works", folder / "is-over"
        command = [str(pod.cluster.python), "-c", HONEST_WORK, str(works), str(is_over)]
        pod.cluster.submit("honest", shlex.join(command))
        wait_until("the job works", works.exists)
        pod.measure()
        with pod.attacked(seconds, seed):
            await pod.post_for(seconds)
        lag = pod.lag
        is_over.touch()
        wait_until("the job ends", lambda: pod.cluster.job_statuses().get("honest") == "SUCCEEDED")
        ray_events = await asyncio.to_thread(pod.wait_until_ray_is_stored)
        pod.head.process.stop(timeout=120.0)
        pod.head.kill()
        pod.peak_bytes = pod.collector.peak_bytes
        honest, began = pod.honest_files(), time.monotonic()
        code = pod.collector.end(GRACE_SECONDS + 5)
        took = time.monotonic() - began
        report(pod, ray_events, took, lag)
        check_honest_history(pod, honest)
        check_bounds(pod, lag, is_short=fixed != 0)
        check_the_end_tells_the_truth(pod, honest, code)


def check_honest_history(pod: Pod, honest: dict[str, bytes]) -> None:
    """All of it is there, once, and nothing from outside of the log folder."""
    assert pod.ids_of(HONEST_NODE) == Counter(pod.acknowledged)
    stored = pod.stored.logs(pod.node_id, honest)
    assert sorted(path for path in honest if stored.get(path) != honest[path]) == []
    shipped = pod.shipped()
    assert not any(mark in shipped for mark in pod.marks)
    assert {path.name for path in (pod.folder / "store/v1/data").iterdir()} == {NAMESPACE}


def check_bounds(pod: Pod, lag: dict[str, float], *, is_short: bool) -> None:
    share = SLOW_MACHINE if is_short else 1.0
    assert pod.peak_bytes < MEMORY_BYTES
    assert lag["longest_work"] < BLOCKED_SECONDS * share
    assert sorted(pod.posts)[len(pod.posts) * 99 // 100] < POST_P99_SECONDS * share


def check_the_end_tells_the_truth(pod: Pod, honest: dict[str, bytes], code: int) -> None:
    """What it owns up to is the neighbour's alone, and its exit code says whether there is any."""
    end = pod.stored.end(pod.node_id)
    assert end is not None
    assert end.missing_event_bytes == 0
    assert not {missing.path for missing in end.missing_logs} & honest.keys()
    assert end.is_complete == (end.missing_log_bytes == 0)
    assert code in (0, 1)


def report(pod: Pod, ray_events: int, end_seconds: float, lag: dict[str, float]) -> None:
    posts, told = sorted(pod.posts), {name: f"{seconds * 1000:.0f} ms" for name, seconds in lag.items()}
    p99, worst = posts[len(posts) * 99 // 100] * 1000, posts[-1] * 1000
    print(f"honest posts: {len(posts)}, p99 {p99:.0f} ms, worst {worst:.0f} ms; Ray's own events: {ray_events}")
    print(f"peak memory {pod.peak_bytes >> 20} MB, loop {told}, end after {end_seconds:.1f} s")
