"""Who may follow a log: so many at once, and nobody keeps others out by following all of them."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class NoSlot(Exception):
    """All are taken, and nobody has more than this client would have."""


class TailSlots:
    """`limit` slots. While some are free, anybody may have them. Once none is, a newcomer takes the oldest slot of the
    client who has most, unless it would have as many itself."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held: dict[str, OrderedDict[int, asyncio.Timeout]] = {}
        self._taken = 0
        self._next = 0

    @asynccontextmanager
    async def slot(self, client: str) -> AsyncIterator[None]:
        """Hold a slot inside the block, which ends early when another client takes it. Raises NoSlot at once.

        Nothing can come between the look for a slot and its taking.
        """
        if self._taken >= self._limit:
            self._take_from_richest(client)
        self._next += 1
        number = self._next
        try:
            async with asyncio.timeout(None) as scope:
                self._taken += 1
                self._held.setdefault(client, OrderedDict())[number] = scope
                try:
                    yield
                finally:
                    self._give_back(client, number)
        except TimeoutError:
            if not scope.expired():
                raise

    def _take_from_richest(self, client: str) -> None:
        richest = max(self._held, key=lambda one: len(self._held[one]), default=client)
        if len(self._held.get(richest, ())) <= len(self._held.get(client, ())) + 1:
            raise NoSlot
        number, scope = next(iter(self._held[richest].items()))
        self._give_back(richest, number)
        scope.reschedule(asyncio.get_running_loop().time())

    def _give_back(self, client: str, number: int) -> None:
        """May come twice: for a slot that was taken, and at its end."""
        held = self._held.get(client)
        if held is not None and held.pop(number, None) is not None:
            self._taken -= 1
            if not held:
                del self._held[client]
