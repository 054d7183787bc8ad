"""Whom the poller asks, and how what is answered is read.

A dashboard's port belongs to whoever has it: user code can answer in Ray's place, so what is taken apart has a bound.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

import msgspec

from raykeeper.layout.bounded import element_bound
from raykeeper.ray.dashboard import Answer

MAX_READ_BYTES = 8 << 20
"""Of an answer that is taken apart: as text, it may take four times as much. Larger ones are stored all the same."""
MAX_ELEMENTS = 500_000
"""Of an answer that is taken apart: 50 MB of memory. 10,000 jobs have half of it."""

T = TypeVar("T")


class Asks(Protocol):
    """The part of the dashboard client that the poller needs."""

    async def get(self, path: str, limit_bytes: int | None = None) -> Answer:
        """The answer to a GET, of at most so many bytes. Raises Unavailable, RayRefused, OversizedAnswer."""


class UnreadableAnswer(ValueError):
    """A body that is no JSON, of another shape, nested deeper or of more elements than Ray's ever are."""


def read_answer(body: bytes, kind: type[T]) -> T:
    """What an answer says. Raises UnreadableAnswer."""
    if len(body) > MAX_READ_BYTES or element_bound(body) > MAX_ELEMENTS:
        raise UnreadableAnswer(f"more than {MAX_READ_BYTES} bytes, or {MAX_ELEMENTS} elements")
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise UnreadableAnswer(str(exc)) from exc


def read_any_answer(body: bytes) -> Any:
    """What an answer of any shape says. Raises UnreadableAnswer."""
    return read_answer(body, object)
