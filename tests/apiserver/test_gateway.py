"""Bodies over HTTP: nobody sends one before we know who it is."""

from __future__ import annotations

import asyncio

from aiohttp import web

from raykeeper.apiserver.auth.callers import Caller, unauthenticated
from raykeeper.apiserver.dispatch import Dispatcher
from raykeeper.apiserver.metrics import ApiMetrics
from raykeeper.apiserver.rest.gateway import Gateway
from raykeeper.apiserver.services.heads import Heads
from raykeeper.apiserver.services.table import calls
from raykeeper.web.listener import BoundedServer
from raykeeper.web.targets import Target
from support.clocks import ManualClock


class Nobody:
    """Lets no caller in."""

    async def caller(self, authorization: str | None) -> Caller:
        raise unauthenticated("no")


async def answer_to(head: bytes) -> bytes:
    """What comes back for a head alone, whose body never follows."""
    clock = ManualClock()
    table = calls(clock, Heads("cluster.local", False))
    gateway = Gateway(table, Dispatcher(Nobody(), ApiMetrics(table), clock, 60.0))

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        return await gateway.answer(request, Target.parse(request.raw_path))

    server = BoundedServer(handle)
    listener = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.sockets[0].getsockname()[1])
    try:
        writer.write(head + b"\r\nHost: x\r\nContent-Length: 8000000\r\n\r\n")
        return await asyncio.wait_for(reader.readline(), 20)
    finally:
        writer.close()
        listener.close()
        await server.shutdown(0)


async def test_a_stranger_is_refused_before_the_body_is_read() -> None:
    assert b" 401 " in await answer_to(b"POST /apis/v1/namespaces/team/clusters HTTP/1.1")


async def test_a_path_that_is_not_there_needs_no_body() -> None:
    assert b" 404 " in await answer_to(b"POST /nowhere HTTP/1.1")
