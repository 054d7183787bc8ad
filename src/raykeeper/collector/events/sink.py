"""The sink: takes Ray's batches on loopback. Imports little, so that it listens before anything else is ready."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from typing import Protocol

from raykeeper.clock import Clock
from raykeeper.collector.events.connection import Connection
from raykeeper.collector.events.incoming import IncomingBody
from raykeeper.collector.events.requests import RequestHead
from raykeeper.collector.events.spool import Spool
from raykeeper.errors import Misconfigured
from raykeeper.logs import Log

log = Log("raykeeper.collector.sink")

MAX_CONNECTIONS = 16
"""Ray opens one. Each may hold a body of LARGE_BODY_BYTES in memory."""
REQUEST_SECONDS = 60.0
"""A request must have come in by then; Ray itself gives up after 3 s."""
SLOW_BYTES_PER_SECOND = 64 * 1024
"""Of a request that has begun: the slowest client below this goes first where there is no room for a new one. Ray sends
from the same machine, a thousand times as fast."""
IDLE_SECONDS = 3600.0
SWEEP_SECONDS = 5.0


class SinkFigures(Protocol):
    """What the sink counts."""

    def batch_received(self, size: int) -> None: ...

    def answered(self, status: HTTPStatus) -> None: ...


class Sink:
    """Listens for Ray. `last_post_at` is when the last batch came, on the steady clock."""

    def __init__(self, spool: Spool, clock: Clock, figures: SinkFigures, pace: Callable[[], Awaitable[None]]) -> None:
        self.last_post_at: float | None = None
        self.port = 0
        self._spool = spool
        self._clock = clock
        self._figures = figures
        self.pace = pace
        """Awaited before a batch that was kept is answered."""
        self._has_misdirected = False
        self._servers: list[asyncio.Server] = []
        self._connections: set[Connection] = set()
        self._sweeping: asyncio.TimerHandle | None = None

    async def listen(self, hosts: Sequence[str], port: int) -> None:
        """Listen on every host that is there; the first must be. Port 0 takes a free one, the same for all."""
        self.port = port
        for host in hosts:
            await self._listen_on(host, is_required=host == hosts[0])
        self._sweep()

    async def stop(self) -> None:
        """Hang up and listen no more."""
        if self._sweeping is not None:
            self._sweeping.cancel()
        for server in self._servers:
            server.close()
        for connection in tuple(self._connections):
            connection.abort()
        for server in self._servers:
            await server.wait_closed()

    def receive(self, head: RequestHead) -> IncomingBody:
        self.last_post_at = self._clock.steady()
        self._figures.batch_received(head.content_length)
        return IncomingBody(self._spool, head.encoding, head.content_length)

    def answered(self, status: HTTPStatus) -> None:
        self._figures.answered(status)

    def misdirected(self, path: bytes) -> None:
        """Say it once: Ray repeats for ever what is sent to a wrong address, and nothing of it arrives."""
        if not self._has_misdirected:
            self._has_misdirected = True
            cure = "Ray's RAY_DASHBOARD_AGGREGATOR_AGENT_EVENTS_EXPORT_ADDR must end in /v1/events"
            log.warning("somebody posts to a path that is not there", path=path[:200].decode("latin-1"), cure=cure)

    def steady(self) -> float:
        return self._clock.steady()

    def opened(self, connection: Connection) -> None:
        """Make room for a new client where there is none."""
        if len(self._connections) >= MAX_CONNECTIONS:
            (self._dispensable() or connection).abort()
        self._connections.add(connection)

    def _dispensable(self) -> Connection | None:
        """The slowest client if it is slower than any Ray, else who was idle longest, else the slowest; None if all of
        them wait for us.
        """
        now = self._clock.steady()
        paces = {other: pace for other in self._connections if (pace := other.bytes_per_second(now)) is not None}
        slowest = min(paces, key=paces.__getitem__, default=None)
        if slowest is not None and paces[slowest] < SLOW_BYTES_PER_SECOND:
            return slowest
        idle = [other for other in self._connections if other.is_idle]
        return min(idle, key=lambda other: other.quiet_since, default=slowest)

    def closed(self, connection: Connection) -> None:
        self._connections.discard(connection)

    async def _listen_on(self, host: str, *, is_required: bool) -> None:
        try:
            server = await asyncio.get_running_loop().create_server(lambda: Connection(self), host, self.port)
        except OSError as exc:
            if not is_required:
                log.debug("address not there", host=host, cause=exc.strerror)
                return
            cure = "another process listens there" if exc.errno == errno.EADDRINUSE else str(exc)
            raise Misconfigured("events port", self.port, cure) from exc
        self.port = server.sockets[0].getsockname()[1]
        self._servers.append(server)

    def _sweep(self) -> None:
        """Hang up on clients that stall, and on those that left without a word."""
        now = self._clock.steady()
        for connection in tuple(self._connections):
            since = connection.reading_since
            is_stalled = since is not None and now - since > REQUEST_SECONDS
            if is_stalled or (connection.is_idle and now - connection.quiet_since > IDLE_SECONDS):
                connection.abort()
        self._sweeping = asyncio.get_running_loop().call_later(SWEEP_SECONDS, self._sweep)
