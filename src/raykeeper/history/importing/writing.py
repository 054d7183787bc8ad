"""Writes one session into a store, each object once: what an earlier import wrote is not read again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence

from raykeeper.history.importing.packing import LogSource, Piece, PlannedPack, plan_packs
from raykeeper.history.importing.tally import Say, Tally, to_mb
from raykeeper.history.together import finish_all
from raykeeper.layout.keys import SessionId
from raykeeper.layout.packs import Gap, PackWriter
from raykeeper.layout.records import Record, encode_record
from raykeeper.storage.errors import ObjectMissing
from raykeeper.storage.store import ObjectStore

_PROGRESS_OBJECTS = 100  # between two lines of progress: 800 MB of logs, seconds to a minute
_AT_ONCE = 4  # packs or segments on their way, each of a few MB

ReadPiece = Callable[[Piece], Awaitable[bytes]]
"""Raises ObjectMissing or OSError for what cannot be read."""
Make = Callable[[], Awaitable[bytes]]


class SessionWriter:
    """One session on its way into the store. Dry, it counts what it would write."""

    def __init__(self, store: ObjectStore, session: SessionId, tally: Tally, say: Say, *, is_dry_run: bool) -> None:
        self.session = session
        self.tally = tally
        self._store = store
        self._say = say
        self._is_dry_run = is_dry_run
        self._there: set[str] = set()
        self._objects = 0
        self._bytes = 0

    async def begin(self) -> None:
        """See what the store has of the session already."""
        self._there = {stat.key async for stat in self._store.list(self.session.prefix)}

    def has(self, key: str) -> bool:
        return key in self._there

    async def add_all(self, objects: Iterable[tuple[str, int, Make]]) -> None:
        """Write immutable objects, given by key, about how many bytes they have, and how to get them."""
        some: list[tuple[str, int, Make]] = []
        for item in objects:
            some.append(item)
            if len(some) == _AT_ONCE:
                await finish_all(self.add(*item) for item in some)
                some = []
        await finish_all(self.add(*item) for item in some)

    async def add(self, key: str, size: int, make: Make) -> None:
        """Write one object, unless it is there."""
        if self.has(key):
            self.tally.there += 1
            return
        if self._is_dry_run:
            self._count(size)
            return
        try:
            data = await make()
            await self._store.put(key, data)
        except ObjectMissing as exc:
            self.tally.unreadable.append(str(exc))
            return
        self._there.add(key)
        self._count(len(data))

    async def add_logs(self, node_id: str, files: Sequence[LogSource], read: ReadPiece) -> None:
        """Write all log files of one node, as packs."""
        self.tally.log_files += len(files)
        self.tally.log_bytes += sum(file.size for file in files)
        packs = plan_packs(self.session, node_id, files)
        sizes = (sum(piece.length for piece in pack.pieces) for pack in packs)
        await self.add_all((pack.key, size, self._maker(pack, read)) for pack, size in zip(packs, sizes, strict=True))

    async def add_record(self, key: str, record: Record) -> None:
        """Write a small record, unless one is there that somebody else may own."""
        data = encode_record(record)
        if not self.has(key) and await self._store.find(key) is not None:
            self._there.add(key)  # outside of the session's folder: the catalog's

        async def make() -> bytes:
            return data

        await self.add(key, len(data), make)

    def _maker(self, pack: PlannedPack, read: ReadPiece) -> Make:
        async def make() -> bytes:
            writer = PackWriter()
            for piece in pack.pieces:
                await self._pack_piece(writer, piece, read)
            return await asyncio.to_thread(writer.to_bytes)

        return make

    async def _pack_piece(self, writer: PackWriter, piece: Piece, read: ReadPiece) -> None:
        """Add the piece, or a gap that says why it is not there."""
        file = piece.file
        try:
            data = await read(piece) if piece.length else b""
        except (ObjectMissing, OSError) as exc:
            self.tally.unreadable.append(f"{file.place}: {exc}")
            writer.add_gap(Gap(file.path, file.generation, piece.offset, piece.length, f"import: {exc}"))
            return
        await asyncio.to_thread(writer.add, file.path, file.generation, piece.offset, data, file.written_ns)

    def _count(self, size: int) -> None:
        self.tally.objects += 1
        self.tally.stored_bytes += size
        self._objects += 1
        self._bytes += size
        if self._objects % _PROGRESS_OBJECTS == 0:
            self._say(f"{self.session}: {self._objects} objects, {to_mb(self._bytes)} MB so far")
