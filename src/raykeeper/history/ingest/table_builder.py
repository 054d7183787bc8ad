"""Makes the tables of one session: fetch, project and merge what is new, then file the result.

Guarantees: any replica may do this, twice at once or again after a crash. A file is named after its inputs and its
content, so that whoever saw less than another never puts its rows in the other's place.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec

from raykeeper.history.fair_turns import FairTurns
from raykeeper.history.ingest.batches import (
    PlannedBatch,
    Segment,
    generation_name,
    is_large,
    is_worth_folding,
    partition_bits,
    plan_batches,
    range_bits,
    scale_of,
    work_name,
)
from raykeeper.history.ingest.manifests import Manifest, TableFile, input_name, is_worth_publishing
from raykeeper.history.ingest.messages import Batch, Gap, Merged, MergeRequest, Projected, Slice
from raykeeper.history.ingest.tables import TASKS
from raykeeper.history.ingest.worker import Limits, WorkerInProcess, WorkerProcess
from raykeeper.history.store.disk_cache import LocalCache
from raykeeper.layout.keys import SessionId, parse_sealed_key, table_key
from raykeeper.layout.segments import OBJECT_LIMIT_BYTES
from raykeeper.storage.errors import ObjectTooLarge
from raykeeper.storage.store import ObjectStore

FETCHES_AT_ONCE = 8
GONE = "gone from the store"
"""Why a segment that was listed is missing. It is looked for again, and what lacks it is never final."""
PROVISIONAL_BATCHES = (1, 8, 40, 200)
"""After so many batches of a first ingest, what is there is shown."""
PROVISIONAL_SHARE = 8
"""What is shown is an eighth of all at most: it is merged for that alone."""
_DIGEST_BYTES = 10
_BEGUN_BESIDE = 2
"""Ingests of other namespaces that are begun while all that may work are one namespace's."""


@dataclass(frozen=True)
class IngestTurns:
    """Who may ingest. A long ingest gives way after each step, so that a short one of another namespace need not wait
    for its end.
    """

    sessions: FairTurns
    """Ingests that are begun: each has a worker, and its memory."""
    steps: FairTurns
    """Of those, who may work now."""

    @classmethod
    def of(cls, at_once: int) -> IngestTurns:
        return cls(FairTurns(at_once + _BEGUN_BESIDE, share=at_once), FairTurns(at_once, share=at_once))


class Worker(Protocol):
    async def project(self, batch: Batch) -> Projected: ...
    async def merge(self, order: MergeRequest) -> Merged: ...
    async def close(self) -> None: ...


@dataclass(frozen=True)
class IngestRequest:
    """The tables to make."""

    known: Manifest | None
    """Tables to build upon."""
    new: tuple[Segment, ...]
    cluster_end_ns: int | None
    is_final: bool
    instead_of: int = 0
    """The last manifest whose tables could not be read. Files get other names: DuckDB knows files by their names."""

    def name_of(self, draft: Manifest) -> str:
        """With which the names of all its files begin."""
        return f"{draft.generation}-{self.instead_of}" if self.instead_of else draft.generation

    @property
    def is_partial(self) -> bool:
        """Whether the tasks that changed are kept apart, so that a look costs what is new."""
        known = self.known
        if known is None or self.is_final or known.cluster_end_ns != self.cluster_end_ns:
            return False
        if not known.tables.get(TASKS.name):
            return False  # nothing to keep them apart from
        new_bytes = sum(segment.size for segment in self.new)
        unfolded = known.input_bytes - known.folded_bytes + new_bytes
        return not (is_worth_publishing(known, new_bytes) or is_worth_folding(known.folded_bytes, unfolded, new_bytes))


@dataclass(frozen=True)
class PartialTables:
    """Provisional tables of an ingest that goes on."""

    manifest: Manifest
    done_bytes: int
    total_bytes: int


