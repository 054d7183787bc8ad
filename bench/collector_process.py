"""The whole collector as a process: how soon it listens, and what it costs beside a head that does nothing."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from bed.minio import BUCKET, Minio
from bed.ports import free_port
from bed.runs import end_run, new_run
from bench.cpu_limit import cpu_limit
from bench.figures import Figure
from bench.resources import cpu_seconds, peak_mb, rss_mb

STARTS = 5
SETTLE_SECONDS = 20.0  # the first polls and packs are over then
WATCHED_SECONDS = 300.0
HOUR = 3600.0
MILLICORES = 200
BUSY_SECONDS = 120.0
BUSY_EVENTS, BUSY_OUTPUT_BYTES = 500, 1_000_000
"""In a second: what a limit of 200m bears."""
SAMPLE_SECONDS = 10.0
NO_KEYS = {"AWS_ACCESS_KEY_ID": "nobody", "AWS_SECRET_ACCESS_KEY": "nothing"}
"""Without any, opendal would ask the machine's metadata service."""
BARE = "import asyncio; asyncio.run(asyncio.sleep(0))"


def run() -> Iterator[Figure]:
    """Starts without a head and a bucket, then five minutes beside an idle head with a MinIO."""
    yield from _starts()
    with _a_minio() as minio, tempfile.TemporaryDirectory() as folder:
        yield from _idle(minio, Path(folder))
    with _a_minio() as minio, tempfile.TemporaryDirectory() as folder:
        yield from _limited(minio, Path(folder))


def _starts() -> Iterator[Figure]:
    bare = min(_timed(lambda: subprocess.run([sys.executable, "-c", BARE], check=True)) for _ in range(STARTS))
    free = sorted(_seconds_to_listen() for _ in range(STARTS))
    baseline = f"Python with asyncio alone {bare:.2f} s; slowest of {STARTS}: {free[-1]:.2f} s"
    yield Figure("collector listens after its start, no head and no bucket", free[0], "s", 1.0, "less", baseline)
    with cpu_limit(MILLICORES) as members:
        if members is None:
            return  # said by the figure's absence: only root with a writable cgroup can limit
        limited = sorted(_seconds_to_listen(members) for _ in range(STARTS))
    slowest = f"slowest of {STARTS}: {limited[-1]:.2f} s"
    yield Figure(f"collector listens after its start, {MILLICORES}m", limited[0], "s", 3.0, "less", slowest)


def _idle(minio: Minio, folder: Path) -> Iterator[Figure]:
    url = f"s3://{BUCKET}/idle?endpoint={minio.endpoint}&path_style=true"
    keys = {"AWS_ACCESS_KEY_ID": minio.access_key, "AWS_SECRET_ACCESS_KEY": minio.secret_key}
    sink, dashboard = free_port(), free_port()
    head = [sys.executable, "-m", "bench.programs.idle_head", str(folder), str(sink), str(dashboard)]
    address = f"--ray-dashboard-address=http://127.0.0.1:{dashboard}"
    with _a_collector(folder, sink, url, "--role=head", address, environment=keys) as collector:
        _wait_until_it_listens(sink)
        with _ended(subprocess.Popen(head, stdout=subprocess.DEVNULL)):
            time.sleep(SETTLE_SECONDS)
            objects, cpu = _objects(minio), cpu_seconds(collector.pid)
            time.sleep(WATCHED_SECONDS)
            percent = (cpu_seconds(collector.pid) - cpu) / WATCHED_SECONDS * 100
            per_hour = (_objects(minio) - objects) / WATCHED_SECONDS * HOUR
            memory = rss_mb(collector.pid)
    watched = f"watched for {WATCHED_SECONDS:.0f} s"
    yield Figure("collector idle beside a head, memory", memory, "MB RSS", 56, "less", watched)
    yield Figure("collector idle beside a head, processor", percent, "% of a core", 0.5, "less", watched)
    yield Figure("objects per hour of an idle head", per_hour, "", 150, "less", watched)


