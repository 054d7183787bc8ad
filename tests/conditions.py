"""Waiting in tests: for a condition with a deadline, never for a time that is hoped to be enough."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

POLL_SECONDS = 0.005  # real servers share the cores with the test: a busy loop would slow what it waits for


async def until(condition: Callable[[], object], *, seconds: float = 20.0) -> None:
    """Return as soon as the condition holds; the test fails if that takes longer than `seconds`."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - what is waited for are plain attributes that set no event
            await asyncio.sleep(POLL_SECONDS)


async def eventually(question: Callable[[], Awaitable[T]], *, seconds: float = 30.0) -> T:
    """The first truthy answer of a server to a question; the test fails if that takes longer than `seconds`."""
    async with asyncio.timeout(seconds):
        while not (answer := await question()):  # noqa: ASYNC110 - a server is asked, it sets no event
            await asyncio.sleep(POLL_SECONDS * 10)
        return answer
