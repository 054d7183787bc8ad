"""Many log files as one `.tar.gz`, made while it is sent: memory for a few frames, nothing on disk.

A file keeps its length. Bytes that are missing are zeros, so that the byte ranges of tasks hold; `MISSING.txt` names
them.
"""

from __future__ import annotations

import asyncio
import tarfile
import zlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from raykeeper.history.logs.reading import LogReader
from raykeeper.layout.logs import Hole, StoredLog, plan_read

_BLOCK = tarfile.BLOCKSIZE
_END = b"\0" * (2 * _BLOCK)
_ZEROS = b"\0" * (1 << 20)
_GZIP = 16 + zlib.MAX_WBITS
_LEVEL = 1  # logs shrink ten-fold already; higher levels cost more time than the network saves
MISSING_NAME = "MISSING.txt"


@dataclass(frozen=True)
class Member:
    """One file of an archive."""

    name: str
    stored: StoredLog

    @property
    def is_safe(self) -> bool:
        """Unpacks below the folder it is unpacked in: a pack's index is data, and may say anything."""
        path = PurePosixPath(self.name)
        return not path.is_absolute() and ".." not in path.parts and "\0" not in self.name


async def tar_gz(members: Sequence[Member], reader: LogReader, missing: Sequence[str]) -> AsyncIterator[bytes]:
    """The archive in pieces. `missing` are lines about what is known to be missing before."""
    compressor = zlib.compressobj(_LEVEL, wbits=_GZIP)
    async for piece in _tar(members, reader, [*missing]):
        if packed := await asyncio.to_thread(compressor.compress, piece):
            yield packed
    yield compressor.flush()


async def _tar(members: Sequence[Member], reader: LogReader, missing: list[str]) -> AsyncIterator[bytes]:
    for member in members:
        if not member.is_safe:
            missing.append(f"{member.name!r} was left out: it would unpack outside of its folder")
            continue
        # The plan is made once: a file that is still written may grow before its last byte is sent.
        plan = plan_read(member.stored, 0, member.stored.size)
        size = plan[-1].end if plan else 0
        yield _header(member.name, size, member.stored.last_read_ns // 1_000_000_000)
        async for piece in reader.exact(plan):
            if isinstance(piece, Hole):
                missing.append(f"{member.name}: bytes {piece.start} to {piece.end}: {piece.reason}")
                for part in _zeros(piece.end - piece.start):
                    yield part
            else:
                yield piece
        yield b"\0" * (-size % _BLOCK)
    if missing:
        text = "".join(f"{line}\n" for line in missing).encode(errors="replace")
        yield _header(MISSING_NAME, len(text), 0) + text + b"\0" * (-len(text) % _BLOCK)
    yield _END


def _header(name: str, size: int, mtime: int) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.mtime, info.mode = size, mtime, 0o644
    return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")


def _zeros(length: int) -> list[bytes]:
    whole, rest = divmod(length, len(_ZEROS))
    return [_ZEROS] * whole + [_ZEROS[:rest]]
