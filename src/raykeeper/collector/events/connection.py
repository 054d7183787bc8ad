"""One client connection of the sink, as httptools parses it.

Not uvicorn: that costs 0.12 s of processor time to import and 8 MB, and cannot make a client wait for the disk
(decision 0007).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Protocol, cast

import httptools

from raykeeper.collector.events.budget import SpoolFull
from raykeeper.collector.events.incoming import IncomingBody
from raykeeper.collector.events.requests import (
    CONTINUE,
    MAX_HEAD_BYTES,
    RequestHead,
    answer_without_body,
    response,
)
from raykeeper.logs import Log

log = Log("raykeeper.collector.sink")

_MAX_UNANSWERED = 2
"""Requests a client may send ahead before it is read no further; Ray sends none."""
_MAX_AHEAD = 64
"""Requests that may come in one piece; who sends more is refused. One piece may hold ten thousand, which would keep the
loop from everybody else for half a second."""
_MOMENT_SECONDS = 0.05
"""Added to the age of a request, so that the first bytes of a new one do not look slow beside those of an old one."""


class Receiver(Protocol):
    """What a connection belongs to: makes bodies, and hears what becomes of them."""

    def receive(self, head: RequestHead) -> IncomingBody:
        """Room for a body. Raises SpoolFull."""

    pace: Callable[[], Awaitable[None]]
    """Awaited before a batch that was kept is answered."""

    def answered(self, status: HTTPStatus) -> None:
        """A batch was kept, or refused."""

    def misdirected(self, path: bytes) -> None:
        """Somebody posted to a path that is not there."""

    def steady(self) -> float: ...

    def opened(self, connection: Connection) -> None: ...

    def closed(self, connection: Connection) -> None: ...


class Connection(asyncio.Protocol):
    """Reads requests, keeps their bodies, answers in the order they came."""

    def __init__(self, receiver: Receiver) -> None:
        self.quiet_since = receiver.steady()
        """When its last answer left, or it was opened."""
        self.reading_since: float | None = None
        """When the request began that has not come in completely."""
        self._received = 0
        """Bytes since then."""
        self._is_held = False
        self._receiver = receiver
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport
        self._head = RequestHead()
        self._is_in_head = False
        self._body: IncomingBody | None = None
        self._status: HTTPStatus | None = None
        self._answers: set[asyncio.Task[None]] = set()
        self._last_answer: asyncio.Task[None] | None = None

    @property
    def is_idle(self) -> bool:
        return self.reading_since is None and not self._answers

    def bytes_per_second(self, now: float) -> float | None:
        """How fast its unfinished request comes in; None if it has none, or waits for our disk."""
        if self.reading_since is None or self._is_held:
            return None
        return self._received / (now - self.reading_since + _MOMENT_SECONDS)

    def abort(self) -> None:
        """End it at once."""
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is not derived from it
        self._receiver.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self._receiver.closed(self)
        if self._body is not None:
            self._body.discard()
            self._body = None

    def data_received(self, data: bytes) -> None:
        was_in_head = self._is_in_head
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._refuse(HTTPStatus.BAD_REQUEST)
        self._received += len(data)
        if was_in_head and self._is_in_head:
            self._count_head(len(data))  # the parser tells of a header when it ends, and until then gathers it
        self._read_on_when_ready()

    def on_message_begin(self) -> None:
        if len(self._answers) >= _MAX_AHEAD:
            raise ValueError(f"more than {_MAX_AHEAD} requests ahead")  # the parser stops, and it is refused
        self._head = RequestHead()
        self._body = self._status = None
        self._is_in_head = True
        self.reading_since = self._receiver.steady()
        self._received = 0

    def on_url(self, part: bytes) -> None:
        self._head.url += part
        self._count_head(len(part))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head.add(name, value)
        self._count_head(len(name) + len(value))

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        self._head.method = self._parser.get_method()
        self._status = self._status or answer_without_body(self._head)
        if self._status is HTTPStatus.NOT_FOUND and self._head.method == b"POST":
            self._receiver.misdirected(self._head.url)
        if self._status is None:
            try:
                self._body = self._receiver.receive(self._head)
            except SpoolFull:
                self._status = HTTPStatus.SERVICE_UNAVAILABLE
        if self._head.expects_continue:
            self._answer_expectation()

    def on_body(self, part: bytes) -> None:
        if self._body is not None:
            self._body.write(part)

    def on_message_complete(self) -> None:
        self.reading_since = None
        body, self._body = self._body, None
        is_last = not self._parser.should_keep_alive()
        answer = asyncio.ensure_future(self._answer(body, self._status, is_last, self._last_answer))
        self._answers.add(answer)
        answer.add_done_callback(self._answered)
        self._last_answer = answer

    def _answered(self, answer: asyncio.Task[None]) -> None:
        self._answers.discard(answer)
        if not answer.cancelled() and (bug := answer.exception()) is not None:
            log.error("a batch could not be answered", cause=repr(bug))
            self._transport.abort()

    async def _answer(
        self, body: IncomingBody | None, status: HTTPStatus | None, is_last: bool, before: asyncio.Task[None] | None
    ) -> None:
        if body is not None:
            try:
                await body.finish()
                await self._receiver.pace()
            except SpoolFull:
                status = HTTPStatus.SERVICE_UNAVAILABLE
        if body is not None or status is HTTPStatus.SERVICE_UNAVAILABLE:
            self._receiver.answered(status or HTTPStatus.OK)
        if before is not None:
            await asyncio.wait([before])
        self._write(status or HTTPStatus.OK, is_last=is_last)
        self.quiet_since = self._receiver.steady()
        self._transport.resume_reading()

    def _write(self, status: HTTPStatus, *, is_last: bool) -> None:
        if not self._transport.is_closing():
            self._transport.write(response(status, is_last=is_last))
            if is_last:
                self._transport.close()

    def _refuse(self, status: HTTPStatus) -> None:
        """Answer and hang up: what follows cannot be understood, and is not kept."""
        self._status = status
        self._write(status, is_last=True)

    def _answer_expectation(self) -> None:
        if self._status is None:
            self._transport.write(CONTINUE)
        else:
            self._refuse(self._status)

    def _count_head(self, size: int) -> None:
        self._head.size += size
        if self._head.size > MAX_HEAD_BYTES:
            self._head.headers.clear()
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)

    def _read_on(self) -> None:
        self._is_held = False
        self._transport.resume_reading()

    def _read_on_when_ready(self) -> None:
        """Let the client wait while the disk is behind, so that memory stays bounded."""
        backlog = self._body.backlog if self._body is not None else None
        if backlog is not None and not backlog.done():
            self._transport.pause_reading()
            self._is_held = True
            backlog.add_done_callback(lambda _: self._read_on())
        elif len(self._answers) >= _MAX_UNANSWERED:
            self._transport.pause_reading()
