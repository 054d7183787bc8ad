"""Opens sessions: finds what is new in the store, has it made into tables, and hands out what is ready.

Any replica may do this at any time. Concurrent opens of a session share one look at the store.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from raykeeper.clock import Clock
from raykeeper.errors import RaykeeperError
from raykeeper.history.ingest.follower import SessionFollower
from raykeeper.history.ingest.records import answers_bytes
from raykeeper.history.ingest.session import Session
from raykeeper.history.ingest.table_builder import IngestTurns
from raykeeper.history.ingest.worker import Limits
from raykeeper.history.store.disk_cache import LocalCache
from raykeeper.history.store.heartbeats import StoreClock
from raykeeper.layout.keys import SessionId
from raykeeper.logs import Log
from raykeeper.storage.store import ObjectStore

log = Log("raykeeper.history")

OnFinal = Callable[[Session], Awaitable[object]]

SESSIONS_LIMIT = 200
"""Sessions kept ready; the longest unused are let go of."""
ANSWERS_BYTES = 256 << 20
"""Of polled answers of all of them; a usual session has some hundred kilobytes."""


class SessionMissing(RaykeeperError):
    """The store has nothing of that session."""

    def __init__(self, session: SessionId) -> None:
        super().__init__(f"there is no session {session}")
        self.session = session


@dataclass(frozen=True)
class SessionsSettings:
    folder: Path
    """Of everything kept on the local disk; losing it loses time alone."""
    cache_bytes: int = 10 << 30
    """Of fetched objects on the local disk."""
    ingests_at_once: int = 1
    """That work at the same time, each within `limits`; those of several namespaces take turns."""
    limits: Limits = field(default_factory=Limits)
    """Memory and threads of one ingest."""
    running_freshness: timedelta = timedelta(seconds=3)
    """A running session is looked at again after this; the dashboard asks every four seconds."""
    final_freshness: timedelta = timedelta(minutes=5)
    """A final session is looked at again for late segments after this."""
    patience: timedelta = timedelta(seconds=1)
    """How long an answer waits for fresher tables where older ones are at hand."""


class Sessions:
    """The sessions of one store."""

    def __init__(self, store: ObjectStore, clock: Clock, settings: SessionsSettings) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._store_clock = StoreClock(store, clock)
        self.cache = LocalCache(settings.folder, settings.cache_bytes)
        self._turns = IngestTurns.of(settings.ingests_at_once)
        self._entries: OrderedDict[SessionId, _Entry] = OrderedDict()
        self.on_final: OnFinal | None = None
        """Called with every session that was read and is final, after whoever asked for it has it."""

    async def open(self, session: SessionId) -> Session:
        """The session as of a moment ago, or what is ready of it. Raises SessionMissing and what the store raises."""
        entry = self._entries.setdefault(session, _Entry(self._following(session)))
        self._entries.move_to_end(session)
        self._let_go()
        entry.drop_damaged()
        if not self._is_fresh(entry):
            entry.refresh(self._clock, self.on_final)
        while entry.opened is None:
            await entry.wait()
        if entry.task and not entry.opened.is_final:
            await asyncio.wait([entry.task], timeout=self._settings.patience.total_seconds())
        return entry.opened

    async def read_to_end(self, session: SessionId) -> None:
        """Have all of it read, and `on_final` called where it is final. Raises as `open` does."""
        await self.open(session)
        entry = self._entries.get(session)
        if entry is not None and entry.task is not None:
            await asyncio.wait([entry.task])

    def is_idle(self, session: SessionId) -> bool:
        """Whether nobody looks at the store for this session just now."""
        entry = self._entries.get(session)
        return entry is None or entry.task is None

    async def close(self) -> None:
        """Stop what is under way; what is finished stays on disk."""
        tasks = [entry.task for entry in self._entries.values() if entry.task]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._entries.clear()
        self.cache.close()

    def _following(self, session: SessionId) -> SessionFollower:
        clocks = (self._clock, self._store_clock)
        return SessionFollower(self._store, self.cache, session, *clocks, self._turns, self._settings.limits)

    def _is_fresh(self, entry: _Entry) -> bool:
        if entry.opened is None or entry.refreshed_at is None:
            return False
        settings = self._settings
        allowed = settings.final_freshness if entry.opened.is_final else settings.running_freshness
        return self._clock.steady() - entry.refreshed_at < allowed.total_seconds()

    def _let_go(self) -> None:
        """Forget the longest unused sessions, where there are too many, or those that are kept hold too much."""
        idle = [session for session, entry in self._entries.items() if entry.task is None]
        held = sum(entry.held_bytes for entry in self._entries.values())
        for session in idle[:-1]:
            if len(self._entries) <= SESSIONS_LIMIT and held <= ANSWERS_BYTES:
                return
            held -= self._entries.pop(session).held_bytes


class _Entry:
    """One session, and the look at the store that is under way."""

    def __init__(self, following: SessionFollower) -> None:
        self._following = following
        self.opened: Session | None = None
        self.task: asyncio.Task[None] | None = None
        self.refreshed_at: float | None = None
        self._shown = asyncio.Event()

    @property
    def held_bytes(self) -> int:
        return answers_bytes(self.opened.polled.values()) if self.opened else 0

    def refresh(self, clock: Clock, on_final: OnFinal | None) -> None:
        """Look at the store, unless somebody does."""
        if self.task is None:
            self.task = asyncio.create_task(self._refresh(clock, on_final))
            self.task.add_done_callback(self._refreshed)

    def drop_damaged(self) -> None:
        """Show nothing whose tables cannot be read, until there are new ones."""
        if self._following.is_distrusted and self.task is None:
            self.opened = None
            self._shown.clear()

    async def wait(self) -> None:
        """Until there is something to show. Raises what the look at the store raised."""
        task = self.task
        if task is None:
            raise SessionMissing(self._following.session)
        shown = asyncio.create_task(self._shown.wait())
        try:
            await asyncio.wait([task, shown], return_when=asyncio.FIRST_COMPLETED)
        finally:
            shown.cancel()
        if self.opened is None and task.done():
            task.result()
            raise SessionMissing(self._following.session)

    async def _refresh(self, clock: Clock, on_final: OnFinal | None) -> None:
        await self._look()
        if self._following.is_distrusted:  # a reader found damage meanwhile, so that nothing was published
            await self._look()
        self.refreshed_at = clock.steady()
        if on_final is not None and self.opened is not None and self.opened.is_final:
            await on_final(self.opened)

    async def _look(self) -> None:
        is_there = False
        async for opened in self._following.look():
            self.opened, is_there = opened, True
            self._shown.set()
        if not is_there:  # deleted since we looked
            self.opened = None
            self._shown.clear()

    def _refreshed(self, task: asyncio.Task[None]) -> None:
        self.task = None
        failure = None if task.cancelled() else task.exception()
        if failure is not None and self.opened is not None:  # whoever waited for the first look has raised it
            log.warning("session could not be read again", session=str(self._following.session), error=str(failure))
