"""Resource curves: what a day of a node takes in the store, and how soon a day of a thousand nodes is drawn."""

from __future__ import annotations

import asyncio
import json
import math
import random
import tempfile
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote

import msgspec

from bench.figures import Figure
from bench.history_server import Bucket, Server, a_bucket, a_history_server
from bench.resources import peak_mb
from bench.servers import in_parallel
from bench.sessions import STARTED
from raykeeper.layout.keys import (
    CatalogKey,
    SamplesKey,
    SessionId,
    end_record_key,
    node_record_key,
    session_record_key,
)
from raykeeper.layout.records import CatalogEnd, CatalogStart, EndRecord, NodeRecord, Role, SessionRecord, encode_record
from raykeeper.layout.samples import TAIL_LEVEL, GpuSample, Sample, SampleBlock, encode_block, rounded, to_block
from raykeeper.storage.store import ObjectStore

NODES, HOURS = 1000, 24
SESSION = SessionId("default", "curves", "session_2026-11-15_10-00-00_000000_1")
KINDS = 40
"""Different hours, which nodes share: a thousand times 24 would take minutes to make up."""
LOOKS = 20
ROWS = 360
_NS = 1_000_000_000
_START = int(STARTED.timestamp())


def run() -> Iterator[Figure]:
    """Blocks of nodes at work, and a session of a thousand nodes and a day, by servers that never saw it."""
    for gpus in (0, 8):
        day = sum(len(encode_block(a_busy_hour(random.Random(hour), _START, gpus))) for hour in range(HOURS)) / 1000
        yield Figure(f"samples of a node at work with {gpus} GPUs, a day", day, "kB", 200)
    with a_bucket("curves") as bucket, tempfile.TemporaryDirectory() as cache:
        yield from asyncio.run(_a_day_of_many(bucket, Path(cache)))


def a_busy_hour(dice: random.Random, start: int, gpus: int = 0) -> SampleBlock:
    """An hour of a node whose every figure is on the move."""
    cpu, memory = 400.0, 9000.0
    rows = []
    for row in range(ROWS):
        cpu = min(800.0, max(0.0, cpu + dice.gauss(0, 80)))
        memory = min(32_000.0, max(500.0, memory + dice.gauss(0, 60)))
        rows.append(
            Sample(
                at=start + 10 * row,
                cpu=round(cpu),
                cpu_total=800,
                cpu_reserved=600 if row % 50 < 40 else 800,
                memory=rounded(memory, 4),
                memory_total=32_768,
                object_store=rounded(1000 + 300 * math.sin(row / 20) + dice.random() * 20, 4),
                object_store_total=9000,
                disk=rounded(50_000 + row / 3, 4),
                disk_total=100_000,
                received=rounded(dice.lognormvariate(14, 1), 3),
                sent=rounded(dice.lognormvariate(13, 1), 3),
                gpus=tuple(_gpu(dice, index) for index in range(gpus)),
            )
        )
    return to_block(rows)


def _gpu(dice: random.Random, index: int) -> GpuSample:
    used, memory = dice.choice((97, 98, 99, 100, 100, 95, 90, 60)), rounded(60_000 + dice.random() * 500, 3)
    return GpuSample(index=index, name="NVIDIA A100-SXM4-80GB", used=used, memory=memory, memory_total=81_920)


async def _a_day_of_many(bucket: Bucket, cache: Path) -> list[Figure]:
    store = bucket.open()
    await _write(store)
    name = f"{NODES:,} nodes, a day"
    async with a_history_server(bucket, _folder(cache, "first")) as first:
        seconds, looks = await _until_read(first)
        figures = [Figure(f"{name}: first look ever, until all is read", seconds, "s", 120, baseline=f"{looks} looks")]
        await asyncio.sleep(5)  # the last tables are on their way to the store
    async with a_history_server(bucket, _folder(cache, "second")) as server:
        seconds, _ = await _until_read(server)
        figures.append(Figure(f"{name}: first look of another server", seconds, "s", 5))
        paths = {
            "all nodes": (_curves, 500.0),
            "all nodes, an hour of it": (_an_hour, 1000.0),
            "one node": (_one_node, 200.0),
        }
        for what, (path, bar) in paths.items():
            figures.append(await _p95(server, f"{name}: curves of {what}, p95", path, bar))
        began = time.monotonic()
        await _get(server, f"{_BASE}/usage")
        figures.append(Figure(f"{name}: hours of all nodes", (time.monotonic() - began) * 1000, "ms", 1000))
        figures.append(Figure(f"{name}: most memory of the server", peak_mb(server.pid), "MB RSS", 600))
    return figures


