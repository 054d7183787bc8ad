"""At the end of a node the most wanted bytes go first, and what does not make it is known."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bed.waiting import BUSY_FACTOR
from collector.logs.shipping import MemoryBucket, Scene
from collector.ray_folders import NODE_A, written
from raykeeper.clock import SystemClock
from raykeeper.collector.logs.reading import FRAME_BYTES
from raykeeper.collector.logs.shipper import LogShipper
from raykeeper.layout.packs import parse_index
from raykeeper.layout.records import MissingLog

MIB = 1 << 20


class SlowBucket(MemoryBucket):
    """Takes so many bytes a second."""

    def __init__(self, bytes_per_second: float) -> None:
        super().__init__()
        self.bytes_per_second = bytes_per_second

    async def put(self, key: str, data: bytes) -> None:
        await asyncio.sleep(len(data) / self.bytes_per_second)
        await super().put(key, data)


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    scene = Scene(tmp_path, flush_pack_bytes=MIB)
    yield scene
    await scene.shipper.close()


def frames_in_order(bucket: MemoryBucket) -> list[tuple[str, int]]:
    return [(frame.path, frame.offset) for index in bucket.indexes for frame in index.frames]


async def flush(scene: Scene, bucket: MemoryBucket, seconds: float) -> tuple[MissingLog, ...]:
    """Flush by the machine's own clock: the deadline is real."""
    await scene.shipper.close()
    scene.watch.poll()
    scene.shipper = LogShipper(scene.settings, scene.watch, bucket, clock := SystemClock(), scene.metrics)
    return await scene.shipper.flush(clock.steady() + seconds)


async def test_with_time_enough_nothing_is_missing(scene: Scene) -> None:
    texts = {"worker-1.out": os.urandom(3 * MIB), "raylet.out": b"component", "debug_state.txt": b"state"}
    for path, text in texts.items():
        written(scene.logs / path, text)
    assert await flush(scene, bucket := MemoryBucket(), seconds=60) == ()
    assert {path: bucket.text(path) for path in bucket.logs()} == texts


async def test_user_output_goes_before_components_and_the_end_of_each_file_first(scene: Scene) -> None:
    written(scene.logs / "raylet.out", os.urandom(MIB), at=4000)
    written(scene.logs / "worker-old.out", os.urandom(MIB), at=1000)
    written(scene.logs / "worker-new.out", os.urandom(MIB), at=3000)
    written(scene.logs / "worker-small.err", b"Traceback", at=2000)
    assert await flush(scene, bucket := MemoryBucket(), seconds=60) == ()
    end = MIB - FRAME_BYTES
    rest = range(0, end, FRAME_BYTES)
    assert frames_in_order(bucket) == [
        ("worker-new.out", end),
        ("worker-small.err", 0),
        ("worker-old.out", end),
        *(("worker-new.out", offset) for offset in rest),
        *(("worker-old.out", offset) for offset in rest),
        ("raylet.out", end),
        *(("raylet.out", offset) for offset in rest),
    ]


async def test_what_a_slow_bucket_did_not_take_by_the_deadline_is_told_to_the_byte(scene: Scene) -> None:
    texts = {f"worker-{number}.out": os.urandom(8 * MIB) for number in range(6)} | {"raylet.out": os.urandom(8 * MIB)}
    for path, text in texts.items():
        written(scene.logs / path, text)
    began = time.monotonic()
    missing = await flush(scene, bucket := SlowBucket(8 * MIB), seconds=4.0)
    assert time.monotonic() - began < 4 * BUSY_FACTOR
    assert MissingLog(path="raylet.out", offset=0, length=8 * MIB) in missing
    stored = bucket.logs()
    assert set(stored) == texts.keys() - {"raylet.out"}
    for path, text in texts.items():
        told = [(m.offset, m.offset + m.length) for m in missing if m.path == path]
        if path in stored:
            data, holes = bucket.read(stored[path])
            assert [(hole.start, hole.end) for hole in holes] == told
            assert data == without(text, told)
            assert data.endswith(text[-FRAME_BYTES:])
    assert sum(m.length for m in missing) == scene.shipper.unsent_bytes


def without(text: bytes, ranges: list[tuple[int, int]]) -> bytes:
    for start, end in reversed(ranges):
        text = text[:start] + text[end:]
    return text


async def test_after_an_interrupted_flush_a_restart_sends_the_rest(scene: Scene) -> None:
    text = os.urandom(8 * MIB)
    written(scene.logs / "worker-1.out", text)
    missing = await flush(scene, bucket := SlowBucket(8 * MIB), seconds=0.6)
    assert missing
    bucket.bytes_per_second = 1e9
    assert await flush(scene, bucket, seconds=60) == ()
    assert bucket.text("worker-1.out") == text


async def test_a_deadline_that_has_passed_sends_nothing_and_names_what_is_known(scene: Scene) -> None:
    written(scene.logs / "worker-1.out", b"12345")
    await scene.look()
    missing = await scene.shipper.flush(scene.clock.steady() - 1)
    assert missing == (MissingLog(path="worker-1.out", offset=0, length=5),)
    assert scene.bucket.packs == {}


async def test_files_that_still_wait_for_their_node_are_filed_at_the_end(scene: Scene) -> None:
    next(scene.session.glob("*_port_*")).unlink()
    written(scene.logs / "worker-1.out", b"early")
    bucket = MemoryBucket()
    assert await flush(scene, bucket, seconds=60) == ()
    assert bucket.of_node(NODE_A) == {}
    assert bucket.text("worker-1.out", "unknown-pod-1") == b"early"


async def test_a_running_shipper_lets_go_of_its_turn_for_the_flush(scene: Scene) -> None:
    written(scene.logs / "worker-1.out", os.urandom(4 * MIB))
    scene.watch.poll()
    running = asyncio.create_task(scene.shipper.run())
    missing = await scene.shipper.flush(scene.clock.steady() + 30)
    running.cancel()
    await asyncio.wait([running])
    assert missing == ()
    assert [parse_index(pack).gaps for pack in scene.bucket.packs.values() if parse_index(pack).gaps] == []
    assert len(scene.bucket.text("worker-1.out")) == 4 * MIB
