"""Several things at once, of which none is left running when one fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable


async def finish_all(steps: Iterable[Awaitable[None]]) -> None:
    """Let all of them come to their end, then raise the first failure, if any."""
    outcomes = await asyncio.gather(*steps, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
