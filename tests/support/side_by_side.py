"""Long stories of one test file, told at the same time: each waits most of the time for others to do their part."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Generic, TypeVar

import pytest

T = TypeVar("T")


class Told(Generic[T]):
    """How each story ended, by name."""

    def __init__(self, ends: Mapping[str, T | BaseException]) -> None:
        self._ends = ends

    def __getitem__(self, name: str) -> T:
        """The end of one story; fails as the story did."""
        end = self._ends[name]
        if isinstance(end, BaseException):
            raise end
        return end


async def told(stories: Mapping[str, Callable[[], Awaitable[T]]], at_once: int) -> Told[T]:
    """Tell all stories, so many at a time. One that fails costs no other."""
    turns = asyncio.Semaphore(at_once)

    async def tell(story: Callable[[], Awaitable[T]]) -> T:
        async with turns:
            return await story()

    ends = await asyncio.gather(*map(tell, stories.values()), return_exceptions=True)
    return Told(dict(zip(stories, ends, strict=True)))


def selected(request: pytest.FixtureRequest, parameter: str) -> list[str]:
    """The values of a parameter that tests of this file are to be run with."""
    items = [item for item in request.session.items if item.path == request.path]
    found = [item.callspec.params for item in items if isinstance(item, pytest.Function) and hasattr(item, "callspec")]
    return list(dict.fromkeys(str(params[parameter]) for params in found if parameter in params))
