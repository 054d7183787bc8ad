"""The list of all sessions, from catalog objects alone, a day at a time: newest first, as far as somebody pages.

A session's entry is filed under the day it started, so a page needs the newest days only. All that is
remembered are copies.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable, Sequence
from copy import copy
from datetime import UTC, date, datetime, timedelta

from raykeeper.clock import Clock
from raykeeper.history.bounded import Bounded
from raykeeper.history.store.catalog_day import CatalogDay, compact_if_allowed
from raykeeper.history.store.catalog_entries import CatalogEntry, Order, Page, Place, SessionFilter, end_of_day
from raykeeper.history.store.records import DamagedRecord, find_record, find_session_record
from raykeeper.history.store.removals import Removals
from raykeeper.history.store.unstarted import UnstartedClusters
from raykeeper.history.store.unstarted_rayjobs import UnstartedRayJobs
from raykeeper.history.store.visible_store import VisibleStore
from raykeeper.history.visibility import EVERYTHING, Visibility
from raykeeper.layout.keys import (
    CATALOG_PREFIX,
    KUBE_FOLDER,
    CatalogKey,
    SessionId,
    cluster_prefix,
)
from raykeeper.layout.names import from_segment
from raykeeper.layout.records import encode_record
from raykeeper.layout.summaries import SessionSummary
from raykeeper.logs import Log
from raykeeper.storage.store import ObjectStore

log = Log("raykeeper.history.catalog")

_REMEMBERED_BYTES = 128 << 20
_JOB_BYTES, _FAILURE_BYTES = 500, 200  # in memory, however little is said of one


class Summaries:
    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._known: Bounded[SessionId, tuple[datetime, SessionSummary | None]] = Bounded(_REMEMBERED_BYTES)

    async def find(self, entry: CatalogEntry) -> SessionSummary | None:
        """The session's summary, if it has one that can be read."""
        if entry.summary_written is None:
            return None
        known = self._known.get(entry.id)
        if known is None or known[0] != entry.summary_written:
            key = CatalogKey(entry.start.started_at.astimezone(UTC).date(), entry.id, "summary").key
            known = (entry.summary_written, await self._read(key))
            self._known.put(entry.id, known, _weight(known[1]))
        return known[1]

    def is_known(self, entry: CatalogEntry) -> bool:
        """Whether the store need not be asked for it."""
        known = self._known.get(entry.id)
        return entry.summary_written is None or (known is not None and known[0] == entry.summary_written)

    async def _read(self, key: str) -> SessionSummary | None:
        try:
            return await find_record(self._store, key, SessionSummary)
        except DamagedRecord as exc:
            log.warning("summary cannot be read", key=key, cause=str(exc))
            return None


def _weight(summary: SessionSummary | None) -> int:
    """About what it takes in memory."""
    if summary is None:
        return _JOB_BYTES
    failures = len(summary.failures) + sum(len(job.failures) for job in summary.jobs)
    return len(encode_record(summary)) + _JOB_BYTES * (1 + len(summary.jobs)) + _FAILURE_BYTES * failures


_RECENT_SECONDS = 5.0  # how long a listing of the newest days is believed
_OLDER_SECONDS = 60.0  # of days past, where only ends of long sessions are new
_PATIENCE_SECONDS = 0.1
"""A list waits so long for a newer listing of a large day, where it has one that is a few seconds old."""
_LARGE_DAY = 500  # sessions; fewer are listed in a moment
_STALE_SECONDS = 30.0  # an older one than by this is not shown, however long the newer one takes
_STARTED_SECONDS = 300.0  # a session does not start twice, but it may be deleted
_RECENT_DAYS = 2
_READ_AT_ONCE = 32
_DAYS_AT_ONCE = 8
_PAST_AFTER = timedelta(days=2)  # by then a day has nearly all it will ever have, whatever the clocks of heads
LOOKED_AT = 10_000
"""Entries that one page looks at for those that are wanted: a second where nothing of them is in memory yet."""
EVERY_SESSION = SessionFilter()
_REMEMBERED_SESSIONS = 30_000  # about 3 KB each


