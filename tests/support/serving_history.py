"""The history server's application on a real socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.types import ASGIApp

from raykeeper.history.http.listener import make_server, open_listener
from raykeeper.settings.addresses import Address
from support.conditions import until


@asynccontextmanager
async def serving(app: ASGIApp, port: int = 0) -> AsyncIterator[str]:
    """The base URL at which the application answers."""
    listener = open_listener("--bind", f"127.0.0.1:{port}", Address("127.0.0.1", port))
    server = make_server(app)
    running = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        await until(lambda: server.started)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.stop()
        await running
