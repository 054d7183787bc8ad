"""The workbench in a process of its own: the server stays responsive, and its memory is given back at the end.

One JSON line goes in for each thing to do, one comes out for each that is done. The process ends with its input, so it
never outlives the server.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar, cast

import msgspec

from raykeeper.errors import Unavailable
from raykeeper.history.ingest.jobs import Batch, Merged, MergeOrder, Projected
from raykeeper.history.ingest.workbench import Limits, Workbench

_LINE_LIMIT = 64 << 20  # an order names every file of the base
_NICENESS = 5  # below the server that people wait for
_A = TypeVar("_A")


class Order(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing to do; the first line has the folder alone."""

    batch: Batch | None = None
    merge: MergeOrder | None = None


class ChildWorkbench:
    """A `Workbench` elsewhere, called the same way from asyncio."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._input = cast(asyncio.StreamWriter, process.stdin)  # both are pipes
        self._output = cast(asyncio.StreamReader, process.stdout)

    @classmethod
    async def start(cls, folder: Path, partition_bits: int, limits: Limits) -> ChildWorkbench:
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
        return await self._ask(Order(batch=batch), Projected)

    async def merge(self, order: MergeOrder) -> Merged:
        return await self._ask(Order(merge=order), Merged)

    async def close(self) -> None:
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.kill()  # whatever is finished is on disk
        await self._process.wait()

    async def _ask(self, order: Order, kind: type[_A]) -> _A:
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
    bench = Workbench(Path(folder), int(partition_bits), Limits(int(memory_bytes), int(threads)))
    for order in _orders(lines):
        done = bench.project(order.batch) if order.batch else order.merge and bench.merge(order.merge)
        sys.stdout.buffer.write(_encoded(done) + b"\n")
        sys.stdout.buffer.flush()


def _read_until_end(lines: SimpleQueue[bytes]) -> None:
    for line in sys.stdin.buffer:
        lines.put(line)
    os._exit(0)  # in the midst of a query, too: nobody waits for it any more


def _orders(lines: SimpleQueue[bytes]) -> Iterator[Order]:
    while True:
        yield _decoded(lines.get(), Order)


def _encoded(message: object) -> bytes:
    return msgspec.json.encode(message, enc_hook=str)  # paths are all that msgspec does not know


def _decoded(line: bytes, kind: type[_A]) -> _A:
    return msgspec.json.decode(line, type=kind, dec_hook=lambda path, text: path(text))


if __name__ == "__main__":
    main(*sys.argv[1:])
