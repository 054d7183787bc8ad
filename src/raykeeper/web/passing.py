"""Requests and answers that are passed on as they come: never a whole body in memory, and connections that become
something else, such as websockets, byte for byte."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Final

import httptools
from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from multidict import CIMultiDict

HOP_BY_HOP: Final = frozenset(
    {
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection"),
        *("te", "trailer", "transfer-encoding", "upgrade"),
    }
)
"""Headers about one connection, which are never passed on (RFC 9110, 7.6.1)."""
SPLICE_BYTES: Final = 64 << 10
"""That one side of a connection may be ahead of the other."""
ANSWER_HEAD_BYTES: Final = 64 << 10
"""Of the answer to a request for another protocol."""
UPGRADES: Final = frozenset({"websocket", "tcp"})
"""Protocols for which aiohttp stops to read a connection as HTTP. Other wishes are dropped, as RFC 9110 allows: the
request is passed on as any other. So is HTTP/2, which curl offers beside plain requests."""


def end_to_end(headers: Iterable[tuple[str, str]], *, without: frozenset[str] = frozenset()) -> CIMultiDict[str]:
    """The headers that are meant for the other end."""
    pairs = list(headers)
    named = {
        name.strip().lower() for header, value in pairs if header.lower() == "connection" for name in value.split(",")
    }
    dropped = HOP_BY_HOP | named | without
    return CIMultiDict((name, value) for name, value in pairs if name.lower() not in dropped)


def peer_of(request: web.BaseRequest) -> str:
    """The address of a client; one of IPv4 that came to a socket of both families, in its own spelling."""
    return (request.remote or "").removeprefix("::ffff:")


def has_body(request: web.BaseRequest) -> bool:
    """Whether a request has one, of known length or not."""
    return request.body_exists and (request.content_length is None or request.content_length > 0)


async def say_continue(request: web.BaseRequest) -> None:
    """Tell a client that waits for it to send its body."""
    if request.headers.get("Expect", "").lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0


def is_upgrade(request: web.BaseRequest) -> bool:
    """Whether the client wants another protocol on this connection, one that can be had."""
    tokens = {token.strip().lower() for token in request.headers.get("Connection", "").split(",")}
    is_wanted = "upgrade" in tokens and request.headers.get("Upgrade", "").lower() in UPGRADES
    return is_wanted and request.method == "GET" and not has_body(request)


async def pass_answer(
    request: web.BaseRequest,
    status: int,
    headers: CIMultiDict[str],
    pieces: AsyncIterator[bytes],
) -> web.StreamResponse:
    """An answer in the pieces it comes in; each is sent before the next is read."""
    headers.setdefault("Server", "raykeeper")  # instead of the versions of what it is made from
    response = web.StreamResponse(status=status, headers=headers)
    if "Upgrade" in request.headers:
        response.force_close()  # what came behind such a request is not read as HTTP any more
    if "Content-Length" in headers:
        response.content_length = int(headers["Content-Length"])
    await response.prepare(request)
    async for piece in pieces:
        await response.write(piece)
    await response.write_eof()
    return response


class Taken(web.StreamResponse):
    """What a handler returns whose connection was not HTTP any more: there is nothing to answer."""

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:  # noqa: ARG002 - as inherited
        return None

    async def write_eof(self, data: bytes = b"") -> None:
        """Nothing: the other protocol had its own end."""


class _Upstream:
    """Takes what the client sends, in the place of a parser, and lets no more come than the other side reads."""

    def __init__(self, request: web.BaseRequest, writer: asyncio.StreamWriter) -> None:
        self._client = request.transport
        self._writer = writer
        self._draining: asyncio.Task[None] | None = None

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        """Called by the connection."""
        if self._writer.is_closing():
            return True, b""
        self._writer.write(data)
        if self._draining is None and self._writer.transport.get_write_buffer_size() > SPLICE_BYTES:
            self._draining = asyncio.ensure_future(self._drain())
        return False, b""

    def feed_eof(self) -> None:
        """Called by the connection when the client has gone."""
        self._writer.close()

    async def _drain(self) -> None:
        if self._client is not None:
            self._client.pause_reading()
        try:
            await self._writer.drain()
        except ConnectionError:
            return
        finally:
            self._draining = None
            if self._client is not None and not self._client.is_closing():
                self._client.resume_reading()


class _AnswerToUpgrade:
    """The answer to a request for another protocol, while it is parsed; a part of httptools' protocol."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self._parser = httptools.HttpResponseParser(self)
        self._body: list[bytes] = []
        self._has_head = False
        self._is_whole = False
        self.headers: CIMultiDict[str] = CIMultiDict()
        self.switched: bytes | None = None
        """All bytes so far of a connection that became another protocol; None while it did not."""

    async def read_head(self) -> int:
        """The status. Raises ConnectionError for an end before it, and for what is no answer."""
        received = b""
        while not self._has_head and self.switched is None:
            if len(received) > ANSWER_HEAD_BYTES:
                raise ConnectionAbortedError("the head of the answer is too long")
            received += await self._feed()
        status = int(self._parser.get_status_code())
        self.switched = received if status == 101 else None
        if status < 200 and self.switched is None:
            raise ConnectionAbortedError("an answer before the answer, which nobody asked for")
        return status

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body of an answer that stayed HTTP."""
        while True:
            while self._body:
                yield self._body.pop(0)
            if self._is_whole:
                return
            await self._feed()

    async def _feed(self) -> bytes:
        data = await self._reader.read(SPLICE_BYTES)
        if not data and not self._ends_with_connection:
            raise ConnectionResetError("the connection ended within an answer")
        self._is_whole = self._is_whole or not data
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self.switched = data
        except httptools.HttpParserError as exc:
            raise ConnectionAbortedError("no answer of HTTP") from exc
        return data

    @property
    def _ends_with_connection(self) -> bool:
        return self._has_head and "Content-Length" not in self.headers and "Transfer-Encoding" not in self.headers

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called by the parser."""
        self.headers.add(name.decode("latin-1"), value.decode("utf-8", "surrogateescape"))

    def on_headers_complete(self) -> None:
        """Called by the parser."""
        self._has_head = True

    def on_body(self, piece: bytes) -> None:
        """Called by the parser."""
        self._body.append(piece)

    def on_message_complete(self) -> None:
        """Called by the parser."""
        self._is_whole = True


