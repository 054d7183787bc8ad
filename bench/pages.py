"""Our own pages over a large session: the first byte once the page is warm, and how much a browser loads.

`RAYKEEPER_BENCH_TASKS=200000` chooses another size; a million tasks take two minutes to generate.
"""

from __future__ import annotations

import asyncio
import math
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from bench.figures import Figure
from bench.history_server import ANSWER_SECONDS, Bucket, a_history_server
from bench.resources import cpu_seconds
from bench.sessions import SessionSpec, write_session

TASKS = "1000000"
LOOKS = 20
FIRST_BYTE_MS, PAGE_KB = 200, 200


@dataclass(frozen=True)
class Look:
    """One answer."""

    first_byte_seconds: float
    size: int


def pages_of(spec: SessionSpec) -> dict[str, str]:
    """Every page of ours by a name for people; a job's id counts up from 1."""
    run, prefix = str(spec.id), f"/s/{spec.id}"
    return {
        "all sessions": "/sessions",
        "all jobs": "/",
        "all failures": "/failures",
        "one session": f"{prefix}/overview",
        "one job": f"{prefix}/job/05000000",
        "report": f"{prefix}/report",
        "report of a job": f"{prefix}/report/05000000",
        "two runs": f"/compare?a={run}/01000000&b={run}/05000000",
        "search in all sessions": "/search",
        "search in a session": f"{prefix}/search",
    }


def run() -> Iterator[Figure]:
    """One server on a folder; every page is asked for once, and then again and again."""
    spec = SessionSpec(int(os.environ.get("RAYKEEPER_BENCH_TASKS", TASKS).partition(",")[0]))
    with tempfile.TemporaryDirectory() as folder:
        yield from asyncio.run(_measure(spec, Path(folder)))


async def _measure(spec: SessionSpec, folder: Path) -> list[Figure]:
    bucket = Bucket(f"file://{folder}/store", {})
    await write_session(bucket.open(), spec)
    figures: list[Figure] = []
    async with a_history_server(bucket, folder / "cache") as server:
        await _ingested(server.http, spec)
        for name, path in pages_of(spec).items():
            first = await _look(server.http, path)
            before = cpu_seconds(server.pid)
            warm = sorted([(await _look(server.http, path)).first_byte_seconds for _ in range(LOOKS)])
            cpu = (cpu_seconds(server.pid) - before) / LOOKS * 1000
            figures += _figures(f"{spec.tasks:,} tasks: {name}", first, warm, cpu)
    return figures


def _figures(name: str, first: Look, warm: list[float], cpu_ms: float) -> list[Figure]:
    p95 = warm[math.ceil(len(warm) * 0.95) - 1] * 1000
    median = warm[len(warm) // 2] * 1000
    said = f"median {median:.0f} ms, {cpu_ms:.0f} ms of processor, {first.first_byte_seconds:.2f} s the first time"
    return [
        Figure(f"{name}, first byte, p95", p95, "ms", FIRST_BYTE_MS, "less", said),
        Figure(f"{name}, size", first.size / 1000, "kB", PAGE_KB),
    ]


async def _look(http: aiohttp.ClientSession, path: str) -> Look:
    began = time.monotonic()
    async with http.get(path) as answer:
        await answer.content.readany()
        first_byte = time.monotonic() - began
        size = int(answer.headers["Content-Length"])
        assert answer.status == 200, f"{path}: {answer.status}"
        return Look(first_byte, size)


async def _ingested(http: aiohttp.ClientSession, spec: SessionSpec) -> None:
    """Until the whole session is in tables."""
    async with asyncio.timeout(ANSWER_SECONDS):
        while True:
            async with http.get(f"/s/{spec.id}/api/keeper/v1/overview") as answer:
                overview = await answer.json()
            if overview["counts"]["attempts"] == spec.tasks and not overview["facts"]["unread_bytes"]:
                return
            await asyncio.sleep(1)
