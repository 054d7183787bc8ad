"""The collector's event path under load: from Ray's POST, through the spool, into a real MinIO."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bed.minio import BUCKET, Minio
from bed.runs import end_run, new_run
from bench.figures import Figure
from bench.resources import cpu_seconds, peak_mb, rss_mb

LOAD_SECONDS = 8.0
SETTLE_SECONDS = 2.0
IDLE_SECONDS = 10.0
DRAIN_SECONDS = 60.0
PER = 100_000


@dataclass(frozen=True)
class Load:
    """What a load generator saw."""

    events: int
    bytes: int
    seconds: float
    p50_ms: float
    p99_ms: float

    @property
    def events_per_second(self) -> float:
        return self.events / self.seconds


def run() -> Iterator[Figure]:
    """One connection, then four; processor time until the last event is in the bucket."""
    with _program("bench.programs.plain_sink") as (plain, port):
        bare = {connections: _load(port, connections) for connections in (1, 4)}
        bare_cpu = cpu_seconds(plain.pid)
    bare_text = f"uvicorn without disk {bare_cpu / sum(load.events for load in bare.values()) * PER:.2f} s"
    with _a_minio() as minio, tempfile.TemporaryDirectory() as folder:
        url = f"s3://{BUCKET}/bench?endpoint={minio.endpoint}&path_style=true"
        keys = {"AWS_ACCESS_KEY_ID": minio.access_key, "AWS_SECRET_ACCESS_KEY": minio.secret_key}
        spool = Path(folder) / "spool"
        with _program("bench.programs.event_collector", str(spool), url, **keys) as (process, port):
            time.sleep(SETTLE_SECONDS)
            idle_mb, idle_percent = rss_mb(process.pid), _idle_percent(process.pid)
            before = cpu_seconds(process.pid)
            loads = {connections: _load(port, connections) for connections in (1, 4)}
            _wait_drained(spool)
            cpu = cpu_seconds(process.pid) - before
            most_mb = peak_mb(process.pid)
        stored = sum(path.stat().st_size for path in (minio.folder / "minio" / BUCKET).rglob("part.*"))
    events, received = (sum(getattr(load, name) for load in loads.values()) for name in ("events", "bytes"))
    yield _rate("events per second, one connection", loads[1], 100_000, bare[1])
    yield Figure("p99 of an answer, one connection", loads[1].p99_ms, "ms", 40, "less", f"{bare[1].p99_ms:.1f} ms")
    yield _rate("events per second, four connections", loads[4], 120_000, bare[4])
    yield Figure("processor time per 100,000 events", cpu / events * PER, "s", 1.0, "less", bare_text)
    yield Figure("bytes stored per byte received", stored / received, "", 0.13, "less")
    yield Figure("event path idle, memory", idle_mb, "MB RSS", 56, "less")
    yield Figure("event path under load, memory", most_mb, "MB RSS", 100, "less")
    yield Figure("event path idle, processor", idle_percent, "% of a core", 0.5, "less")


def _rate(name: str, load: Load, bar: float, bare: Load) -> Figure:
    return Figure(
        name, load.events_per_second, "/s", bar, "more", f"uvicorn without disk {bare.events_per_second:,.0f}/s"
    )


def _load(port: int, connections: int) -> Load:
    command = [sys.executable, "-m", "bench.programs.event_load", str(port), str(connections), str(LOAD_SECONDS)]
    return Load(**json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout))


def _idle_percent(pid: int) -> float:
    before = cpu_seconds(pid)
    time.sleep(IDLE_SECONDS)
    return (cpu_seconds(pid) - before) / IDLE_SECONDS * 100


def _wait_drained(spool: Path) -> None:
    """Return once nothing is on disk any more."""
    deadline = time.monotonic() + DRAIN_SECONDS
    while any(path.is_file() for path in spool.rglob("*")):
        if time.monotonic() > deadline:
            raise TimeoutError(f"events are still in {spool}")
        time.sleep(0.1)


@contextlib.contextmanager
def _program(module: str, *arguments: str, **environment: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    command = [sys.executable, "-m", module, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment}) as process:
        try:
            assert process.stdout is not None
            yield process, int(process.stdout.readline().split()[1])
        finally:
            process.kill()


@contextlib.contextmanager
def _a_minio() -> Iterator[Minio]:
    run_folder = new_run()
    try:
        minio = Minio.create(run_folder / "minio")
        minio.up()
        yield minio
    finally:
        end_run(run_folder)
