"""A store in which KubeRay's sessions appear in our layout, beside those that are in it already.

Everything above reads them as it reads ours: catalog, heartbeats, ingest, logs. Writes go to the store itself, so the
tables made of KubeRay's events lie beside them in our layout. A session that has a `session.json` of its own there is
read from there alone: it was imported, or our collector stored it.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from raykeeper.clock import Clock
from raykeeper.history.store.kuberay.contents import KubeRayContents, adapt_session
from raykeeper.history.store.kuberay.nodes import EVENT_FILE_SECONDS
from raykeeper.history.store.kuberay.objects import Adapted, AdaptedEvents
from raykeeper.history.store.kuberay.places import KubeRayPlaces, adapted_day, adapted_days, adapted_entry
from raykeeper.layout.keys import CATALOG_PREFIX, DATA_PREFIX, SessionId, session_record_key
from raykeeper.layout.names import from_segment, to_segment
from raykeeper.storage.errors import ObjectMissing
from raykeeper.storage.store import OBJECT_LIMIT_BYTES, Names, ObjectStat, ObjectStore

_FRESH_SECONDS = 5.0  # KubeRay uploads once in five minutes, and answers of the head every 30 s
_OLD_SECONDS = 60.0  # of a session that was not written to for long
_OLD = timedelta(seconds=3 * EVENT_FILE_SECONDS)
REMEMBERED_OBJECTS = 200_000  # about 1 KB each; the sessions looked at longest ago are forgotten beyond that
_REMEMBERED_SESSIONS = 1000
_CONVERSIONS_AT_ONCE = 2  # each holds a few MB of an event file


@dataclass
class _Known:
    """What was found out about one session."""

    contents: KubeRayContents | None = None
    listed: list[ObjectStat] = field(default_factory=list)
    until: float = float("-inf")
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class KubeRayOverlay(ObjectStore):
    """The store, and KubeRay's sessions in it as ours."""

    def __init__(self, store: ObjectStore, clock: Clock, max_objects: int = REMEMBERED_OBJECTS) -> None:
        self.places = KubeRayPlaces(store, clock)
        self._store = store
        self._clock = clock
        self._max_objects = max_objects
        self._known: OrderedDict[SessionId, _Known] = OrderedDict()
        self._conversions = asyncio.Semaphore(_CONVERSIONS_AT_ONCE)

    async def contents(self, session: SessionId) -> KubeRayContents | None:
        """All objects of a session that is KubeRay's; None for one that is not."""
        if not await self.places.is_in_use():
            return None
        known = self._known.setdefault(session, _Known())
        self._known.move_to_end(session)
        async with known.lock:
            if self._clock.steady() >= known.until:
                await self._look(session, known)
                known.until = self._clock.steady() + self._believed_seconds(known.contents)
                self._forget_some()
        return known.contents

    def describe(self) -> str:
        return self._store.describe()

    async def put(self, key: str, data: bytes) -> None:
        await self._store.put(key, data)

    async def create(self, key: str, data: bytes) -> bool:
        return await self._store.create(key, data)

    async def delete(self, key: str) -> None:
        await self._store.delete(key)

    async def put_file(self, key: str, path: Path) -> None:
        await self._store.put_file(key, path)

    async def get(self, key: str, limit_bytes: int = OBJECT_LIMIT_BYTES) -> bytes:
        adapted = await self._adapted(key)
        if adapted is None:
            return await self._store.get(key, limit_bytes)
        if isinstance(adapted, AdaptedEvents):
            async with self._conversions:
                return await adapted.read(self._store)
        return await adapted.read(self._store)

    async def read_range(self, key: str, offset: int, length: int) -> bytes:
        adapted = await self._adapted(key)
        if adapted is None:
            return await self._store.read_range(key, offset, length)
        return await adapted.read_range(self._store, offset, length)

    async def stat(self, key: str) -> ObjectStat:
        adapted = await self._adapted(key)
        return await self._store.stat(key) if adapted is None else adapted.stat

    async def is_computed(self, key: str) -> bool:
        return await self._adapted(key) is not None

    async def get_file(self, key: str, path: Path, limit_bytes: int | None = None) -> None:
        adapted = await self._adapted(key)
        if adapted is None:
            await self._store.get_file(key, path, limit_bytes)
        else:
            await asyncio.to_thread(path.write_bytes, await adapted.read(self._store))

    async def list(self, prefix: str, *, after: str = "") -> AsyncIterator[ObjectStat]:
        adapted = await self._under(prefix)
        waiting = iter(item.stat for item in adapted if item.stat.key > after)
        following = next(waiting, None)
        async for stat in self._store.list(prefix, after=after):
            while following is not None and following.key < stat.key:
                yield following
                following = next(waiting, None)
            if following is not None and following.key == stat.key:
                following = next(waiting, None)  # the store's own counts
            yield stat
        while following is not None:
            yield following
            following = next(waiting, None)

    async def list_folders(self, prefix: str) -> Names:
        ours, adapted = await asyncio.gather(self._store.list_folders(prefix), self._folders_under(prefix))
        return sorted({*ours, *adapted})

    async def _under(self, prefix: str) -> Iterable[Adapted]:
        """KubeRay's objects whose keys start with the prefix, in order; none for what is wider than a session."""
        if prefix.startswith(CATALOG_PREFIX):
            return adapted_day(await self.places.marked(), prefix)
        session = _session_of(prefix)
        contents = await self.contents(session) if session else None
        return [item for key, item in contents.objects.items() if key.startswith(prefix)] if contents else []

    async def _folders_under(self, prefix: str) -> set[str]:
        if prefix == CATALOG_PREFIX:
            return adapted_days(await self.places.marked())
        names = prefix.removeprefix(DATA_PREFIX).rstrip("/").split("/") if prefix.startswith(DATA_PREFIX) else []
        if len(names) == 2:  # namespace and cluster
            return {to_segment(name) for name in await self.places.of_cluster(*map(from_segment, names))}
        rest = (item.stat.key.removeprefix(prefix) for item in await self._under(prefix))
        return {key.partition("/")[0] for key in rest if "/" in key}

    async def _adapted(self, key: str) -> Adapted | None:
        if key.startswith(CATALOG_PREFIX):
            return await self._adapted_entry(key)
        session = _session_of(key)
        contents = await self.contents(session) if session else None
        return contents.objects.get(key) if contents else None

    async def _adapted_entry(self, key: str) -> Adapted | None:
        """The entry of the catalog, unless the store has one of its own."""
        found = adapted_entry(await self.places.marked(), key)
        return None if found is None or await self._has(key) else found

    async def _look(self, session: SessionId, known: _Known) -> None:
        """Find the session's objects; what was listed before is not worked through again."""
        is_ours = await self._has(session_record_key(session))
        place = None if is_ours else await self.places.find(session)
        listed = [stat async for stat in self._store.list(place.prefix)] if place else []
        if place is None:
            known.contents = None
        elif known.contents is None or listed != known.listed:
            # In a thread: a session may have a hundred thousand log files.
            known.contents = await asyncio.to_thread(adapt_session, place, listed)
        known.listed = listed

    async def _has(self, key: str) -> bool:
        try:
            await self._store.stat(key)
        except ObjectMissing:
            return False
        return True

    def _forget_some(self) -> None:
        objects = sum(len(known.listed) for known in self._known.values())
        while (objects > self._max_objects or len(self._known) > _REMEMBERED_SESSIONS) and len(self._known) > 1:
            objects -= len(self._known.popitem(last=False)[1].listed)

    def _believed_seconds(self, contents: KubeRayContents | None) -> float:
        is_old = contents is None or self._clock.now() - contents.traces.last_seen() > _OLD
        return _OLD_SECONDS if is_old else _FRESH_SECONDS


def _session_of(key: str) -> SessionId | None:
    """The session in whose folder the key is; None for keys outside of any."""
    names = key.removeprefix(DATA_PREFIX).split("/", 3)
    if not key.startswith(DATA_PREFIX) or len(names) < 4:
        return None
    try:
        return SessionId(*map(from_segment, names[:3]))
    except ValueError:
        return None
