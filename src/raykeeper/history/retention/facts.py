"""What retention knows of all sessions: a day of the catalog at a time, found out once and remembered in the store.

A past day hardly changes, so what is known of it is believed for about a day. That costs one read instead of a listing
of all its objects and one read for each summary. Nothing is removed by it alone: whoever removes a session looks at it
anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import msgspec

from raykeeper.errors import Unavailable
from raykeeper.history.store.catalog import Summaries
from raykeeper.history.store.catalog_day import CatalogDay
from raykeeper.history.store.catalog_entries import CatalogEntry
from raykeeper.history.store.heartbeats import Heartbeats, StoreClock
from raykeeper.history.store.session_state import SessionState, State, listed_state
from raykeeper.layout.keys import CATALOG_PREFIX, SessionId
from raykeeper.layout.retention import (
    DAYS_PREFIX,
    MOST_OF_DAY,
    DamagedFacts,
    SessionFacts,
    decode_day_facts,
    encode_day_facts,
    parse_day_facts_key,
)
from raykeeper.logs import Log
from raykeeper.storage.errors import ObjectMissing, ObjectTooLarge, StoreRefused
from raykeeper.storage.store import ObjectStat, ObjectStore

log = Log("raykeeper.history.retention")

BELIEVED = timedelta(hours=20)
"""What is known of a past day; some days up to eight hours longer, so that not all are looked at again at once."""
MEASURED_AT_ONCE = 5_000
"""Sessions whose objects one sweep counts; the others have their turn in the next one."""
_PAST_AFTER = timedelta(days=2)
_DAYS_AT_ONCE = 8
_READ_AT_ONCE = 32
_TOGETHER = 500

Progress = Callable[[str], None]


@dataclass
class Budget:
    """How many sessions may still be measured."""

    sessions: int = MEASURED_AT_ONCE

    def take(self) -> bool:
        self.sessions -= 1
        return self.sessions >= 0


@dataclass(frozen=True)
class Size:
    """Of one session's objects, without those of the catalog."""

    bytes: int = 0
    objects: int = 0
    last_written: datetime | None = None
    """By a collector or an import; tables do not count, which any reader makes."""


async def measure(store: ObjectStore, session: SessionId) -> Size:
    """One listing of the session."""
    size, objects, last, tables = 0, 0, None, f"{session.prefix}tables/"
    async for stat in store.list(session.prefix):
        size += stat.size
        objects += 1
        if not stat.key.startswith(tables):
            last = max(last or stat.modified, stat.modified)
    return Size(size, objects, last)


