"""Turns that owners share, so that nobody waits behind all that somebody else wants."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class FairTurns:
    """`limit` turns at a time, at most `share` of them one owner's; owners who wait are served one after the other."""

    def __init__(self, limit: int, share: int) -> None:
        self._limit = limit
        self._share = share
        self._taken: Counter[str] = Counter()
        self._queues: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        """By owner, who was served longest ago first."""

    def waiting_of(self, owner: str) -> int:
        return len(self._queues.get(owner, ()))

    @asynccontextmanager
    async def turn(self, owner: str) -> AsyncIterator[None]:
        """Wait for a turn, and have it inside the block."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queues.setdefault(owner, deque()).append(turn)
        self._hand_out()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._leave(owner, turn)
            else:
                self._end(owner)
            raise
        try:
            yield
        finally:
            self._end(owner)

    def _leave(self, owner: str, turn: asyncio.Future[None]) -> None:
        """Who has gone waits no longer, or many of them would keep others from waiting."""
        queue = self._queues.get(owner, deque())
        with suppress(ValueError):  # it was passed over already
            queue.remove(turn)
        if not queue:
            self._queues.pop(owner, None)

    def _end(self, owner: str) -> None:
        self._taken[owner] -= 1
        if not self._taken[owner]:
            del self._taken[owner]
        self._hand_out()

    def _hand_out(self) -> None:
        while self._taken.total() < self._limit and (owner := self._next_owner()) is not None:
            turn = self._queues[owner].popleft()
            if not turn.done():  # else whoever waited for it is about to leave
                self._taken[owner] += 1
                turn.set_result(None)
                self._queues.move_to_end(owner)
            if not self._queues[owner]:
                del self._queues[owner]

    def _next_owner(self) -> str | None:
        return next((owner for owner in self._queues if self._taken[owner] < self._share), None)
