"""History: from segments in a bucket to tables. How long, and with how much memory of the whole process tree.

`RAYKEEPER_BENCH_TASKS=10000,200000` chooses the sizes; ten million tasks (`10000000`) take half an hour.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from bench.figures import Figure
from bench.history_server import Bucket, a_bucket
from bench.sessions import SessionSpec, write_session

BARS = {
    10_000: (2.0, 0.3, 200),
    200_000: (15.0, 0.5, 400),
    1_000_000: (60.0, 1.0, 600),
    10_000_000: (720.0, 4.0, 1000),
}
"""By tasks: seconds of ingest, seconds from a cold open to the first page, MB."""


def run() -> Iterator[Figure]:
    """Each size once, by a process of its own."""
    with a_bucket("history") as bucket:
        for size in chosen_sizes():
            asyncio.run(write_session(bucket.open(), SessionSpec(size)))
            yield from _figures(size, ingest_elsewhere(bucket, size))


def chosen_sizes() -> list[int]:
    return [int(size) for size in os.environ.get("RAYKEEPER_BENCH_TASKS", "10000,200000,1000000").split(",")]


def ingest_elsewhere(bucket: Bucket, size: int) -> dict[str, float]:
    """What a process that ingests the session, and publishes its tables, says that it took."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "bench.programs.ingest_session", bucket.url, str(size), folder]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=os.environ | bucket.environment)
        measured: dict[str, float] = json.loads(done.stdout)
        return measured


def _figures(size: int, measured: dict[str, float]) -> Iterator[Figure]:
    ingest, cold, memory = BARS.get(size, (None, None, None))
    name = f"{size:,} tasks"
    cpu = f"{measured['cpu_seconds']:.1f} s of processor time, first rows after {measured['shown_seconds']:.1f} s"
    yield Figure(f"{name}: ingest", measured["ingest_seconds"], "s", ingest, "less", cpu)
    yield Figure(f"{name}: ingest, memory of the process tree", measured["peak_mb"], "MB RSS", memory, "less")
    yield Figure(f"{name}: cold open to the first page", measured["cold_seconds"], "s", cold, "less")
