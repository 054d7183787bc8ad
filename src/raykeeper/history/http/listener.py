"""The application on a socket: open it, answer until told to stop, end open answers in time."""

from __future__ import annotations

import asyncio
import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from raykeeper.errors import Misconfigured
from raykeeper.settings.addresses import Address

HEAD_SECONDS = 20.0
"""From the begin of a connection, or the first byte of its next request, to the end of that request's head."""
HEAD_LIMIT_BYTES = 128 << 10
"""Of one request's head. Browsers and Ray's clients stay below 16 KB."""
_SHARE_OF_DESCRIPTORS = 2
"""One of so many of the process's descriptors may be a connection; the others are for the store, tables and disk."""
_CONNECTIONS_MAX = 4096
UNREAD_SECONDS = 60.0
"""A connection is cut whose client has taken nothing of its answer for so long."""
UNREAD_LIMIT_BYTES = 256 << 20
"""Of answers that are made and that clients have not taken, in all. More cuts who has taken nothing for longest."""
_UNSENT_BYTES = 128 << 10
"""Of an answer in the kernel, beyond what is on its way to the client. By default it takes megabytes, which count as
this process's memory, and it would take a slow client a minute to be seen taking any."""
_LOOKS_A_LIFE = 12  # so often it is looked at whether a client took something, in those seconds


def connections_limit() -> int:
    """Connections at a time. One more closes the one that was quiet the longest."""
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(16, min(_CONNECTIONS_MAX, descriptors // _SHARE_OF_DESCRIPTORS))


class UnreadAnswer:
    """What one client has not taken of what was written for it. A program cannot see that by itself: the rest of an
    answer waits in the transport, also after the connection was closed."""

    def __init__(self, transport: asyncio.Transport, all_unread: set[UnreadAnswer]) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport = transport
        self._all = all_unread
        self.bytes = transport.get_write_buffer_size()
        self.taken_at = self._loop.time()
        """When the client last took something."""
        all_unread.add(self)
        self._timer = self._loop.call_later(UNREAD_SECONDS / _LOOKS_A_LIFE, self._look)
        while sum(one.bytes for one in all_unread) > UNREAD_LIMIT_BYTES:
            min(all_unread, key=lambda one: one.taken_at).cut()

    def end(self) -> None:
        """The client has taken nearly all, or is gone."""
        self._timer.cancel()
        self._all.discard(self)

    def cut(self) -> None:
        self.end()
        self._transport.abort()

    def _look(self) -> None:
        size, now = self._transport.get_write_buffer_size(), self._loop.time()
        if size != self.bytes:
            self.bytes, self.taken_at = size, now
        if now - self.taken_at >= UNREAD_SECONDS:
            self.cut()
        else:
            self._timer = self._loop.call_later(UNREAD_SECONDS / _LOOKS_A_LIFE, self._look)


class _CutIfUnread(asyncio.Protocol):
    """A connection that is cut when its client does not read."""

    transport: asyncio.Transport

    def __init__(self, *given: Any, all_unread: set[UnreadAnswer], **named: Any) -> None:
        super().__init__(*given, **named)
        self._all_unread = all_unread
        self._unread: UnreadAnswer | None = None

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread = self._unread or UnreadAnswer(self.transport, self._all_unread)

    def resume_writing(self) -> None:
        self._end_unread()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_unread()
        super().connection_lost(exc)

    def _end_unread(self) -> None:
        if self._unread is not None:
            self._unread.end()
            self._unread = None


class BoundedWebSocket(_CutIfUnread, WebSocketsSansIOProtocol):
    """A WebSocket on one connection."""


class BoundedConnection(_CutIfUnread, HttpToolsProtocol):
    """HTTP on one connection. It is closed when a head takes too long, is too long, its answer is not read, or others
    need the room."""

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
        if hasattr(socket, "TCP_NOTSENT_LOWAT"):
            raw: socket.socket = transport.get_extra_info("socket")
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT_BYTES)
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
    all_unread: set[UnreadAnswer] = set()
    return Server(
        uvicorn.Config(
            app,
            http=partial(BoundedConnection, all_unread=all_unread),  # type: ignore[arg-type] # it is only called
            ws=partial(BoundedWebSocket, all_unread=all_unread),  # type: ignore[arg-type] # the same
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
