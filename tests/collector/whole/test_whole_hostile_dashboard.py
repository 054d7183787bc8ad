"""User code can end Ray's dashboard and answer in its place: that costs neither memory, nor time, nor heartbeats."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bed.waiting import BUSY_FACTOR, wait_until
from collector.ray_folders import NODE_A, SESSION
from collector.whole.hostile import Neighbourhood
from raykeeper.collector.ray_metrics import DROPPED_EVENTS
from support.collector_processes import ended

MEMORY_BYTES = 256 << 20
RAY_GIVES_UP_SECONDS = 3.0
MILLION = 1_000_000


def hostile_answers() -> dict[bytes, bytes]:
    """By path, without the query; anything else is answered by a list of a million numbers."""
    dropped = f"ray_{DROPPED_EVENTS}".encode()
    version = b'{"ray_version":"%s","session_name":"%s"}' % (b"v" * (20 * MILLION), SESSION.encode())
    return {
        b"/api/version": version,
        b"/api/v0/cluster_metadata": b'{"data":{"pythonVersion":"%s"}}' % (b"p" * MILLION),
        b"/api/jobs/": b"[" + b"{}," * (5 * MILLION) + b"{}]",
        b"/api/serve/applications/": b'{"applications":{"a":[' + b"[]," * (5 * MILLION) + b"1]}}",
        b"/api/v0/placement_groups": b'"' + "\N{SNOWMAN}".encode() * (5 * MILLION) + b'"',
        b"/nodes": b'{"data":{"summary":[' + b"{}," * (10 * MILLION) + b"{}]}}",
        b"/api/v0/actors": b'{"data":{"result":{"total":1,"num_after_truncation":1,"result":['
        + b"1," * (7 * MILLION)
        + b"1]}}}",
        b"/api/cluster_status": b"[" * (15 * MILLION),
        b"/metrics": dropped + b" 1e300\n" + dropped + b"{" + b"}" * (7 * MILLION),
    }


@asynccontextmanager
async def hostile_dashboard(port: int, answers: dict[bytes, bytes]) -> AsyncIterator[Counter[bytes]]:
    """What was asked of it, by path."""
    asked: Counter[bytes] = Counter()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            path = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1].partition(b"?")[0]
            asked[path] += 1
            body = answers.get(path, b"[" + b"1," * MILLION + b"1]")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", port)
    try:
        yield asked
    finally:
        server.close()


async def test_whoever_answers_in_rays_place_takes_neither_memory_nor_heartbeats(tmp_path: Path) -> None:
    there = Neighbourhood(tmp_path, "--poll-interval=1s")
    (there.session / f"metrics_export_port_{NODE_A}").write_text(str(there.dashboard_port))
    slowest, answers = 0.0, hostile_answers()
    async with hostile_dashboard(there.dashboard_port, answers) as asked:
        with ended(there.collector):
            there.collector.start()
            while not asked.keys() >= answers.keys():
                began = time.monotonic()
                await there.post_honest()
                slowest = max(slowest, time.monotonic() - began)
                await asyncio.sleep(0.05)  # the pace of the work
            await asyncio.to_thread(wait_until, "it beats", lambda: there.collector.metric("heartbeats_total") >= 2)
            peak = there.collector.peak_bytes
            there.collector.end(25.0)
    print(f"{peak >> 20} MB at most, slowest honest post {slowest:.2f} s, asked {dict(asked)}")
    assert peak < MEMORY_BYTES
    assert slowest < RAY_GIVES_UP_SECONDS * BUSY_FACTOR
    assert there.stored.event_ids() == Counter(there.acknowledged)
    record = there.stored.record()
    assert record is not None
    assert len(record.ray_version) < 200
    assert there.stored.end(NODE_A) is not None