async def pass_upgrade(
    request: web.BaseRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> web.StreamResponse:
    """The answer to a request for another protocol that was sent; both connections are joined if it is 101.

    Until then nothing of the client is sent: behind a refusal its bytes would be requests that nobody looked at.
    """
    answer = _AnswerToUpgrade(reader)
    try:
        status = await answer.read_head()
        if answer.switched is None:
            return await pass_answer(request, status, end_to_end(answer.headers.items()), answer.pieces())
        return await _splice(request, answer.switched, reader, writer)
    finally:
        writer.close()


async def _splice(
    request: web.BaseRequest, data: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> Taken:
    """Join a client's connection with another, both ways, until either ends; nothing of it is looked at."""
    request.protocol.set_parser(_Upstream(request, writer))  # type: ignore[arg-type]  # has what is used of a parser
    response = Taken()
    response.force_close()
    client = request.transport
    try:
        while client is not None and not client.is_closing() and data:
            client.write(data)
            await request.protocol._drain_helper()
            data = await reader.read(SPLICE_BYTES)
    except ConnectionError:
        pass  # either end may go at any time
    finally:
        if client is not None:
            client.close()
    return response


def request_head(method: str, raw_target: str, headers: Iterable[tuple[str, str]]) -> bytes:
    """The first bytes of a request over HTTP/1.1. Raises ValueError for what would end a line early."""
    lines = [f"{method} {raw_target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
    if any("\r" in line or "\n" in line or "\0" in line for line in lines) or " " in raw_target:
        raise ValueError("a header or path with a line end in it")
    return "\r\n".join([*lines, "", ""]).encode("utf-8", "surrogateescape")
