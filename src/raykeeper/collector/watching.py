"""What the collector shows of itself: `/metrics` and `/healthz`, on an address of their own, read-only.

By hand on asyncio's streams: aiohttp, which the operator uses for this, would cost a third of the collector's memory.
"""

from __future__ import annotations

import asyncio
from types import TracebackType

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from raykeeper.errors import Misconfigured
from raykeeper.logs import Log
from raykeeper.settings.addresses import Address

log = Log("raykeeper.collector.watching")

REQUEST_SECONDS = 5.0
MAX_HEAD_BYTES = 8192
_TEXT = "text/plain; charset=utf-8"


class Watching:
    """Listens inside `async with`; nowhere where the address is None."""

    def __init__(self, address: Address | None, registry: CollectorRegistry) -> None:
        self._address = address
        self._registry = registry
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Watching:
        if self._address is not None:
            host, port = self._address.host, self._address.port
            try:
                self._server = await asyncio.start_server(self._answer, host, port, limit=MAX_HEAD_BYTES)
            except OSError as exc:
                raise Misconfigured("--metrics-addr", f"{host or ''}:{port}", exc.strerror or str(exc)) from exc
            addresses = [socket.getsockname()[:2] for socket in self._server.sockets]
            log.info("listening", purpose="metrics address", addresses=addresses)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request per connection: scrapes are seconds apart."""
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(self._response(head))
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            log.debug("request to the metrics address given up")
        finally:
            writer.close()

    def _response(self, head: bytes) -> bytes:
        method, _, rest = head.partition(b" ")
        path = rest.partition(b" ")[0].partition(b"?")[0]
        if method not in (b"GET", b"HEAD"):
            return _response(b"405 Method Not Allowed", _TEXT, b"only GET\n", has_body=True)
        has_body = method == b"GET"
        if path == b"/metrics":
            return _response(b"200 OK", CONTENT_TYPE_PLAIN_0_0_4, generate_latest(self._registry), has_body=has_body)
        if path in (b"/healthz", b"/readyz"):
            return _response(b"200 OK", _TEXT, b"ok\n", has_body=has_body)
        return _response(b"404 Not Found", _TEXT, b"/metrics and /healthz are here\n", has_body=has_body)


def _response(status: bytes, content_type: str, body: bytes, *, has_body: bool) -> bytes:
    head = b"HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
    return head % (status, content_type.encode(), len(body)) + (body if has_body else b"")
