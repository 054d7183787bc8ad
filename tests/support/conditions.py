"""Waiting in tests: for a condition with a deadline, never for a time that is hoped to be enough."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from bed.waiting import PATIENCE_SECONDS, pause_after
from raykeeper.errors import Unavailable

T = TypeVar("T")

POLL_SECONDS = 0.005  # real servers share the cores with the test: a busy loop would slow what it waits for


async def until(condition: Callable[[], object], *, seconds: float = PATIENCE_SECONDS) -> None:
    """Return as soon as the condition holds; the test fails if that takes longer than `seconds`."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - what is waited for are plain attributes that set no event
            await asyncio.sleep(POLL_SECONDS)


async def eventually(question: Callable[[], Awaitable[T]], *, seconds: float = PATIENCE_SECONDS) -> T:
    """The first truthy answer of a server to a question; the test fails if that takes longer than `seconds`.

    A server that stands still while others use the cores is asked again.
    """
    began = time.monotonic()
    async with asyncio.timeout(seconds):
        while True:
            with contextlib.suppress(Unavailable):
                if answer := await question():
                    return answer
            await asyncio.sleep(pause_after(time.monotonic() - began))
