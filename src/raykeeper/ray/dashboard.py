"""A Ray head's dashboard: asked for one path at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from raykeeper.errors import Unavailable
from raykeeper.ray.credentials import Credentials, NoToken
from raykeeper.ray.errors import NotAnswered, OversizedAnswer, RayRefused
from raykeeper.ray.exchange import BrokenAnswer, Incoming, Outgoing, Target, open_exchange

MIB = 1 << 20
LARGE_BYTES = MIB // 4
"""Of an answer that is large where many are read at once."""
WANTS_ANOTHER_TOKEN = frozenset({401, 403})


@dataclass(frozen=True)
class Answer:
    """What the dashboard said, whatever its status; refusals for want of a token are raised instead."""

    status: int
    body: bytes
    content_type: str

    @property
    def is_ok(self) -> bool:
        return self.status == 200

    @property
    def is_json(self) -> bool:
        return self.content_type.startswith("application/json")


@dataclass(frozen=True)
class Limits:
    """How long and how much one request may take."""

    connect_seconds: float = 3.0
    answer_seconds: float = 20.0
    """Of a whole answer, and of each piece of a streamed one. Serve's first answer takes 7 s on a busy machine."""
    body_bytes: int = 32 * MIB
    """The statistics of 1,500 nodes; a sidecar has no memory for more."""
    large_answers: asyncio.Semaphore | None = None
    """Taken by who reads a large answer, where many dashboards are asked at once and any of them may send one."""


class Dashboard:
    """Asks one dashboard. Raises Unavailable for what passes, RayRefused, OversizedAnswer, and nothing else."""

    def __init__(self, address: str, credentials: Credentials | None = None, limits: Limits | None = None) -> None:
        self._target = Target.parse(address)
        self._credentials = credentials or NoToken()
        self._limits = limits or Limits()
        self.service = f"Ray dashboard {address}"

    async def get(self, path: str, limit_bytes: int | None = None) -> Answer:
        """The whole answer to a GET of `path`, which may carry a query; at most so many bytes, where that is said."""
        return await self.ask(Outgoing(path), limit_bytes)

    async def send(self, method: str, path: str, body: bytes = b"") -> Answer:
        """The whole answer to a request that changes something; its body is JSON."""
        return await self.ask(Outgoing(path, method, body))

    async def ask(self, outgoing: Outgoing, limit_bytes: int | None = None) -> Answer:
        """The whole answer to any request."""
        limit = min(limit_bytes or self._limits.body_bytes, self._limits.body_bytes)
        body, turns = bytearray(), self._limits.large_answers
        async with self._asked(outgoing) as incoming, AsyncExitStack() as stack:
            async for piece in incoming.pieces():
                body += piece
                if len(body) > limit:
                    raise OversizedAnswer(self.service, outgoing.path, limit)
                if turns is not None and len(body) > LARGE_BYTES:
                    await stack.enter_async_context(turns)
                    turns = None
            return Answer(incoming.status, bytes(body), incoming.headers.get("content-type", ""))

    async def stream(self, path: str) -> AsyncGenerator[bytes, None]:
        """The body in pieces, however long it is. Raises NotAnswered unless the status is 200."""
        async with self._asked(Outgoing(path), is_stream=True) as incoming:
            if incoming.status != 200:
                raise NotAnswered(self.service, path, incoming.status)
            pieces = incoming.pieces()
            while True:
                async with asyncio.timeout(self._limits.answer_seconds):
                    piece = await anext(pieces, None)
                if piece is None:
                    return
                yield piece

    @asynccontextmanager
    async def _asked(self, outgoing: Outgoing, *, is_stream: bool = False) -> AsyncIterator[Incoming]:
        headers = self._credentials.headers()
        limits = self._limits
        try:
            # A stream is timed piece by piece, so that a large file may take as long as it needs.
            async with asyncio.timeout(None if is_stream else limits.connect_seconds + limits.answer_seconds):
                async with open_exchange(
                    self._target,
                    outgoing,
                    headers,
                    connect_seconds=limits.connect_seconds,
                    head_seconds=limits.answer_seconds,
                ) as incoming:
                    if incoming.status in WANTS_ANOTHER_TOKEN:
                        raise RayRefused(self.service, incoming.status)
                    yield incoming
        except TimeoutError as exc:
            raise Unavailable(self.service, f"no answer to {outgoing.path} in time") from exc
        except (OSError, BrokenAnswer) as exc:
            raise Unavailable(self.service, _cause(exc)) from exc


def _cause(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
