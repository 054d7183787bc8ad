"""What following log files costs, and how soon a line that was written can be read in the store."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path

from bench.figures import Figure
from bench.resources import cpu_seconds, peak_mb, rss_mb
from raykeeper.layout.packs import Frame, parse_index

MB = 1_000_000
FILES = 10_000
RECENT_FILES = 1_000
IDLE_SECONDS = 60.0
MUCH_BYTES = 1000 * MB
WRITE_SECONDS = 30.0
SENT_SECONDS = 120.0
NODE_ID = "b" * 56
SESSION = "session_2026-11-15_20-09-58_472817_9"
PERIOD_SECONDS = 0.1  # of the kernel's own CPU limits


def run() -> Iterator[Figure]:
    """Many files that are quiet, much text at once, and one busy file with and without a limit on the processor."""
    yield from _many_quiet_files()
    yield from _much_text()
    yield _latency("user output at 20 MB/s readable, p99", 20 * MB, 10, share=None)
    yield _latency("user output at 2 MB/s readable with 200m CPU, p99", 2 * MB, 30, share=0.2)


def _many_quiet_files() -> Iterator[Figure]:
    with _scene() as scene:
        hour_ago = time.time() - 3600
        for number in range(FILES):
            file = scene.logs / f"worker-{number:056x}-01000000-{number}.{'out' if number % 2 else 'err'}"
            file.write_bytes(_line(number))
            if number >= RECENT_FILES:
                os.utime(file, (hour_ago, hour_ago))
        with scene.collector() as process:
            scene.wait_for(sum(file.stat().st_size for file in scene.logs.iterdir()))
            time.sleep(10)  # the second look, without what the first one found
            before = cpu_seconds(process.pid)
            time.sleep(IDLE_SECONDS)
            percent = (cpu_seconds(process.pid) - before) / IDLE_SECONDS * 100
            yield Figure("10,000 log files followed", rss_mb(process.pid), "MB RSS", 120)
            yield Figure("10,000 quiet log files, processor", percent, "% of a core", 0.5)


def _much_text() -> Iterator[Figure]:
    with _scene() as scene:
        for number in range(10):
            _write_text(scene.logs / f"worker-{number}.out", MUCH_BYTES // 10, seed=number)
        with scene.collector() as process:
            began = time.monotonic()
            scene.wait_for(MUCH_BYTES)
            took, used = time.monotonic() - began, cpu_seconds(process.pid)
            stored = sum(pack.stat().st_size for pack in scene.packs())
            yield Figure("1 GB of logs to the store", used, "CPU-seconds", 10, baseline=f"{took:.1f} s by the clock")
            yield Figure("peak memory meanwhile", peak_mb(process.pid), "MB RSS", 100)
            yield Figure("bytes stored per byte of log", stored / MUCH_BYTES, "")


def _latency(name: str, bytes_per_second: int, bar: float, *, share: float | None) -> Figure:
    with _scene() as scene, scene.collector() as process, _limited(process.pid, share):
        time.sleep(3)
        marks = _write_steadily(scene.logs / "worker-busy.out", bytes_per_second)
        scene.wait_for(marks[-1][0])
        arrivals = scene.arrivals()
    waits = sorted(_arrival(arrivals, offset) - written_at for offset, written_at in marks)
    return Figure(name, waits[int(len(waits) * 0.99)], "s", bar, baseline=f"median {waits[len(waits) // 2]:.1f} s")


class _Scene:
    """Ray's folder, a spool and a store in a local folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.logs = folder / "ray" / SESSION / "logs"
        self.logs.mkdir(parents=True)
        (folder / "ray" / SESSION / f"metrics_agent_port_{NODE_ID}").write_text("1")
        (folder / "store").mkdir()
        self._indexes: dict[Path, tuple[float, tuple[Frame, ...]]] = {}

    @contextlib.contextmanager
    def collector(self) -> Iterator[subprocess.Popen[str]]:
        """The log path in a process of its own."""
        store = f"file://{self.folder / 'store'}"
        command = [sys.executable, "-m", "bench.programs.log_collector"]
        arguments = [str(self.folder / "ray"), str(self.folder / "spool"), store]
        with subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                process.stdout.readline()
                yield process
            finally:
                process.kill()

    def packs(self) -> list[Path]:
        return list((self.folder / "store").rglob("*.pack"))

    def wait_for(self, size: int) -> None:
        """Return once the store has so many bytes of logs."""
        deadline = time.monotonic() + SENT_SECONDS
        while sum(frame.length for _, frames in self._read() for frame in frames) < size:
            if time.monotonic() > deadline:
                raise RuntimeError(f"the store has less than {size} bytes of logs after {SENT_SECONDS:.0f} s")
            time.sleep(0.2)

    def arrivals(self) -> list[tuple[int, float]]:
        """Up to which byte of the one file the store had all, and since when."""
        frames = sorted((frame.offset + frame.length, at) for at, frames in self._read() for frame in frames)
        latest = 0.0
        return [(end, latest := max(latest, at)) for end, at in frames]

    def _read(self) -> list[tuple[float, tuple[Frame, ...]]]:
        for pack in self.packs():
            if pack not in self._indexes:
                # The change time is when the object got its name, and so could be read.
                self._indexes[pack] = (pack.stat().st_ctime, parse_index(pack.read_bytes()).frames)
        return list(self._indexes.values())


