"""Follows one session: each look at the store costs what is new, and yields what is ready."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import duckdb
import msgspec

from raykeeper.clock import Clock
from raykeeper.errors import Unavailable
from raykeeper.history.ingest.batches import TABLES_VERSION, Segment
from raykeeper.history.ingest.manifests import (
    Manifest,
    NumberedManifest,
    find_published,
    input_name,
    is_worth_publishing,
    publish_manifest,
)
from raykeeper.history.ingest.records import RecordReader, SessionRecords
from raykeeper.history.ingest.session import PolledHistory, Progress, Session, SessionTables
from raykeeper.history.ingest.table_builder import GONE, IngestRequest, IngestTurns, PartialTables, TableBuilder
from raykeeper.history.ingest.worker import Limits
from raykeeper.history.store.disk_cache import DamagedFile, LocalCache
from raykeeper.history.store.heartbeats import StoreClock
from raykeeper.history.store.hours_to_list import HoursToList
from raykeeper.history.store.records import find_answer
from raykeeper.history.store.session_state import FINAL_AFTER
from raykeeper.layout.keys import (
    EventSegmentKey,
    PolledKey,
    SessionId,
    log_indexes_prefix,
    manifest_key,
    manifests_prefix,
    parse_polled_key,
    parse_sealed_key,
    sample_tables_prefix,
)
from raykeeper.layout.polled import DamagedAnswer, polled_name
from raykeeper.layout.records import PolledAnswer
from raykeeper.layout.segments import OBJECT_LIMIT_BYTES
from raykeeper.logs import Log
from raykeeper.storage.errors import ObjectMissing
from raykeeper.storage.store import ObjectStore
from raykeeper.times import from_ns, to_ns

KEPT_FOR = timedelta(hours=1)
"""A replica that read an older manifest may still fetch its files; one that makes the next has put some."""


async def sweep_tables(
    store: ObjectStore, session: SessionId, newest: Manifest, number: int, now: datetime
) -> list[str]:
    """Delete what the newest manifest does not name and is older than an hour; the keys of what went.

    Log indexes and tables of resource samples are of no manifest: they stay as long as the session.
    """
    kept = {file.key for file in newest.files()} | {manifest_key(session, number)}
    prefix = manifests_prefix(session).removesuffix("manifests/")
    others = (log_indexes_prefix(session), sample_tables_prefix(session))
    listed = [item async for item in store.list(prefix) if not item.key.startswith(others)]
    old = [item.key for item in listed if item.key not in kept and now - item.modified > KEPT_FOR]
    for key in old:
        await store.delete(key)
    return old


RELIST_SECONDS = 600.0
"""All hours are listed again after this."""
log = Log("raykeeper.history")


class SessionFollower:
    """One session, as far as this replica has read it."""

    def __init__(
        self,
        store: ObjectStore,
        cache: LocalCache,
        session: SessionId,
        clock: Clock,
        store_clock: StoreClock,
        turns: IngestTurns,
        limits: Limits,
    ) -> None:
        self.session = session
        self._store = store
        self._cache = cache
        self._clock = clock
        self._store_clock = store_clock
        self._turns = turns
        self._maker = TableBuilder(store, cache, session, limits, turns)
        self._distrusted: set[int] = set()
        self._own: set[int] = set()
        self._damaged: Manifest | None = None
        self.is_distrusted = False
        """Whether what was shown last turned out to be damaged, and has to be read again."""
        self._begin()

    def _begin(self) -> None:
        """Know nothing of the session yet, or any more."""
        self._reader = RecordReader(self._store, self.session)
        self._published: NumberedManifest | None = None
        self._highest_number = 0
        self._current: Manifest | None = None
        self._tables: tuple[Manifest, SessionTables] | None = None
        self._listed: dict[str, Segment] = {}
        self._hours = HoursToList(self._clock, RELIST_SECONDS)
        self._sealed_ns: dict[str, int] = {}

    async def look(self) -> AsyncIterator[Session]:
        """What is ready, then what is new; nothing where the store has nothing of the session."""
        if self.is_distrusted:
            self._current = self._tables = None
            self.is_distrusted = False
        await self._find_published()
        if await self._is_deleted():
            self._begin()
            return
        self._forget_lost()
        if self._current is not None and self._current.is_final and self._current.facts is not None:
            yield await self._opened(self._current, self._current.facts, _final_moment(self._current.facts))
        facts, now, _ = await asyncio.gather(self._reader.read(), self._store_clock.now(), self._list_segments())
        if facts.is_empty and not self._listed and self._current is None:
            return
        async for manifest, progress in self._made(self._request(facts, now)):
            yield await self._opened(manifest, facts, now, progress)
        if not self.is_distrusted:
            await self._publish(facts)

    async def _find_published(self) -> None:
        """Take over what another replica published, where it knows more than we do."""
        published = await find_published(self._store, self.session, self._distrusted)
        found = self._published = published.newest
        self._highest_number = published.highest
        if found is None or found.manifest.version != TABLES_VERSION:
            return  # tables of other rules are made anew, and published under the next number
        if not (self._current and set(self._current.inputs) > set(found.manifest.inputs)):
            self._current = found.manifest

    async def _is_deleted(self) -> bool:
        """Whether we knew something of a session of which the store has nothing any more."""
        if self._published is not None or (self._current is None and not self._listed):
            return False
        async for _ in self._store.list(self.session.prefix):
            return False
        return True

    def _distrust(self, manifest: Manifest, *, in_store: bool = False) -> bool:
        """Have published tables made anew. If we cannot read those that we made ourselves, that is a bug."""
        published = self._published
        if self._damaged is not None and _have_same_files(self._damaged, manifest):
            return True
        if published is None or not _have_same_files(published.manifest, manifest):
            return False
        if published.number in self._own and not in_store:
            return False
        log.warning("tables cannot be read", session=str(self.session), manifest=published.number)
        self._distrusted.add(published.number)
        self._published = self._current = self._tables = None
        self._damaged, self.is_distrusted = manifest, True
        return True

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
        prefix, first = EventSegmentKey.prefix(self.session), self._hours.first()
        async for item in self._store.list(prefix, after=f"{prefix}{first}" if first else ""):
            key = parse_sealed_key(item.key)
            if isinstance(key, EventSegmentKey) and item.key not in self._listed:
                # One that is too large is not read, and must not let the tables be planned for what it claims.
                self._listed[item.key] = Segment(item.key, item.size if item.size <= OBJECT_LIMIT_BYTES else 0)
                self._hours.saw(key.node_id, key.sealed_ns)
                self._sealed_ns[key.node_id] = max(key.sealed_ns, self._sealed_ns.get(key.node_id, 0))
        self._hours.listed()

    def _request(self, facts: SessionRecords, now: datetime) -> IngestRequest:
        """What is to be made; `now` is by the store's clock, as heartbeats are."""
        sealed_at = {node: from_ns(ns) for node, ns in self._sealed_ns.items()}
        state = facts.state(now, sealed_at)
        known = set(self._current.inputs if self._current else ())
        new = tuple(item for key, item in sorted(self._listed.items()) if input_name(self.session, key) not in known)
        end_ns = (
            None if state.ended_at is None else to_ns(state.ended_at) // 1_000_000 * 1_000_000
        )  # as Ray's own times
        return IngestRequest(self._current, new, end_ns, state.is_final, instead_of=max(self._distrusted, default=0))

    async def _made(self, request: IngestRequest) -> AsyncIterator[tuple[Manifest, Progress]]:
        """The tables of what is request; before them, once or more, what is ready of a long first ingest."""
        if not self._needs_tables(request):
            assert request.known is not None, "whatever has no tables needs them"  # noqa: S101 - narrows the type
            is_final = request.is_final and all(gap.reason != GONE for gap in request.known.gaps)
            self._current = msgspec.structs.replace(request.known, is_final=is_final)
            yield self._current, Progress(1, 1)
            return
        shown: asyncio.Queue[PartialTables] = asyncio.Queue()
        making = asyncio.create_task(self._make(request, shown.put_nowait))
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

    async def _make(self, request: IngestRequest, show: Callable[[PartialTables], None]) -> Manifest:
        async with self._turns.sessions.turn(self.session.namespace):
            try:
                return await self._maker.make(request, show)
            except (ObjectMissing, DamagedFile) as exc:
                self._distrust_base(request)
                raise Unavailable("ingest", f"its tables cannot be read: {exc}", retry_after=1) from exc
            except (FileNotFoundError, FileExistsError, duckdb.IOException) as exc:  # somebody deleted the cache
                self._distrust_base(request)
                raise Unavailable("ingest", f"its files are gone: {exc}", retry_after=1) from exc
            except duckdb.Error as exc:
                if not self._distrust_base(request):
                    raise
                raise Unavailable("ingest", "its tables cannot be read and are made anew", retry_after=1) from exc

    def _distrust_base(self, request: IngestRequest) -> bool:
        return request.known is not None and self._distrust(request.known)

    def _needs_tables(self, request: IngestRequest) -> bool:
        known = request.known
        if known is None or request.new or known.cluster_end_ns != request.cluster_end_ns:
            return True
        return request.is_final and bool(known.newer)

    async def _publish(self, facts: SessionRecords) -> None:
        """Let other replicas have the tables, once they are final or hold enough that is new."""
        current, published = self._current, self._published
        if current is None or not _is_to_be_published(current, published.manifest if published else None):
            return
        facts_to_keep = facts if current.is_final else None
        manifest = msgspec.structs.replace(current, facts=facts_to_keep, published_bytes=current.input_bytes)
        await self._maker.publish_files(manifest)
        number = self._highest_number + 1
        if await publish_manifest(self._store, self.session, number, manifest):
            self._published, self._current, self._highest_number = NumberedManifest(number, manifest), manifest, number
            self._own.add(number)
            log.info("session ingested", session=str(self.session), manifest=number, tasks=manifest.tasks)
            await sweep_tables(self._store, self.session, manifest, number, self._clock.now())

    async def _opened(
        self, manifest: Manifest, facts: SessionRecords, now: datetime, progress: Progress | None = None
    ) -> Session:
        polled = await self._reader.answers(facts.polled)
        ended_at = None if manifest.cluster_end_ns is None else from_ns(manifest.cluster_end_ns)
        is_final = manifest.is_final and (progress is None or progress.is_done)
        return Session(
            id=self.session,
            tables=await self._session_tables(manifest),
            as_of=from_ns(manifest.as_of_ns),
            state=replace(facts.state(now), is_final=is_final, ended_at=ended_at),
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
            tables = SessionTables(
                self._store,
                self._cache,
                manifest.tables,
                manifest.newer,
                functools.partial(self._distrust, manifest),
                owner=self.session.namespace,
            )
            published = self._published
            if published is None or not _have_same_files(published.manifest, manifest):
                await tables.fetch(list(tables))  # the store does not have them: they must not be evicted
            self._tables = (manifest, tables)
        return self._tables[1]

    async def _polled_keys(self, path: str) -> tuple[PolledKey, ...]:
        listed = [item.key async for item in self._store.list(PolledKey.name_prefix(self.session, polled_name(path)))]
        return tuple(key for key in map(parse_polled_key, listed) if key)

    async def _polled_answer(self, key: PolledKey) -> PolledAnswer | None:
        try:
            return await find_answer(self._store, key.key)
        except DamagedAnswer as exc:
            log.warning("polled answer cannot be read", key=key.key, cause=str(exc))
            return None


def _final_moment(facts: SessionRecords) -> datetime:
    """A time at which whoever had fallen silent was silent: that of a session whose records change no more."""
    return max((node.beat_at for node in facts.nodes), default=datetime.now(UTC)) + FINAL_AFTER


def _is_to_be_published(current: Manifest, published: Manifest | None) -> bool:
    if current.newer:
        return False  # only this replica can read it
    if current.is_final:
        return published is None or published.generation != current.generation or not published.is_final
    return is_worth_publishing(current)


def _have_same_files(one: Manifest, other: Manifest) -> bool:
    return (one.tables, one.newer) == (other.tables, other.newer)
