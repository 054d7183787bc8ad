"""Limits requests to the bucket: a few at a time while it answers, one after a pause while it is down."""

from __future__ import annotations

import asyncio
import enum
import heapq
import itertools

from raykeeper.backoff import Backoff


class Priority(enum.IntEnum):
    """What goes first when not everything can."""

    FIRST = 0
    """Events, user output, records."""
    LATER = 1
    """Ray's own component logs."""


class Turns:
    """Hands out turns in the order of priority, then of arrival. Every turn taken must be ended."""

    def __init__(self, parallel: int, pauses: Backoff) -> None:
        self.failures = 0
        """In a row; 0 while the bucket answers."""
        self._parallel = parallel
        self._pauses = pauses
        self._taken = 0
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._numbers = itertools.count()
        self._pause: asyncio.TimerHandle | None = None

    @property
    def is_awaited(self) -> bool:
        """Whether somebody waits for a turn."""
        return any(not turn.done() for _, _, turn in self._waiting)

    async def take(self, priority: Priority) -> int:
        """Return when it is this caller's turn, with the number of failures before it."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (priority, next(self._numbers), turn))
        self._hand_out()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.end()
            raise
        return self.failures

    def end(self) -> None:
        """Give a turn back without having learned anything about the bucket."""
        self._taken -= 1
        self._hand_out()

    def succeeded(self) -> None:
        """End a turn: the bucket answers."""
        self.failures = 0
        self._unpause()
        self.end()

    def failed(self, failures_before: int) -> None:
        """End a turn: the bucket does not answer, so that the next one is for one caller, after a pause.

        Turns that were under way together fail together, which counts as one failure.
        """
        if failures_before == self.failures:
            self.failures += 1
            self._unpause()
            seconds = self._pauses.delay(self.failures)
            self._pause = asyncio.get_running_loop().call_later(seconds, self._resume)
        self.end()

    def _resume(self) -> None:
        self._pause = None
        self._hand_out()

    def _unpause(self) -> None:
        if self._pause is not None:
            self._pause.cancel()
            self._pause = None

    def _hand_out(self) -> None:
        parallel = 1 if self.failures else self._parallel
        while self._waiting and self._pause is None and self._taken < parallel:
            _, _, turn = heapq.heappop(self._waiting)
            if not turn.done():
                self._taken += 1
                turn.set_result(None)
