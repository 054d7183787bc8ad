"""One request over HTTP/1.1: the head of the answer first, then its body in pieces.

aiohttp would do this too, at 29 MB of memory that a sidecar of every Ray pod pays; httptools is loaded there anyway.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import httptools

from raykeeper.errors import Misconfigured

PIECE_BYTES = 64 << 10
HEAD_LIMIT_BYTES = 64 << 10  # Ray's heads are below 1 KB; what is larger does not speak HTTP
_DEFAULT_PORTS = {"http": 80, "https": 443}


class BrokenAnswer(Exception):
    """What came is not an HTTP answer, or ended in the middle of one."""


@dataclass(frozen=True)
class Outgoing:
    """What is asked for."""

    path: str
    """With the query."""
    method: str = "GET"
    body: bytes = b""
    """JSON, where there is one."""
    before_sending: Callable[[], None] | None = None
    """Called once the connection is there and nothing was said yet; if it raises, nothing is."""


@dataclass(frozen=True)
class Target:
    """Where requests go."""

    host: str
    port: int
    prefix: str
    """Before every path; without a slash at its end."""
    is_tls: bool

    @classmethod
    def parse(cls, address: str) -> Target:
        """From a base URL; one without a scheme is plain HTTP."""
        url = urlsplit(address if "://" in address else f"http://{address}")
        if url.scheme not in _DEFAULT_PORTS or not url.hostname:
            raise Misconfigured("dashboard address", address, "use a URL such as http://localhost:8265")
        try:
            port = url.port or _DEFAULT_PORTS[url.scheme]
        except ValueError as exc:
            raise Misconfigured("dashboard address", address, "its port must be between 1 and 65535") from exc
        return cls(url.hostname, port, url.path.rstrip("/"), url.scheme == "https")

    def request(self, outgoing: Outgoing, headers: Mapping[str, str]) -> bytes:
        """The bytes of a request. Raises ValueError for a path or header that would end its line early."""
        path, body = outgoing.path, outgoing.body
        host = f"[{self.host}]" if ":" in self.host else self.host
        fields = {"Host": f"{host}:{self.port}", "Accept": "*/*", "Connection": "close", **headers}
        if outgoing.method != "GET":
            fields |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
        lines = [
            f"{outgoing.method} {self.prefix}{path} HTTP/1.1",
            *(f"{name}: {value}" for name, value in fields.items()),
        ]
        if not path.startswith("/") or " " in path or any(not line.isprintable() for line in lines):
            raise ValueError(f"{path!r} cannot be asked for")
        return "\r\n".join([*lines, "", ""]).encode() + body


class Incoming:
    """The answer while it arrives."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self._reader = reader
        self._parser = httptools.HttpResponseParser(self)
        self._pieces: list[bytes] = []
        self._has_head = False
        self._is_complete = False

    async def head(self) -> None:
        """Return once status and headers are known."""
        left = HEAD_LIMIT_BYTES
        while not self._has_head:
            left -= await self._read()
            if left < 0:
                raise BrokenAnswer("the headers have no end")

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body as it comes, without the framing of its chunks."""
        while True:
            if self._pieces:  # all at once: ten thousand chunks of a byte each must not cost as many turns
                pieces, self._pieces = b"".join(self._pieces), []
                yield pieces
            if self._is_complete:
                return
            await self._read()

    async def _read(self) -> int:
        data = await self._reader.read(PIECE_BYTES)
        if data:
            try:
                self._parser.feed_data(data)
            except httptools.HttpParserError as exc:
                raise BrokenAnswer(f"no HTTP: {exc}") from exc
        elif not self._ends_with_connection:
            raise BrokenAnswer("the connection ended in the middle of the answer")
        else:
            self._is_complete = True
        return len(data)

    @property
    def _ends_with_connection(self) -> bool:
        return self._has_head and not {"content-length", "transfer-encoding"} & self.headers.keys()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called by the parser."""
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Called by the parser."""
        self.status = self._parser.get_status_code()
        self._has_head = True

    def on_body(self, body: bytes) -> None:
        """Called by the parser."""
        self._pieces.append(body)

    def on_message_complete(self) -> None:
        """Called by the parser."""
        self._is_complete = True


@asynccontextmanager
async def open_exchange(
    target: Target, outgoing: Outgoing, headers: Mapping[str, str], *, connect_seconds: float, head_seconds: float
) -> AsyncIterator[Incoming]:
    """Ask, and hand over the answer once its head is there. Raises OSError, TimeoutError and BrokenAnswer.

    Every request has its own connection: there is one in half a minute, and none to keep track of in between.
    """
    request = target.request(outgoing, headers)
    async with asyncio.timeout(connect_seconds):
        reader, writer = await asyncio.open_connection(target.host, target.port, ssl=target.is_tls or None)
    try:
        incoming = Incoming(reader)
        async with asyncio.timeout(head_seconds):
            if outgoing.before_sending is not None:
                outgoing.before_sending()
            writer.write(request)
            await writer.drain()
            await incoming.head()
        yield incoming
    finally:
        writer.transport.abort()  # nothing is left to say; a polite close could hang on a dead peer
