"""Follows one session: each look at the store costs what is new, and yields what is ready."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta

import duckdb
import msgspec

from raykeeper.clock import Clock
from raykeeper.errors import Unavailable
from raykeeper.history.ingest.batches import TABLES_VERSION, Segment
from raykeeper.history.ingest.facts import FactReader, Facts
from raykeeper.history.ingest.making import Shown, TableMaker, Wanted
from raykeeper.history.ingest.manifests import (
    Manifest,
    NumberedManifest,
    input_name,
    is_worth_publishing,
    newest_manifest,
    publish_manifest,
)
from raykeeper.history.ingest.sweeping import sweep_tables
from raykeeper.history.ingest.workbench import Limits
from raykeeper.history.localcache import LocalCache
from raykeeper.history.opened import OpenedSession, PolledHistory, Progress, SessionTables
from raykeeper.history.storeclock import StoreClock
from raykeeper.layout.keys import (
    EventSegmentKey,
    PolledKey,
    SessionId,
    hour_of,
    parse_polled_key,
    parse_sealed_key,
)
from raykeeper.layout.polled import decode_polled, polled_name
from raykeeper.layout.records import PolledAnswer
from raykeeper.logs import Log
from raykeeper.storage.store import ObjectStore

RELIST_SECONDS = 600
"""All hours are listed again after this; in between only the last ones, by each node's clock."""
_NS = 1_000_000_000
log = Log("raykeeper.history")


