"""The indexes of a session's log packs: listed as they come, each read once, kept for the nodes somebody looks at.

Many are read out of collected copies; what no copy has is read from the packs, and collected once its hour is over.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from raykeeper.clock import Clock
from raykeeper.history.logs.collected import (
    COLLECTED_FROM,
    MAX_ENTRIES,
    CollectedIndexes,
    Collecting,
    FoundIndexes,
    NodeCollections,
    PackEnds,
)
from raykeeper.history.store.hours_to_list import HoursToList
from raykeeper.layout.keys import LogPackKey, SessionId, hour_of, parse_sealed_key
from raykeeper.layout.logindexes import CopiedIndex, copied_index
from raykeeper.layout.logs import StoredLog, collect_logs, newest_by_path
from raykeeper.layout.packs import DamagedPack, PackIndex
from raykeeper.logs import Log
from raykeeper.storage.errors import ObjectMissing
from raykeeper.storage.store import ObjectStore
from raykeeper.times import to_ns

_LISTING_SECONDS = 2.0  # collectors ship user output every 5 s, so nothing is missed by looking every 2 s
_RELIST_SECONDS = 300.0
_READ_AT_ONCE = 32  # 2 MB in all
_FIRST_READ_AT_ONCE = 4  # until it is known that their indexes are small
_LIGHT_ENTRIES = 5_000  # of an index, on average, that is small
MAX_FILES = 100_000
"""Of one node, with those that were deleted since; collectors follow 50,000 at a time."""
_NO_ROOM = "there are more pieces of log files of this node than a server holds, and this one is among the oldest"
MAX_FRAMES = 300_000  # about 100 MB of memory; the nodes looked at longest ago are forgotten beyond that

log = Log("raykeeper.history.logs")


@dataclass
class NodeLogs:
    """All log files of one node incarnation, as far as its packs tell."""

    collections: NodeCollections
    logs: dict[str, StoredLog] = field(default_factory=dict)
    """By generation."""
    damaged: dict[str, str] = field(default_factory=dict)
    """Packs that could not be read, and why: what they held is missing above."""
    packs: set[str] = field(default_factory=set)
    uncollected: dict[str, CopiedIndex] = field(default_factory=dict)
    """What no collected copy has yet, by pack."""
    entries: int = 0
    """Frames and gaps that are held."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _by_path: dict[str, StoredLog] | None = None

    @property
    def has_room(self) -> bool:
        return self.entries < MAX_ENTRIES and len(self.logs) < MAX_FILES

    @property
    def by_path(self) -> dict[str, StoredLog]:
        """The files under the names they have now."""
        if self._by_path is None:
            self._by_path = {path: stored for path, stored in newest_by_path(self.logs.values()).items() if path}
        return self._by_path

    def add(self, pack: str, index: PackIndex) -> None:
        self.packs.add(pack)
        self.entries += index.entries
        self._by_path = None
        for generation, more in collect_logs([(pack, index)]).items():
            known = self.logs.setdefault(generation, more)
            if known is not more:
                _extend(known, more)

    def forget_oldest(self) -> None:
        """Make room for packs that are new by leaving out the older half of those that are held."""
        held = sorted({pack for stored in self.logs.values() for pack, _ in stored.frames})
        gone = set(held[: len(held) // 2])
        for generation, stored in list(self.logs.items()):
            stored.frames = [item for item in stored.frames if item[0] not in gone]
            if not stored.frames and not stored.gaps:
                del self.logs[generation]
        self.damaged |= dict.fromkeys(gone, _NO_ROOM)
        self.uncollected = {key: copied for key, copied in self.uncollected.items() if key not in gone}
        self.entries = sum(len(stored.frames) + len(stored.gaps) for stored in self.logs.values())
        self._by_path = None

    def take_closed(self, now_ns: int) -> dict[str, CopiedIndex]:
        """What is worth collecting: enough packs of hours that are over. It is not told again."""
        hour = hour_of(now_ns)
        closed = {key: copied for key, copied in self.uncollected.items() if copied.hour < hour}
        if len(closed) < COLLECTED_FROM:
            return {}
        self.uncollected = {key: copied for key, copied in self.uncollected.items() if key not in closed}
        return closed


@dataclass
class _Listing:
    hours: HoursToList
    packs: dict[str, dict[str, int]] = field(default_factory=dict)
    """Node id to pack keys with their sizes."""
    listed_at: float = float("-inf")
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class PackIndexes:
    """What is in the packs of any session. Everything here can be forgotten and read again."""

    def __init__(self, store: ObjectStore, clock: Clock, max_frames: int = MAX_FRAMES) -> None:
        self._store = store
        self._clock = clock
        self._max_frames = max_frames
        self._listings: OrderedDict[SessionId, _Listing] = OrderedDict()
        self._nodes: OrderedDict[tuple[SessionId, str], NodeLogs] = OrderedDict()
        self._ends = PackEnds(store, _READ_AT_ONCE)
        self._collected = CollectedIndexes(store)
        self._collecting = Collecting(store, self._collected)

    async def node_ids(self, session: SessionId) -> list[str]:
        """Nodes that ever shipped a log, sorted."""
        return sorted((await self._listing(session)).packs)

    async def packs(self, session: SessionId) -> Mapping[str, Mapping[str, int]]:
        """Keys and sizes of all packs by node."""
        return (await self._listing(session)).packs

    async def of_node(self, session: SessionId, node_id: str) -> NodeLogs:
        """The log files of one node; none for a node that shipped nothing."""
        packs = (await self._listing(session)).packs.get(node_id, {})
        node = self._nodes.setdefault((session, node_id), NodeLogs(NodeCollections(session, node_id)))
        self._nodes.move_to_end((session, node_id))
        async with node.lock:
            # The newest first: where there are more than can be held, older ones are left out.
            unread = {key: packs[key] for key in sorted(packs.keys() - node.packs, reverse=True)}
            if unread:
                await self._read_new(unread, node)
        if closed := node.take_closed(to_ns(self._clock.now())):
            self._collecting.collect_read(node.collections, closed)
        self._forget_some()
        return node

    def collect(self, session: SessionId) -> None:
        """Have the indexes of a session that is final collected after a while, so that any replica opens it quickly."""
        self._collecting.collect_session(session, lambda: self.packs(session))

    async def close(self) -> None:
        """Stop collecting."""
        await self._collecting.close()

    async def _listing(self, session: SessionId) -> _Listing:
        listing = self._listings.setdefault(session, _Listing(HoursToList(self._clock, _RELIST_SECONDS)))
        self._listings.move_to_end(session)
        async with listing.lock:
            now = self._clock.steady()
            if now - listing.listed_at >= _LISTING_SECONDS:
                await self._list_new(session, listing, now)
        return listing

    async def _list_new(self, session: SessionId, listing: _Listing, now: float) -> None:
        prefix, first = LogPackKey.prefix(session), listing.hours.first()
        async for stat in self._store.list(prefix, after=f"{prefix}{first}" if first else ""):
            facts = parse_sealed_key(stat.key)
            if not isinstance(facts, LogPackKey):
                continue
            packs = listing.packs.setdefault(facts.node_id, {})
            if stat.key not in packs:
                listing.hours.saw(facts.node_id, facts.sealed_ns)
            packs[stat.key] = stat.size
        listing.hours.listed()
        listing.listed_at = now

    async def _read_new(self, packs: Mapping[str, int], node: NodeLogs) -> None:
        """Add what these packs hold, the newest first as long as there is room; collected copies before others."""
        if not node.has_room:
            node.forget_oldest()
        room, collected = MAX_ENTRIES - node.entries, FoundIndexes({})
        if await self._collected.are_of_use(packs):
            collected = await self._collected.find(node.collections, packs, room)
        found = collected.indexes
        unknown = [key for key in packs if key not in found]
        singly = await self._read_singly(unknown, packs, node, room - _entries(found))
        if self._collecting.may_write:
            session = node.collections.session
            node.uncollected |= {key: copied_index(session, key, packs[key], index) for key, index in singly.items()}
        for key, index in sorted((found | singly).items()):
            node.add(key, index)
            await asyncio.sleep(0)  # a large one takes some ten milliseconds: others go on in between
        node.packs |= packs.keys()
        node.collections.known |= collected.objects

    async def _read_singly(
        self, keys: Sequence[str], sizes: Mapping[str, int], node: NodeLogs, room: int
    ) -> dict[str, PackIndex]:
        """The indexes of these packs, until there are so many entries; more and more at once while they are small."""
        found, entries = dict[str, PackIndex](), 0
        start, at_once = 0, _FIRST_READ_AT_ONCE
        while start < len(keys) and entries < room:
            some = keys[start : start + at_once]
            read = await asyncio.gather(*(self._read(key, sizes[key], node) for key in some))
            found |= {key: index for key, index in zip(some, read, strict=True) if index is not None}
            start += len(some)
            is_light = _entries(found) - entries < len(some) * _LIGHT_ENTRIES
            at_once = min(2 * at_once, _READ_AT_ONCE) if is_light else _FIRST_READ_AT_ONCE
            entries = _entries(found)
        node.damaged |= dict.fromkeys(keys[start:], _NO_ROOM)
        return found

    async def _read(self, key: str, size: int, node: NodeLogs) -> PackIndex | None:
        try:
            return await self._ends.read(key, size)
        except DamagedPack as exc:
            node.damaged[key] = str(exc)
            log.warning("log pack cannot be read", pack=key, cause=str(exc))
        except ObjectMissing:
            log.info("log pack is gone", pack=key)
        return None

    def _forget_some(self) -> None:
        entries = sum(node.entries for node in self._nodes.values())
        while entries > self._max_frames and len(self._nodes) > 1:
            entries -= self._nodes.popitem(last=False)[1].entries
        while len(self._listings) > max(1, len(self._nodes)) + _READ_AT_ONCE:
            self._listings.popitem(last=False)


def _entries(indexes: Mapping[str, PackIndex]) -> int:
    return sum(index.entries for index in indexes.values())


def _extend(known: StoredLog, more: StoredLog) -> None:
    known.frames += more.frames
    known.gaps += more.gaps
    known.is_whole |= more.is_whole
    known.is_deleted |= more.is_deleted
    if more.last_read_ns >= known.last_read_ns and more.path:
        known.path, known.last_read_ns = more.path, more.last_read_ns
