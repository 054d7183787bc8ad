"""One day of the catalog: each version of an object in it is read once, and many are compacted into one."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime

import msgspec

from raykeeper.errors import Unavailable
from raykeeper.history.store.catalog_entries import CatalogEntry
from raykeeper.history.visibility import Visibility
from raykeeper.layout.compacted import (
    CompactedPart,
    DamagedCompaction,
    compacted_key,
    decode_compacted,
    encode_compacted,
    parse_compacted_key,
)
from raykeeper.layout.keys import CatalogKey, SessionId, catalog_day_prefix, parse_catalog_key
from raykeeper.layout.records import CatalogEnd, CatalogStart, Record, decode_record
from raykeeper.logs import Log
from raykeeper.storage.errors import ObjectMissing, ObjectTooLarge, StoreRefused
from raykeeper.storage.store import ObjectStat, ObjectStore

MOST_OF_NAMESPACE, MOST_OF_DAY = 50_000, 100_000
"""Objects of one day that are listed, starts, ends and summaries; 3 KB of memory each. Further ones are counted as
unreadable, those of the namespace that has too many first."""
_READ_TOGETHER = 256
COMPACTED_FROM = 16
"""Objects that had to be read one by one; fewer are not worth a new compaction."""

log = Log("raykeeper.history.catalog")


@dataclass(frozen=True, slots=True)
class _Listed:
    facts: CatalogKey
    stat: ObjectStat


@dataclass(slots=True)
class _Read:
    """One object as it was when it was read."""

    facts: CatalogKey
    stat: ObjectStat
    body: bytes
    record: CatalogStart | CatalogEnd | None
    """None where it could not be decoded."""


@dataclass
class CatalogDay:
    """The sessions that started on one day."""

    day: date
    entries: list[CatalogEntry] = field(default_factory=list)
    """Newest first."""
    unreadable: Counter[str] = field(default_factory=Counter)
    """By namespace."""
    listed_at: float = float("-inf")
    refreshing: asyncio.Task[None] | None = None
    """The look at the store that is under way."""
    _read: dict[str, _Read] = field(default_factory=dict)
    _summaries: dict[SessionId, ObjectStat] = field(default_factory=dict)
    _keys: dict[str, CatalogKey] = field(default_factory=dict)
    """Of the last listing, with what they say: to find that out again costs most of a listing of thousands."""
    _compactions: list[ObjectStat] = field(default_factory=list)
    _singly: int = 0
    """Objects that no compaction had."""

    async def refresh(self, store: ObjectStore, reads: asyncio.Semaphore) -> None:
        """List the day and read what is new in it."""
        listing = _Listing(self._keys)
        async for stat in store.list(catalog_day_prefix(self.day)):
            listing.add(stat)
        self._compactions, self._keys = listing.compactions, listing.keys
        wanted, summaries = listing.wanted, listing.summaries
        new = self._news(wanted)
        is_same = not new and wanted.keys() == self._read.keys() and summaries == self._summaries
        if len(new) >= COMPACTED_FROM:
            await self._read_compacted(store, wanted)
            new = self._news(wanted)
        self._singly += len(new)
        for start in range(0, len(new), _READ_TOGETHER):
            await asyncio.gather(*(self._read_one(one, store, reads) for one in new[start : start + _READ_TOGETHER]))
        self._read = {key: read for key, read in self._read.items() if key in wanted}
        self._summaries = summaries
        if not is_same:
            self.entries = await asyncio.to_thread(_entries, tuple(self._read.values()), summaries)
        damaged = (read.facts.session.namespace for read in self._read.values() if read.record is None)
        self.unreadable = listing.left_out + Counter(damaged)

    def unreadable_in(self, visibility: Visibility) -> int:
        """Entries that could not be read, among those that somebody may see."""
        return sum(number for namespace, number in self.unreadable.items() if visibility.sees(namespace))

    async def compact(self, store: ObjectStore, *, is_past: bool) -> None:
        """Have the next reader of this day read one object. Whoever else does it at the same time writes the same.

        Raises StoreRefused where we may only read.
        """
        if not self._is_worth_compacting(is_past=is_past):
            return
        parts = [_part(read) for read in self._read.values() if read.record is not None]
        key = compacted_key(self.day, parts)
        await store.create(key.key, await asyncio.to_thread(encode_compacted, parts))
        self._singly = 0
        log.info("day of the catalog compacted", day=self.day.isoformat(), objects=len(parts))
        for stat in self._compactions:
            if stat.key != key.key:
                await store.delete(stat.key)  # who listed it a moment ago reads the entries themselves

    def _is_worth_compacting(self, *, is_past: bool) -> bool:
        """A day that still grows is compacted when it has doubled, so that each entry is written about twice."""
        return self._singly >= (COMPACTED_FROM if is_past else max(COMPACTED_FROM, len(self._read) / 2))

    def _news(self, wanted: dict[str, _Listed]) -> list[_Listed]:
        known = self._read
        return [one for key, one in wanted.items() if key not in known or known[key].stat != one.stat]

    async def _read_compacted(self, store: ObjectStore, wanted: dict[str, _Listed]) -> None:
        for compaction in sorted(self._compactions, key=lambda stat: stat.modified, reverse=True)[:1]:
            try:
                data = await store.find(compaction.key)
                parts = await asyncio.to_thread(decode_compacted, data) if data else ()
            except (ObjectTooLarge, DamagedCompaction) as exc:
                log.warning("compacted day cannot be read", key=compaction.key, cause=str(exc))
                return
            self._read |= await asyncio.to_thread(_read_parts, parts, wanted)

    async def _read_one(self, one: _Listed, store: ObjectStore, reads: asyncio.Semaphore) -> None:
        try:
            async with reads:
                self._read[one.stat.key] = _read(one, await store.get(one.stat.key, Record.limit_bytes))
        except ObjectMissing:
            return
        except ObjectTooLarge as exc:
            log.warning("catalog entry cannot be read", key=one.stat.key, cause=str(exc))
            self._read[one.stat.key] = _Read(one.facts, one.stat, b"", None)


async def compact_if_allowed(day: CatalogDay, store: ObjectStore, *, is_past: bool) -> bool:
    """Whether we may write to the store."""
    try:
        await day.compact(store, is_past=is_past)
    except StoreRefused as exc:
        log.info("days of the catalog are not compacted: the store may only be read", cause=str(exc))
        return False
    except Unavailable as exc:  # the day is read; whoever reads it next may try again
        log.warning("day of the catalog could not be compacted", day=day.day.isoformat(), cause=str(exc))
    return True


class _Listing:
    """What a listing of the day shows: starts and ends by their keys, and summaries by their sessions."""

    def __init__(self, known: Mapping[str, CatalogKey]) -> None:
        self._known = known
        self.keys: dict[str, CatalogKey] = {}
        self.wanted: dict[str, _Listed] = {}
        self.summaries: dict[SessionId, ObjectStat] = {}
        self.compactions: list[ObjectStat] = []
        self.left_out: Counter[str] = Counter()
        """By namespace."""
        self._of_namespace: Counter[str] = Counter()

    def add(self, stat: ObjectStat) -> None:
        facts = self._known.get(stat.key)
        if facts is None and parse_compacted_key(stat.key):
            self.compactions.append(stat)
        elif (facts := facts or parse_catalog_key(stat.key)) is not None:
            self.keys[stat.key] = facts
            self._of_namespace[facts.session.namespace] += 1
            if self._of_namespace[facts.session.namespace] > MOST_OF_NAMESPACE or len(self.wanted) >= MOST_OF_DAY:
                self.left_out[facts.session.namespace] += 1
            elif facts.part == "summary":
                self.summaries[facts.session] = stat
            else:
                self.wanted[stat.key] = _Listed(facts, stat)


def _read_parts(parts: Iterable[CompactedPart], wanted: Mapping[str, _Listed]) -> dict[str, _Read]:
    """Those parts of a compaction that are still as they were copied."""
    known = ((part, wanted.get(part.key)) for part in parts)
    return {
        part.key: _read(one, bytes(part.body))
        for part, one in known
        if one and one.stat == ObjectStat(part.key, part.size, part.modified)
    }


def _read(one: _Listed, body: bytes) -> _Read:
    kind: type[CatalogStart | CatalogEnd] = CatalogStart if one.facts.part == "start" else CatalogEnd
    try:
        record = decode_record(body, kind)
        _check_place(one.facts, record)
    except msgspec.DecodeError as exc:
        log.warning("catalog entry cannot be read", key=one.stat.key, cause=str(exc))
        return _Read(one.facts, one.stat, body, None)
    return _Read(one.facts, one.stat, body, record)


def _check_place(facts: CatalogKey, record: CatalogStart | CatalogEnd) -> None:
    """Raises msgspec.ValidationError for an entry that says to be of another session, or of another day, than its key:
    whoever may write some keys could else put a session of theirs in another's place.
    """
    if isinstance(record, CatalogStart):
        if SessionId(record.namespace, record.cluster, record.session) != facts.session:
            raise msgspec.ValidationError("it is about another session than its key")
        if record.started_at.astimezone(UTC).date() != facts.day:
            raise msgspec.ValidationError("it is about another day than its key")


def _part(read: _Read) -> CompactedPart:
    stat = read.stat
    return CompactedPart(key=stat.key, size=stat.size, modified=stat.modified, body=msgspec.Raw(read.body))


def _entries(known: Iterable[_Read], summaries: dict[SessionId, ObjectStat]) -> list[CatalogEntry]:
    """Newest first."""
    starts, ends = dict[SessionId, _Read](), dict[SessionId, _Read]()
    for read in known:
        (starts if read.facts.part == "start" else ends)[read.facts.session] = read
    found = (_entry(read, ends.get(session), summaries.get(session)) for session, read in starts.items())
    return sorted((entry for entry in found if entry), key=_order, reverse=True)


def _order(entry: CatalogEntry) -> tuple[datetime, str, str, str]:
    """As of its place, which is slow to compare where there are very many."""
    return entry.start.started_at, entry.id.namespace, entry.id.cluster, entry.id.session


def _entry(started: _Read, ended: _Read | None, summary: ObjectStat | None) -> CatalogEntry | None:
    """None where the start cannot be read."""
    if not isinstance(started.record, CatalogStart):
        return None
    end = ended.record if ended and isinstance(ended.record, CatalogEnd) else None
    end_written = ended.stat.modified if ended and end else None
    summary_written = summary.modified if summary else None
    return CatalogEntry(started.facts.session, started.record, started.stat.modified, end, end_written, summary_written)
