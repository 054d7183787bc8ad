"""What the collector shows of itself: `/metrics` and `/healthz`, on an address of their own, read-only.

`/last-poll` is for the kubelet, before it ends a head: a native sidecar is told of its pod's end only after Ray.

By hand on asyncio's streams: aiohttp, which the operator uses for this, would cost a third of the collector's memory.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from types import TracebackType

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from raykeeper.clock import Clock
from raykeeper.errors import Misconfigured
from raykeeper.logs import Log
from raykeeper.settings.addresses import Address

log = Log("raykeeper.collector.watching")

REQUEST_SECONDS = 5.0
LAST_POLL_SECONDS = 10.0  # of the 60 that a pod has to end, and Ray needs 30 of them
LAST_POLL_PAUSE_SECONDS = 5.0  # who else reaches this address must not keep the head busy
MAX_HEAD_BYTES = 8192
MAX_CONNECTIONS = 32
"""Any pod may connect; each takes a descriptor, of which the event sink needs some. A further one takes the place of
another."""
_TEXT = "text/plain; charset=utf-8"


LastPoll = Callable[[float], Awaitable[bool]]
"""Asks the head everything once more within some seconds; whether that went well."""


class Watching:
    """Listens inside `async with`; nowhere where the address is None.

    An address that is not required may be taken: another container of the pod may have had it before us.
    """

    def __init__(
        self,
        address: Address | None,
        registry: CollectorRegistry,
        clock: Clock,
        last_poll: LastPoll | None,
        *,
        is_required: bool = True,
    ) -> None:
        self._address = address
        self._registry = registry
        self._clock = clock
        self._last_poll = last_poll
        self._is_required = is_required
        self._open: dict[asyncio.Task[None], str] = {}
        """Requests by whom they came from, oldest first."""
        self._may_poll_at = float("-inf")
        self._polling: asyncio.Task[bool] | None = None
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Watching:
        if self._address is not None:
            await self._listen(self._address)
        return self

    async def _listen(self, address: Address) -> None:
        try:
            self._server = await asyncio.start_server(self._accepted, address.host, address.port, limit=MAX_HEAD_BYTES)
        except OSError as exc:
            cause = Misconfigured("--metrics-addr", f"{address.host or ''}:{address.port}", exc.strerror or str(exc))
            if self._is_required:
                raise cause from exc
            log.warning("nobody can watch this collector", cause=str(cause))
            return
        addresses = [socket.getsockname()[:2] for socket in self._server.sockets]
        log.info("listening", purpose="metrics address", addresses=addresses)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.close()

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._open) >= MAX_CONNECTIONS:
            self._make_room()
        host = (writer.get_extra_info("peername") or ("",))[0]
        request = asyncio.create_task(self._answer(reader, writer))
        self._open[request] = host
        request.add_done_callback(lambda done: self._ended(done, writer))

    def _ended(self, request: asyncio.Task[None], writer: asyncio.StreamWriter) -> None:
        self._open.pop(request, None)
        writer.close()  # also of a request that was cancelled before it began

    def _make_room(self) -> None:
        """Hang up on the oldest request of who has most, so that nobody keeps the kubelet or Prometheus out."""
        counts = Counter(self._open.values())
        oldest = next(request for request, host in self._open.items() if counts[host] == max(counts.values()))
        del self._open[oldest]
        oldest.cancel()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request per connection: scrapes are seconds apart."""
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            response = await self._polled() if head.startswith(b"GET /last-poll ") else self._response(head)
            async with asyncio.timeout(REQUEST_SECONDS):
                writer.write(response)
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            log.debug("request to the metrics address given up")

    async def _polled(self) -> bytes:
        """What the kubelet waits for before it ends a head."""
        if self._last_poll is None:
            return _response(b"404 Not Found", _TEXT, b"only the head's collector polls\n", has_body=True)
        # Whoever asks meanwhile waits for the same poll: nobody can use up the kubelet's, or keep the head busy.
        if self._polling is None:
            self._polling = asyncio.create_task(self._poll_after_pause(self._last_poll))
        is_done = await asyncio.shield(self._polling)
        return _response(b"200 OK", _TEXT, b"done\n" if is_done else b"not done\n", has_body=True)

    async def _poll_after_pause(self, last_poll: LastPoll) -> bool:
        try:
            await asyncio.sleep(self._may_poll_at - self._clock.steady())
            return await last_poll(LAST_POLL_SECONDS)
        finally:
            self._may_poll_at = self._clock.steady() + LAST_POLL_PAUSE_SECONDS
            self._polling = None

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
