"""Connections that become another protocol: both ends are joined only once the other side said so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from raykeeper.web.listener import BoundedServer
from raykeeper.web.passing import is_upgrade, pass_upgrade, request_head

UPGRADE = b"GET /a HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
SMUGGLED = b"GET /secret HTTP/1.1\r\nHost: x\r\n\r\n"
SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
LONG = 4 << 20

Connected = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Backend:
    """A server that reads one head, sends `answer`, and notes or echoes whatever comes after."""

    def __init__(self, answer: bytes, *, echoes: bool = False, hangs_up: bool = False) -> None:
        self.answer = answer
        self.echoes = echoes
        self.hangs_up = hangs_up
        self.later = b""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(self.answer)
        while not self.hangs_up and (data := await reader.read(65536)):
            self.later += data
            if self.echoes:
                writer.write(data)
                await writer.drain()
        writer.close()


@asynccontextmanager
async def listening(connected: Connected) -> AsyncIterator[int]:
    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


@asynccontextmanager
async def client_of(backend: Backend) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection to a server that passes upgrades on to `backend`."""
    async with listening(backend.serve) as behind:

        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            assert is_upgrade(request)
            reader, writer = await asyncio.open_connection("127.0.0.1", behind)
            writer.write(request_head(request.method, request.raw_path, [("Host", "x")]))
            return await pass_upgrade(request, reader, writer)

        server = BoundedServer(handle)
        listener = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.sockets[0].getsockname()[1])
        try:
            yield reader, writer
        finally:
            writer.close()
            listener.close()
            await server.shutdown(0)


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (b"HTTP/1.1 503 No\r\nContent-Length: 4\r\n\r\nbusy", b"busy"),
        (b"HTTP/1.1 400 No\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", b"abc"),
        (b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n", b""),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", b"ok"),
        (b"HTTP/1.1 200 OK\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 2\r\n\r\nok", b"ok"),
    ],
)
async def test_behind_a_refusal_nothing_of_the_client_is_passed_on(answer: bytes, body: bytes) -> None:
    backend = Backend(answer)
    async with client_of(backend) as (reader, writer):
        writer.write(UPGRADE + SMUGGLED)
        found = await asyncio.wait_for(reader.read(), 60)
    head, _, rest = found.partition(b"\r\n\r\n")
    assert head.split(b" ")[1] == answer.split(b" ")[1]
    assert body in rest
    assert found.count(b"HTTP/1.1") == 1
    assert backend.later == b""


async def test_an_answer_without_a_length_ends_with_its_connection() -> None:
    backend = Backend(b"HTTP/1.1 403 No\r\n\r\nall of it", hangs_up=True)
    async with client_of(backend) as (reader, writer):
        writer.write(UPGRADE)
        found = await asyncio.wait_for(reader.read(), 60)
    assert b"all of it" in found


async def test_after_a_101_bytes_pass_both_ways_also_those_that_came_early() -> None:
    backend = Backend(SWITCH + b"early of theirs", echoes=True)
    async with client_of(backend) as (reader, writer):
        writer.write(UPGRADE + b" early of ours ")
        await reader.readuntil(b"\r\n\r\n")
        expected = b"early of theirs early of ours "
        assert await asyncio.wait_for(reader.readexactly(len(expected)), 60) == expected
        writer.write(bytes(LONG))
        assert await asyncio.wait_for(reader.readexactly(LONG), 60) == bytes(LONG)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 101",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"no HTTP at all\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: " + b"y" * 200_000,
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
    ],
)
async def test_no_whole_answer_ends_the_connection(answer: bytes) -> None:
    backend = Backend(answer, hangs_up=True)
    async with client_of(backend) as (reader, writer):
        writer.write(UPGRADE + SMUGGLED)
        found = await asyncio.wait_for(reader.read(), 60)
    assert found.count(b"HTTP/1.1") <= 1
    assert backend.later == b""
