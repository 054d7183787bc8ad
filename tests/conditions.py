"""Waiting in tests: for a condition with a deadline, never for a time that is hoped to be enough."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


async def until(condition: Callable[[], object], *, seconds: float = 10.0) -> None:
    """Return as soon as the condition holds; the test fails if that takes longer than `seconds`."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - what is waited for are plain attributes that set no event
            await asyncio.sleep(0)