@contextlib.contextmanager
def _scene() -> Iterator[_Scene]:
    with tempfile.TemporaryDirectory() as folder:
        yield _Scene(Path(folder))


@contextlib.contextmanager
def _limited(pid: int, share: float | None) -> Iterator[None]:
    """Let the process run for a share of each tenth of a second, as a CPU limit does at worst."""
    ended = threading.Event()

    def limit(share: float) -> None:
        while not ended.wait(PERIOD_SECONDS * share):
            os.kill(pid, signal.SIGSTOP)
            time.sleep(PERIOD_SECONDS * (1 - share))
            os.kill(pid, signal.SIGCONT)

    limiter = threading.Thread(target=limit, args=(share,)) if share else None
    if limiter:
        limiter.start()
    try:
        yield
    finally:
        ended.set()
        if limiter:
            limiter.join()


def _write_steadily(file: Path, bytes_per_second: int) -> list[tuple[int, float]]:
    """Append text at a rate; which size the file had at which time."""
    text = b"".join(_line(number) for number in range(20_000))
    piece = bytes_per_second // 20
    marks, size, began = list[tuple[int, float]](), 0, time.monotonic()
    with file.open("ab", buffering=0) as output:
        while size < bytes_per_second * WRITE_SECONDS:
            at = size % (len(text) - piece)
            output.write(text[at : at + piece])
            size += piece
            marks.append((size, time.time()))
            time.sleep(max(0.0, began + size / bytes_per_second - time.monotonic()))
    return marks


def _arrival(arrivals: list[tuple[int, float]], offset: int) -> float:
    return arrivals[bisect_right(arrivals, (offset, 0.0))][1]


def _write_text(file: Path, size: int, seed: int) -> None:
    numbers = random.Random(seed)
    text = b"".join(_line(numbers.randrange(10**6)) for _ in range(50_000))
    with file.open("wb") as output:
        for start in range(0, size, len(text)):
            output.write(text[: min(len(text), size - start)])


def _line(number: int) -> bytes:
    """A line of a log, of which about a fifth is not to be foreseen."""
    numbers = random.Random(number)
    at = f"20:{number // 60 % 60:02d}:{number % 60:02d},{numbers.randrange(1000):03d}"
    return (
        f"2026-11-15 {at}\tINFO trainer.py:{number % 400} -- epoch {number // 1000} step {number} "
        f"loss={numbers.random():.6f} grad={numbers.random():.4f} worker={numbers.randrange(16**8):08x} "
        f"items/s={numbers.randrange(10000)}\n"
    ).encode()
