"""Which sessions are held, and which are being removed, or were: lists leave those out, and whoever has the link is
told why.

What is under way is one short listing. What is done is looked up by the session's own key.
"""

from __future__ import annotations

import asyncio
from copy import copy
from datetime import datetime

from raykeeper.clock import Clock
from raykeeper.errors import RaykeeperError
from raykeeper.history.bounded import Bounded
from raykeeper.history.store.records import DamagedRecord, find_record
from raykeeper.history.visibility import EVERYTHING, Visibility
from raykeeper.layout.keys import SessionId
from raykeeper.layout.retention import (
    HOLDS_PREFIX,
    REMOVALS_PREFIX,
    RemovalIntent,
    RemovedRecord,
    intent_key,
    parse_session_mark,
    removed_key,
)
from raykeeper.logs import Log
from raykeeper.storage.store import ObjectStore

log = Log("raykeeper.history.catalog")

HIDDEN_AFTER_SECONDS = 5.0
"""So long a listing is believed: a session disappears from every server's lists within this time."""
MOST_HIDDEN = 20_000
"""Sessions under way that are hidden at once; a sweeper removes a few thousand at a time."""
_REMEMBERED = 50_000


class SessionRemoved(RaykeeperError):
    """The session was removed, or is being removed, by a rule."""

    def __init__(self, session: SessionId, at: datetime, rule: str, reason: str) -> None:
        day = at.strftime("%Y-%m-%d %H:%M UTC")
        super().__init__(f"session {session} was removed by retention on {day}, rule {rule!r}: {reason}")
        self.session = session
        self.at = at


class _MarkedSessions:
    """Sessions that have a mark under one prefix, as of seconds ago."""

    def __init__(self, store: ObjectStore, clock: Clock, prefix: str) -> None:
        self._store = store
        self._clock = clock
        self._prefix = prefix
        self._known: frozenset[SessionId] = frozenset()
        self._listed_at = float("-inf")
        self._listing = asyncio.Lock()

    async def known(self) -> frozenset[SessionId]:
        """Whoever asks meanwhile waits: nobody may see a list of before the first one."""
        async with self._listing:
            if self._clock.steady() - self._listed_at >= HIDDEN_AFTER_SECONDS:
                found = set[SessionId]()
                async for stat in self._store.list(self._prefix):
                    if (mark := parse_session_mark(stat.key)) is not None:
                        found.add(mark.session)
                    if len(found) >= MOST_HIDDEN:
                        break
                self._known = frozenset(found)
                self._listed_at = self._clock.steady()
        return self._known


class Removals:
    """Sessions that are not to be shown any more, and those that people hold."""

    def __init__(self, store: ObjectStore, clock: Clock) -> None:
        self._store = store
        self._removals = _MarkedSessions(store, clock, REMOVALS_PREFIX)
        self._holds = _MarkedSessions(store, clock, HOLDS_PREFIX)
        self._seen: Bounded[SessionId, bool] = Bounded(_REMEMBERED)
        """Sessions whose removal was once under way. Other caches may still have them."""
        self._visibility = EVERYTHING

    def seen_by(self, visibility: Visibility) -> Removals:
        """The same without a word on sessions of other namespaces."""
        view = copy(self)
        view._visibility = visibility
        return view

    async def under_way(self) -> frozenset[SessionId]:
        """Sessions that are hidden."""
        found = await self._removals.known()
        for session in found:
            if session not in self._seen:
                self._seen.put(session, True)
        return found

    async def held(self) -> frozenset[SessionId]:
        """Sessions that people hold, for lists to show."""
        return await self._holds.known()

    async def check(self, session: SessionId) -> None:
        """Raises SessionRemoved for a session that is being removed, or that vanished while we looked."""
        if session in await self.under_way() or session in self._seen:
            await self.check_record(session)

    async def check_record(self, session: SessionId) -> None:
        """Raises SessionRemoved if the store says so; for sessions of which it has nothing else."""
        if not self._visibility.sees(session.namespace):
            return
        try:
            record = await find_record(self._store, removed_key(session), RemovedRecord)
            if record is not None:
                raise SessionRemoved(session, record.removed_at, record.rule, record.reason)
            intent = await find_record(self._store, intent_key(session), RemovalIntent)
        except DamagedRecord as exc:
            log.warning("record of a removal cannot be read", session=str(session), cause=str(exc))
            return
        if intent is not None:
            raise SessionRemoved(session, intent.decided_at, intent.rule, intent.reason)
        self._seen.drop(session)