class Following:
    """One session, as far as this replica has read it."""

    def __init__(
        self,
        store: ObjectStore,
        cache: LocalCache,
        session: SessionId,
        clock: Clock,
        store_clock: StoreClock,
        ingests: asyncio.Semaphore,
        limits: Limits,
    ) -> None:
        self.session = session
        self._store = store
        self._cache = cache
        self._clock = clock
        self._store_clock = store_clock
        self._ingests = ingests
        self._maker = TableMaker(store, cache, session, limits)
        self._reader = FactReader(store, session)
        self._published: NumberedManifest | None = None
        self._current: Manifest | None = None
        self._tables: tuple[Manifest, SessionTables] | None = None
        self._listed: dict[str, Segment] = {}
        self._relisted_at: float | None = None
        self._active: dict[str, tuple[float, str]] = {}
        self._sealed_ns: dict[str, int] = {}

    async def look(self) -> AsyncIterator[OpenedSession]:
        """What is ready, then what is new; nothing where the store has nothing of the session."""
        await self._find_published()
        self._forget_lost()
        if self._current is not None and self._current.is_final and self._current.facts is not None:
            yield await self._opened(self._current, self._current.facts)
        facts, now, _ = await asyncio.gather(self._reader.read(), self._store_clock.now(), self._list_segments())
        if facts.is_empty and not self._listed and self._current is None:
            return
        async for manifest, progress in self._made(self._wanted(facts, now)):
            yield await self._opened(manifest, facts, progress)
        await self._publish(facts)

    async def _find_published(self) -> None:
        """Take over what another replica published, where it knows more than we do."""
        found = await newest_manifest(self._store, self.session)
        self._published = found
        if found is None or found.manifest.version != TABLES_VERSION:
            return  # tables of other rules are made anew, and published under the next number
        if not (self._current and set(self._current.inputs) > set(found.manifest.inputs)):
            self._current = found.manifest

    def _forget_lost(self) -> None:
        """Begin again with what is published where our own newer tables are gone from the disk."""
        current, published = self._current, self._published
        if current is None or (published is not None and _have_same_files(current, published.manifest)):
            return
        files = (file for layer in (current.tables, current.newer) for table in layer.values() for file in table)
        if not self._cache.has(self._store, (file.key for file in files)):
            usable = published and published.manifest.version == TABLES_VERSION
            self._current = published.manifest if published and usable else None
            self._tables = None

    async def _list_segments(self) -> None:
        now = self._clock.steady()
        prefix, after = EventSegmentKey.prefix(self.session), ""
        if self._relisted_at is not None and now - self._relisted_at < RELIST_SECONDS:
            after = prefix + self._oldest_active_hour(now)
        else:
            self._relisted_at = now
        async for item in self._store.list(prefix, after=after):
            key = parse_sealed_key(item.key)
            if isinstance(key, EventSegmentKey) and item.key not in self._listed:
                self._listed[item.key] = Segment(item.key, item.size)
                self._active[key.node_id] = (now, hour_of(key.sealed_ns))
                self._sealed_ns[key.node_id] = max(key.sealed_ns, self._sealed_ns.get(key.node_id, 0))

    def _oldest_active_hour(self, now: float) -> str:
        """Nothing new is filed before this hour, by the clocks of the nodes that sent something lately."""
        by_our_clock = hour_of(int((self._clock.now() - timedelta(hours=1)).timestamp()) * _NS)
        return min([by_our_clock, *(hour for seen, hour in self._active.values() if now - seen < RELIST_SECONDS)])

    def _wanted(self, facts: Facts, now: datetime) -> Wanted:
        """What is to be made; `now` is by the store's clock, as heartbeats are."""
        sealed_at = {node: _time(ns) for node, ns in self._sealed_ns.items()}
        ending = facts.ending(now, sealed_at)
        known = set(self._current.inputs if self._current else ())
        new = tuple(item for key, item in sorted(self._listed.items()) if input_name(self.session, key) not in known)
        end_ns = None if ending.ended_at is None else int(ending.ended_at.timestamp() * 1000) * 1_000_000
        return Wanted(self._current, new, end_ns, ending.is_final)

    async def _made(self, wanted: Wanted) -> AsyncIterator[tuple[Manifest, Progress]]:
        """The tables of what is wanted; before them, once or more, what is ready of a long first ingest."""
        if not self._needs_tables(wanted):
            assert wanted.known is not None, "whatever has no tables needs them"  # noqa: S101 - narrows the type
            self._current = msgspec.structs.replace(wanted.known, is_final=wanted.is_final)
            yield self._current, Progress(1, 1)
            return
        shown: asyncio.Queue[Shown] = asyncio.Queue()
        making = asyncio.create_task(self._make(wanted, shown.put_nowait))
        try:
            while not making.done():
                getting = asyncio.create_task(shown.get())
                await asyncio.wait([making, getting], return_when=asyncio.FIRST_COMPLETED)
                if getting.done():
                    partial = getting.result()
                    yield partial.manifest, Progress(partial.done_bytes, partial.total_bytes)
                getting.cancel()
        finally:
            making.cancel()
        self._current = await making
        yield self._current, Progress(1, 1)

    async def _make(self, wanted: Wanted, show: Callable[[Shown], None]) -> Manifest:
        async with self._ingests:
            try:
                return await self._maker.make(wanted, show)
            except (FileNotFoundError, FileExistsError, duckdb.IOException) as exc:  # somebody deleted the cache
                raise Unavailable("ingest", f"its files are gone: {exc}", retry_after=1) from exc

    def _needs_tables(self, wanted: Wanted) -> bool:
        known = wanted.known
        if known is None or wanted.new or known.cluster_end_ns != wanted.cluster_end_ns:
            return True
        return wanted.is_final and bool(known.newer)

    async def _publish(self, facts: Facts) -> None:
        """Let other replicas have the tables, once they are final or hold enough that is new."""
        current, published = self._current, self._published
        if current is None or not _is_to_be_published(current, published.manifest if published else None):
            return
        facts_to_keep = facts if current.is_final else None
        manifest = msgspec.structs.replace(current, facts=facts_to_keep, published_bytes=current.input_bytes)
        await self._maker.publish_files(manifest)
        number = published.number + 1 if published else 1
        if await publish_manifest(self._store, self.session, number, manifest):
            self._published, self._current = NumberedManifest(number, manifest), manifest
            log.info("session ingested", session=str(self.session), manifest=number, tasks=manifest.tasks)
            await sweep_tables(self._store, self.session, manifest, number, self._clock.now())

    async def _opened(self, manifest: Manifest, facts: Facts, progress: Progress | None = None) -> OpenedSession:
        polled = await self._reader.answers(facts.polled)
        return OpenedSession(
            id=self.session,
            tables=await self._session_tables(manifest),
            as_of=_time(manifest.as_of_ns),
            is_final=manifest.is_final and (progress is None or progress.is_done),
            ended_at=None if manifest.cluster_end_ns is None else _time(manifest.cluster_end_ns),
            progress=progress or Progress(1, 1),
            history=PolledHistory(self._polled_keys, self._polled_answer),
            record=facts.record,
            closed=facts.closed,
            nodes=facts.nodes,
            ends=facts.ends,
            polled=polled,
            gaps=tuple(sorted({*manifest.gaps, *facts.gaps, *self._reader.damaged_answers})),
            tasks=manifest.tasks,
        )

    async def _session_tables(self, manifest: Manifest) -> SessionTables:
        """The same object for the same files, so that they are held once."""
        if self._tables is None or not _have_same_files(self._tables[0], manifest):
            tables = SessionTables(self._store, self._cache, manifest.tables, manifest.newer)
            published = self._published
            if published is None or not _have_same_files(published.manifest, manifest):
                await tables.fetch(list(tables))  # the store does not have them: they must not be evicted
            self._tables = (manifest, tables)
        return self._tables[1]

    async def _polled_keys(self, path: str) -> tuple[PolledKey, ...]:
        listed = [item.key async for item in self._store.list(PolledKey.name_prefix(self.session, polled_name(path)))]
        return tuple(key for key in map(parse_polled_key, listed) if key)

    async def _polled_answer(self, key: PolledKey) -> PolledAnswer | None:
        data = await self._store.find(key.key)
        return None if data is None else decode_polled(data)


def _is_to_be_published(current: Manifest, published: Manifest | None) -> bool:
    if current.newer:
        return False  # only this replica can read it
    if current.is_final:
        return published is None or published.generation != current.generation or not published.is_final
    return is_worth_publishing(current)


def _time(ns: int) -> datetime:
    return datetime.fromtimestamp(ns / _NS, UTC)


def _have_same_files(one: Manifest, other: Manifest) -> bool:
    return (one.tables, one.newer) == (other.tables, other.newer)