class SessionsKnown:
    """All sessions of a store, as retention sees them."""

    def __init__(self, store: ObjectStore, heartbeats: Heartbeats, store_clock: StoreClock) -> None:
        self._store = store
        self._heartbeats = heartbeats
        self._store_clock = store_clock
        self._summaries = Summaries(store)
        self._reads = asyncio.Semaphore(_READ_AT_ONCE)

    async def by_day(
        self, budget: Budget, *, may_write: bool, say: Progress = lambda _: None
    ) -> AsyncIterator[tuple[date, tuple[SessionFacts, ...]]]:
        """Each day with its sessions, newest first."""
        days = await self._days()
        known = await self._listed()
        for start in range(0, len(days), _DAYS_AT_ONCE):
            some = days[start : start + _DAYS_AT_ONCE]
            found = await asyncio.gather(
                *(self._of_day(day, known.get(day, []), budget, may_write=may_write) for day in some)
            )
            for pair in zip(some, found, strict=True):
                yield pair
            say(f"looked at {start + len(some):,} of {len(days):,} days")
        if may_write:
            await self._forget(known.keys() - set(days), known)

    async def drop(self, day: date, removed: Iterable[SessionId]) -> None:
        """Forget sessions that are gone."""
        gone = set(removed)
        await self._change(day, lambda facts: None if facts.id in gone else facts)

    async def learn(self, day: date, newer: Iterable[SessionFacts]) -> None:
        """Remember what was found out about some sessions of a day since it was looked at."""
        by_id = {facts.id: facts for facts in newer}
        await self._change(day, lambda facts: by_id.get(facts.id, facts))

    async def _change(self, day: date, change: Callable[[SessionFacts], SessionFacts | None]) -> None:
        stored = (await self._listed(day)).get(day, [])
        before = await self._read(stored)
        if before is not None:
            await self._save(day, [after for facts in before if (after := change(facts)) is not None], stored)

    async def _days(self) -> list[date]:
        found = [_day_of(folder) for folder in await self._store.list_folders(CATALOG_PREFIX)]
        return sorted((day for day in found if day), reverse=True)

    async def _listed(self, day: date | None = None) -> dict[date, list[ObjectStat]]:
        found: dict[date, list[ObjectStat]] = {}
        prefix = DAYS_PREFIX if day is None else f"{DAYS_PREFIX}{day.isoformat()}/"
        async for stat in self._store.list(prefix):
            if (key := parse_day_facts_key(stat.key)) is not None:
                found.setdefault(key.day, []).append(stat)
        return found

    async def _of_day(
        self, day: date, stored: list[ObjectStat], budget: Budget, *, may_write: bool
    ) -> tuple[SessionFacts, ...]:
        before = await self._read(stored)
        now = await self._store_clock.now()
        if before is not None and _is_believed(day, stored, now):
            return before
        index = CatalogDay(day)
        await index.refresh(self._store, self._reads)
        old = {facts.id: facts for facts in before or ()}
        facts = list[SessionFacts]()
        for start in range(0, min(len(index.entries), MOST_OF_DAY), _TOGETHER):
            entries = index.entries[start : min(start + _TOGETHER, MOST_OF_DAY)]
            facts += await asyncio.gather(*(self._found_out(entry, old.get(entry.id), budget) for entry in entries))
        if may_write:
            await self._save(day, facts, stored)
        return tuple(facts)

    async def _found_out(self, entry: CatalogEntry, old: SessionFacts | None, budget: Budget) -> SessionFacts:
        """What is known of one session; only what may have changed is found out again."""
        if old is None or not old.is_final or not _is_of(entry, old):
            async with self._reads:
                state, summary = await self._state(entry), await self._summaries.find(entry)
            old = SessionFacts(
                *(entry.id.namespace, entry.id.cluster, entry.id.session),
                started_at=entry.start.started_at,
                start_written=entry.start_written,
                end_written=entry.end_written,
                summary_written=entry.summary_written,
                is_final=is_removable_state(state),
                ended_at=state.ended_at,
                outcome=summary.outcome if summary else "",
            )
        if old.bytes is None and budget.take():
            async with self._reads:
                size = await measure(self._store, entry.id)
            old = msgspec.structs.replace(old, bytes=size.bytes, objects=size.objects, last_written=size.last_written)
        return old

    async def _state(self, entry: CatalogEntry) -> SessionState:
        """As lists have it: by the catalog alone, where the head wrote its end there."""
        if entry.end and entry.has_ended:
            return listed_state(entry.end)
        return await self._heartbeats.state(entry.id, entry.start.head_node_id)

    async def _read(self, stored: list[ObjectStat]) -> tuple[SessionFacts, ...] | None:
        """What was written last; None where that is nothing."""
        for stat in sorted(stored, key=lambda stat: stat.modified, reverse=True)[:1]:
            try:
                return await asyncio.to_thread(decode_day_facts, await self._store.get(stat.key))
            except ObjectMissing:
                return None
            except (ObjectTooLarge, DamagedFacts) as exc:
                log.warning("what is known of a day cannot be read", key=stat.key, cause=str(exc))
        return None

    async def _save(self, day: date, facts: list[SessionFacts], stored: list[ObjectStat]) -> None:
        """Remember it for others. Whoever does it at the same time writes the same, or as good."""
        try:
            key, data = await asyncio.to_thread(encode_day_facts, day, facts)
            await self._store.put(key.key, data)
            for stat in stored:
                if stat.key != key.key:
                    await self._store.delete(stat.key)
        except (StoreRefused, Unavailable) as exc:
            log.warning("what is known of a day is not stored", day=day.isoformat(), cause=str(exc))

    async def _forget(self, days: Iterable[date], known: dict[date, list[ObjectStat]]) -> None:
        """Of days of which the catalog has nothing any more."""
        for day in days:
            for stat in known[day]:
                await self._store.delete(stat.key)


def is_removable_state(state: SessionState) -> bool:
    """Whether nothing more is expected of the session."""
    return state.is_final and state.state is not State.RUNNING


def _is_of(entry: CatalogEntry, facts: SessionFacts) -> bool:
    return (facts.start_written, facts.end_written, facts.summary_written) == (
        entry.start_written,
        entry.end_written,
        entry.summary_written,
    )


def _is_believed(day: date, stored: list[ObjectStat], now: datetime) -> bool:
    written = max((stat.modified for stat in stored), default=datetime.min.replace(tzinfo=UTC))
    spread = timedelta(hours=day.toordinal() % 8)
    return day <= now.date() - _PAST_AFTER and now - written < BELIEVED + spread


def _day_of(folder: str) -> date | None:
    try:
        return date.fromisoformat(folder)
    except ValueError:
        return None
