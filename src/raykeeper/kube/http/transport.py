"""Sends requests: waits for the rate limit, checks the fence, renews credentials, repeats what may be repeated.

Everything above it deals in `Request` and `Answer`; nothing above it sees aiohttp.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from raykeeper.clock import Clock
from raykeeper.errors import RaykeeperError, Unavailable
from raykeeper.kube.connect.connection import Connection
from raykeeper.kube.connect.credentials import Credentials, Identity
from raykeeper.kube.errors import NotDone, NotLeading, Unauthorized
from raykeeper.kube.http.answers import Answer, error_of, is_own_refusal
from raykeeper.kube.http.attempts import Attempts
from raykeeper.kube.http.fencedbody import Fence, FencedBody, drop
from raykeeper.kube.http.ratelimit import RateLimiter
from raykeeper.kube.http.requestmetrics import RequestMetrics
from raykeeper.kube.http.requests import Request
from raykeeper.kube.http.resolving import TimedResolver
from raykeeper.kube.http.slots import Connections, Slots
from raykeeper.kube.http.unanswered import NEVER_SENT, NO_ANSWER, Patience, why_unanswered
from raykeeper.kube.metrics import KubeMetrics

KEEP_ALIVE_SECONDS = 60.0
"""Idle connections are dropped before the API server does so at 90, or a write could run into the closing."""


RELAYED_LIMIT_BYTES = 8 << 20
"""Of an answer of a server behind the API server, such as a Ray head, which belongs to its users."""
Body = bytes | AsyncIterable[bytes]
"""Of a request that is passed on: whole, or as it arrives."""


@dataclass(frozen=True)
class PassedAnswer:
    """An answer while it arrives."""

    status: int
    headers: CIMultiDict[str]
    pieces: AsyncIterator[bytes]


Guard = Callable[[Request], Awaitable[None]]
"""Lets a request pass, or raises: for requests with our own rights that somebody else asked for."""


@dataclass(frozen=True)
class Lane:
    """The limits a request travels under."""

    limiter: RateLimiter
    connections: Connections
    fence: Fence | None = None
    credentials: Credentials | None = None
    """Whose they are; None for our own."""
    guard: Guard | None = None
    """Asked before each request."""


class Transport:
    """One API server's HTTP sessions: one for requests, one for streams, which hold their connection for long."""

    def __init__(
        self, connection: Connection, metrics: KubeMetrics, clock: Clock, user_agent: str, patience: Patience
    ) -> None:
        self.connection = connection
        self.service = f"kubernetes API at {connection.server}"
        self._clock = clock
        self._patience = patience
        self._new_resolver = partial(TimedResolver, metrics, clock)
        self._metrics = RequestMetrics(metrics, URL(connection.server).authority)
        # Not compressed: gzip of a page of 500 Ray pods (4.4 MB) costs the API server 30 ms of CPU and the answer as
        # much delay, saves us nothing (inflating costs what decrypting saves), and pays only below about 1 Gbit/s.
        self._headers = {"User-Agent": user_agent, "Accept": "application/json", "Accept-Encoding": "identity"}
        self._requests: aiohttp.ClientSession | None = None
        self._streams: aiohttp.ClientSession | None = None
        self._passed: aiohttp.ClientSession | None = None  # made by whoever passes requests on

    async def open(self) -> None:
        self._requests = self._session()
        self._streams = self._session()

    async def close(self) -> None:
        for session in (self._requests, self._streams, self._passed):
            if session is not None:
                await session.close()

    def _session(self, *, auto_decompress: bool = True) -> aiohttp.ClientSession:
        # Without a limit: how many requests are under way is for `Slots` to say, which knows whose they are.
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0, keepalive_timeout=KEEP_ALIVE_SECONDS, resolver=self._new_resolver()
            ),
            headers=self._headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            auto_decompress=auto_decompress,
        )

    async def send(self, request: Request, lane: Lane) -> Answer:
        """The answer to a request that the server granted; raises the error that a refusal stands for."""
        slots = lane.connections.writes if request.is_write else lane.connections.reads
        attempts = await self._begin(request, lane)
        while True:
            answer = await self._exchange(request, lane, slots, attempts.identity)
            if answer.status < 300:
                return answer
            if not await attempts.again(answer):
                raise self._refusal(request, answer, attempts.identity)

    async def relay(self, request: Request, lane: Lane) -> Answer:
        """The answer of a server behind the API server, whatever its status; raises only the API server's refusals."""
        attempts = await self._begin(request, lane)
        while True:
            turns = lane.connections.relays
            answer = await self._exchange(request, lane, turns, attempts.identity, RELAYED_LIMIT_BYTES)
            if answer.status < 300 or not is_own_refusal(answer):
                return answer
            if not await attempts.again(answer):
                raise self._refusal(request, answer, attempts.identity)

    async def stream(self, request: Request, lane: Lane, silence: float) -> AsyncGenerator[bytes, None]:
        """The body of a granted GET in the pieces it arrives in, after an empty one, until the server ends it."""
        attempts = await self._begin(request, lane)
        while True:
            response = await self._attempt(self._streams, request, lane, attempts.identity, silence)
            if response.status < 300:
                break
            answer = await self._whole(response, request, silence)
            if not await attempts.again(answer):
                raise self._refusal(request, answer, attempts.identity)
        try:
            yield b""  # granted; a quiet watch has nothing else to say for up to a minute
            while chunk := await response.content.readany():
                yield chunk
        except NO_ANSWER as exc:
            raise self._unavailable(request, exc, silence) from exc
        finally:
            if response.connection is not None:  # left before its end
                drop(response.connection.transport)
            response.close()

    @asynccontextmanager
    async def pass_on(
        self, request: Request, lane: Lane, headers: Mapping[str, str], body: Body | None, silence: float | None
    ) -> AsyncIterator[PassedAnswer]:
        """The answer to a request that is passed on for somebody: whatever its status, and with its body unread.

        Sent once, by a connection of its own for as long as it lasts. Nothing of `headers` replaces credentials.
        It may take `silence` seconds to begin.
        """
        attempts = await self._begin(request, lane)
        if self._passed is None:
            self._passed = self._session(auto_decompress=False)
        self._metrics.waited(request.method, await lane.limiter.acquire())
        started = self._clock.steady()
        try:
            async with asyncio.timeout(silence):
                response = await self._passed.request(
                    request.method,
                    URL(self.connection.server + request.path, encoded=True),
                    headers=_with_identity(headers, attempts.identity),
                    skip_auto_headers=("Content-Type",),  # without one Kubernetes takes JSON, and no octet-stream
                    data=body,
                    allow_redirects=False,
                    proxy=self.connection.proxy,
                    ssl=attempts.identity.tls or True,
                    server_hostname=self.connection.tls_server_name,
                    timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._patience.connect),
                )
        except NO_ANSWER as exc:
            self._metrics.unanswered(request.method)
            raise self._unavailable(request, exc, silence or 0.0) from exc
        self._metrics.answered(request.method, response.status, self._clock.steady() - started)
        try:
            yield PassedAnswer(response.status, CIMultiDict(response.headers), self._pieces(response, request))
        finally:
            if response.connection is not None:  # left before its end
                drop(response.connection.transport)
            response.close()

    async def _pieces(self, response: aiohttp.ClientResponse, request: Request) -> AsyncIterator[bytes]:
        try:
            async for piece in response.content.iter_any():
                yield piece
        except NO_ANSWER as exc:
            raise self._unavailable(request, exc, 0.0) from exc

    async def check(self, request: Request, lane: Lane) -> None:
        """Raise as the request would if the lane's guard does not let it pass; nothing is sent."""
        if lane.guard is not None:
            await lane.guard(request)

    async def connect(
        self, request: Request, lane: Lane
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, CIMultiDict[str]]:
        """A bare connection for a request that asks for another protocol, and the headers that say who asks."""
        attempts = await self._begin(request, lane)
        url, identity = URL(self.connection.server), attempts.identity
        if self.connection.proxy is not None:
            raise Unavailable(self.service, "upgraded connections do not pass the HTTP proxy in between")
        name = self.connection.tls_server_name or url.host
        try:
            async with asyncio.timeout(self._patience.connect):
                reader, writer = await asyncio.open_connection(
                    url.host, url.port, ssl=identity.tls, server_hostname=name if identity.tls else None
                )
        except NO_ANSWER as exc:
            raise self._unavailable(request, exc, self._patience.connect) from exc
        return reader, writer, _with_identity({"Host": url.authority}, identity)

    async def _begin(self, request: Request, lane: Lane) -> Attempts:
        """Ask whether this request may be made at all, then who makes it."""
        await self.check(request, lane)
        return await Attempts.begin(lane.credentials or self.connection.credentials, request.method, self._metrics)

    async def _exchange(
        self, request: Request, lane: Lane, slots: Slots, identity: Identity, limit_bytes: int | None = None
    ) -> Answer:
        silence = self._patience.write if request.is_write else self._patience.read
        slot = await slots.take(request.namespace, request.about, self._patience.turn)
        try:
            response = await self._attempt(self._requests, request, lane, identity, silence)
            return await self._whole(response, request, silence, limit_bytes)
        finally:
            slots.release(slot)

    async def _attempt(
        self, session: aiohttp.ClientSession | None, request: Request, lane: Lane, identity: Identity, silence: float
    ) -> aiohttp.ClientResponse:
        """Send once and wait for the answer's headers."""
        if session is None:
            raise RuntimeError("a request before `async with Kube(...)` or after its end")
        self._metrics.waited(request.method, await lane.limiter.acquire())
        started = self._clock.steady()
        try:
            response = await session.request(
                request.method,
                URL(self.connection.server + request.path, encoded=True),
                headers=self._headers_of(request, identity),
                data=_payload(request, lane.fence),
                allow_redirects=False,  # a redirect could carry our token elsewhere
                proxy=self.connection.proxy,
                ssl=identity.tls or True,
                server_hostname=self.connection.tls_server_name,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._patience.connect, sock_read=silence),
            )
        except NO_ANSWER as exc:
            self._metrics.unanswered(request.method)
            raise self._unavailable(request, exc, silence) from exc
        self._metrics.answered(request.method, response.status, self._clock.steady() - started)
        if request.body is not None:
            self._metrics.sent(request.method, len(request.body))
        return response

    def _headers_of(self, request: Request, identity: Identity) -> CIMultiDict[str]:
        content = {} if request.body is None else {"Content-Type": request.content_type}
        headers = CIMultiDict({**dict(request.headers), **identity.headers, **content})
        headers.extend(identity.repeated)
        return headers

    async def _whole(
        self, response: aiohttp.ClientResponse, request: Request, silence: float, limit_bytes: int | None = None
    ) -> Answer:
        try:
            body = await response.read() if limit_bytes is None else await _read_up_to(response, limit_bytes)
        except NO_ANSWER as exc:
            raise self._unavailable(request, exc, silence) from exc
        except _TooLarge as exc:
            raise Unavailable(self.service, f"{request.about}: the answer has more than {limit_bytes} bytes") from exc
        self._metrics.read(request.method, len(body))
        return Answer(response.status, response.headers, body)

    def _unavailable(self, request: Request, exc: BaseException, silence: float) -> RaykeeperError:
        if isinstance(exc.__cause__, NotLeading):  # aiohttp wraps whatever a body raises while it is written
            return exc.__cause__
        cause = why_unanswered(exc, self.connection, self._patience.connect, silence)
        failure = NotDone if isinstance(exc, NEVER_SENT) else Unavailable
        return failure(self.service, f"{request.about}: {cause}")

    def _refusal(self, request: Request, answer: Answer, identity: Identity) -> RaykeeperError:
        if answer.status == 401:
            message = identity.why_refused(self.connection.source, self._clock.now())
            return Unauthorized(request.about, 401, "Unauthorized", message)
        return error_of(self.service, request.about, answer)


class _TooLarge(Exception):
    """More came than may be read."""


async def _read_up_to(response: aiohttp.ClientResponse, limit_bytes: int) -> bytes:
    """A body that somebody behind the API server sends; what it says of its own length, or compresses, is no matter."""
    body = bytearray()
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > limit_bytes:
            response.close()
            raise _TooLarge
    return bytes(body)


def _with_identity(headers: Mapping[str, str], identity: Identity) -> CIMultiDict[str]:
    """A client's headers with our credentials instead of whatever it showed to us."""
    found = CIMultiDict(headers)
    for name in ("Authorization", *identity.headers, *(name for name, _ in identity.repeated)):
        found.popall(name, None)
    found.update(identity.headers)
    found.extend(identity.repeated)
    return found


def _payload(request: Request, fence: Fence | None) -> aiohttp.BytesPayload | None:
    if not request.is_write:
        return None
    body = request.body or b""
    return aiohttp.BytesPayload(body) if fence is None else FencedBody(body, fence)
