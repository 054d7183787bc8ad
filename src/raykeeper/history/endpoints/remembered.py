"""Answers that cost much and are asked for again every four seconds, kept while the tables behind them are the same."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from datetime import datetime
from pathlib import Path

from starlette.responses import Response

from raykeeper.history.answers import raw_response
from raykeeper.history.asked import Session

LIMIT_BYTES = 16 << 20  # the summary of a thousand nodes is about this much


class RememberedBodies:
    """Bodies of answers, up to so many bytes together; the longest unused go first."""

    def __init__(self, limit_bytes: int = LIMIT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._bodies: OrderedDict[Hashable, bytes] = OrderedDict()
        self._size = 0

    def find(self, key: Hashable) -> bytes | None:
        body = self._bodies.get(key)
        if body is not None:
            self._bodies.move_to_end(key)
        return body

    def keep(self, key: Hashable, body: bytes) -> None:
        self._size += len(body) - len(self._bodies.pop(key, b""))
        self._bodies[key] = body
        while self._size > self._limit_bytes:
            _, oldest = self._bodies.popitem(last=False)
            self._size -= len(oldest)


async def answer_remembered(
    bodies: RememberedBodies, key: Hashable, make: Callable[[], Awaitable[Response]]
) -> Response:
    """The answer under this key, made if it is not known; failures are not kept."""
    body = bodies.find(key)
    if body is not None:
        return raw_response(body)
    response = await make()
    if response.status_code == 200:
        bodies.keep(key, bytes(response.body))
    return response


def polled_at(session: Session, path: str) -> tuple[Hashable, datetime | None]:
    """Differs as soon as a path was polled again."""
    answer = session.polled.get(path)
    return session.id, answer.polled_at if answer else None


def last_poll(session: Session) -> datetime | None:
    """Differs as soon as anything was polled again."""
    return max((answer.polled_at for answer in session.polled.values()), default=None)


def version_of(session: Session, *tables: str) -> tuple[tuple[Path, ...], ...]:
    """Differs as soon as one of the tables does: a file is named after what it was made from."""
    return tuple(session.tables.get(name, ()) for name in tables)
