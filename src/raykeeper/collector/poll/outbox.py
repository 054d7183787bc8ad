"""Answers that wait for the bucket, in bounded memory."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol

from raykeeper.collector.bucket import ObjectRefused
from raykeeper.collector.metrics import CollectorMetrics
from raykeeper.logs import Log

LIMIT_BYTES = 4 << 20  # compressed: about ten hours of a small head, or a few minutes of a very large one

log = Log("raykeeper.collector.poll")


class Puts(Protocol):
    """The part of the bucket that is needed here."""

    async def put(self, key: str, data: bytes) -> None:
        """Return once the bucket has it, however long that takes."""


class Outbox:
    """Sends in order. When an outage fills it, the oldest goes and is counted: what the head says now matters more."""

    def __init__(self, bucket: Puts, metrics: CollectorMetrics, limit_bytes: int = LIMIT_BYTES) -> None:
        self._bucket = bucket
        self._metrics = metrics
        self._limit_bytes = limit_bytes
        self._waiting: deque[tuple[str, bytes]] = deque()
        self._has_some = asyncio.Event()
        self._is_empty = asyncio.Event()
        self._is_empty.set()
        self.size = 0
        """Bytes that wait."""
        self.given_up = 0
        """Answers that were dropped for lack of room."""

    def add(self, key: str, data: bytes) -> None:
        """Have it sent; never waits."""
        self._waiting.append((key, data))
        self.size += len(data)
        while self.size > self._limit_bytes and len(self._waiting) > 1:
            self._give_up_oldest()
        self._is_empty.clear()
        self._has_some.set()

    async def run(self) -> None:
        """Send until cancelled; what was not confirmed stays."""
        while True:
            await self._has_some.wait()
            await self.drain()
            self._has_some.clear()

    async def drain(self) -> None:
        """Send all that waits. Assumes that nobody else is sending."""
        while self._waiting:
            first = self._waiting[0]
            try:
                await self._bucket.put(*first)
                self._metrics.polled_answers.inc()
            except ObjectRefused:
                self._metrics.polled_lost.inc()
            if self._waiting and self._waiting[0] is first:  # else it was given up while it was on its way
                self._waiting.popleft()
                self.size -= len(first[1])
        self._is_empty.set()

    async def wait_empty(self) -> None:
        """Return once nothing waits any more, while somebody else sends."""
        await self._is_empty.wait()

    def _give_up_oldest(self) -> None:
        key, data = self._waiting.popleft()
        self.size -= len(data)
        self.given_up += 1
        self._metrics.polled_lost.inc()
        if self.given_up == 1:
            log.warning("polled answers given up while the bucket was away", key=key, limit_bytes=self._limit_bytes)
