"""HTTP connections with bounds: on their number, on how long a head may take, on how long a body may be."""

from __future__ import annotations

import asyncio
import logging
import resource
import socket
from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_protocol import RequestHandler

from raykeeper.errors import Misconfigured
from raykeeper.settings.addresses import Address
from raykeeper.web.passing import say_continue

IDLE_SECONDS: Final = 75.0
"""Until a connection without a whole request head is closed. Longer than a load balancer's 60, so that it never sends
on a connection that we just closed."""
BODY_BYTES: Final = 8 << 20
"""Kubernetes takes objects of 1.5 MB."""
BODY_SECONDS: Final = 60.0
HEAD_BYTES: Final = 32 * 1024
"""Of one line of a head; tokens of some identity providers are long."""
_SHARE_OF_DESCRIPTORS: Final = 2
_CONNECTIONS_MAX: Final = 4096
_BACKLOG: Final = 1024

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class TooLarge(Exception):
    """The body has more bytes than we take."""


def connections_limit() -> int:
    """Connections at a time. One more closes the one that has been open the longest and waits for a request."""
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(16, min(_CONNECTIONS_MAX, descriptors // _SHARE_OF_DESCRIPTORS))


class BoundedServer(web.Server):
    """aiohttp's server of connections, at most so many."""

    def __init__(self, handler: Handler, limit: int | None = None) -> None:
        """`limit`: of connections; as many as the process bears where none is given."""
        log = logging.getLogger("raykeeper.web")
        log.addFilter(_is_no_clients_mistake)
        super().__init__(
            handler,
            logger=log,
            handler_cancellation=True,  # who has gone waits for no answer
            keepalive_timeout=IDLE_SECONDS,
            access_log=None,
            auto_decompress=False,  # a few bytes could stand for gigabytes
            max_line_size=HEAD_BYTES,
            max_field_size=HEAD_BYTES,
        )
        self._limit = limit or connections_limit()

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        if len(self._connections) > self._limit:
            idle = (one for one in self._connections if one is not handler and one._current_request is None)
            (next(idle, None) or handler).force_close()


def _is_no_clients_mistake(record: logging.LogRecord) -> bool:
    """A head that cannot be read was answered with 400. With a traceback for each, any client could fill the log."""
    return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


async def read_body(request: web.BaseRequest, limit: int = BODY_BYTES) -> bytes:
    """The whole body. Raises `TooLarge`, and TimeoutError for one that takes too long."""
    if (request.content_length or 0) > limit:
        raise TooLarge
    await say_continue(request)
    pieces, size = [], 0
    async with asyncio.timeout(BODY_SECONDS):
        async for piece in request.content.iter_any():
            size += len(piece)
            if size > limit:
                raise TooLarge
            pieces.append(piece)
    return b"".join(pieces)


def open_listener(setting: str, address: Address) -> socket.socket:
    """A listening socket; both families where no host is given. Stops by name on an address that cannot be used."""
    try:
        if address.host is None and socket.has_dualstack_ipv6():
            family = socket.AF_INET6
            return socket.create_server(("", address.port), family=family, backlog=_BACKLOG, dualstack_ipv6=True)
        family = socket.AF_INET6 if ":" in (address.host or "") else socket.AF_INET
        return socket.create_server((address.host or "", address.port), family=family, backlog=_BACKLOG)
    except OSError as exc:
        raise Misconfigured(setting, str(address), f"cannot listen there ({exc.strerror or exc})") from exc
