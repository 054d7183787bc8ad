"""Many writes of one kind, in parallel, without hammering a server that refuses them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import TypeVar

from raykeeper.kube.errors import BadRequest, Conflict, Forbidden, Invalid
from raykeeper.kube.http.slots import WRITE_CONNECTIONS

T = TypeVar("T")

FIRST_BATCH = 1
LARGEST_BATCH = WRITE_CONNECTIONS // 2  # while an admission webhook is slow, the other half is for everybody else
REFUSALS = (BadRequest, Conflict, Forbidden, Invalid)
"""About what was to be written. All else is about the server, or about all that goes there."""


async def slow_start(
    items: Sequence[T], write: Callable[[T], Awaitable[None]], kin: Callable[[T], Hashable] = lambda _: None
) -> None:
    """Write one item, then two at once, then four, and so on; an item that is refused is the last of its kin.

    Five hundred pods take twenty batches. A quota that is used up, or an admission webhook that refuses, costs a few
    requests, not five hundred, and only what is like the refused item: a group that may have no GPUs keeps no other
    group from its pods. Where it is not the item that was refused, as when the server is away, nothing more is sent.
    Raises an ExceptionGroup of all failures.
    """
    left, size = list(items), FIRST_BATCH
    failures: list[BaseException] = []
    while left and all(isinstance(failure, REFUSALS) for failure in failures):
        batch, left = left[:size], left[size:]
        outcomes = await asyncio.gather(*(write(item) for item in batch), return_exceptions=True)
        refused = {kin(item) for item, outcome in zip(batch, outcomes, strict=True) if outcome is not None}
        left = [item for item in left if kin(item) not in refused]
        failures += [outcome for outcome in outcomes if outcome is not None]
        size = FIRST_BATCH if refused else min(size * 2, LARGEST_BATCH)
    if failures:
        raise BaseExceptionGroup(f"{len(failures)} of {len(items)} writes failed", failures)
