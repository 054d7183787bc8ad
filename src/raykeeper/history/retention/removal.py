"""Removes one session in steps, each of which may be the last one before a crash: the next sweep goes on.

    intent      the session is hidden from lists, and whoever opens it is told that it was removed
    wait        readers that have it open come to their end
    begun       looked at a last time: a hold, or anything a collector wrote since, takes the intent back
    delete      its objects, then its entries in the catalog, the start last
    record      what was removed, when and by which rule; then the marks of the steps before go

Whoever takes part may do any step at any time, and two may do the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum

import msgspec

from raykeeper.clock import Clock
from raykeeper.history.retention.facts import is_removable_state, measure
from raykeeper.history.retention.holds import find_hold, is_marker_young
from raykeeper.history.retention.plan import Removal, age_of
from raykeeper.history.retention_policy import RetentionPolicy
from raykeeper.history.store.heartbeats import Heartbeats, StoreClock
from raykeeper.history.store.records import DamagedRecord, find_record
from raykeeper.history.store.session_state import SessionState, State
from raykeeper.layout.alerts import session_alerts_prefix
from raykeeper.layout.keys import CatalogKey, CatalogPart, SessionId, nodes_prefix
from raykeeper.layout.records import CatalogStart, encode_record
from raykeeper.layout.retention import (
    REMOVALS_PREFIX,
    RemovalIntent,
    RemovedRecord,
    SessionFacts,
    begun_key,
    intent_key,
    parse_session_mark,
    removed_key,
)
from raykeeper.layout.summaries import SessionSummary
from raykeeper.logs import Log
from raykeeper.storage.store import ObjectStat, ObjectStore

log = Log("raykeeper.history.retention")

DELETED_AT_ONCE = 16
_CLOCKS_DIFFER = timedelta(minutes=10)
_ROUNDS = 5  # of listing and deleting, where somebody writes meanwhile
_PARTS: tuple[CatalogPart, ...] = ("summary", "end", "start")
"""The start is last: while it is there, the session can be found again."""


async def objects_of(store: ObjectStore, session: SessionId) -> AsyncIterator[ObjectStat]:
    """All that goes with a session, but for its entries in the catalog."""
    for prefix in (session.prefix, session_alerts_prefix(session)):
        async for stat in store.list(prefix):
            yield stat


class Step(StrEnum):
    """How far a removal came."""

    WAITING = "waiting"
    WITHDRAWN = "withdrawn"
    """The session is held, or somebody wrote to it: it stays."""
    REMOVED = "removed"
    REFUSED = "refused"
    """The store lets nobody delete some of it, by a lock for example; it is tried again."""


@dataclass(frozen=True)
class UnderWay:
    """Marks of one removal, with the times at which the store got them."""

    session: SessionId
    intended: datetime | None = None
    begun: datetime | None = None


async def removals_under_way(store: ObjectStore) -> list[UnderWay]:
    """The oldest first, by whatever mark there is."""
    intents, begins = dict[SessionId, datetime](), dict[SessionId, datetime]()
    async for stat in store.list(REMOVALS_PREFIX):
        if (mark := parse_session_mark(stat.key)) is not None:
            (begins if mark.is_begun else intents)[mark.session] = stat.modified
    found = [UnderWay(one, intents.get(one), begins.get(one)) for one in intents.keys() | begins.keys()]
    return sorted(found, key=lambda one: (min(filter(None, (one.intended, one.begun))), one.session))


@dataclass(frozen=True)
class Done:
    """What came of one step."""

    step: Step
    day: date | None = None
    """Of the catalog, where the session was removed."""
    bytes: int = 0
    objects: int = 0


class Remover:
    """Acts for one sweeper."""

    def __init__(
        self,
        store: ObjectStore,
        clock: Clock,
        store_clock: StoreClock,
        policy: RetentionPolicy,
        by: str,
        may_go_on: Callable[[], bool] = lambda: True,
    ) -> None:
        self._store = store
        self._clock = clock
        self._store_clock = store_clock
        self._policy = policy
        self._by = by
        self._may_go_on = may_go_on

    async def intend(self, removal: Removal) -> bool:
        """Hide the session and say that it goes; whether it may go, by what the store says of it now."""
        session = removal.facts.id
        day = removal.facts.started_at.astimezone(UTC).date()
        if await self._store.find(CatalogKey(day, session, "start").key, CatalogStart.limit_bytes) is None:
            return False  # another sweeper was here
        if await find_hold(self._store, session) is not None:
            return False
        if not is_removable_state(await self._state(session)):
            return False
        size = await measure(self._store, session)
        fresh = msgspec.structs.replace(removal.facts, last_written=size.last_written)
        if age_of(fresh, await self._store_clock.now()) < removal.needs_age:
            return False  # somebody wrote to it since its age was found out
        if await self.outcome(removal.facts) != removal.facts.outcome:
            return False
        await self._store.delete(removed_key(session))  # of a removal after which it came back
        intent = RemovalIntent(
            started_at=removal.facts.started_at,
            decided_at=self._clock.now(),
            by=self._by[:500],
            rule=removal.rule,
            reason=removal.reason,
            bytes=size.bytes,
            objects=size.objects,
        )
        return await self._store.create(intent_key(session), encode_record(intent))

    async def advance(self, removal: UnderWay) -> Done:
        """Go on with a removal, as far as it can go now."""
        session = removal.session
        if await self._store.find(removed_key(session)) is not None:
            await self._forget(session)
            return Done(Step.REMOVED)
        intent = await self._intent(session)
        if intent is None and removal.begun is None:
            return await self._withdraw(session)
        if removal.begun is None and await self._is_of_the_future(removal):
            return await self._withdraw(session)
        if removal.begun is None and not await self._begin(removal):
            waits = removal.intended is not None and await self._is_waiting(removal.intended)
            return Done(Step.WAITING) if waits else await self._withdraw(session)
        hold = await find_hold(self._store, session)
        if hold is not None and hold.is_confirmed:
            return await self._withdraw(session)  # it was there before the begin, so that nothing is deleted yet
        if hold is not None and await is_marker_young(self._store, self._store_clock, session):
            return Done(Step.WAITING)
        if not await self._delete(session):
            return Done(Step.WAITING)
        if intent is None:  # somebody took it away: the entry, if there is one, is removed by the next sweep
            await self._forget(session)
            return Done(Step.REMOVED)
        await self._delete_entries(session, intent.started_at.astimezone(UTC).date())
        await self._record(session, intent)
        await self._forget(session)
        log.info("session removed", session=str(session), rule=intent.rule, bytes=intent.bytes, objects=intent.objects)
        return Done(Step.REMOVED, intent.started_at.astimezone(UTC).date(), intent.bytes, intent.objects)

    async def clean_late(self, session: SessionId, record: RemovedRecord) -> int:
        """Delete what came after the session was removed; how many objects that were.

        A head that goes on with the session enters it into the catalog again: then it is a session like any other,
        and the record of its removal goes.
        """
        day = record.started_at.astimezone(UTC).date()
        if await self._store.find(CatalogKey(day, session, "start").key, CatalogStart.limit_bytes) is not None:
            log.warning("a removed session came back", session=str(session))
            await self._store.delete(removed_key(session))
            return 0
        late = [stat async for stat in objects_of(self._store, session)]
        await self._delete_all(late)
        await self._delete_entries(session, day)
        return len(late)

    async def _begin(self, removal: UnderWay) -> bool:
        """Whether from here on data is deleted. Nothing that must stay comes to this point."""
        if removal.intended is None or await self._is_waiting(removal.intended):
            return False
        if await find_hold(self._store, removal.session) is not None:
            return False
        if not is_removable_state(await self._state(removal.session)):
            return False
        size = await measure(self._store, removal.session)
        if size.last_written is not None and size.last_written > removal.intended:
            return False
        await self._store.create(begun_key(removal.session), b"{}")
        return True

    async def _is_of_the_future(self, removal: UnderWay) -> bool:
        """Whether it was decided on while the store's clock was far ahead: by the right time the session may stay."""
        return removal.intended is not None and removal.intended > await self._store_clock.now() + _CLOCKS_DIFFER

    async def _is_waiting(self, intended: datetime) -> bool:
        return await self._store_clock.now() - intended < self._policy.reader_wait

    async def _withdraw(self, session: SessionId) -> Done:
        log.info("removal of a session is taken back", session=str(session))
        await self._store.delete(begun_key(session))
        await self._store.delete(intent_key(session))
        return Done(Step.WITHDRAWN)

    async def _forget(self, session: SessionId) -> None:
        await self._store.delete(begun_key(session))
        await self._store.delete(intent_key(session))

    async def _delete(self, session: SessionId) -> bool:
        """Whether all is gone, by a listing after the last deletion."""
        for _ in range(_ROUNDS):
            batch, is_empty = list[ObjectStat](), True
            async for stat in objects_of(self._store, session):
                is_empty = False
                batch.append(stat)
                if len(batch) == DELETED_AT_ONCE:
                    await self._delete_all(batch)
                    batch.clear()
                if not self._may_go_on():
                    return False
            await self._delete_all(batch)
            if is_empty:
                return True
        return False

    async def _delete_entries(self, session: SessionId, day: date) -> None:
        for part in _PARTS:
            await self._store.delete(CatalogKey(day, session, part).key)

    async def _delete_all(self, objects: list[ObjectStat]) -> None:
        for start in range(0, len(objects), DELETED_AT_ONCE):
            some = objects[start : start + DELETED_AT_ONCE]
            outcomes = await asyncio.gather(*(self._store.delete(stat.key) for stat in some), return_exceptions=True)
            for outcome in outcomes:
                if isinstance(outcome, BaseException):
                    raise outcome

    async def _record(self, session: SessionId, intent: RemovalIntent) -> None:
        record = RemovedRecord(
            started_at=intent.started_at,
            decided_at=intent.decided_at,
            removed_at=self._clock.now(),
            by=intent.by,
            rule=intent.rule,
            reason=intent.reason,
            bytes=intent.bytes,
            objects=intent.objects,
        )
        await self._store.put(removed_key(session), encode_record(record))

    async def _intent(self, session: SessionId) -> RemovalIntent | None:
        try:
            return await find_record(self._store, intent_key(session), RemovalIntent)
        except DamagedRecord as exc:
            log.warning("intent to remove a session cannot be read", session=str(session), cause=str(exc))
            return None

    async def outcome(self, facts: SessionFacts) -> str:
        """By the summary as it is now; empty where there is none."""
        key = CatalogKey(facts.started_at.astimezone(UTC).date(), facts.id, "summary").key
        try:
            summary = await find_record(self._store, key, SessionSummary)
        except DamagedRecord:
            return ""
        return summary.outcome if summary else ""

    async def _state(self, session: SessionId) -> SessionState:
        """By the records of its nodes, read anew: lists may be minutes old, and the catalog knows of the head alone."""
        state = await Heartbeats(self._store, self._clock, self._store_clock).state(session)
        if state.state is State.UNKNOWN and not await self._has_nodes(session):
            return SessionState(State.ENDED, is_final=True)  # all that is left of it are entries, or data without nodes
        return state

    async def _has_nodes(self, session: SessionId) -> bool:
        async for _ in self._store.list(nodes_prefix(session)):
            return True
        return False
