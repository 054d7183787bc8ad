"""Waiting in tests: for a condition with a deadline, never for a time that is hoped to be enough."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

POLL_SECONDS = 0.005  # real servers share the cores with the test: a busy loop would slow what it waits for


async def until(condition: Callable[[], object], *, seconds: float = 20.0) -> None:
    """Return as soon as the condition holds; the test fails if that takes longer than `seconds`."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - what is waited for are plain attributes that set no event
            await asyncio.sleep(POLL_SECONDS)
