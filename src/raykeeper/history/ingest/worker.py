"""Ingest in the server, or in a process of its own: then the server stays responsive, and the memory is given back at
the end.

One JSON line goes in for each thing to do, one comes out for each that is done. The process ends with its input, so it
never outlives the server.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar, cast

import msgspec

from raykeeper.errors import Unavailable
from raykeeper.history.ingest.database import IngestDatabase, Limits
from raykeeper.history.ingest.merge import TableMerger
from raykeeper.history.ingest.messages import Batch, Merged, MergeRequest, Projected
from raykeeper.history.ingest.project import Projector

__all__ = ["IngestWorker", "Limits"]

_A = TypeVar("_A")


class IngestWorker:
    """One session's ingest in one folder. Assumes that nobody else works in that folder."""

    def __init__(self, folder: Path, partition_bits: int, limits: Limits) -> None:
        partials, scratch = folder / f"partial-{partition_bits}", folder / "scratch"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        partials.mkdir(exist_ok=True)
        self._database = IngestDatabase(scratch, limits)
        self._projector = Projector(self._database, partials, scratch, partition_bits)
        self._merger = TableMerger(self._database, partials, partition_bits)

    def close(self) -> None:
        self._database.close()

    def interrupt(self) -> None:
        """Have what is done just now fail soon; from any thread."""
        self._database.interrupt()

    def project(self, batch: Batch) -> Projected:
        """Make partial rows of a batch's events, or say what was made of it before."""
        return self._projector.project(batch)

    def merge(self, order: MergeRequest) -> Merged:
        """Write every table of the batches and the base together."""
        return self._merger.merge(order)


class WorkerInProcess:
    """A `IngestWorker` called from asyncio."""

    def __init__(self, worker: IngestWorker) -> None:
        self._worker = worker
        self._running: asyncio.Future[Any] | None = None
        """What a thread does, also after whoever wanted it was cancelled."""

    @classmethod
    async def start(cls, folder: Path, partition_bits: int, limits: Limits) -> WorkerInProcess:
        return cls(await asyncio.to_thread(IngestWorker, folder, partition_bits, limits))

    async def project(self, batch: Batch) -> Projected:
        return await self._in_thread(lambda: self._worker.project(batch))

    async def merge(self, order: MergeRequest) -> Merged:
        return await self._in_thread(lambda: self._worker.merge(order))

    async def close(self) -> None:
        """A database must not be closed while a statement runs in it: that is ended first."""
        while self._running is not None and not self._running.done():
            self._worker.interrupt()  # has no effect on a statement that is just about to start
            await asyncio.wait([self._running], timeout=_INTERRUPT_SECONDS)
        if self._running is not None and not self._running.cancelled():
            self._running.exception()  # nobody wants to hear of it any more
        await asyncio.to_thread(self._worker.close)

    async def _in_thread(self, step: Callable[[], _A]) -> _A:
        running = asyncio.ensure_future(asyncio.to_thread(step))
        self._running = running
        return await asyncio.shield(running)


_INTERRUPT_SECONDS = 0.05
_LINE_LIMIT = 64 << 20  # an order names every file of the base
_NICENESS = 5  # below the server that people wait for


class WorkerRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing to do; the first line has the folder alone."""

    batch: Batch | None = None
    merge: MergeRequest | None = None


class WorkerProcess:
    """A `IngestWorker` elsewhere, called the same way from asyncio."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._input = cast(asyncio.StreamWriter, process.stdin)  # both are pipes
        self._output = cast(asyncio.StreamReader, process.stdout)

    @classmethod
    async def start(cls, folder: Path, partition_bits: int, limits: Limits) -> WorkerProcess:
        arguments = (str(folder), str(partition_bits), str(limits.memory_bytes), str(limits.threads))
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", __name__, *arguments),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=_LINE_LIMIT,
        )
        return cls(process)

    @property
    def pid(self) -> int:
        return self._process.pid

    async def project(self, batch: Batch) -> Projected:
        return await self._ask(WorkerRequest(batch=batch), Projected)

    async def merge(self, order: MergeRequest) -> Merged:
        return await self._ask(WorkerRequest(merge=order), Merged)

    async def close(self) -> None:
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.kill()  # whatever is finished is on disk
        await self._process.wait()

    async def _ask(self, order: WorkerRequest, kind: type[_A]) -> _A:
        try:
            self._input.write(_encoded(order) + b"\n")
            await self._input.drain()
            line = await self._output.readline()
        except ConnectionError:
            line = b""
        if not line:
            code = await self._process.wait()
            raise Unavailable("ingest", f"its process ended with {code}", retry_after=5)
        return _decoded(line, kind)


def main(folder: str, partition_bits: str, memory_bytes: str, threads: str) -> None:
    """Do what the lines say until they end."""
    os.nice(_NICENESS)
    lines: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_read_until_end, args=(lines,), daemon=True).start()
    worker = IngestWorker(Path(folder), int(partition_bits), Limits(int(memory_bytes), int(threads)))
    for order in _requests(lines):
        done = worker.project(order.batch) if order.batch else order.merge and worker.merge(order.merge)
        sys.stdout.buffer.write(_encoded(done) + b"\n")
        sys.stdout.buffer.flush()


def _read_until_end(lines: SimpleQueue[bytes]) -> None:
    for line in sys.stdin.buffer:
        lines.put(line)
    os._exit(0)  # in the midst of a query, too: nobody waits for it any more


def _requests(lines: SimpleQueue[bytes]) -> Iterator[WorkerRequest]:
    while True:
        yield _decoded(lines.get(), WorkerRequest)


def _encoded(message: object) -> bytes:
    return msgspec.json.encode(message, enc_hook=str)  # paths are all that msgspec does not know


def _decoded(line: bytes, kind: type[_A]) -> _A:
    return msgspec.json.decode(line, type=kind, dec_hook=lambda path, text: path(text))


if __name__ == "__main__":
    main(*sys.argv[1:])
