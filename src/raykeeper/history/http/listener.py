"""The application on a socket: open it, answer until told to stop, end open answers in time."""

from __future__ import annotations

import asyncio
import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from raykeeper.errors import Misconfigured
from raykeeper.settings.addresses import Address

HEAD_SECONDS = 20.0
"""From the begin of a connection, or the first byte of its next request, to the end of that request's head."""
HEAD_LIMIT_BYTES = 128 << 10
"""Of one request's head. Browsers and Ray's clients stay below 16 KB."""
_SHARE_OF_DESCRIPTORS = 2
"""One of so many of the process's descriptors may be a connection; the others are for the store, tables and disk."""
_CONNECTIONS_MAX = 4096


def connections_limit() -> int:
    """Connections at a time. One more closes the one that was quiet the longest."""
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(16, min(_CONNECTIONS_MAX, descriptors // _SHARE_OF_DESCRIPTORS))


class BoundedConnection(HttpToolsProtocol):
    """HTTP on one connection. It is closed when a head takes too long, is too long, or others need the room."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.quiet_since = self.loop.time()
        self._head_timer: asyncio.TimerHandle | None = None
        self._head_bytes = 0

    @property
    def is_quiet(self) -> bool:
        """Whether it waits for a request, or for the rest of a head."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn does
        super().connection_made(transport)
        self._expect_head()
        if len(self.connections) > connections_limit():
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.is_quiet:
            if self._head_timer is None:
                self._expect_head()
            self._head_bytes += len(data)
        super().data_received(data)
        if self.is_quiet and self._head_bytes > HEAD_LIMIT_BYTES:
            self.transport.close()

    def on_headers_complete(self) -> None:
        self._cancel_timer()
        self._head_bytes = 0
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        self.quiet_since = self.loop.time()
        super().on_response_complete()

    def _expect_head(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _cancel_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _make_room(self) -> None:
        others = (one for one in self.connections if isinstance(one, BoundedConnection) and one is not self)
        quiet = [one for one in others if one.is_quiet and not one.transport.is_closing()]
        if quiet:
            min(quiet, key=lambda one: one.quiet_since).transport.close()


_SHUTDOWN_SECONDS = 10  # the kubelet kills at 30; whoever follows a log is cut off
_BACKLOG = 1024
_IDLE_SECONDS = 75  # longer than a load balancer's 60, so that it never sends on a connection we just closed


class Server(uvicorn.Server):
    """uvicorn, but signals are its owner's: uvicorn itself would end the process by the signal it got."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def stop(self) -> None:
        """Answer what was asked, then end."""
        self.should_exit = True


def make_server(app: ASGIApp) -> Server:
    return Server(
        uvicorn.Config(
            app,
            http=BoundedConnection,
            ws="websockets-sansio",
            lifespan="off",
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=_IDLE_SECONDS,
            timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        )
    )


def open_listener(setting: str, text: str, address: Address) -> socket.socket:
    """A listening socket; both families where no host is given. Stops by name on an address that cannot be used."""
    try:
        if address.host is None and socket.has_dualstack_ipv6():
            family = socket.AF_INET6
            return socket.create_server(("", address.port), family=family, backlog=_BACKLOG, dualstack_ipv6=True)
        family = socket.AF_INET6 if ":" in (address.host or "") else socket.AF_INET
        return socket.create_server((address.host or "", address.port), family=family, backlog=_BACKLOG)
    except OSError as exc:
        raise Misconfigured(setting, text, f"cannot listen there ({exc.strerror or exc})") from exc
