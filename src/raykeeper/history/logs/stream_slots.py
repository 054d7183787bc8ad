"""Who may read or follow a log: so many at once, and nobody keeps others out by taking all of them."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

STALLED_SECONDS = 10.0
"""Who has taken nothing of what is sent for so long loses its slot to the first who wants one."""


class NoSlot(Exception):
    """All are taken by clients who read, and nobody has more than this client would have."""


class StreamSlots:
    """`limit` slots. While some are free, anybody may have them. Once none is, a newcomer takes the one that stalls the
    longest; else the oldest of the client who has most, unless it would have as many itself."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held: dict[str, OrderedDict[int, Slot]] = {}
        self._taken = 0
        self._next = 0

    def take(self, client: str) -> Slot:
        """A slot, to be held or given back. Raises NoSlot at once."""
        if self._taken >= self._limit:
            (self._longest_stalled() or self._oldest_of_richest(client)).take_away()
        self._next += 1
        slot = Slot(self, client, self._next)
        self._held.setdefault(client, OrderedDict())[slot.number] = slot
        self._taken += 1
        return slot

    @asynccontextmanager
    async def slot(self, client: str) -> AsyncIterator[Slot]:
        """Hold a slot inside the block, which ends early when another client takes it. Raises NoSlot at once."""
        slot = self.take(client)
        async with slot.held():
            yield slot

    def _longest_stalled(self) -> Slot | None:
        long_ago = asyncio.get_running_loop().time() - STALLED_SECONDS
        blocked = [(slot.blocked_since, slot) for held in self._held.values() for slot in held.values()]
        stalled = [(since, slot) for since, slot in blocked if since is not None and since <= long_ago]
        return min(stalled, key=lambda one: one[0])[1] if stalled else None

    def _oldest_of_richest(self, client: str) -> Slot:
        richest = max(self._held, key=lambda one: len(self._held[one]), default=client)
        if len(self._held.get(richest, ())) <= len(self._held.get(client, ())) + 1:
            raise NoSlot
        return next(iter(self._held[richest].values()))

    def give_back(self, slot: Slot) -> None:
        """May come twice: for a slot that was taken away, and at its end."""
        held = self._held.get(slot.client)
        if held is not None and held.pop(slot.number, None) is not None:
            self._taken -= 1
            if not held:
                del self._held[slot.client]


class Slot:
    """One of them, until it is given back or taken away."""

    def __init__(self, slots: StreamSlots, client: str, number: int) -> None:
        self.client = client
        self.number = number
        self.blocked_since: float | None = None
        """Since when something is being sent that the client has not taken."""
        self._slots = slots
        self._scope: asyncio.Timeout | None = None
        self._is_taken_away = False

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Give it back at the end of the block, which ends early when another client takes it."""
        try:
            async with asyncio.timeout(0 if self._is_taken_away else None) as scope:
                self._scope = scope
                yield
        except TimeoutError:
            if not scope.expired():
                raise
        finally:
            self.give_back()

    @contextmanager
    def sending(self) -> Iterator[None]:
        """Around each piece that is sent."""
        self.blocked_since = asyncio.get_running_loop().time()
        try:
            yield
        finally:
            self.blocked_since = None

    def give_back(self) -> None:
        self._slots.give_back(self)

    def take_away(self) -> None:
        self.give_back()
        self._is_taken_away = True
        if self._scope is not None:
            self._scope.reschedule(asyncio.get_running_loop().time())
