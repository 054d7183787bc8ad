"""Caches expensive parts of answers while their session does not change."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec

from raykeeper.history.bounded import Bounded
from raykeeper.history.ingest.session import Session

LIMIT_BYTES = 64 << 20  # the summary of a thousand nodes is 16 MB, and pages of several sessions are open at a time

T = TypeVar("T")


class ResponseCache:
    """Values of one history server, up to so many bytes together; the longest unused go first.

    Guarantees: whoever asks for the same value at the same time waits for one making of it. Failures are not kept.
    """

    def __init__(self, limit_bytes: int = LIMIT_BYTES) -> None:
        self._values: Bounded[Hashable, Any] = Bounded(limit_bytes)
        self._making: dict[Hashable, asyncio.Task[Any]] = {}
        self.large_answers = asyncio.Semaphore(1)
        """Taken by who decodes a polled answer of megabytes: each takes ten times its size while that goes on."""

    async def get(
        self,
        key: Hashable,
        make: Callable[[], Awaitable[T]],
        weigh: Callable[[T], int] | None = None,
        is_whole: Callable[[T], bool] = lambda _: True,
    ) -> T:
        """The value under this key, made if it is not known. Without `weigh` its size as JSON counts.

        One that is not whole yet is not kept.
        """
        if key in self._values:
            return cast("T", self._values.get(key))
        task = self._making.get(key)
        if task is None:
            task = asyncio.create_task(self._make(key, make, weigh or _json_bytes, is_whole))
            self._making[key] = task
            task.add_done_callback(lambda done: self._made(key, done))
        made: T = await asyncio.shield(task)
        return made

    def drop(self, key: Hashable) -> None:
        """Make the value anew when it is asked for again."""
        self._values.drop(key)

    async def close(self) -> None:
        """Stop what is being made: whoever waited for it is gone."""
        making = list(self._making.values())
        for task in making:
            task.cancel()
        await asyncio.gather(*making, return_exceptions=True)

    async def _make(
        self,
        key: Hashable,
        make: Callable[[], Awaitable[T]],
        weigh: Callable[[T], int],
        is_whole: Callable[[T], bool],
    ) -> T:
        value = await make()
        if is_whole(value):
            self._values.put(key, value, weigh(value))
        return value

    def _made(self, key: Hashable, task: asyncio.Task[Any]) -> None:
        self._making.pop(key, None)
        if not task.cancelled():
            task.exception()  # whoever waits raises it; if nobody does any more, it is no news


def session_version(session: Session) -> Hashable:
    """Differs as soon as anything was added to the session: a table, a poll, a heartbeat, an end, a gap."""
    return (
        session.id,
        session.as_of,
        session.state,
        session.progress,
        session.record,
        session.closed,
        session.nodes,
        session.ends,
        session.gaps,
        frozenset((path, answer.polled_at) for path, answer in session.polled.items()),
        tables_version(session, *sorted(session.tables)),
    )


def polled_at(session: Session, path: str) -> tuple[Hashable, datetime | None]:
    """Differs as soon as a path was polled again."""
    answer = session.polled.get(path)
    return session.id, answer.polled_at if answer else None


def last_poll(session: Session) -> datetime | None:
    """Differs as soon as anything was polled again."""
    return max((answer.polled_at for answer in session.polled.values()), default=None)


def tables_version(session: Session, *tables: str) -> tuple[tuple[Path, ...], ...]:
    """Differs as soon as one of the tables does: a file is named after what it was made from."""
    return tuple(session.tables.get(name, ()) for name in tables)


def _json_bytes(value: object) -> int:
    return len(msgspec.json.encode(value))