_BASE = f"/api/keeper/v1/sessions/{SESSION.namespace}/{SESSION.cluster}/{SESSION.session}"


def _curves(look: int) -> str:
    """Another time each time, so that no answer is remembered."""
    return f"{_BASE}/curves?since={quote((STARTED + timedelta(seconds=600 + look)).isoformat())}"


def _an_hour(look: int) -> str:
    begin = STARTED + timedelta(hours=look, seconds=7)
    until = begin + timedelta(hours=1)
    return f"{_BASE}/curves?points=400&since={quote(begin.isoformat())}&until={quote(until.isoformat())}"


def _one_node(look: int) -> str:
    return f"{_BASE}/nodes/{_node(look)}/curves?points=1000"


def _node(number: int) -> str:
    return f"{number:056x}"


async def _p95(server: Server, name: str, path: object, bar_ms: float) -> Figure:
    assert callable(path)
    took = []
    for look in range(LOOKS):
        began = time.monotonic()
        curves = json.loads(await _get(server, path(look)))
        took.append((time.monotonic() - began) * 1000)
        assert curves["source"] == "sampled", curves["notes"]
    took.sort()
    return Figure(name, took[math.ceil(LOOKS * 0.95) - 1], "ms", bar_ms, baseline=f"median {took[LOOKS // 2]:.0f} ms")


async def _until_read(server: Server) -> tuple[float, int]:
    began, looks = time.monotonic(), 0
    while True:
        looks += 1
        curves = json.loads(await _get(server, f"{_BASE}/curves"))
        if not curves["unread_hours"]:
            assert max(curves["nodes"]) == NODES
            return time.monotonic() - began, looks


async def _get(server: Server, path: str) -> bytes:
    async with server.http.get(path) as answer:
        body = await answer.read()
        assert answer.status == 200, f"{path}: {answer.status} {body[:300]!r}"
        return body


def _folder(cache: Path, name: str) -> Path:
    folder = cache / name
    folder.mkdir()
    return folder


async def _write(store: ObjectStore) -> None:
    names = {"namespace": SESSION.namespace, "cluster": SESSION.cluster, "session": SESSION.session}
    ended = STARTED + timedelta(hours=HOURS)
    record = SessionRecord(**names, started_at=STARTED, recorded_at=STARTED, head_node_id=_node(0))
    start = CatalogStart(**names, started_at=STARTED, head_node_id=_node(0))
    end = CatalogEnd(ended_at=ended, reason="terminated", head_node_id=_node(0))
    await store.put(session_record_key(SESSION), encode_record(record))
    await store.put(CatalogKey(STARTED.date(), SESSION, "start").key, encode_record(start))
    await store.put(CatalogKey(STARTED.date(), SESSION, "end").key, encode_record(end))
    kinds = [a_busy_hour(random.Random(kind), _START) for kind in range(KINDS)]

    async def put_node(number: int) -> None:
        role: Role = "worker" if number else "head"
        beat = NodeRecord(node_id=_node(number), role=role, started_at=STARTED, beat_at=ended, interval_seconds=30.0)
        over = EndRecord(node_id=_node(number), role=role, ended_at=ended, reason="terminated", is_complete=True)
        await store.put(node_record_key(SESSION, _node(number)), encode_record(beat))
        await store.put(end_record_key(SESSION, _node(number)), encode_record(over))
        for hour in range(HOURS):
            begin = _START + 3600 * hour
            block = msgspec.structs.replace(kinds[(number + 7 * hour) % KINDS], start=begin)
            key = SamplesKey(SESSION, _node(number), begin * _NS, ROWS).key
            await store.put(key, encode_block(block, TAIL_LEVEL))

    await in_parallel(range(NODES), put_node, width=32)
