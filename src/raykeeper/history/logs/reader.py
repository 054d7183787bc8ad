"""Bytes of one log file out of its packs, or of many as an archive: memory for a few frames, whatever the size.

What is missing is said in the text, where it is missing.
"""

from __future__ import annotations

import asyncio
import itertools
import re
import tarfile
import zlib
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from raykeeper.history.bounded import Bounded
from raykeeper.layout.logs import Hole, Slice, StoredLog, plan_read
from raykeeper.layout.packs import DamagedPack, Frame, read_frame
from raykeeper.storage.errors import ObjectMissing
from raykeeper.storage.store import ObjectStore
from raykeeper.times import NS

_BLOCK = tarfile.BLOCKSIZE
_END = b"\0" * (2 * _BLOCK)
_ZEROS = b"\0" * (1 << 20)
_GZIP = 16 + zlib.MAX_WBITS
_LEVEL = 1  # logs shrink ten-fold already; higher levels cost more time than the network saves
MISSING_NAME = "MISSING.txt"
MISSING_LINES_LIMIT = 10_000
ZEROS_LIMIT_BYTES = 1 << 30
_DRIVE = re.compile(r"[A-Za-z]:")


@dataclass(frozen=True)
class Member:
    """One file of an archive."""

    name: str
    stored: StoredLog

    @property
    def is_safe(self) -> bool:
        """Unpacks below the folder it is unpacked in, on Windows too: a pack's index is data, and may say anything."""
        path = PurePosixPath(self.name)
        if path.is_absolute() or ".." in path.parts or "\0" in self.name:
            return False
        return "\\" not in self.name and not any(_DRIVE.match(part) for part in path.parts)


class MissingLines:
    """What an archive lacks, a line each; of very many only the first ones, and a count of the others."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._more = 0

    def add(self, line: str) -> None:
        if len(self._lines) < MISSING_LINES_LIMIT:
            self._lines.append(line)
        else:
            self._more += 1

    def to_bytes(self) -> bytes:
        lines = [*self._lines, f"and {self._more} more"] if self._more else self._lines
        return "".join(f"{line}\n" for line in lines).encode(errors="replace")


async def tar_gz(members: AsyncIterator[Member], reader: LogReader, missing: MissingLines) -> AsyncIterator[bytes]:
    """The archive in pieces. `missing` is what is known to be missing, and grows as members come."""
    compressor = zlib.compressobj(_LEVEL, wbits=_GZIP)
    async for piece in _tar(members, reader, missing):
        if packed := await asyncio.to_thread(compressor.compress, piece):
            yield packed
    yield compressor.flush()


async def _tar(members: AsyncIterator[Member], reader: LogReader, missing: MissingLines) -> AsyncIterator[bytes]:
    async for member in members:
        if not member.is_safe:
            missing.add(f"{member.name!r} was left out: it would unpack outside of its folder")
            continue
        # The plan is made once: a file that is still written may grow before its last byte is sent.
        plan = await planned(member.stored, 0, member.stored.size)
        size = plan[-1].end if plan else 0
        if (lost := sum(piece.end - piece.start for piece in plan if isinstance(piece, Hole))) > ZEROS_LIMIT_BYTES:
            missing.add(f"{member.name} was left out: {lost} of its {size} bytes are not in the store")
            continue
        yield _header(member.name, size, member.stored.last_read_ns // NS)
        async for piece in reader.exact(plan):
            if isinstance(piece, Hole):
                missing.add(f"{member.name}: bytes {piece.start} to {piece.end}: {piece.reason}")
                for part in _zeros(piece.end - piece.start):
                    yield part
            else:
                yield piece
        yield b"\0" * (-size % _BLOCK)
    if text := missing.to_bytes():
        yield _header(MISSING_NAME, len(text), 0) + text + b"\0" * (-len(text) % _BLOCK)
    yield _END


def _header(name: str, size: int, mtime: int) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.mtime, info.mode = size, mtime, 0o644
    return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")


def _zeros(length: int) -> Iterator[bytes]:
    whole, rest = divmod(length, len(_ZEROS))
    yield from itertools.repeat(_ZEROS, whole)
    yield _ZEROS[:rest]


_AHEAD_FRAMES, _AHEAD_BYTES = 8, 2 << 20
"""Fetched before they are asked for, which hides the store's latency: so much, or one frame that is larger."""
_CACHE_BYTES = 32 << 20  # frames read a moment ago: a tail is looked for backwards, then sent forwards
_MANY_PIECES = 5_000
_IN_THREAD_BYTES = 256 * 1024  # decompressing more would be felt by other requests


