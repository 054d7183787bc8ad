"""The bucket as the collector uses it: a put returns once the object is stored, however long an outage takes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from raykeeper.backoff import Backoff
from raykeeper.clock import Clock
from raykeeper.collector.metrics import CollectorMetrics
from raykeeper.collector.turns import Priority, Turns
from raykeeper.errors import RaykeeperError
from raykeeper.logs import Log
from raykeeper.storage.errors import StoreRefused, StoreUnavailable

log = Log("raykeeper.collector.bucket")
T = TypeVar("T")

PAUSES = Backoff(base=0.4, limit=11.0, jitter=1 / 3)
"""Between attempts while the bucket is down; the jitter keeps collectors that lost the same bucket apart."""
PARALLEL_CALLS = 8
"""Enough to fill a connection to a bucket far away; each holds its object in memory."""
MAX_REFUSALS = 5
"""Of one object while others are taken: then it is set aside."""
FAILURES_TO_TELL = 2
"""In a row, before a line is logged: single failures are for the metrics."""


class Puts(Protocol):
    """The part of an object store that is needed here."""

    async def put(self, key: str, data: bytes) -> None: ...

    async def create(self, key: str, data: bytes) -> bool: ...

    async def find(self, key: str) -> bytes | None: ...


class ObjectRefused(RaykeeperError):
    """The store takes other objects and not this one, whenever it is tried: it is to be set aside."""


class Bucket:
    """Waits out outages, for all callers together: one tries, the others wait. Says it once, then once it is back.

    The store is connected later, so that a program can begin to listen before it knows how to reach it.
    """

    def __init__(self, clock: Clock, metrics: CollectorMetrics, pauses: Backoff = PAUSES) -> None:
        self.down_since: float | None = None
        """Steady time of the first failure in a row; None while the bucket answers."""
        self._clock = clock
        self._metrics = metrics
        self._turns = Turns(PARALLEL_CALLS, pauses)
        self._store: Puts | None = None
        self._taken = 0
        """Objects that the bucket took."""
        self._refused_bytes = 0
        """Size of the largest object that failed since `down_since`."""
        self._connected = asyncio.Event()
        metrics.bucket_up.set_function(lambda: float(self.is_up))

    @property
    def is_up(self) -> bool:
        return self._store is not None and self.down_since is None

    def connect(self, store: Puts) -> None:
        """Let waiting callers through to this store."""
        self._store = store
        self._connected.set()

    async def put(self, key: str, data: bytes, *, priority: Priority = Priority.FIRST) -> None:
        """Return once the bucket has the object."""
        await self._done(lambda store: store.put(key, data), len(data), priority)

    async def create(self, key: str, data: bytes, *, priority: Priority = Priority.FIRST) -> bool:
        """Whether this call wrote the object; False where it was there already."""
        return await self._done(lambda store: store.create(key, data), len(data), priority)

    async def find(self, key: str) -> bytes | None:
        """The object, or None where there is none."""
        return await self._done(lambda store: store.find(key), None, Priority.FIRST)

    async def _done(self, call: Callable[[Puts], Awaitable[T]], size: int | None, priority: Priority) -> T:
        """The answer to a call; `size` is of what it puts, None where it puts nothing."""
        await self._connected.wait()
        refusals, taken_before = 0, self._taken
        while True:
            failures_before = await self._turns.take(priority)
            started = self._clock.steady()
            try:
                result = await call(self._connected_store())
            except StoreRefused as exc:
                refusals += 1
                if exc.is_name or (refusals >= MAX_REFUSALS and self._taken > taken_before):
                    self._set_aside(exc)
                    raise ObjectRefused(str(exc)) from exc
                self._failed(exc, 0, failures_before)
            except StoreUnavailable as exc:
                self._failed(exc, size or 0, failures_before)
            except BaseException:
                self._turns.end()
                raise
            else:
                self._succeeded(size, self._clock.steady() - started)
                return result

    def _set_aside(self, exc: StoreRefused) -> None:
        """The name, or what it may be used for, is the trouble: the bucket is there for all others."""
        self._turns.end()
        self._metrics.put_errors.labels("refused").inc()
        self._metrics.objects_refused.inc()
        log.error("an object is refused for good, the others go on", cause=str(exc))

    def _connected_store(self) -> Puts:
        if self._store is None:
            raise RuntimeError("the bucket was used before it was connected")
        return self._store

    def _failed(self, exc: StoreUnavailable | StoreRefused, size: int, failures_before: int) -> None:
        if self.down_since is None:
            self.down_since, self._refused_bytes = self._clock.steady(), 0
        self._refused_bytes = max(size, self._refused_bytes)
        self._turns.failed(failures_before)
        self._metrics.put_errors.labels("refused" if isinstance(exc, StoreRefused) else "unavailable").inc()
        if failures_before < FAILURES_TO_TELL == self._turns.failures:
            log.warning("bucket does not take objects, data waits on disk", cause=str(exc))

    def _succeeded(self, size: int | None, seconds: float) -> None:
        if self._is_still_full_for_others(size or 0):
            self._turns.end()
        else:
            self._is_back()
        if size is not None:
            self._taken += 1
            self._metrics.puts.inc()
            self._metrics.put_bytes.inc(size)
            self._metrics.put_seconds.observe(seconds)

    def _is_still_full_for_others(self, size: int) -> bool:
        """Whether a success proves nothing: a store without room has some for a small object, and answers reads."""
        return self.down_since is not None and size < self._refused_bytes and self._turns.is_awaited

    def _is_back(self) -> None:
        if self._turns.failures >= FAILURES_TO_TELL and self.down_since is not None:
            log.info("bucket takes objects again", seconds=round(self._clock.steady() - self.down_since, 1))
        self.down_since = None
        self._turns.succeeded()
