"""A small HTTP proxy that knows CONNECT, for tests of clients behind one."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class ConnectProxy:
    """What went through the proxy; `credentials` (user:password) makes it refuse whoever does not show them."""

    def __init__(self, credentials: str | None = None) -> None:
        self.url = ""
        self.targets: list[str] = []
        self._wanted = f"Basic {base64.b64encode(credentials.encode()).decode()}" if credentials else None
        self._copying: set[asyncio.Task[None]] = set()

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one CONNECT, then copy bytes both ways until either side ends."""
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        if self._wanted is not None and f"Proxy-Authorization: {self._wanted}" not in lines:
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()
            writer.close()
            return
        target = lines[0].split()[1]
        self.targets.append(target)
        host, _, port = target.rpartition(":")
        upstream_reader, upstream_writer = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        self._copy(reader, upstream_writer)
        self._copy(upstream_reader, writer)

    def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(copy(reader, writer))
        self._copying.add(task)
        task.add_done_callback(self._copying.discard)

    async def end(self) -> None:
        for task in self._copying:
            task.cancel()
        await asyncio.gather(*self._copying, return_exceptions=True)


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while chunk := await reader.read(65536):
            writer.write(chunk)
            await writer.drain()
    except ConnectionError:
        pass  # the other side went first
    finally:
        writer.close()


@asynccontextmanager
async def connect_proxy(credentials: str | None = None) -> AsyncIterator[ConnectProxy]:
    """A proxy on loopback."""
    proxy = ConnectProxy(credentials)
    server = await asyncio.start_server(proxy.connected, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    proxy.url = f"http://{host}:{port}"
    try:
        yield proxy
    finally:
        server.close()
        await proxy.end()
