"""With real Ray: every byte of every file below `logs/` reads back, also where worker files rotate."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from bed.rayenv import ray_python
from collector.logs.shipping import MemoryBucket
from raykeeper.clock import SystemClock
from raykeeper.collector.logs.settings import LogShipperSettings
from raykeeper.collector.logs.shipper import LogShipper
from raykeeper.collector.metrics import CollectorMetrics
from raykeeper.collector.sessions import RayletGone, SessionEvent, SessionWatch
from raykeeper.layout.logs import logs_of_packs
from support.conditions import until
from support.ray_clusters import PATIENT_START

PROGRAM = Path(__file__).with_name("programs") / "talkative_ray.py"
LINES = 2000
pytestmark = pytest.mark.bed


class Shipping:
    """The real session watch and log shipper over one folder, with short intervals."""

    def __init__(self, root: Path, spool: Path) -> None:
        self.clock = SystemClock()
        self.watch = SessionWatch(root, self.clock)
        self.events: list[SessionEvent] = []
        self.watch.listen(self.events.append)
        self.bucket = MemoryBucket()
        settings = LogShipperSettings(spool, "ns", "demo", "pod-1", user_tick_seconds=0.3, component_tick_seconds=1.0)
        self.shipper = LogShipper(settings, self.watch, self.bucket, self.clock, CollectorMetrics(CollectorRegistry()))

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.watch.run())
            tasks.create_task(self.shipper.run())


@pytest.fixture
def root() -> Iterator[Path]:
    """A folder with a short path: Ray's socket names must fit into 107 bytes."""
    folder = tempfile.mkdtemp(prefix="rk-")
    yield Path(folder)
    shutil.rmtree(folder)


@pytest.fixture
async def shipping(root: Path, tmp_path: Path) -> AsyncIterator[Shipping]:
    shipping = Shipping(root, tmp_path / "spool")
    running = asyncio.create_task(shipping.run())
    yield shipping
    running.cancel()
    await asyncio.wait([running])
    await shipping.shipper.close()


async def run_ray(root: Path, **environment: str) -> Path:
    """Let a real Ray run from its start to its end; the session directory it leaves."""
    process = await asyncio.create_subprocess_exec(
        str(ray_python()),
        str(PROGRAM),
        str(root),
        str(LINES),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "RAY_USAGE_STATS_ENABLED": "0", **PATIENT_START, **environment},
    )
    async with asyncio.timeout(400):
        output, _ = await process.communicate()
    assert process.returncode == 0
    return Path(output.decode().splitlines()[0])


def files_below(logs: Path) -> dict[str, bytes]:
    return {str(file.relative_to(logs)): file.read_bytes() for file in logs.rglob("*") if file.is_file()}


@pytest.mark.parametrize("rotation", [{}, {"RAY_ROTATION_MAX_BYTES": "40000", "RAY_ROTATION_BACKUP_COUNT": "3"}])
async def test_every_log_of_a_real_ray_reads_back_identical(
    root: Path, shipping: Shipping, rotation: dict[str, str]
) -> None:
    session = await run_ray(root, **rotation)
    missing = await shipping.shipper.flush(shipping.clock.steady() + 30)
    assert missing == ()
    assert shipping.shipper.lost_bytes == 0
    node_id = shipping.watch.node_of(session.name)
    assert node_id is not None
    raylet = (session / "logs" / "raylet.out").read_text()
    assert node_id in raylet
    assert "unregistered client" not in raylet  # it did not notice that it was watched
    await until(lambda: any(isinstance(event, RayletGone) for event in shipping.events))
    on_disk = files_below(session / "logs")
    stored = {path: shipping.bucket.text(path, node_id, session.name) for path in on_disk}
    assert stored == on_disk
    assert set(shipping.bucket.packs) == set(shipping.bucket.of_node(node_id, session.name))
    assert any(re.fullmatch(r"worker-.*\.out\.\d", path) for path in on_disk) == bool(rotation)
    assert lines_said(shipping, node_id, session.name) == {f"task-{n} {i:06d}" for n in range(2) for i in range(LINES)}


def lines_said(shipping: Shipping, node_id: str, session: str) -> set[str]:
    """Every line that the tasks printed, from all generations: also from files that were rotated away."""
    logs, _ = logs_of_packs(shipping.bucket.of_node(node_id, session))
    texts = [shipping.bucket.read(log, node_id, session)[0] for log in logs.values() if log.path.startswith("worker-")]
    said = re.findall(rb"(task-\d) says line (\d{6})", b"\n".join(texts))
    return {f"{task.decode()} {line.decode()}" for task, line in said}