class Catalog:
    """All sessions of a store that somebody may see."""

    def __init__(self, store: ObjectStore, clock: Clock) -> None:
        self.store = store
        """Objects beside the catalog's own; those of other namespaces are not in it."""
        self.removals = Removals(store, clock)
        """Sessions that are being removed: they are in no list, although the catalog has them."""
        self.summaries = Summaries(store)
        """What became of the jobs of sessions that were read to their end."""
        self.unstarted = UnstartedClusters(store, clock)
        """The clusters that never had a session."""
        self.unstarted_rayjobs = UnstartedRayJobs(store, clock)
        """The RayJobs that never had a cluster."""
        self._index = _Index(store, clock)
        self._visibility = EVERYTHING

    def seen_by(self, visibility: Visibility) -> Catalog:
        """The same catalog without the sessions, clusters and RayJobs of other namespaces; what is remembered of the
        store is shared.
        """
        view = copy(self)
        view.store = VisibleStore(self.store, visibility)
        view.removals = self.removals.seen_by(visibility)
        view.unstarted = self.unstarted.seen_by(visibility)
        view.unstarted_rayjobs = self.unstarted_rayjobs.seen_by(visibility)
        view._visibility = visibility
        return view

    async def page(
        self,
        limit: int,
        after: Place | None = None,
        wanted: SessionFilter = EVERY_SESSION,
        order: Order = "newest",
    ) -> Page:
        """The first sessions of those wanted, or those next to a place in the list."""
        found, unreadable, looked_at = list[CatalogEntry](), 0, 0
        hidden = await self.removals.under_way()
        async for day in self._index.days_in(order, after, wanted):
            unreadable += day.unreadable_in(self._visibility)
            entries = day.entries if order == "newest" else reversed(day.entries)
            ahead = [entry for entry in entries if after is None or entry.place.is_behind(after, order)]
            visible = filter(wanted.matches, self._visible(ahead))
            found += [entry for entry in visible if not (hidden and entry.id in hidden)]
            looked_at += len(ahead)
            if len(found) > limit:
                return Page(tuple(found[:limit]), found[limit - 1].place, unreadable)
            if looked_at >= LOOKED_AT:
                return Page(tuple(found), end_of_day(day.day, order), unreadable, is_cut=True)
        return Page(tuple(found), None, unreadable)

    def _visible(self, entries: Sequence[CatalogEntry]) -> Iterable[CatalogEntry]:
        if self._visibility.is_everything:
            return entries
        return (entry for entry in entries if self._visibility.sees(entry.id.namespace))

    async def find(self, session: SessionId) -> CatalogEntry | None:
        """The entry of one session; None for one that is not in the list."""
        started_at = await self._started_at(session)
        if started_at is None or session in await self.removals.under_way():
            return None
        day = await self._index.day(started_at.astimezone(UTC).date(), _RECENT_SECONDS)
        return next((entry for entry in day.entries if entry.id == session), None)

    async def newest_of_owner(self, namespace: str, kind: str, name: str) -> CatalogEntry | None:
        """The newest session that was made for a RayJob or RayService."""
        if not self._visibility.sees(namespace):
            return None
        hidden = await self.removals.under_way()
        async for day in self._index.days_from(None):
            for entry in day.entries:
                start = entry.start
                is_owners = (start.namespace, start.owner_kind.lower(), start.owner_name) == (namespace, kind, name)
                if is_owners and entry.id not in hidden:
                    return entry
        return None

    async def newest_of_cluster(self, namespace: str, cluster: str) -> SessionId | None:
        """The session of a cluster that started last, by what it says itself."""
        if not self._visibility.sees(namespace):
            return None
        folders = await self.store.list_folders(cluster_prefix(namespace, cluster))
        hidden = await self.removals.under_way()
        named = (SessionId(namespace, cluster, name) for folder in folders if (name := _name(folder)))
        ids = [id_ for id_ in named if id_ not in hidden]
        starts = await asyncio.gather(*(self._started_at(id_) for id_ in ids))
        known = [Place(start, id_) for start, id_ in zip(starts, ids, strict=True) if start]
        return max(known).id if known else None

    async def is_known(self, session: SessionId) -> bool:
        """Whether the store has anything of this session. Raises SessionRemoved for one that was removed."""
        if session.session == KUBE_FOLDER or not self._visibility.sees(session.namespace):
            return False
        await self.removals.check(session)
        if await self._started_at(session):
            return True
        async for _ in self.store.list(session.prefix):
            return True
        await self.removals.check_record(session)
        return False

    async def _started_at(self, session: SessionId) -> datetime | None:
        return await self._index.started_at(session) if self._visibility.sees(session.namespace) else None


