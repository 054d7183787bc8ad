"""The whole collector while its bucket is away, or slow at the end: what is seen, what arrives, what is left behind."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from bed.faults import TcpProxy
from bed.fixtures import run_folder
from bed.minio import Minio
from bed.waiting import wait_until
from collector.ray_folders import NODE_A, SESSION, a_port_file, a_session
from collector.whole.minio_collectors import (
    AWAY,
    BACK,
    TEAM,
    a_collector,
    post_some,
    stored_log,
    until_all_is_sent,
    until_puts_fail,
    until_something_is_stored,
)
from raykeeper.layout.keys import LogPackKey, end_record_key, parse_sealed_key
from raykeeper.layout.packs import Frame, parse_index
from raykeeper.layout.records import EndRecord, decode_record
from support.collector_processes import CollectorProcess, ended
from support.collector_stores import objects_in, s3_environment
from support.event_scene import stored_events
from support.ray_event_batches import EventMaker

MB = 10**6
WORKER = "worker-" + "f" * 56 + "-01000000-12.out"

pytestmark = pytest.mark.bed


@pytest.fixture
def own_minio(request: pytest.FixtureRequest) -> Iterator[Minio]:
    """A MinIO that the test may stop."""
    server = Minio.create(run_folder(request.config) / f"own-minio-{os.urandom(4).hex()}")
    server.up()
    yield server
    server.down()


@pytest.mark.parametrize(
    "seconds",
    [
        pytest.param(3, id="seconds"),
        pytest.param(60, id="a minute", marks=[pytest.mark.soak, pytest.mark.timeout(200)]),
        pytest.param(600, id="ten minutes", marks=[pytest.mark.soak, pytest.mark.timeout(900)]),
    ],
)
async def test_an_outage_is_said_once_and_seen_in_metrics_and_afterwards_everything_arrives(
    tmp_path: Path, own_minio: Minio, seconds: float
) -> None:
    own_minio.make_bucket("history")
    session = a_session(tmp_path / "ray")
    a_port_file(session, NODE_A)
    maker, kept = EventMaker(session=SESSION, node=NODE_A), list[bytes]()
    environment = s3_environment(own_minio, "history")
    collector = a_collector(tmp_path, environment, "--seal-age=200ms", "--idle-seal-age=200ms")
    with ended(collector):
        collector.start()
        await post_some(collector, maker, kept)
        await until_something_is_stored(collector)
        own_minio.down()
        said = await work_for(seconds, collector, session / "logs" / WORKER, maker, kept)
        await asyncio.to_thread(collector.wait_for, AWAY)
        await until_puts_fail(collector)
        assert collector.metric("bucket_up") == 0
        assert collector.metric("event_unsent_bytes") > 0
        assert collector.metric("event_unsent_seconds") > 0
        own_minio.up()
        began = time.monotonic()
        await until_all_is_sent(collector)
        print(f"{len(kept)} events, all sent {time.monotonic() - began:.1f} s after an outage of {seconds} s")
        assert collector.metric("bucket_up") == 1
        assert (len(collector.said(AWAY)), len(collector.said(BACK))) == (1, 1)
        assert await asyncio.to_thread(collector.end) == 0
    objects = await objects_in(own_minio, "history")
    assert sorted(stored_events(objects, SESSION, NODE_A)) == sorted(kept)
    assert stored_log(objects, WORKER) == said
    assert decode_record(objects[end_record_key(TEAM, NODE_A)], EndRecord).is_complete


async def work_for(
    seconds: float, collector: CollectorProcess, log: Path, maker: EventMaker, kept: list[bytes]
) -> bytes:
    """Ray goes on as ever: its events are heard, its workers write; what they wrote."""
    until_then, said = time.monotonic() + seconds, b""
    while time.monotonic() < until_then:
        await post_some(collector, maker, kept, batches=1)
        said += append(log, b"%.3f still here\n" % time.monotonic())
        await asyncio.sleep(0.5)  # the pace of the work
    return said


def append(file: Path, text: bytes) -> bytes:
    with file.open("ab") as output:
        output.write(text)
    return text


@pytest.mark.parametrize(
    ("user_files", "component_mb", "bytes_per_second", "grace"),
    [
        pytest.param(60, 80, 8 * MB, 6, id="200MB"),
        pytest.param(600, 800, 16 * MB, 30, id="2GB", marks=[pytest.mark.soak, pytest.mark.timeout(600)]),
    ],
)
async def test_a_grace_period_that_is_too_short_ships_users_output_newest_first_and_the_end_says_what_is_missing(
    tmp_path: Path, minio: Minio, bucket: str, user_files: int, component_mb: int, bytes_per_second: int, grace: int
) -> None:
    session = a_session(tmp_path / "ray")
    a_port_file(session, NODE_A)
    with TcpProxy("127.0.0.1", urlsplit(minio.endpoint).port or 0) as proxy:
        proxy.bytes_per_second = bytes_per_second
        environment = s3_environment(minio, bucket, f"http://127.0.0.1:{proxy.port}")
        seldom = ("--user-log-interval=1h", "--component-log-interval=1h")
        collector = a_collector(tmp_path, environment, f"--grace-period={grace}s", *seldom)
        with ended(collector):
            collector.start().wait_for("node found")
            wait_until("it has looked once", lambda: "raykeeper_collector_log_files" in collector.ask("/metrics"))
            sizes = write_logs(session / "logs", user_files, component_mb)
            assert await asyncio.to_thread(collector.end, grace + 10.0) == 1
    objects = await objects_in(minio, bucket)
    end = decode_record(objects[end_record_key(TEAM, NODE_A)], EndRecord)
    stored = stored_ranges(objects)
    assert not end.is_complete
    missing: dict[str, list[tuple[int, int]]] = {}
    for log in end.missing_logs:
        missing.setdefault(log.path, []).append((log.offset, log.offset + log.length))
    for path, size in sizes.items():
        assert pieces(stored.get(path, []) + missing.get(path, [])) == [(0, size)], path
        assert overlap(stored.get(path, []), missing.get(path, [])) == 0, path
    assert end.missing_log_bytes == sum(stop - start for ranges in missing.values() for start, stop in ranges)
    newest_first = [path for path in reversed(sizes) if path.startswith("worker-")]
    whole = [path for path in newest_first if path not in missing]
    assert 0 < len(whole) < user_files
    assert whole == newest_first[: len(whole)]
    assert all(ends_there(stored[path], sizes[path]) for path in newest_first)  # of the others the last words
    assert "raylet.out" not in stored


def write_logs(logs: Path, user_files: int, component_mb: int) -> dict[str, int]:
    """Sizes by path, oldest first: hexadecimal noise, which no compressor makes smaller than half."""
    sizes: dict[str, int] = {}
    for number in range(user_files):
        path = logs / f"worker-{number:056x}-01000000-{number}.out"
        path.write_bytes(os.urandom(MB).hex().encode())
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
        sizes[path.name] = 2 * MB
    with (logs / "raylet.out").open("wb") as file:
        for _ in range(component_mb):
            file.write(os.urandom(MB // 2).hex().encode())
    sizes["raylet.out"] = component_mb * MB
    return sizes


def stored_ranges(objects: dict[str, bytes]) -> dict[str, list[tuple[int, int]]]:
    frames: list[Frame] = []
    for key, data in objects.items():
        if isinstance(parse_sealed_key(key), LogPackKey):
            frames += parse_index(data).frames
    found: dict[str, list[tuple[int, int]]] = {}
    for frame in frames:
        found.setdefault(frame.path, []).append((frame.offset, frame.offset + frame.length))
    return found


def pieces(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same bytes in as few ranges as can be."""
    joined: list[tuple[int, int]] = []
    for start, stop in sorted(ranges):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(stop, joined[-1][1]))
        else:
            joined.append((start, stop))
    return joined


def overlap(some: list[tuple[int, int]], others: list[tuple[int, int]]) -> int:
    return sum(max(0, min(a[1], b[1]) - max(a[0], b[0])) for a in pieces(some) for b in pieces(others))


def ends_there(ranges: list[tuple[int, int]], size: int) -> bool:
    return any(stop == size for _, stop in ranges)
