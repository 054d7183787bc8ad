"""Asks Ray heads in the background, so that no reconcile ever waits for one.

A controller says in each pass which questions it has, reads the last answers at once, and is woken through its queue
when an answer becomes another. Heads that do not answer are asked ever more rarely, and apart from those that do; so
are heads that were never asked, since many of them may be dead.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, auto
from typing import Any, Final, Generic, NamedTuple, TypeVar, cast

from raykeeper.api.meta import ObjectKey
from raykeeper.backoff import Backoff
from raykeeper.clock import Clock
from raykeeper.errors import RaykeeperError
from raykeeper.kube.http.slots import RELAY_CONNECTIONS, Slots
from raykeeper.logs import Log
from raykeeper.operator.rayhead.questions import Question

T = TypeVar("T")


class Standing(Enum):
    """What is known of a head when it is asked: those of one standing wait for each other alone."""

    ANSWERING = auto()
    """It answered the last time."""
    NEW = auto()
    """It was not asked yet."""
    SILENT = auto()
    """It did not answer the last time."""


DIRECT_AT_ONCE: Final = {Standing.ANSWERING: 64, Standing.NEW: 128, Standing.SILENT: 128}
"""Questions in flight, half of them for one namespace at most. Most of them wait for up to two seconds."""
PROXIED_AT_ONCE: Final = dict.fromkeys(Standing, RELAY_CONNECTIONS // 4)
"""The same by way of the API server, which keeps a request of ours open for each; the last quarter is for orders."""
SILENT_BACKOFF: Final = Backoff(base=3.0, limit=60.0, jitter=0.3)
"""Between two questions to a head that does not answer. A thousand dead ones are then asked 17 times a second."""
QUESTION_SECONDS: Final = 15.0
"""For one question in all; the clients of heads have tighter limits of their own."""
LONGEST_WAIT_SECONDS: Final = 60.0

log = Log("raykeeper.operator.rayhead")


class OwnerKey(NamedTuple):
    """Whose a question is: kind and key of the object whose controller has it asked."""

    kind: str
    key: ObjectKey


@dataclass(frozen=True)
class Reading(Generic[T]):
    """What is known of an answer, and how old that is."""

    has_answer: bool = False
    answer: T | None = None
    """The last answer that came, however long ago."""
    answered_at: datetime | None = None
    failure: str | None = None
    """Why the last attempt brought none; None where it did, or where none was made yet."""
    failing_since: datetime | None = None

    @property
    def is_current(self) -> bool:
        """Whether the last attempt brought the answer."""
        return self.has_answer and self.failure is None

    def age_seconds(self, now: datetime) -> float | None:
        return None if self.answered_at is None else (now - self.answered_at).total_seconds()


@dataclass
class _Poll:
    """One question of one owner."""

    owner: OwnerKey
    question: Question[Any]
    reading: Reading[Any] = field(default_factory=Reading)
    failures: int = 0
    is_dropped: bool = False

    @property
    def standing(self) -> Standing:
        if self.failures:
            return Standing.SILENT
        return Standing.ANSWERING if self.reading.is_current else Standing.NEW


class HeadPoller:
    """Asks every question that is followed, until it is not followed any more. For one event loop only."""

    def __init__(self, clock: Clock, *, is_proxied: bool = False) -> None:
        """`is_proxied`: whether heads are reached through the API server."""
        self._clock = clock
        self._polls: dict[OwnerKey, dict[Question[Any], _Poll]] = {}
        self._due: list[tuple[float, int, _Poll]] = []
        self._numbers = itertools.count()  # polls that are due at the same moment keep their order
        self._wakes: dict[str, Callable[[ObjectKey], None]] = {}
        self._changed = asyncio.Event()
        at_once = PROXIED_AT_ONCE if is_proxied else DIRECT_AT_ONCE
        self._turns = {one: Slots("questions", number, number // 2, clock) for one, number in at_once.items()}

    def on_change(self, kind: str, wake: Callable[[ObjectKey], None]) -> None:
        """Have `wake` called with the key of an object of the kind when an answer of its changed."""
        self._wakes[kind] = wake

    def follow(self, owner: OwnerKey, questions: Iterable[Question[Any]]) -> None:
        """Have exactly these questions asked for the owner from now on: new ones at once, none of the others."""
        known = self._polls.pop(owner, {})
        polls: dict[Question[Any], _Poll] = {}
        for question in questions:
            poll = known.pop(question, None)
            if poll is None:
                poll = _Poll(owner, question)
                self._schedule(poll, 0.0)
            poll.question = question  # an equal one in newer words: it may know another spec of the cluster
            polls[question] = poll
        for left in known.values():
            left.is_dropped = True
        if polls:
            self._polls[owner] = polls

    def reading(self, owner: OwnerKey, question: Question[T]) -> Reading[T]:
        """What is known of the answer at this moment; never waits."""
        poll = self._polls.get(owner, {}).get(question)
        return Reading() if poll is None else cast("Reading[T]", poll.reading)

    def forget(self, owner: OwnerKey) -> None:
        """The owner is gone, or has no more questions."""
        self.follow(owner, ())

    def __len__(self) -> int:
        """Questions that are followed."""
        return sum(map(len, self._polls.values()))

    async def run(self) -> None:
        """Ask until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                self._changed.clear()
                for poll in self._taken():
                    group.create_task(self._ask(poll))
                wait = self._due[0][0] - self._clock.steady() if self._due else LONGEST_WAIT_SECONDS
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(min(max(wait, 0.0), LONGEST_WAIT_SECONDS)):
                        await self._changed.wait()

    def _taken(self) -> Iterator[_Poll]:
        """The polls that are due, taken off the list; of those that were dropped nothing is left then."""
        while self._due and self._due[0][0] <= self._clock.steady():
            poll = heapq.heappop(self._due)[2]
            if not poll.is_dropped:
                yield poll

    def _schedule(self, poll: _Poll, seconds: float) -> None:
        heapq.heappush(self._due, (self._clock.steady() + seconds, next(self._numbers), poll))
        if self._due[0][2] is poll:
            self._changed.set()

    async def _ask(self, poll: _Poll) -> None:
        before, turns = poll.reading, self._turns[poll.standing]
        turn = await turns.take(poll.owner.key.namespace, poll.question.name, patience=None)
        try:
            if not poll.is_dropped:
                await self._read(poll)
        finally:
            turns.release(turn)
        if poll.is_dropped:
            return
        wake = self._wakes.get(poll.owner.kind)
        if wake is not None and _differs(before, poll.reading):
            wake(poll.owner.key)
        seconds = SILENT_BACKOFF.delay(poll.failures) if poll.failures else poll.question.every_seconds
        self._schedule(poll, seconds)

    async def _read(self, poll: _Poll) -> None:
        before = poll.reading
        try:
            async with asyncio.timeout(QUESTION_SECONDS):
                answer = await poll.question.ask()
        except (RaykeeperError, TimeoutError) as error:
            poll.failures += 1
            since = before.failing_since or self._clock.now()
            cause = str(error) or f"no answer within {QUESTION_SECONDS:g} s"
            poll.reading = Reading(before.has_answer, before.answer, before.answered_at, cause, since)
        except Exception:
            poll.failures += 1
            log.exception("a question to a Ray head failed", owner=str(poll.owner.key), question=poll.question.name)
        else:
            poll.failures = 0
            poll.reading = Reading(True, answer, self._clock.now())


def _differs(before: Reading[Any], after: Reading[Any]) -> bool:
    """Whether there is news for a controller: another answer, none any more, or one again. That it still fails, in
    whatever words, is none.
    """
    was, now = (before.has_answer, before.failure is None), (after.has_answer, after.failure is None)
    return was != now or before.answer != after.answer
