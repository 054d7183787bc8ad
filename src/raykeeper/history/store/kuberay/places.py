"""Where KubeRay keeps the sessions of a bucket, and its markers as entries of our catalog."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import date, datetime

from raykeeper.clock import Clock
from raykeeper.history.store.kuberay.keys import (
    HISTORY_PREFIX,
    MARKERS_PREFIX,
    OWNER_KINDS,
    PLAIN_KIND,
    KubeRayPlace,
    is_place_of_keys,
    parse_marker,
    possible_places,
)
from raykeeper.history.store.kuberay.objects import AdaptedRecord
from raykeeper.layout.keys import CATALOG_PREFIX, CatalogKey, SessionId, parse_catalog_key
from raykeeper.layout.records import CatalogStart, encode_record
from raykeeper.storage.store import ObjectStat, ObjectStore

_BELIEVED_SECONDS = 60.0
_BELIEVED_FACTOR = 50.0  # a listing of many markers is repeated so rarely that it takes 2 % of the time
_LOOKS_AT_ONCE = 16


@dataclass(frozen=True)
class Marker:
    """One session that KubeRay says exists."""

    place: KubeRayPlace
    written: datetime


@dataclass(frozen=True)
class Marked:
    """All sessions that have a marker."""

    markers: dict[SessionId, Marker] = field(default_factory=dict)
    by_day: dict[date, list[Marker]] = field(default_factory=dict)

    def add(self, marker: Marker) -> None:
        self.markers[marker.place.session] = marker
        self.by_day.setdefault(marker.place.started_at.date(), []).append(marker)


class KubeRayPlaces:
    """Sessions of one store. Everything here can be forgotten and listed again."""

    def __init__(self, store: ObjectStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._marked = Marked()
        self._has_data = False
        self._until = float("-inf")
        self._lock = asyncio.Lock()
        self._looks = asyncio.Semaphore(_LOOKS_AT_ONCE)

    async def marked(self) -> Marked:
        await self._refresh()
        return self._marked

    async def is_in_use(self) -> bool:
        """Whether KubeRay ever stored anything here."""
        await self._refresh()
        return self._has_data

    async def find(self, session: SessionId) -> KubeRayPlace | None:
        """Where a session is, with or without a marker; None where KubeRay has nothing of it."""
        if not await self.is_in_use() or not is_place_of_keys(session):
            return None
        if marker := self._marked.markers.get(session):
            return marker.place
        possible = possible_places(session)
        there = await asyncio.gather(*map(self._has_objects, possible))
        return next((place for place, is_there in zip(possible, there, strict=True) if is_there), None)

    async def of_cluster(self, namespace: str, cluster: str) -> set[str]:
        """Names of a cluster's sessions: all that have a marker, and those of a cluster nobody owns."""
        if not await self.is_in_use() or not is_place_of_keys(SessionId(namespace, cluster, _ANY_SESSION)):
            return set()
        folders = await self._store.list_folders(f"{HISTORY_PREFIX}{PLAIN_KIND}/{namespace}/{cluster}/")
        marked = (id_.session for id_ in self._marked.markers if (id_.namespace, id_.cluster) == (namespace, cluster))
        return {name for name in folders if is_place_of_keys(SessionId(namespace, cluster, name))} | set(marked)

    async def all(self) -> AsyncIterator[KubeRayPlace]:
        """Every session there is, found by walking the data's folders as well as by markers; each once."""
        seen = {marker.place for marker in (await self.marked()).markers.values()}
        for place in sorted(seen):
            yield place
        for kind in (PLAIN_KIND, *OWNER_KINDS):
            async for place in self._walk(kind):
                if place not in seen:
                    yield place

    async def _walk(self, kind: str) -> AsyncIterator[KubeRayPlace]:
        depth = 4 if kind in OWNER_KINDS else 3
        async for namespace, *owner, cluster, session in self._folders(f"{HISTORY_PREFIX}{kind}/", depth):
            place = KubeRayPlace(SessionId(namespace, cluster, session), kind, *owner)
            if is_place_of_keys(place.session):
                yield place

    async def _folders(self, prefix: str, depth: int) -> AsyncIterator[tuple[str, ...]]:
        """Names of folders so many levels deep, each with those above it."""
        for name in await self._store.list_folders(prefix):
            if depth == 1:
                yield (name,)
                continue
            async for names in self._folders(f"{prefix}{name}/", depth - 1):
                yield name, *names

    async def _has_objects(self, place: KubeRayPlace) -> bool:
        async with self._looks:
            async for _ in self._store.list(place.prefix):
                return True
        return False

    async def _refresh(self) -> None:
        async with self._lock:
            began = self._clock.steady()
            if began < self._until:
                return
            marked = Marked()
            async for stat in self._store.list(MARKERS_PREFIX):
                if place := parse_marker(stat.key):
                    marked.add(Marker(place, stat.modified))
            self._has_data = bool(marked.markers) or bool(await self._store.list_folders(HISTORY_PREFIX))
            self._marked = marked
            took = self._clock.steady() - began
            self._until = began + max(_BELIEVED_SECONDS, _BELIEVED_FACTOR * took)


_ANY_SESSION = "session_2000-01-01_00-00-00_000000"  # stands for one where only the cluster's name is judged


def adapted_days(marked: Marked) -> set[str]:
    """Days on which sessions started, as folders of the catalog."""
    return {day.isoformat() for day in marked.by_day}


def adapted_day(marked: Marked, prefix: str) -> list[AdaptedRecord]:
    """The entries of the day that the prefix is in, in order; none for a prefix that is wider."""
    try:
        day = date.fromisoformat(prefix.removeprefix(CATALOG_PREFIX).partition("/")[0])
    except ValueError:
        return []
    return sorted(map(_entry, marked.by_day.get(day, ())), key=lambda entry: entry.stat.key)


def adapted_entry(marked: Marked, key: str) -> AdaptedRecord | None:
    """The entry that has the key; None for what KubeRay tells nothing of."""
    facts = parse_catalog_key(key)
    marker = marked.markers.get(facts.session) if facts else None
    return _entry(marker) if marker and catalog_key(marker.place) == key else None


def catalog_start(place: KubeRayPlace) -> CatalogStart:
    """What a list shows of the session."""
    return CatalogStart(
        namespace=place.session.namespace,
        cluster=place.session.cluster,
        session=place.session.session,
        started_at=place.started_at,
        owner_kind=place.owner_kind,
        owner_name=place.owner,
    )


def catalog_key(place: KubeRayPlace) -> str:
    return CatalogKey(place.started_at.date(), place.session, "start").key


def _entry(marker: Marker) -> AdaptedRecord:
    data = encode_record(catalog_start(marker.place))
    return AdaptedRecord(ObjectStat(catalog_key(marker.place), len(data), marker.written), data)
