"""Many writes of one kind, in parallel, without hammering a server that refuses them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from raykeeper.kube.http.slots import WRITE_CONNECTIONS

T = TypeVar("T")

FIRST_BATCH = 1
LARGEST_BATCH = WRITE_CONNECTIONS // 2  # while an admission webhook is slow, the other half is for everybody else


async def slow_start(items: Sequence[T], write: Callable[[T], Awaitable[None]]) -> None:
    """Write one item, then two at once, then four, and so on; a batch in which one failed is the last.

    Five hundred pods take twenty batches. A quota that is used up, or an admission webhook that refuses, costs a few
    requests, not five hundred. Raises an ExceptionGroup of what the last batch met.
    """
    start, size = 0, FIRST_BATCH
    while start < len(items):
        batch = items[start : start + size]
        outcomes = await asyncio.gather(*(write(item) for item in batch), return_exceptions=True)
        if failures := [outcome for outcome in outcomes if isinstance(outcome, Exception)]:
            raise ExceptionGroup(f"{len(failures)} of {len(batch)} writes failed", failures)
        start, size = start + size, min(size * 2, LARGEST_BATCH)
