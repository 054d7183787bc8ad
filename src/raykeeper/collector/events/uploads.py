"""Sealed segments go to the bucket, oldest first, and are deleted here once it has them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Protocol

from raykeeper.collector.bucket import ObjectRefused
from raykeeper.collector.events.sealed import SealedFiles
from raykeeper.logs import Log

log = Log("raykeeper.collector.uploads")

RETRY_SECONDS = 5.0
"""Between attempts that fail by a bug of ours; outages are waited out by the bucket."""


class EventBucket(Protocol):
    """The part of the collector's bucket that events need."""

    async def put(self, key: str, data: bytes) -> None:
        """Return once the bucket has it, however long that takes."""


class Uploads:
    """A few uploads at a time."""

    def __init__(self, sealed: SealedFiles, bucket: EventBucket, parallel: int) -> None:
        self.is_newest_first = False
        """At the end, when not everything may make it, the newest is worth most."""
        self._sealed = sealed
        self._bucket = bucket
        self._parallel = parallel
        self._under_way: set[str] = set()
        self._changed = asyncio.Condition()

    async def run(self) -> None:
        """Upload for ever what is there and what is added."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._parallel):
                group.create_task(self._work())

    async def add(self, key: str, size: int) -> None:
        """Upload this too."""
        async with self._changed:
            self._sealed.add(key, size)
            self._changed.notify_all()

    async def take_up_failed(self) -> None:
        """Try once more what could not be read or was refused."""
        async with self._changed:
            self._sealed.take_up_failed()
            self._changed.notify_all()

    async def wait_empty(self) -> None:
        """Return once nothing waits any more."""
        async with self._changed:
            await self._changed.wait_for(lambda: not self._sealed.waiting)

    async def _work(self) -> None:
        while True:
            key = await self._next()
            try:
                await self._upload(key)
            except Exception:
                log.exception("what is sealed could not be uploaded, and stays on disk", key=key)
                await asyncio.sleep(RETRY_SECONDS)
            finally:
                self._under_way.discard(key)

    async def _next(self) -> str:
        async with self._changed:
            await self._changed.wait_for(lambda: len(self._sealed.waiting) > len(self._under_way))
            keys = reversed(self._sealed.waiting) if self.is_newest_first else iter(self._sealed.waiting)
            key = next(key for key in keys if key not in self._under_way)
            self._under_way.add(key)
            return key

    async def _upload(self, key: str) -> None:
        loop = asyncio.get_running_loop()
        try:
            data = await loop.run_in_executor(None, partial(self._sealed.read, key))
        except OSError as exc:
            log.warning("what is sealed cannot be read, left on disk for the next start", key=key, cause=str(exc))
            await self._done(key, self._sealed.set_aside)
            return
        try:
            await self._bucket.put(key, data)
        except ObjectRefused as exc:
            log.warning("what is sealed is refused for good, left on disk", key=key, cause=str(exc))
            await self._done(key, self._sealed.set_aside)
            return
        await loop.run_in_executor(None, partial(self._sealed.delete, key))
        await self._done(key, self._sealed.forget)

    async def _done(self, key: str, note: Callable[[str], None]) -> None:
        async with self._changed:
            note(key)
            self._under_way.discard(key)
            self._changed.notify_all()
