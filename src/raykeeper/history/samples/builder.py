"""Makes the tables of one period: finds those that another server made of the same blocks, or reads the blocks.

Guarantees: any replica may do this, twice at once or again after a crash: tables are named after their blocks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

from raykeeper.history.samples.periods import MAX_BLOCK_BYTES, PeriodInputs, Tail
from raykeeper.history.samples.table import COARSE, FINE, block_lines, write_tables
from raykeeper.history.store.disk_cache import DamagedFile, LocalCache
from raykeeper.layout.keys import SampleTableKey, parse_sample_table_key, parse_sealed_key
from raykeeper.layout.samples import (
    HOUR_SECONDS,
    STEP_SECONDS,
    DamagedSamples,
    SampleBlock,
    decode_block,
    hour_start,
)
from raykeeper.logs import Log
from raykeeper.storage.errors import ObjectMissing, StoreRefused, StoreUnavailable
from raykeeper.storage.store import ObjectStore
from raykeeper.times import NS

log = Log("raykeeper.history.samples")

Level = Literal["fine", "coarse"]
TABLE_OF: dict[Level, str] = {"fine": FINE.name, "coarse": COARSE.name}
PUBLISHED_FROM = 16
"""Blocks that make it worth to put their tables into the store, too."""
MAX_LINES_BYTES = 2 << 30
"""Of all lines of a period, on the disk for as long as its tables are made. Blocks beyond that count as unreadable: a
small object can hold a block of many."""
_READS_AT_ONCE = 32
_BLOCKS_AT_ONCE = 512


@dataclass(frozen=True)
class PeriodTables:
    """The tables of one period."""

    digest: str
    unreadable: int
    """Blocks that are missing in them."""
    files: Mapping[Level, tuple[str, int]]
    """Key and size."""
    is_own: bool
    """This server made them itself."""

    @property
    def sizes(self) -> dict[str, int]:
        return dict(self.files.values())


class PeriodBuilder:
    """Makes tables, keeps them in the cache, and gives them to others."""

    def __init__(self, store: ObjectStore, cache: LocalCache) -> None:
        self._store = store
        self._cache = cache
        self._reads = asyncio.Semaphore(_READS_AT_ONCE)
        self._distrusted: set[str] = set()
        self._may_write = True

    def is_here(self, made: PeriodTables) -> bool:
        """Whether they can be had: from the disk, or from the store if nothing is known against them."""
        return self._cache.has(self._store, made.sizes) if made.is_own else made.digest not in self._distrusted

    async def find(self, inputs: PeriodInputs, known: PeriodTables | None) -> PeriodTables | None:
        """Tables of exactly these blocks: those we had before, or another server made; None if there are none."""
        digest = inputs.digest()
        if known is not None and known.digest == digest and self.is_here(known):
            return known
        return await self._published(inputs, digest)

    def forget(self, made: PeriodTables) -> None:
        """These tables will not be asked for again."""
        for key in made.sizes:
            self._cache.discard(self._store, key)

    async def publish(self, inputs: PeriodInputs, made: PeriodTables) -> None:
        """Put tables into the store, and remove those that they replace; not where we may only read."""
        if not (made.is_own and self._may_write and len(inputs.blocks) >= PUBLISHED_FROM):
            return
        paths = await self._cache.hold(self._store, made.sizes)
        try:
            await self._put(inputs, dict(zip(made.sizes, paths, strict=True)))
            self._distrusted.discard(made.digest)
        except StoreRefused as exc:
            self._may_write = False
            log.info("tables of samples are not put into the store", cause=str(exc))
        except StoreUnavailable as exc:
            log.debug("tables of samples are put into the store another time", cause=str(exc))
        finally:
            self._cache.release(paths)

    async def hold(self, made: PeriodTables, level: Level) -> Path | None:
        """The file of one level, until it is released; None where it went meanwhile: the next look makes it again."""
        with suppress(ObjectMissing, DamagedFile):
            [path] = await self._cache.hold(self._store, dict([made.files[level]]))
            return path
        self.distrust([made])
        return None

    def release(self, paths: Iterable[Path]) -> None:
        self._cache.release(paths)

    def distrust(self, made: Iterable[PeriodTables]) -> bool:
        """Whether some of these tables came from elsewhere, and are made anew."""
        foreign = {one.digest for one in made if not one.is_own}
        self._distrusted |= foreign
        if foreign:
            log.warning("tables of samples cannot be read, and are made anew", tables=len(foreign))
        return bool(foreign)

    async def _published(self, inputs: PeriodInputs, digest: str) -> PeriodTables | None:
        """The tables that another server made of the same blocks, where there are any."""
        if len(inputs.blocks) < PUBLISHED_FROM or digest in self._distrusted:
            return None
        found: dict[Level, tuple[SampleTableKey, int]] = {}
        async for stat in self._store.list(inputs.tables_prefix):
            facts = parse_sample_table_key(stat.key)
            if facts and facts.digest == digest:
                found |= {level: (facts, stat.size) for level in TABLE_OF if level == facts.level}
        unreadable = {facts.unreadable for facts, _ in found.values()}
        if len(found) < len(TABLE_OF) or len(unreadable) > 1:
            return None
        files = {level: (facts.key, size) for level, (facts, size) in found.items()}
        return PeriodTables(digest, unreadable.pop(), files, is_own=False)

    async def build(self, inputs: PeriodInputs) -> PeriodTables:
        """Tables of these blocks, out of the blocks themselves."""
        digest = inputs.digest()
        async with self._cache.work_folder(f"samples-{digest}") as folder:
            lines = [folder / "nodes.ndjson", folder / "gpus.ndjson"]
            with lines[0].open("wb") as nodes, lines[1].open("wb") as gpus:
                unreadable = inputs.left_out + await self._write_lines(inputs, nodes, gpus)
            written = await asyncio.to_thread(write_tables, lines, folder)
            files: dict[Level, tuple[str, int]] = {}
            for level, table in TABLE_OF.items():
                key = SampleTableKey(inputs.session, inputs.period.name, digest, unreadable, level).key
                files[level] = (key, written[table].stat().st_size)
                self._cache.adopt(self._store, key, written[table])
        return PeriodTables(digest, unreadable, files, is_own=True)

    async def _write_lines(self, inputs: PeriodInputs, nodes: BinaryIO, gpus: BinaryIO) -> int:
        """Write the lines of all blocks, each node's in the order of time; how many blocks could not be read."""
        keys = sorted(inputs.blocks)
        writer, unreadable = _LineWriter(nodes, gpus), 0
        for start in range(0, len(keys), _BLOCKS_AT_ONCE):
            some = keys[start : start + _BLOCKS_AT_ONCE]
            found = await asyncio.gather(*(self._read(key, inputs.blocks[key]) for key in some))
            unreadable += await asyncio.to_thread(writer.write_objects, list(zip(some, found, strict=True)))
        await asyncio.to_thread(writer.write_tails, inputs.tails)
        return unreadable

    async def _read(self, key: str, size: int) -> bytes | None:
        if size > MAX_BLOCK_BYTES:
            return None
        async with self._reads:
            return await self._store.find(key)

    async def _put(self, inputs: PeriodInputs, files: Mapping[str, Path]) -> None:
        there = {stat.key async for stat in self._store.list(inputs.tables_prefix)}
        if there == files.keys() and inputs.digest() not in self._distrusted:
            return
        for key, path in files.items():
            await self._store.put_file(key, path)
        for key in there - files.keys():
            await self._store.delete(key)
        session, period = str(inputs.session), inputs.period.name
        log.info("samples collected", session=session, period=period, blocks=len(inputs.blocks))


