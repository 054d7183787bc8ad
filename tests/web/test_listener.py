"""Connections with bounds, as clients meet them."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

from raykeeper.web.listener import BoundedServer

WELL = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"


async def answer(_request: web.BaseRequest) -> web.StreamResponse:
    return web.Response(text="well")


async def test_a_head_that_cannot_be_read_is_refused_and_fills_no_log(caplog: pytest.LogCaptureFixture) -> None:
    runner = web.ServerRunner(BoundedServer(answer))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    reader, writer = await asyncio.open_connection(*runner.addresses[0][:2])
    try:
        writer.write(WELL)
        assert b"200 OK" in await reader.readuntil(b"well")
        writer.write(b"get /<odd HTTP/1.1\r\n\r\n")
        assert b"400 Bad Request" in await reader.readline()
    finally:
        writer.close()
        await runner.cleanup()
    assert not caplog.records
