"""The resource samples of all sessions: blocks in the store become tables, on local disk and for others.

There are tables for each hour, and for each day where few nodes take part. They are named after their blocks, so
whoever makes them of the same blocks makes the same, and a late block makes others. Tables of many blocks are put into
the store once their time is over: the next server reads two objects instead of a thousand. Rows that only a heartbeat
has count as a block.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from weakref import WeakValueDictionary

from raykeeper.clock import Clock
from raykeeper.errors import RaykeeperError
from raykeeper.history.ingest.session import FixedTables, Session, Tables
from raykeeper.history.samples.builder import TABLE_OF, Level, PeriodBuilder, PeriodTables
from raykeeper.history.samples.periods import (
    Period,
    Tail,
    Tails,
    complete_until,
    hour_of_folder,
    list_inputs,
    periods_of,
    read_tails,
)
from raykeeper.history.store.disk_cache import LocalCache
from raykeeper.layout.keys import SamplesKey, SessionId
from raykeeper.layout.records import NodeRecord
from raykeeper.layout.samples import HOUR_SECONDS
from raykeeper.logs import Log
from raykeeper.storage.store import ObjectStore

log = Log("raykeeper.history.samples")

MAX_HOURS = 24 * 366
"""That one look reads; older ones are left out, and counted."""
PATIENCE_SECONDS = 4.0
"""How long a look waits for tables that are being made; it goes on with those that are ready."""
_FRESH_SECONDS, _OLD_SECONDS = 10.0, 300.0
"""Between two listings of a period that goes on, and of one that is over."""
_LISTED_AT_ONCE = 8
"""Periods of one session."""
_BUILT_AT_ONCE = 2
"""Periods of all sessions, and one of each: a session that somebody filled with blocks does not hold up the others."""
_KNOWN_PERIODS = 20_000
_KNOWN_SESSIONS = 16


@dataclass
class _Known:
    """What is known of one period of a session."""

    listed_at: float = float("-inf")
    tails: tuple[Tail, ...] = ()
    tables: PeriodTables | None = None
    ends: Mapping[str, int] = field(default_factory=dict)
    """By node, when its newest row ends; none where the period is over."""
    was_over: bool = False
    """When it was listed."""


@dataclass(frozen=True)
class _Hours:
    """Which hours of a session have samples."""

    listed_at: float
    nodes: tuple[NodeRecord, ...]
    """Whose heartbeats the tails are of."""
    tails: Tails
    starts: tuple[int, ...]


@dataclass(frozen=True)
class SampleTables:
    """Tables ready to be queried, and what is not in them."""

    tables: Tables
    unread_hours: int = 0
    """Hours whose tables are still being made."""
    unreadable: int = 0
    """Blocks that could not be read, or were too many."""
    hours_left_out: int = 0
    """The oldest, of more than one look reads."""
    complete_until: int | None = None
    """Of a session that runs: until then the rows of all its nodes are here, behind it only those of some."""


class _Turns:
    """Those of one session."""

    def __init__(self) -> None:
        self.listing = asyncio.Semaphore(_LISTED_AT_ONCE)
        self.building = asyncio.Semaphore(1)


class _SampleFiles(FixedTables):
    """Files of samples; those of other servers are made anew where a query cannot read them."""

    def __init__(self, files: Mapping[str, Sequence[Path]], distrust: Callable[[], bool], owner: str) -> None:
        super().__init__(files)
        self._distrust = distrust
        self._owner = owner

    @property
    def owner(self) -> str:
        return self._owner

    def distrust(self) -> bool:
        return self._distrust()


class SampleStore:
    """Samples of any session. Everything here can be forgotten and made again."""

    def __init__(
        self, store: ObjectStore, cache: LocalCache, clock: Clock, patience_seconds: float = PATIENCE_SECONDS
    ) -> None:
        self._store = store
        self._clock = clock
        self._patience_seconds = patience_seconds
        self.builder = PeriodBuilder(store, cache)
        self._hours: OrderedDict[SessionId, _Hours] = OrderedDict()
        self._known: OrderedDict[tuple[SessionId, Period], _Known] = OrderedDict()
        self._making: dict[tuple[SessionId, Period], asyncio.Task[PeriodTables]] = {}
        self._turns: WeakValueDictionary[SessionId, _Turns] = WeakValueDictionary()
        self._builds = asyncio.Semaphore(_BUILT_AT_ONCE)
        self._background: set[asyncio.Task[None]] = set()

    async def hours(self, session: Session) -> tuple[int, ...]:
        """Where the hours begin, in seconds since 1970, of which there are samples."""
        return (await self._hours_of(session)).starts

    @asynccontextmanager
    async def opened(
        self, session: Session, begin: int, end: int, level: Level, patience_seconds: float | None = None
    ) -> AsyncIterator[SampleTables]:
        """Tables of the hours between two moments, in seconds since 1970, for as long as the block lasts.

        What takes longer than the patience of whoever asks, or of this store, is not in them.
        """
        known = await self._hours_of(session)
        hours = [start for start in known.starts if begin - HOUR_SECONDS < start < end]
        periods = periods_of(session, hours[-MAX_HOURS:], self._clock.now().timestamp())
        tasks = self._tasks(session, periods, known.tails)
        if tasks:
            patience = self._patience_seconds if patience_seconds is None else patience_seconds
            await asyncio.wait(tasks, timeout=patience)
        made = {period: task.result() for period, task in zip(periods, tasks, strict=True) if task.done()}
        held = await asyncio.gather(*(self.builder.hold(one, level) for one in made.values()))
        paths = {period: path for period, path in zip(made, held, strict=True) if path}
        try:
            yield SampleTables(
                _SampleFiles(
                    {TABLE_OF[level]: [*paths.values()]},
                    lambda: self.builder.distrust(made.values()),
                    session.id.namespace,
                ),
                unread_hours=sum(period.holds(hour) for period in periods if period not in paths for hour in hours),
                unreadable=sum(one.unreadable for one in made.values()) + known.tails.damaged,
                hours_left_out=max(0, len(hours) - MAX_HOURS),
                complete_until=None if session.state.is_over else self._complete_until(session.id, periods),
            )
        finally:
            self.builder.release(paths.values())

    def collect(self, session: Session) -> None:
        """Have the tables of a session that is final in the store after a while, so that any replica opens it soon."""
        task = asyncio.create_task(self._collect(session))
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def close(self) -> None:
        """Stop what goes on in the background."""
        tasks: list[asyncio.Task[None] | asyncio.Task[PeriodTables]] = [*self._background, *self._making.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _collect(self, session: Session) -> None:
        try:
            known = await self._hours_of(session)
            for period in periods_of(session, known.starts, self._clock.now().timestamp()):
                await asyncio.wait(self._tasks(session, [period], known.tails))
        except RaykeeperError as exc:
            log.info("samples not collected", session=str(session.id), cause=str(exc))

    async def _hours_of(self, session: Session) -> _Hours:
        known, now = self._hours.get(session.id), self._clock.steady()
        if known and known.nodes is session.nodes and now - known.listed_at < _FRESH_SECONDS:
            return known
        tails = (
            known.tails
            if known and known.nodes is session.nodes
            else await asyncio.to_thread(read_tails, session.nodes)
        )
        folders = await self._store.list_folders(SamplesKey.prefix(session.id))
        starts = {start for folder in folders if (start := hour_of_folder(folder)) is not None} | tails.hours()
        known = self._hours[session.id] = _Hours(now, session.nodes, tails, tuple(sorted(starts)))
        self._hours.move_to_end(session.id)
        while len(self._hours) > _KNOWN_SESSIONS:
            self._hours.popitem(last=False)
        return known

    def _tasks(self, session: Session, periods: Iterable[Period], tails: Tails) -> list[asyncio.Task[PeriodTables]]:
        """What makes the tables of these periods, once however many wait; it goes on when they do not."""
        tasks = []
        for period in periods:
            place = (session.id, period)
            task = self._making.get(place)
            if task is None:
                task = asyncio.create_task(self._as_of_now(session, period, tails.within(period)))
                self._making[place] = task
                task.add_done_callback(partial(self._made, place))
            tasks.append(task)
        return tasks

    def _made(self, place: tuple[SessionId, Period], task: asyncio.Task[PeriodTables]) -> None:
        self._making.pop(place, None)
        if not task.cancelled():
            task.exception()  # whoever waits raises it; if nobody does any more, it is no news

    async def _as_of_now(self, session: Session, period: Period, tails: tuple[Tail, ...]) -> PeriodTables:
        known, turns = self._remembered((session.id, period)), self._turns.setdefault(session.id, _Turns())
        async with turns.listing:
            is_over = session.is_final or period.is_over(self._clock.now().timestamp())
            if known.tables and self._is_fresh(known, tails, is_over=is_over) and self.builder.is_here(known.tables):
                return known.tables
            inputs = await list_inputs(self._store, session.id, period, tails)
            made = await self.builder.find(inputs, known.tables)
        if made is None:
            async with turns.building, self._builds:
                made = await self.builder.build(inputs)
        if is_over:
            await self.builder.publish(inputs, made)
        if known.tables and known.tables.digest != made.digest:
            self.builder.forget(known.tables)
        known.listed_at, known.tails, known.tables, known.was_over = self._clock.steady(), tails, made, is_over
        known.ends = {} if is_over else inputs.ends
        return made

    def _remembered(self, place: tuple[SessionId, Period]) -> _Known:
        known = self._known.setdefault(place, _Known())
        self._known.move_to_end(place)
        while len(self._known) > _KNOWN_PERIODS:
            self._known.popitem(last=False)
        return known

    def _is_fresh(self, known: _Known, tails: tuple[Tail, ...], *, is_over: bool) -> bool:
        age = self._clock.steady() - known.listed_at
        is_same = known.tails == tails and known.was_over == is_over
        return is_same and age < (_OLD_SECONDS if is_over else _FRESH_SECONDS)

    def _complete_until(self, session: SessionId, periods: Iterable[Period]) -> int | None:
        ends: dict[str, int] = {}
        for period in periods:
            ends |= self._remembered((session, period)).ends
        return complete_until(ends)
