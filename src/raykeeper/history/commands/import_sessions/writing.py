"""Writes one session into a store, each object once, and counts: what an earlier import wrote is not read again."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from raykeeper.history.commands.delete import finish_all
from raykeeper.layout.keys import LogPackKey, SessionId
from raykeeper.layout.packs import Gap, PackWriter
from raykeeper.layout.records import Record, encode_record
from raykeeper.storage.errors import ObjectMissing
from raykeeper.storage.store import ObjectStore
from raykeeper.times import NS

Say = Callable[[str], None]
"""Tells the user how far it is, a line at a time."""

_NAMED = 20
"""Unreadable things named in the summary; the others are counted."""


@dataclass
class Tally:
    """What was copied so far, and what could not be."""

    sessions: int = 0
    running: int = 0
    """Sessions that were left out because they still run."""
    objects: int = 0
    """Written to the store by this import."""
    stored_bytes: int = 0
    log_files: int = 0
    log_bytes: int = 0
    there: int = 0
    """Objects that an earlier import had written."""
    unreadable: list[str] = field(default_factory=list)
    """One line for each thing that is missing or damaged."""

    def lines(self, *, is_dry_run: bool) -> list[str]:
        """The summary."""
        verb = "would be written" if is_dry_run else "written"
        told = [
            f"{self.sessions} sessions: {self.objects} objects {verb} ({_to_mb(self.stored_bytes)} MB), "
            f"{self.there} were there already; {self.log_files} log files of {_to_mb(self.log_bytes)} MB"
        ]
        if self.running:
            told.append(f"{self.running} sessions still run and were left out")
        if self.unreadable:
            told.append(f"{len(self.unreadable)} things could not be read:")
            told += [f"  {line}" for line in self.unreadable[:_NAMED]]
            told += ["  …"] if len(self.unreadable) > _NAMED else []
        return told


def _to_mb(size: int) -> str:
    return f"{size / 1e6:.1f}"


PACK_BYTES = 8 << 20
"""Text in one pack: as much as is held in memory at a time."""
FRAME_BYTES = 512 << 10
"""Text in one frame: what is read at least to show a line."""


@dataclass(frozen=True)
class LogSource:
    """One log file that is to be packed."""

    path: str
    """Relative to the session's `logs/`."""
    generation: str
    place: str
    """Where its bytes are read from."""
    size: int
    written_ns: int


@dataclass(frozen=True)
class Piece:
    """The bytes [offset, offset + length) of a file."""

    file: LogSource
    offset: int
    length: int


@dataclass(frozen=True)
class PlannedPack:
    key: str
    pieces: tuple[Piece, ...]


def _plan_packs(session: SessionId, node_id: str, files: Iterable[LogSource]) -> list[PlannedPack]:
    """Packs of all files of one node, by path."""
    ordered = sorted(files, key=lambda file: (file.path, file.generation))
    sealed_ns = _sealed_ns(ordered)
    packs: list[list[Piece]] = [[]]
    filled = 0
    for piece in (piece for file in ordered for piece in _pieces(file)):
        if packs[-1] and filled + piece.length > PACK_BYTES:
            packs.append([])
            filled = 0
        packs[-1].append(piece)
        filled += piece.length
    numbered = enumerate(filter(None, packs))
    return [PlannedPack(LogPackKey(session, node_id, sealed_ns, number).key, tuple(some)) for number, some in numbered]


def _sealed_ns(files: Sequence[LogSource]) -> int:
    """In the second in which the last file was written, at a moment that only this set of files gets."""
    newest = max((file.written_ns for file in files), default=0)
    names = "\n".join(f"{file.path} {file.generation} {file.size}" for file in files)
    digest = int.from_bytes(hashlib.blake2b(names.encode(errors="surrogateescape"), digest_size=7).digest())
    return newest - newest % NS + digest % NS


def _pieces(file: LogSource) -> Iterator[Piece]:
    """At least one, so that an empty file has a name in the store."""
    for offset in range(0, max(1, file.size), FRAME_BYTES):
        yield Piece(file, offset, min(FRAME_BYTES, file.size - offset))


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
        packs = _plan_packs(self.session, node_id, files)
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
            self._say(f"{self.session}: {self._objects} objects, {_to_mb(self._bytes)} MB so far")