class TableBuilder:
    """Makes tables of one session and keeps their files in the cache."""

    def __init__(
        self, store: ObjectStore, cache: LocalCache, session: SessionId, limits: Limits, turns: IngestTurns
    ) -> None:
        self._store = store
        self._cache = cache
        self._session = session
        self._limits = limits
        self._turns = turns

    def step(self) -> AbstractAsyncContextManager[None]:
        """The time of one step, once it is this session's turn."""
        return self._turns.steps.turn(self._session.namespace)

    async def make(self, request: IngestRequest, show: Callable[[PartialTables], None]) -> Manifest:
        """Tables of all that is known and new; not published yet. `show` is called as a long first ingest goes on."""
        draft = self._draft(request)
        async with self._cache.work_folder(work_name(str(self._session))) as folder:
            gaps, merged = await self._work(request, draft, folder, show)
            return await self.completed(request, draft, gaps, merged, request.name_of(draft))

    async def publish_files(self, manifest: Manifest) -> None:
        """Put every table file into the store; the same file twice is the same bytes."""
        files = list(manifest.files())
        paths = await self._cache.hold(self._store, {file.key: file.size for file in files})
        try:
            for start in range(0, len(files), FETCHES_AT_ONCE):
                some = list(zip(files, paths, strict=True))[start : start + FETCHES_AT_ONCE]
                await asyncio.gather(*(self._store.put_file(file.key, path) for file, path in some))
        finally:
            self._cache.release(paths)

    async def adopt(self, name: str, tables: Mapping[str, Sequence[Path]]) -> dict[str, tuple[TableFile, ...]]:
        """File the tables in the cache under the keys they have, or will have, in the store."""
        adopted: dict[str, tuple[TableFile, ...]] = {}
        for table, paths in tables.items():
            files = [await asyncio.to_thread(self._file, name, table, path) for path in paths]
            for file, path in zip(files, paths, strict=True):
                self._cache.adopt(self._store, file.key, path)
            adopted[table] = tuple(files)
        return adopted

    def _file(self, name: str, table: str, path: Path) -> TableFile:
        with path.open("rb") as content:
            digest = hashlib.file_digest(content, lambda: hashlib.blake2b(digest_size=_DIGEST_BYTES)).hexdigest()
        return TableFile(table_key(self._session, table, f"{name}-{digest}-{path.stem}"), path.stat().st_size)

    async def completed(
        self, request: IngestRequest, draft: Manifest, gaps: Iterable[Gap], merged: Merged, name: str
    ) -> Manifest:
        """The draft with the files of the tables that were made."""
        kept = request.known.tables if request.known and request.is_partial else {}
        gaps = [*gaps]
        gone = {gap.key for gap in gaps if gap.reason == GONE}
        names = {input_name(self._session, key) for key in gone}
        return msgspec.structs.replace(
            draft,
            inputs=tuple(one for one in draft.inputs if one not in names),
            input_bytes=draft.input_bytes - sum(segment.size for segment in request.new if segment.key in gone),
            is_final=draft.is_final and not gone,
            tables={**kept, **await self.adopt(name, merged.tables)},
            newer=await self.adopt(f"{name}-newer", merged.newer),
            folded_bytes=request.known.folded_bytes if request.known and request.is_partial else draft.input_bytes,
            tasks=merged.tasks,
            gaps=tuple(sorted({*draft.gaps, *gaps})),
        )

    async def held(self, tables: Mapping[str, Sequence[TableFile]]) -> dict[str, tuple[Path, ...]]:
        """Raises DamagedFile."""
        return {
            table: tuple(await self._cache.hold(self._store, {file.key: file.size for file in files}))
            for table, files in tables.items()
        }

    def release(self, tables: Mapping[str, Sequence[Path]]) -> None:
        for paths in tables.values():
            self._cache.release(paths)

    async def fetch(self, batch: PlannedBatch, target: Path) -> tuple[Batch, list[Gap]]:
        """The batch's segments in one file; one that is gone from the store is a gap."""
        slices: list[Slice] = []
        gaps: list[Gap] = []
        with target.open("wb") as file:
            for start in range(0, len(batch.segments), FETCHES_AT_ONCE):
                some = batch.segments[start : start + FETCHES_AT_ONCE]
                for segment, data in zip(some, await asyncio.gather(*map(self._segment, some)), strict=True):
                    if isinstance(data, Gap):
                        gaps.append(data)
                    elif data:
                        slices.append(Slice(segment.key, file.tell(), len(data)))
                        file.write(data)
        return Batch(batch.name, target, tuple(slices)), gaps

    async def _segment(self, segment: Segment) -> bytes | Gap:
        try:
            data = await self._store.find(segment.key, OBJECT_LIMIT_BYTES)
        except ObjectTooLarge as exc:
            return Gap(segment.key, 0, f"damaged: {exc}")
        return Gap(segment.key, 0, GONE) if data is None else data

    def _draft(self, request: IngestRequest) -> Manifest:
        """The manifest without its tables."""
        known = request.known
        names = {input_name(self._session, segment.key) for segment in request.new} | set(known.inputs if known else ())
        looked_for = {segment.key for segment in request.new}
        sealed = (key.sealed_ns for segment in request.new if (key := parse_sealed_key(segment.key)))
        return Manifest(
            generation=generation_name(names, request.cluster_end_ns, known.generation if known else ""),
            inputs=tuple(sorted(names)),
            input_bytes=sum(segment.size for segment in request.new) + (known.input_bytes if known else 0),
            tables={},
            tasks=0,
            as_of_ns=max([*sealed, known.as_of_ns if known else 0]),
            is_final=request.is_final,
            published_bytes=known.published_bytes if known else 0,
            cluster_end_ns=request.cluster_end_ns,
            gaps=tuple(gap for gap in known.gaps if gap.key not in looked_for) if known else (),
        )

    async def _work(
        self, request: IngestRequest, draft: Manifest, folder: Path, show: Callable[[PartialTables], None]
    ) -> tuple[list[Gap], Merged]:
        bits = range_bits(draft.input_bytes)
        large = self._limits.scaled(scale_of(draft.input_bytes)) if is_large(request.new) else None
        async with self._worker(folder, partition_bits(bits), large) as worker:
            run = _Run(self, request, draft, folder, worker)
            gaps = await run.project_all(show)
            return gaps, await run.merge(folder / "tables", run.batches, bits)

    @asynccontextmanager
    async def _worker(self, folder: Path, bits: int, large: Limits | None) -> AsyncIterator[Worker]:
        """A process of its own for large inputs, with these limits; else a thread of this one."""
        worker: Worker
        if large:
            worker = await WorkerProcess.start(folder, bits, large)
        else:
            worker = await WorkerInProcess.start(folder, bits, self._limits.small())
        try:
            yield worker
        finally:
            await worker.close()


