"""A look through the whole store that pages do not wait for: made in the background, and believed for a minute."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from copy import copy
from typing import Any, Generic, TypeVar

from raykeeper.clock import Clock
from raykeeper.errors import RaykeeperError
from raykeeper.history.visibility import EVERYTHING, Visibility
from raykeeper.logs import Log

_BELIEVED_SECONDS = 60.0
"""A look at 10,000 clusters that all started is ten requests, and the first one 10,000."""

_AGAIN_SECONDS = 5.0
"""After a look that failed, which says nothing about the next one."""

_MOST_LOOKS = 256
"""Callers who may see the same share theirs; those nobody asked for the longest time are forgotten first."""

T = TypeVar("T")
log = Log("raykeeper.history.looks")


class BackgroundLook(Generic[T]):
    """What the last look found. One look at a time, and only while somebody asks."""

    def __init__(
        self,
        what: str,
        find: Callable[[], Coroutine[Any, Any, T]],
        clock: Clock,
        unknown: T,
        believed_seconds: float = _BELIEVED_SECONDS,
    ) -> None:
        self._what = what
        self._find = find
        self._clock = clock
        self._known = unknown
        self._believed_seconds = believed_seconds
        self._look: asyncio.Task[None] | None = None
        self._next_at = float("-inf")

    async def known_within(self, seconds: float) -> T:
        """What is known at latest after so many seconds; a look that takes longer goes on behind it.

        Raises what the store raises.
        """
        if self._look is None and self._clock.steady() >= self._next_at:
            self._look = asyncio.create_task(self._find_all())
            self._look.add_done_callback(self._looked)
        if self._look is not None:
            done, _ = await asyncio.wait({self._look}, timeout=seconds)
            for look in done:
                look.result()
        return self._known

    async def _find_all(self) -> None:
        self._known = await self._find()

    def _looked(self, look: asyncio.Task[None]) -> None:
        self._look = None
        failure = None if look.cancelled() else look.exception()
        believed = self._believed_seconds if failure is None else min(_AGAIN_SECONDS, self._believed_seconds)
        self._next_at = self._clock.steady() + believed
        if isinstance(failure, RaykeeperError):
            log.warning("look through the store failed", what=self._what, cause=str(failure))
        elif failure is not None:
            log.error("look through the store failed by a bug", what=self._what, cause=repr(failure))


class BackgroundLooks:
    """The looks of one server, each by its name and by what whoever asks may see, so that nobody is answered with what
    somebody else's look found. One begins when somebody asks for it first.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._looks: OrderedDict[tuple[str, Visibility], BackgroundLook[Any]] = OrderedDict()
        self._visibility = EVERYTHING

    def seen_by(self, visibility: Visibility) -> BackgroundLooks:
        """The same for somebody who may see this much."""
        view = copy(self)
        view._visibility = visibility
        return view

    def look(
        self, what: str, find: Callable[[], Coroutine[Any, Any, T]], unknown: T, believed_seconds: float
    ) -> BackgroundLook[T]:
        """The look of that name. What else is given counts when it is asked for the first time."""
        key = (what, self._visibility)
        if key not in self._looks:
            self._looks[key] = BackgroundLook(what, find, self._clock, unknown, believed_seconds)
        self._looks.move_to_end(key)
        while len(self._looks) > _MOST_LOOKS:
            self._looks.popitem(last=False)
        return self._looks[key]
