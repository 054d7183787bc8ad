"""Small HTTP servers that tests write themselves, for parts that no package brings."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def served(
    handler: Handler, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1", port: int = 0
) -> AsyncIterator[str]:
    """The URL of a server that gives every request to `handler`; at a free port where none is named."""
    # No keep-alive waiting at the end: a test is over when it is over.
    runner = web.ServerRunner(web.Server(handler), shutdown_timeout=0)
    await runner.setup()
    site = web.TCPSite(runner, host, port, ssl_context=tls)
    await site.start()
    try:
        yield f"{'https' if tls else 'http'}://{host}:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
