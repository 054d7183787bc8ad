"""Our own limit on requests, so that a thousand clusters to reconcile do not become a storm on the API server."""

from __future__ import annotations

import asyncio
from collections import deque

from raykeeper.clock import Clock


class TokenBucket:
    """`burst` requests at once, `qps` per second in the long run; pure, the time is an argument.

    Guarantees: in any stretch of `t` seconds at most `burst + qps * t` tokens are taken.
    """

    def __init__(self, qps: float, burst: int, now: float) -> None:
        self._qps = qps
        self._burst = float(max(1, burst))
        self._tokens = self._burst
        self._at = now

    def take(self, now: float) -> float:
        """0 where a token was taken, else the seconds until there is one to take."""
        if self._qps <= 0:  # client-go's way of saying "no limit"
            return 0.0
        if now > self._at:
            self._tokens = min(self._burst, self._tokens + (now - self._at) * self._qps)
            self._at = now
        if self._tokens >= 1:
            self._tokens -= 1
            return 0.0
        return (1 - self._tokens) / self._qps

    def give_back(self) -> None:
        """Undo a take whose request was never sent."""
        self._tokens = min(self._burst, self._tokens + 1)


class RateLimiter:
    """A token bucket that waits: first come, first served, and whoever gives up leaves the queue."""

    def __init__(self, qps: float, burst: int, clock: Clock) -> None:
        self._clock = clock
        self._bucket = TokenBucket(qps, burst, clock.steady())
        self._queue: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    async def acquire(self) -> float:
        """Return once a request may be sent, with the seconds that took."""
        started = self._clock.steady()
        if not self._queue and self._bucket.take(started) == 0:
            return 0.0
        turn = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        if self._timer is None:
            self._serve()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._bucket.give_back()
            raise
        return self._clock.steady() - started

    def _serve(self) -> None:
        """Let go as many as there are tokens for, oldest first; come back when the next token is due."""
        self._timer = None
        while self._queue:
            if self._queue[0].done():  # its request was cancelled
                self._queue.popleft()
                continue
            wait = self._bucket.take(self._clock.steady())
            if wait > 0:
                self._timer = asyncio.get_running_loop().call_later(wait, self._serve)
                return
            self._queue.popleft().set_result(None)
