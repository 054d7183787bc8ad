"""Waiting until so many objects are as they should be, by watching: lists in a loop would load what is measured."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, TypeVar

from prometheus_client import CollectorRegistry

from bed.errors import BedError
from raykeeper.api.meta import Object, ObjectKey
from raykeeper.kube.informers.informer import Informer
from raykeeper.kube.metrics import KubeMetrics

O = TypeVar("O", bound=Object)  # noqa: E741 - as in the informer

DEADLINE_SECONDS = 600.0

AllSeen = Callable[[], Coroutine[Any, Any, None]]


def a_registry() -> KubeMetrics:
    """Metrics that nobody reads."""
    return KubeMetrics(CollectorRegistry())


@contextlib.asynccontextmanager
async def counting(informer: Informer[O], count: int, is_counted: Callable[[O], bool]) -> AsyncIterator[AllSeen]:
    """Follow the objects of `informer`; what is yielded returns once `count` of them were as asked for."""
    seen: set[ObjectKey] = set()
    all_seen = asyncio.Event()

    def note(_: O | None, item: O | None) -> None:
        if item is not None and is_counted(item):
            seen.add(item.key)
            if len(seen) >= count:
                all_seen.set()

    async def wait() -> None:
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                await all_seen.wait()
        except TimeoutError:
            raise BedError(f"only {len(seen)} of {count} after {DEADLINE_SECONDS:g} s: are there nodes?") from None

    informer.on_change(note)
    following = asyncio.create_task(informer.run())
    try:
        await informer.wait_synced()
        yield wait
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