class _Index:
    """What is remembered of a store's catalog, for everybody."""

    def __init__(self, store: ObjectStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._days: OrderedDict[date, CatalogDay] = OrderedDict()
        self._may_write = True
        self._folders: list[date] = []
        self._folders_listed_at = float("-inf")
        self._listing = asyncio.Lock()
        self._reads = asyncio.Semaphore(_READ_AT_ONCE)
        self._started: dict[SessionId, tuple[datetime, float]] = {}

    async def started_at(self, session: SessionId) -> datetime | None:
        known, read_at = self._started.get(session, (None, float("-inf")))
        if known is not None and self._clock.steady() - read_at < _STARTED_SECONDS:
            return known
        try:
            async with self._reads:
                record = await find_session_record(self._store, session)
        except DamagedRecord as exc:
            log.warning("session record cannot be read", session=str(session), cause=str(exc))
            return None
        started_at = record.started_at if record else None
        self._started.pop(session, None)
        if started_at is not None and len(self._started) < _REMEMBERED_SESSIONS:
            self._started[session] = (started_at, self._clock.steady())
        return started_at

    async def days_from(self, newest: date | None) -> AsyncIterator[CatalogDay]:
        for rank, day in enumerate(await self._list_folders()):
            if newest is None or day <= newest:
                yield await self.day(day, _believed_seconds(rank))

    async def days_in(self, order: Order, after: Place | None, wanted: SessionFilter) -> AsyncIterator[CatalogDay]:
        """Days that may have wanted sessions: one at first, then more and more at once, as few seem to match."""
        limit = after.started_at.astimezone(UTC).date() if after else None
        ranked = [(day, rank) for rank, day in enumerate(await self._list_folders()) if wanted.may_have_day(day)]
        if order == "oldest":
            ranked.reverse()
        ahead = [
            (day, rank) for day, rank in ranked if limit is None or day == limit or (day < limit) == (order == "newest")
        ]
        at_once = 1
        while ahead:
            some, ahead = ahead[:at_once], ahead[at_once:]
            for day in await asyncio.gather(*(self.day(day, _believed_seconds(rank)) for day, rank in some)):
                yield day
            at_once = min(2 * at_once, _DAYS_AT_ONCE)

    async def _list_folders(self) -> list[date]:
        """Days with sessions, newest first. Whoever asks meanwhile waits: there is no list before the first one."""
        async with self._listing:
            if self._clock.steady() - self._folders_listed_at >= _RECENT_SECONDS:
                found = (_day_of(folder) for folder in await self._store.list_folders(CATALOG_PREFIX))
                self._folders = sorted((day for day in found if day), reverse=True)
                self._folders_listed_at = self._clock.steady()
        return self._folders

    async def _refresh(self, index: CatalogDay) -> None:
        await index.refresh(self._store, self._reads)
        index.listed_at = self._clock.steady()
        if self._may_write:
            is_past = index.day <= self._clock.now().astimezone(UTC).date() - _PAST_AFTER
            self._may_write = await compact_if_allowed(index, self._store, is_past=is_past)

    async def day(self, day: date, believed_seconds: float) -> CatalogDay:
        index = self._days.setdefault(day, CatalogDay(day))
        self._days.move_to_end(day)
        age = self._clock.steady() - index.listed_at
        if age >= believed_seconds:
            if index.refreshing is None:
                index.refreshing = asyncio.create_task(self._refresh(index), name=f"listing of {day}")
                index.refreshing.add_done_callback(lambda done: _refreshed(index, done))
            is_patient = len(index.entries) < _LARGE_DAY or age >= believed_seconds + _STALE_SECONDS
            patience = None if is_patient else _PATIENCE_SECONDS
            for done in (await asyncio.wait({index.refreshing}, timeout=patience))[0]:
                done.result()
        while sum(len(kept.entries) for kept in self._days.values()) > _REMEMBERED_SESSIONS and len(self._days) > 1:
            self._days.popitem(last=False)
        return index


def _refreshed(index: CatalogDay, done: asyncio.Task[None]) -> None:
    index.refreshing = None
    if not done.cancelled() and (failure := done.exception()) is not None:  # whoever waited for it has raised it
        log.warning("day of the catalog could not be listed", day=index.day.isoformat(), cause=str(failure))


def _believed_seconds(rank: int) -> float:
    """How long the listing of a day is believed; the newest day has rank 0."""
    return _RECENT_SECONDS if rank < _RECENT_DAYS else _OLDER_SECONDS


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
