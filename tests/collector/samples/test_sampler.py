"""A row every ten seconds: on disk, in the heartbeat, and by the hour in the bucket, whatever happens meanwhile."""

from __future__ import annotations

import asyncio
import os
import random
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from collector.ray_folders import NODE_A, NODE_B, SESSION, a_port_file, a_session
from ray_head.memory_bucket import MemoryBucket
from raykeeper.collector.metrics import CollectorMetrics
from raykeeper.collector.ray_metrics import RayMetrics, Reading
from raykeeper.collector.samples.sampler import LIGHT_BYTES, MAX_ROWS, TAIL_BYTES, Sampler, SamplerSettings
from raykeeper.collector.sessions import SessionWatch
from raykeeper.layout.keys import SamplesKey, parse_sealed_key
from raykeeper.layout.records import NodeRecord, encode_record
from raykeeper.layout.samples import SampleBlock, decode_block
from support.clocks import ManualClock

NOW = datetime(2026, 11, 15, 20, 10, 0, tzinfo=UTC)


def said(cpu_percent: float, size: int = 1000) -> RayMetrics:
    """Metrics of a node with two CPUs."""
    return RayMetrics((Reading("node_cpu_count", {}, 2.0), Reading("node_cpu_utilization", {}, cpu_percent)), size)


@dataclass
class Scene:
    """A pod's disk, a bucket, and a sampler between them."""

    root: Path
    spool: Path
    bucket: MemoryBucket = field(default_factory=MemoryBucket)
    clock: ManualClock = field(default_factory=lambda: ManualClock(now=NOW))
    answer: RayMetrics | None = field(default_factory=lambda: said(50.0))
    looks: int = 0

    def __post_init__(self) -> None:
        a_port_file(a_session(self.root), NODE_A, "gcs_server", at=NOW.timestamp())
        self.restart()

    def restart(self) -> None:
        """A collector that knows nothing, beside the same disk and bucket."""
        self.metrics = CollectorMetrics(CollectorRegistry())
        self.watch = SessionWatch(self.root, self.clock)
        self.watch.poll()
        settings = SamplerSettings("ns", "c", self.spool, self.root)
        self.sampler = Sampler(settings, self.watch, self.bucket, self.clock, self.metrics, self._observe)

    async def _observe(self, _session: Path, _node_id: str) -> RayMetrics | None:
        self.looks += 1
        return self.answer

    async def sample(self, times: int = 1) -> None:
        for _ in range(times):
            await self.sampler.sample()
            self.clock.advance(10)

    def tail(self, node: str = NODE_A) -> SampleBlock | None:
        data = self.sampler.tail(SESSION, node)
        return decode_block(data) if data else None

    def blocks(self) -> dict[SamplesKey, SampleBlock]:
        keys = [parse_sealed_key(key) for key in self.bucket.objects]
        return {key: decode_block(self.bucket.objects[key.key]) for key in keys if isinstance(key, SamplesKey)}

    @asynccontextmanager
    async def sending(self) -> AsyncIterator[None]:
        """While the sampler runs by itself, its uploads do; the clock stands still, so that no row is taken."""
        task = asyncio.create_task(self.sampler.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def flush(self) -> None:
        async with self.sending():
            await self.sampler.flush(self.clock.steady() + 60)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path / "ray", tmp_path / "spool")


async def test_rows_ride_with_the_heartbeat_until_their_hour_is_over(scene: Scene) -> None:
    await scene.sample(3)
    tail = scene.tail()
    assert tail is not None
    assert (tail.start, tail.rows, tail.cpu, tail.cpu_total) == (int(NOW.timestamp()), 3, 100, 200)
    assert scene.blocks() == {}
    scene.clock.advance(3600)
    await scene.sample()
    await scene.flush()
    first, second = sorted(scene.blocks().items())
    assert (first[1].rows, second[1].rows) == (3, 1)
    assert "/metrics/2026-11-15T20/" in first[0].key
    assert "/metrics/2026-11-15T21/" in second[0].key


async def test_a_sealed_block_rides_along_until_the_bucket_has_it(scene: Scene) -> None:
    await scene.sample(3)
    await scene.sampler.seal()
    tail = scene.tail()
    assert tail is not None
    assert tail.rows == 3
    await scene.flush()
    assert scene.tail() is None
    assert [block.rows for block in scene.blocks().values()] == [3]


async def test_gpus_with_names_that_somebody_made_up_leave_the_heartbeat_readable(scene: Scene) -> None:
    dice = random.Random(1)
    for _ in range(4):
        names = ["".join(chr(dice.randrange(0x10000, 0x1F000)) for _ in range(64)) for _ in range(64)]
        labels = [{"GpuIndex": str(index), "GpuDeviceName": name} for index, name in enumerate(names)]
        scene.answer = RayMetrics(tuple(Reading("node_gpus_utilization", one, 5.0) for one in labels), 1000)
        await scene.sample()
        tail = scene.sampler.tail(SESSION, NODE_A)
        record = NodeRecord(
            node_id=NODE_A, role="worker", samples=tail, started_at=NOW, beat_at=NOW, interval_seconds=30.0
        )
        beat = encode_record(record)
        assert len(beat) < NodeRecord.limit_bytes - 4096


async def test_an_hour_that_the_bucket_lacks_is_not_given_up_for_the_first_rows_of_the_next(scene: Scene) -> None:
    await scene.sample(3)
    scene.clock.advance(3600)
    await scene.sample(1)
    tail = scene.tail()
    assert tail is not None
    assert (tail.start, tail.rows) == (int(NOW.timestamp()), 3)