class _Run:
    """One ingest on its way through the worker."""

    def __init__(
        self, builder: TableBuilder, request: IngestRequest, draft: Manifest, folder: Path, worker: Worker
    ) -> None:
        self._builder = builder
        self._request = request
        self._draft = draft
        self._folder = folder
        self._worker = worker
        self.batches = plan_batches(request.new)

    async def project_all(self, show: Callable[[PartialTables], None]) -> list[Gap]:
        """Project batch by batch, fetching the next one meanwhile."""
        gaps: list[Gap] = []
        done_bytes, total = 0, sum(segment.size for segment in self._request.new)
        following = self._fetch_later(0)
        try:
            for number, planned in enumerate(self.batches, 1):
                batch, missing = await following
                following = self._fetch_later(number)
                async with self._builder.step():
                    projected = await self._worker.project(batch)
                batch.file.unlink(missing_ok=True)
                gaps += [*missing, *projected.gaps]
                done_bytes += sum(segment.size for segment in planned.segments)
                if self._is_worth_showing(number):
                    show(PartialTables(await self._provisional(number, gaps), done_bytes, total))
        finally:
            following.cancel()
        return gaps

    async def merge(self, into: Path, batches: Sequence[PlannedBatch], bits: int) -> Merged:
        known = self._request.known
        base = await self._builder.held(known.tables if known else {})
        newer = await self._builder.held(known.newer if known else {})
        end_ns, is_partial = self._draft.cluster_end_ns, self._request.is_partial
        names = tuple(batch.name for batch in batches)
        try:
            async with self._builder.step():
                return await self._worker.merge(MergeRequest(into, names, bits, base, newer, end_ns, is_partial))
        finally:
            self._builder.release(base)
            self._builder.release(newer)

    def _is_worth_showing(self, number: int) -> bool:
        is_first = self._request.known is None and is_large(self._request.new)
        return is_first and number in PROVISIONAL_BATCHES and number * PROVISIONAL_SHARE <= len(self.batches)

    def _fetch_later(self, number: int) -> asyncio.Task[tuple[Batch, list[Gap]]]:
        return asyncio.create_task(self._fetch(number))

    async def _fetch(self, number: int) -> tuple[Batch, list[Gap]]:
        if number >= len(self.batches):
            return Batch("", self._folder, ()), []
        planned = self.batches[number]
        return await self._builder.fetch(planned, self._folder / f"{planned.name}.zst")

    async def _provisional(self, number: int, gaps: Sequence[Gap]) -> Manifest:
        shown = self.batches[:number]
        bits = range_bits(sum(segment.size for batch in shown for segment in batch.segments))
        merged = await self.merge(self._folder / "provisional", shown, bits)
        return await self._builder.completed(
            self._request, self._draft, gaps, merged, f"{self._request.name_of(self._draft)}-first-{number}"
        )