class LogReader:
    """Reads what a plan says, in order."""

    def __init__(self, store: ObjectStore, cache_bytes: int = _CACHE_BYTES) -> None:
        self._store = store
        self._cache: Bounded[tuple[str, int], bytes] = Bounded(cache_bytes)

    async def stream(self, stored: StoredLog, start: int, end: int) -> AsyncIterator[bytes]:
        """The bytes [start, end) as far as they exist; notes stand for what is missing."""
        async for piece in self.exact(await planned(stored, start, end)):
            yield piece if isinstance(piece, bytes) else hole_note(piece)

    async def exact(self, plan: Sequence[Slice | Hole]) -> AsyncIterator[bytes | Hole]:
        """Every byte of the plan: as itself, or as a hole that says why it is missing."""
        async for piece, data in self._pieces(plan):
            yield data if isinstance(data, bytes) else Hole(piece.start, piece.end, data)

    async def tail_start(self, stored: StoredLog, start: int, end: int, lines: int) -> int:
        """Where the last `lines` lines of [start, end) begin; a last line without an end counts."""
        if lines <= 0:
            return end
        left, is_last = lines, True
        async for piece, data in self._pieces(reversed(await planned(stored, start, end))):
            text = data if isinstance(data, bytes) else b""
            # The newline at the very end closes the last line and separates nothing.
            newlines = _newlines_from_end(text[:-1] if is_last and text.endswith(b"\n") else text)
            is_last = False
            for at in newlines:
                left -= 1
                if left == 0:
                    return piece.start + at + 1
        return start

    async def _pieces(self, plan: Iterable[Slice | Hole]) -> AsyncIterator[tuple[Slice | Hole, bytes | str]]:
        """Each piece with its bytes, or with the reason why there are none; the next ones are on their way."""
        waiting: deque[tuple[Slice | Hole, asyncio.Task[bytes | str]]] = deque()
        ahead, pieces = 0, iter(plan)
        coming = next(pieces, None)
        try:
            while True:
                while (
                    coming and len(waiting) < _AHEAD_FRAMES and (not ahead or ahead + _weight(coming) <= _AHEAD_BYTES)
                ):
                    waiting.append((coming, asyncio.create_task(self._fetch(coming))))
                    ahead += _weight(coming)
                    coming = next(pieces, None)
                if not waiting:
                    return
                piece, task = waiting.popleft()
                yield piece, await task
                ahead -= _weight(piece)
        finally:
            for _, task in waiting:
                task.cancel()
            await asyncio.gather(*(task for _, task in waiting), return_exceptions=True)

    async def _fetch(self, piece: Slice | Hole) -> bytes | str:
        if isinstance(piece, Hole):
            return piece.reason or "never stored"
        try:
            text = await self._frame(piece.pack, piece.frame)
        except (DamagedPack, ObjectMissing) as exc:
            return str(exc)
        return text[piece.start - piece.frame.offset : piece.end - piece.frame.offset]

    async def _frame(self, pack: str, frame: Frame) -> bytes:
        key = (pack, frame.position)
        if (text := self._cache.get(key)) is not None:
            return text
        packed = await self._store.read_range(pack, frame.position, frame.size)
        if frame.length > _IN_THREAD_BYTES:
            text = await asyncio.to_thread(read_frame, frame, packed)
        else:
            text = read_frame(frame, packed)
        self._keep(key, text)
        return text

    def _keep(self, key: tuple[str, int], text: bytes) -> None:
        self._cache.put(key, text, len(text))


async def planned(stored: StoredLog, start: int, end: int) -> list[Slice | Hole]:
    """Where the bytes are; a file of many pieces is planned in a thread, so that others are answered meanwhile."""
    if len(stored.frames) + len(stored.gaps) < _MANY_PIECES:
        return plan_read(stored, start, end)
    return await asyncio.to_thread(plan_read, stored, start, end)


def hole_note(hole: Hole) -> bytes:
    """What a reader sees instead of bytes that are not there."""
    return f"\n[raykeeper: {hole.end - hole.start} bytes of this log are missing here: {hole.reason}]\n".encode()


def _newlines_from_end(text: bytes) -> Iterator[int]:
    at = text.rfind(b"\n")
    while at >= 0:
        yield at
        at = text.rfind(b"\n", 0, at)


def _weight(piece: Slice | Hole) -> int:
    return piece.frame.length if isinstance(piece, Slice) else 0
