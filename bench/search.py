"""Searching 2 GB of a session's logs in a bucket on this machine for a string that is in twenty of its lines."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from bench.figures import Figure
from bench.history_server import Bucket, Server, a_bucket, a_history_server
from bench.resources import cpu_seconds, peak_mb
from bench.sessions import STARTED, SessionSpec, node_ids, write_session
from raykeeper.layout.keys import LogPackKey
from raykeeper.layout.packs import PackWriter
from raykeeper.storage.store import ObjectStore

TEXT_BYTES = 2_000_000_000
PACK_TEXT_BYTES = 32 << 20  # about 8 MB stored, as a busy collector seals them
FRAME_BYTES = 256 << 10  # the collector's own
FILES_PER_NODE = 16
NEEDLE = "CUDA error: device-side assert triggered"
NEEDLES = 20
SPEC = SessionSpec(1000, cluster="search")
_NS = 1_000_000_000


def run() -> Iterator[Figure]:
    """From a server that never saw the session; then by a pattern, with all indexes known."""
    with a_bucket("search") as bucket, tempfile.TemporaryDirectory() as cache:
        yield from asyncio.run(_measure(bucket, Path(cache)))


async def _measure(bucket: Bucket, cache: Path) -> list[Figure]:
    store = bucket.open()
    await write_session(store, SPEC)
    stored = await _write_logs(store)
    async with a_history_server(bucket, cache) as server:
        plain = await _search(server, text=NEEDLE, kind="log")
        pattern = await _search(server, text=r"CUDA error: \w+-side", regex="true", kind="log")
        memory = peak_mb(server.pid)
    told = f"{stored / 1e6:.0f} MB stored, {plain.cpu:.1f} CPU-seconds of the server"
    return [
        Figure("a string in 2 GB of logs, first hits", plain.first, "s", 2),
        Figure("a string in 2 GB of logs, all hits", plain.whole, "s", 20, baseline=told),
        Figure("a pattern in 2 GB of logs, all hits", pattern.whole, "s", baseline=f"{pattern.cpu:.1f} CPU-seconds"),
        Figure("peak memory of the server meanwhile", memory, "MB RSS"),
        Figure("hits that were missed", 2 * NEEDLES - plain.hits - pattern.hits, "lines", 0),
    ]


@dataclass(frozen=True)
class _Searched:
    first: float
    """Seconds until an answer had hits."""
    whole: float
    hits: int
    cpu: float


async def _search(server: Server, **query: str) -> _Searched:
    """Go on until all is searched, as a person does who follows the link."""
    began, before, after, hits, first = time.monotonic(), cpu_seconds(server.pid), "", 0, 0.0
    while True:
        path = f"api/keeper/v1/search?{urlencode(query | {'after': after})}"
        body = json.loads(await server.ask(SPEC, path))
        hits += len(body["hits"])
        if hits and not first:
            first = time.monotonic() - began
        if body["complete"]:
            return _Searched(first, time.monotonic() - began, hits, cpu_seconds(server.pid) - before)
        after = body["next"]


async def _write_logs(store: ObjectStore) -> int:
    """Every node ships its files in turns, as long as there is text; bytes that were stored."""
    dice, frames = random.Random(7), itertools.cycle(log_frames())
    count = TEXT_BYTES // FRAME_BYTES
    special = set(dice.sample(range(count), NEEDLES))
    nodes, per_pack, stored = node_ids(SPEC), PACK_TEXT_BYTES // FRAME_BYTES, 0
    for number, start in enumerate(range(0, count, per_pack)):
        node, turn = nodes[number % len(nodes)], number // len(nodes)
        sealed_ns = int(STARTED.timestamp() + number) * _NS
        pack = PackWriter()
        for place in range(start, min(start + per_pack, count)):
            file, part = divmod(place - start, per_pack // FILES_PER_NODE)
            offset = (turn * per_pack // FILES_PER_NODE + part) * FRAME_BYTES
            text = next(frames)
            text = _with_needle(text) if place in special else text
            pack.add(f"worker-{node[:8]}-01000000-{file}.out", f"{file}-{node[:8]}", offset, text, sealed_ns)
        data = pack.to_bytes()
        await store.put(LogPackKey(SPEC.id, node, sealed_ns, number).key, data)
        stored += len(data)
    return stored


def log_frames() -> list[bytes]:
    """64 MB of log lines, of which about a fifth is not to be foreseen."""
    dice, lines = random.Random(1), list[bytes]()
    for number in range(500_000):
        lines.append(
            (
                f"2026-11-15 10:{number // 60 % 60:02d}:{number % 60:02d},{dice.randrange(1000):03d}\tINFO "
                f"trainer.py:{number % 400} -- epoch {number // 1000} step {number} loss={dice.random():.6f} "
                f"grad={dice.random():.4f} worker={dice.randrange(16**8):08x} items/s={dice.randrange(10_000)}\n"
            ).encode()
        )
    text = b"".join(lines)
    return [text[start : start + FRAME_BYTES] for start in range(0, len(text) - FRAME_BYTES, FRAME_BYTES)]


def _with_needle(text: bytes) -> bytes:
    """The same number of bytes, with the line that is looked for in the middle."""
    line = f"\nRuntimeError: {NEEDLE}\n".encode()
    middle = len(text) // 2
    return text[:middle] + line + text[middle + len(line) :]