class _LineWriter:
    """Turns blocks into lines; of two rows about the same ten seconds of a node the first counts.

    A block is believed about the hour of its key alone. All of it blocks; for threads.
    """

    def __init__(self, nodes: BinaryIO, gpus: BinaryIO) -> None:
        self._nodes = nodes
        self._gpus = gpus
        self._until: dict[str, int] = {}
        self._room = MAX_LINES_BYTES

    def write_objects(self, objects: Iterable[tuple[str, bytes | None]]) -> int:
        """How many could not be read."""
        unreadable = 0
        for key, data in objects:
            facts = parse_sealed_key(key)
            try:
                block = self._decoded(data or b"")
            except DamagedSamples as exc:
                unreadable += 1
                log.debug("samples cannot be read", key=key, cause=str(exc))
                continue
            if facts is not None:
                self._write(facts.node_id, hour_start(facts.sealed_ns // NS), block)
        return unreadable

    def _decoded(self, data: bytes) -> SampleBlock:
        """Raises DamagedSamples, also where there is no room for more."""
        if self._room <= 0:
            raise DamagedSamples(f"the blocks before have {MAX_LINES_BYTES:,} bytes of lines, which is the limit")
        return decode_block(data)

    def write_tails(self, tails: Iterable[Tail]) -> None:
        for tail in sorted(tails, key=lambda tail: tail.node_id):
            if self._room <= 0:
                return
            self._write(tail.node_id, hour_start(tail.block.start), tail.block)

    def _write(self, node_id: str, hour: int, block: SampleBlock) -> None:
        begin, end = max(hour, self._until.get(node_id, 0)), hour + HOUR_SECONDS
        self._until[node_id] = max(begin, min(block.start + STEP_SECONDS * block.rows, end))
        lines = block_lines(node_id, block, begin, end)
        self._nodes.writelines(line + b"\n" for line in lines.node)
        self._gpus.writelines(line + b"\n" for line in lines.gpus)
        self._room -= sum(len(line) + 1 for line in (*lines.node, *lines.gpus))
