"""History: from segments in a bucket to tables. How long, and with how much memory of the whole process tree.

`RAYKEEPER_BENCH_TASKS=10000,200000` chooses the sizes; the million takes two minutes to generate.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from bed.minio import BUCKET, Minio
from bed.runs import end_run, new_run
from bench.figures import Figure
from bench.sessions import SessionSpec, write_session
from raykeeper.storage.opening import open_store
from raykeeper.storage.settings.urls import parse_store_url

BARS = {10_000: (2.0, 0.3, 200), 200_000: (15.0, 0.5, 400), 1_000_000: (60.0, 1.0, 600)}
"""By tasks: seconds of ingest, seconds from a cold open to the first page, MB."""


def run() -> Iterator[Figure]:
    """Each size once, in a bucket of its own prefix and by a process of its own."""
    sizes = [int(size) for size in os.environ.get("RAYKEEPER_BENCH_TASKS", "10000,200000,1000000").split(",")]
    with _a_minio() as minio:
        url = f"s3://{BUCKET}/history?endpoint={minio.endpoint}&path_style=true"
        keys = {"AWS_ACCESS_KEY_ID": minio.access_key, "AWS_SECRET_ACCESS_KEY": minio.secret_key}
        for size in sizes:
            asyncio.run(write_session(open_store(parse_store_url(url, keys)), SessionSpec(size)))
            yield from _figures(size, _measured(url, keys, size))


def _figures(size: int, measured: dict[str, float]) -> Iterator[Figure]:
    ingest, cold, memory = BARS.get(size, (None, None, None))
    name = f"{size:,} tasks"
    cpu = f"{measured['cpu_seconds']:.1f} s of processor time, first rows after {measured['shown_seconds']:.1f} s"
    yield Figure(f"{name}: ingest", measured["ingest_seconds"], "s", ingest, "less", cpu)
    yield Figure(f"{name}: ingest, memory of the process tree", measured["peak_mb"], "MB RSS", memory, "less")
    yield Figure(f"{name}: cold open to the first page", measured["cold_seconds"], "s", cold, "less")


def _measured(url: str, keys: dict[str, str], size: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "bench.programs.ingest_session", url, str(size), folder]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=os.environ | keys)
        measured: dict[str, float] = json.loads(done.stdout)
        return measured


@contextmanager
def _a_minio() -> Iterator[Minio]:
    folder = new_run()
    minio = Minio.create(folder / "minio")
    minio.up()
    try:
        yield minio
    finally:
        end_run(folder)
