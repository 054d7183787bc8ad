"""The list of all sessions, from catalog objects alone, a day at a time: newest first, as far as somebody pages.

A session's entry is filed under the day it started, so a page needs the newest days only. All that is
remembered are copies.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime

import msgspec

from raykeeper.clock import Clock
from raykeeper.history.entries import CatalogEntry, Page, Place
from raykeeper.layout.keys import (
    CATALOG_PREFIX,
    CatalogKey,
    SessionId,
    catalog_day_prefix,
    cluster_prefix,
    parse_catalog_key,
    session_record_key,
)
from raykeeper.layout.names import from_segment
from raykeeper.layout.records import CatalogEnd, CatalogStart, SessionRecord, decode_record
from raykeeper.logs import Log
from raykeeper.storage.errors import ObjectMissing
from raykeeper.storage.store import ObjectStat, ObjectStore

_RECENT_SECONDS = 5.0  # how long a listing of the newest days is believed
_OLDER_SECONDS = 60.0  # of days past, where only ends of long sessions are new
_RECENT_DAYS = 2
_READ_AT_ONCE = 32
_REMEMBERED_SESSIONS = 200_000  # about 1 KB each

log = Log("raykeeper.history.catalog")


@dataclass
class _Day:
    objects: dict[str, ObjectStat] = field(default_factory=dict)
    records: dict[str, CatalogStart | CatalogEnd] = field(default_factory=dict)
    entries: list[CatalogEntry] = field(default_factory=list)
    unreadable: set[str] = field(default_factory=set)
    listed_at: float = float("-inf")
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Catalog:
    """All sessions of a store."""

    def __init__(self, store: ObjectStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._days: OrderedDict[date, _Day] = OrderedDict()
        self._folders: list[date] = []
        self._folders_listed_at = float("-inf")
        self._reads = asyncio.Semaphore(_READ_AT_ONCE)
        self._started: dict[SessionId, datetime] = {}

    async def page(self, limit: int, after: Place | None = None) -> Page:
        """The newest sessions, or those next to a place in the list."""
        entries, unreadable = list[CatalogEntry](), 0
        async for day in self._days_from(after.started_at.astimezone(UTC).date() if after else None):
            unreadable += len(day.unreadable)
            entries += [entry for entry in day.entries if after is None or entry.place < after]
            if len(entries) > limit:
                break
        next_place = entries[limit - 1].place if len(entries) > limit else None
        return Page(tuple(entries[:limit]), next_place, unreadable)

    async def newest_of_owner(self, namespace: str, kind: str, name: str) -> CatalogEntry | None:
        """The newest session that was made for a RayJob or RayService."""
        async for day in self._days_from(None):
            for entry in day.entries:
                start = entry.start
                if (start.namespace, start.owner_kind.lower(), start.owner_name) == (namespace, kind, name):
                    return entry
        return None

    async def newest_of_cluster(self, namespace: str, cluster: str) -> SessionId | None:
        """The session of a cluster that started last, by what it says itself."""
        folders = await self._store.list_folders(cluster_prefix(namespace, cluster))
        ids = [SessionId(namespace, cluster, name) for folder in folders if (name := _name(folder))]
        starts = await asyncio.gather(*(self._started_at(id_) for id_ in ids))
        known = [Place(start, id_) for start, id_ in zip(starts, ids, strict=True) if start]
        return max(known).id if known else None

    async def is_known(self, session: SessionId) -> bool:
        """Whether the store has anything of this session."""
        if await self._started_at(session):
            return True
        async for _ in self._store.list(session.prefix):
            return True
        return False

    async def _started_at(self, session: SessionId) -> datetime | None:
        if (known := self._started.get(session)) is not None:
            return known
        async with self._reads:
            data = await self._store.find(session_record_key(session))
        try:
            started_at = decode_record(data, SessionRecord).started_at if data else None
        except msgspec.DecodeError as exc:
            log.warning("session record cannot be read", session=str(session), cause=str(exc))
            return None
        if started_at is not None and len(self._started) < _REMEMBERED_SESSIONS:
            self._started[session] = started_at
        return started_at

    async def _days_from(self, newest: date | None) -> AsyncIterator[_Day]:
        folders = await self._list_folders()
        for rank, day in enumerate(folders):
            if newest is None or day <= newest:
                yield await self._day(day, _RECENT_SECONDS if rank < _RECENT_DAYS else _OLDER_SECONDS)

    async def _list_folders(self) -> list[date]:
        """Days with sessions, newest first."""
        if self._clock.steady() - self._folders_listed_at >= _RECENT_SECONDS:
            self._folders_listed_at = self._clock.steady()
            found = (_day_of(folder) for folder in await self._store.list_folders(CATALOG_PREFIX))
            self._folders = sorted((day for day in found if day), reverse=True)
        return self._folders

    async def _day(self, day: date, believed_seconds: float) -> _Day:
        index = self._days.setdefault(day, _Day())
        self._days.move_to_end(day)
        async with index.lock:
            if self._clock.steady() - index.listed_at >= believed_seconds:
                await self._refresh(day, index)
        while sum(len(kept.entries) for kept in self._days.values()) > _REMEMBERED_SESSIONS and len(self._days) > 1:
            self._days.popitem(last=False)
        return index

    async def _refresh(self, day: date, index: _Day) -> None:
        """List the day and read what is new in it."""
        objects = {stat.key: stat async for stat in self._store.list(catalog_day_prefix(day))}
        changed = [key for key, stat in objects.items() if index.objects.get(key) != stat]
        await asyncio.gather(*(self._read(key, index) for key in changed))
        is_changed = index.objects != objects
        index.objects, index.listed_at = objects, self._clock.steady()
        if is_changed:
            index.entries = _entries(index)

    async def _read(self, key: str, index: _Day) -> None:
        facts = parse_catalog_key(key)
        if facts is None or facts.part == "summary":
            return
        kind: type[CatalogStart | CatalogEnd] = CatalogStart if facts.part == "start" else CatalogEnd
        try:
            async with self._reads:
                index.records[key] = decode_record(await self._store.get(key), kind)
            index.unreadable.discard(key)
        except msgspec.DecodeError as exc:
            index.unreadable.add(key)
            log.warning("catalog entry cannot be read", key=key, cause=str(exc))
        except ObjectMissing:
            return


def _entries(index: _Day) -> list[CatalogEntry]:
    """Newest first."""
    found = []
    for key, stat in index.objects.items():
        facts, start = parse_catalog_key(key), index.records.get(key)
        if facts and isinstance(start, CatalogStart):
            end_key = CatalogKey(facts.day, facts.session, "end").key
            end, end_stat = index.records.get(end_key), index.objects.get(end_key)
            if isinstance(end, CatalogEnd) and end_stat:
                found.append(CatalogEntry(facts.session, start, stat.modified, end, end_stat.modified))
            else:
                found.append(CatalogEntry(facts.session, start, stat.modified))
    return sorted(found, key=lambda entry: entry.place, reverse=True)


def _day_of(folder: str) -> date | None:
    try:
        return date.fromisoformat(folder)
    except ValueError:
        return None


def _name(folder: str) -> str | None:
    try:
        return from_segment(folder)
    except ValueError:
        return None