async def test_a_killed_collector_goes_on_with_its_rows(scene: Scene) -> None:
    await scene.sample(2)
    scene.restart()
    await scene.sample()
    tail = scene.tail()
    assert tail is not None
    assert (tail.rows, tail.values(tail.cpu)) == (3, [100, 100, 100])


async def test_what_was_sealed_before_a_kill_is_sent_by_the_next_life(scene: Scene) -> None:
    await scene.sample(2)
    await scene.sampler.seal()
    scene.restart()
    await scene.flush()
    assert [block.rows for block in scene.blocks().values()] == [2]


async def test_another_raylet_in_the_pod_has_rows_of_its_own(scene: Scene) -> None:
    await scene.sample(2)
    a_port_file(scene.root / SESSION, NODE_B, "gcs_server", at=NOW.timestamp() + 100)
    scene.watch.poll()
    await scene.sample(1)
    await scene.flush()
    assert {key.node_id: block.rows for key, block in scene.blocks().items()} == {NODE_A: 2, NODE_B: 1}


async def test_many_gpus_are_sealed_before_their_hour_is_over(scene: Scene) -> None:
    dice = random.Random(1)
    for _ in range(200):
        labels = [{"GpuIndex": str(index), "GpuDeviceName": "A100"} for index in range(8)]
        values = [Reading("node_gpus_utilization", one, dice.randint(0, 100)) for one in labels]
        memory = [Reading("node_gram_used", one, dice.randint(0, 80_000)) for one in labels]
        scene.answer = RayMetrics((*values, *memory), 1000)
        await scene.sample()
        assert len(scene.sampler.tail(SESSION, NODE_A)) <= 2 * TAIL_BYTES
    await scene.flush()
    blocks = sorted(scene.blocks().items())
    assert len(blocks) > 1
    assert sum(block.rows for _, block in blocks) == 200


async def test_an_agent_that_shows_nothing_costs_its_columns_and_is_asked_ever_more_rarely(scene: Scene) -> None:
    scene.answer = None
    await scene.sample(60)
    tail = scene.tail()
    assert tail is not None
    assert (tail.rows, tail.cpu) == (60, None)
    assert tail.disk_total
    assert scene.looks <= 12
    scene.answer = said(100.0)
    await scene.sample(13)
    assert scene.sampler.tail(SESSION, NODE_A)
    assert scene.metrics.samples.labels("whole")._value.get() >= 1


async def test_large_metrics_are_read_less_often(scene: Scene) -> None:
    scene.answer = said(50.0, size=4 * LIGHT_BYTES)
    await scene.sample(40)
    assert scene.looks == 10


async def test_nothing_is_sampled_while_no_raylet_lives(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "ray", tmp_path / "spool")
    await scene.sample(2)
    scene.watch._is_listening = False
    await scene.sample(3)
    assert scene.looks == 2
    await scene.flush()
    assert [block.rows for block in scene.blocks().values()] == [2]


async def test_a_disk_that_takes_no_block_costs_the_oldest_rows(scene: Scene) -> None:
    await scene.sample(1)
    (scene.spool / "sealed").mkdir(parents=True, exist_ok=True)
    (scene.spool / "sealed" / "v1").write_text("in the way")
    await scene.sample(MAX_ROWS + 400)
    lost = scene.metrics.samples_lost._value.get()
    assert lost > 0
    (scene.spool / "sealed" / "v1").unlink()
    await scene.flush()
    assert sum(block.rows for block in scene.blocks().values()) == MAX_ROWS + 401 - lost


async def test_the_count_of_dropped_events_comes_from_the_same_look(scene: Scene) -> None:
    reading = Reading("aggregator_agent_queue_dropped_events_total", {}, 7.0)
    scene.answer = RayMetrics((reading,), 100)
    assert await scene.sampler.dropped_events(scene.root / SESSION, NODE_A) is None
    await scene.sample()
    assert await scene.sampler.dropped_events(scene.root / SESSION, NODE_A) == 7


async def test_a_clock_that_jumps_loses_no_row(scene: Scene) -> None:
    await scene.sample(2)
    scene.clock.jump(-7200)
    await scene.sample(2)
    await scene.flush()
    assert sorted(block.rows for block in scene.blocks().values()) == [2, 2]


async def test_rows_come_by_the_clock(scene: Scene) -> None:
    for _ in range(30):
        pause = scene.sampler._seconds_until_next()
        scene.clock.advance(pause)
        await scene.sampler.sample()
    tail = scene.tail()
    assert tail is not None
    assert (tail.rows, tail.values(tail.cpu)) == (30, [100] * 30)


async def test_another_session_called_the_latest_does_not_cost_a_living_node_its_rows(scene: Scene) -> None:
    await scene.sample(2)
    sockets = scene.root / SESSION / "sockets"
    sockets.mkdir()
    folder = os.open(sockets, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as raylet:
        raylet.bind(f"/proc/self/fd/{folder}/raylet")  # the kernel takes 107 bytes
        os.close(folder)
        raylet.listen()
        a_port_file(a_session(scene.root, "session_of_somebody_else"), NODE_B, "gcs_server")
        scene.watch.poll()
        await scene.sample(2)
        tail = scene.tail()
    assert tail is not None
    assert tail.rows == 4
    await scene.sample(1)  # the raylet is gone now
    await scene.flush()
    assert sum(block.rows for key, block in scene.blocks().items() if key.node_id == NODE_A) == 4
