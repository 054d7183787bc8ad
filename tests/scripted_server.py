"""A real HTTP server that answers from a script, for what the real API server cannot be made to say on demand."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def served(handler: Handler, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> AsyncIterator[str]:
    """The URL of a server that gives every request to `handler`."""
    # No keep-alive waiting at the end: a test is over when it is over.
    runner = web.ServerRunner(web.Server(handler), shutdown_timeout=0)
    await runner.setup()
    site = web.TCPSite(runner, host, 0, ssl_context=tls)
    await site.start()
    port = runner.addresses[0][1]
    try:
        yield f"{'https' if tls else 'http'}://{host}:{port}"
    finally:
        await runner.cleanup()


class Script:
    """Answers given one after the other; the last one is repeated. Remembers the requests."""

    def __init__(self, *answers: tuple[int, dict[str, str]]) -> None:
        self._answers = list(answers)
        self.requests: list[tuple[str, str]] = []
        self.authorizations: list[str | None] = []

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        await request.read()
        self.requests.append((request.method, request.path_qs))
        self.authorizations.append(request.headers.get("Authorization"))
        status, headers = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        body = (
            {"kind": "ConfigMap", "metadata": {"name": "a"}}
            if status < 300
            else {"kind": "Status", "status": "Failure"}
        )
        return web.json_response(body, status=status, headers=headers)


async def silence(_: web.BaseRequest) -> web.StreamResponse:
    """Never answer."""
    await asyncio.Event().wait()
    raise AssertionError("unreachable")
