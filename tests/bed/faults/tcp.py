"""A TCP proxy that can cut, refuse, stall, delay and throttle what goes through it."""

from __future__ import annotations

import asyncio
import socket
import struct
from contextlib import suppress

from bed.faults.loop_thread import LoopThread
from bed.ports import free_port

CHUNK_BYTES = 64 * 1024
LOOPBACK = "127.0.0.1"


class TcpProxy(LoopThread):
    """Forwards `port` on loopback to `host:target_port`. Its methods may be called from any thread.

    `delay_seconds` (each chunk, each way) and `bytes_per_second` (each way of each connection) may be set at any time.
    """

    def __init__(self, host: str, target_port: int) -> None:
        super().__init__()
        self.host = host
        self.target_port = target_port
        self.port = free_port(LOOPBACK)
        self.delay_seconds = 0.0
        self.bytes_per_second: float | None = None
        self.accepted = 0
        """Connections taken so far."""
        self._server: asyncio.Server | None = None
        self._flowing = asyncio.Event()
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def connections(self) -> int:
        """Connections open now."""
        return len(self._writers) // 2

    def cut(self) -> None:
        """Reset all open connections; new ones are taken."""
        self._run(self._cut())

    def refuse(self) -> None:
        """Reset all open connections and refuse new ones until `accept`."""
        self._run(self._refuse())

    def accept(self) -> None:
        """Take connections again after `refuse`."""
        self._run(self._listen())

    def stall(self) -> None:
        """Keep connections open, also new ones, and forward nothing until `flow`. Nothing is lost."""
        self._loop.call_soon_threadsafe(self._flowing.clear)

    def flow(self) -> None:
        """Forward again after `stall`, beginning with what was held back."""
        self._loop.call_soon_threadsafe(self._flowing.set)

    async def _open(self) -> None:
        self._flowing.set()
        await self._listen()

    async def _close(self) -> None:
        await self._refuse()

    async def _listen(self) -> None:
        if self._server is None:
            self._server = await asyncio.start_server(self._connected, LOOPBACK, self.port)

    async def _refuse(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        await self._cut()

    async def _cut(self) -> None:
        for writer in self._writers:
            _reset(writer)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        self._writers.add(writer)
        try:
            await self._join(reader, writer)
        finally:
            self._writers.discard(writer)
            writer.transport.abort()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Connect to the target and forward both ways until one side ends."""
        try:
            target_reader, target_writer = await asyncio.open_connection(self.host, self.target_port)
        except OSError:
            return  # the caller sees its connection reset, as it would without the proxy
        self._writers.add(target_writer)
        both = {
            asyncio.create_task(self._forward(reader, target_writer)),
            asyncio.create_task(self._forward(target_reader, writer)),
        }
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in both:
                task.cancel()
            await asyncio.gather(*both, return_exceptions=True)
            self._writers.discard(target_writer)
            target_writer.transport.abort()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):  # cut, or the other side went away
            while chunk := await reader.read(CHUNK_BYTES):
                await asyncio.sleep(self.delay_seconds)
                if self.bytes_per_second is not None:
                    await asyncio.sleep(len(chunk) / self.bytes_per_second)
                await self._flowing.wait()
                writer.write(chunk)
                await writer.drain()


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close with a RST, as a firewall or a crashed peer does; a plain close would look like an orderly end."""
    connection: socket.socket = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