def _limited(minio: Minio, folder: Path) -> Iterator[Figure]:
    """Beside a head at work, with as much of a processor as a sidecar often has."""
    url = f"s3://{BUCKET}/limited?endpoint={minio.endpoint}&path_style=true"
    keys = {"AWS_ACCESS_KEY_ID": minio.access_key, "AWS_SECRET_ACCESS_KEY": minio.secret_key}
    sink, dashboard = free_port(), free_port()
    work = [str(BUSY_EVENTS), str(BUSY_OUTPUT_BYTES)]
    head = [sys.executable, "-m", "bench.programs.idle_head", str(folder), str(sink), str(dashboard), *work]
    address = f"--ray-dashboard-address=http://127.0.0.1:{dashboard}"
    with cpu_limit(MILLICORES) as members:
        if members is None:
            return
        started = _a_collector(folder, sink, url, "--role=head", address, members=members, environment=keys)
        with started as collector:
            _wait_until_it_listens(sink)
            with _ended(subprocess.Popen(head, stdout=subprocess.DEVNULL)):
                time.sleep(BUSY_SECONDS)
                memory = peak_mb(collector.pid)
            collector.terminate()
            collector.wait(60)
    name = f"collector beside a head at work, {MILLICORES}m"
    rows = sum(_rows_in(minio))
    yield Figure(
        f"{name}: most memory", memory, "MB RSS", 100, "less", f"{BUSY_EVENTS} events and 1 MB of output a second"
    )
    yield Figure(
        f"{name}: samples taken", rows / (BUSY_SECONDS / SAMPLE_SECONDS) * 100, "%", 90, "more", "the first comes late"
    )


def _rows_in(minio: Minio) -> Iterator[int]:
    """Of each block of samples; their number is in the name."""
    for path in (minio.folder / "minio" / BUCKET).rglob("metrics/*/*/*.json.zst"):
        yield int(path.name.partition("-")[2].partition(".")[0])


def _seconds_to_listen(members: Path | None = None) -> float:
    """From the start of the process until its port takes a connection."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        nowhere = f"s3://nobody/none?endpoint=http://127.0.0.1:{free_port()}&path_style=true"
        started = time.monotonic()
        with _a_collector(Path(folder), port, nowhere, members=members):
            _wait_until_it_listens(port)
            return time.monotonic() - started


def _wait_until_it_listens(port: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.005)
    raise TimeoutError(f"nobody listens at {port}")


@contextlib.contextmanager
def _a_collector(
    folder: Path,
    port: int,
    store: str,
    *flags: str,
    members: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "raykeeper.cli.main", "collector", "--ray-cluster-name=bench", *flags]
    command += [f"--store-url={store}", f"--ray-tmp-root={folder}", f"--events-port={port}"]
    command += ["--metrics-addr=127.0.0.1:0", "--log-level=error"]
    if members is not None:  # a shell joins the group first, so that no moment of Python's start is free
        command = ["sh", "-c", f'echo $$ > "{members}" && exec "$@"', "sh", *command]
    with _ended(subprocess.Popen(command, env={**os.environ, **NO_KEYS, **(environment or {})})) as process:
        yield process


@contextlib.contextmanager
def _ended(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    with process:
        try:
            yield process
        finally:
            process.kill()


def _objects(minio: Minio) -> int:
    """Different keys in the bucket; what is overwritten counts once."""
    return sum(1 for _ in (minio.folder / "minio" / BUCKET).rglob("xl.meta"))


def _timed(work: Callable[[], object]) -> float:
    started = time.monotonic()
    work()
    return time.monotonic() - started


@contextlib.contextmanager
def _a_minio() -> Iterator[Minio]:
    run_folder = new_run()
    try:
        minio = Minio.create(run_folder / "minio")
        minio.up()
        yield minio
    finally:
        end_run(run_folder)
