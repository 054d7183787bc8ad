"""The indexes of many log packs of one node in one object: who opens a log reads this instead of each pack's end. Pure.

It is a copy and decides nothing. An index counts only while its pack is there with the size it had, so that late and
deleted packs are seen whatever is in here, and it may be deleted at any time.
"""

from __future__ import annotations

import hashlib

import msgspec
import zstandard

from raykeeper.layout.bounded import decompressed
from raykeeper.layout.keys import LogIndexKey, LogPackKey, SessionId
from raykeeper.layout.packs import ENTRIES_LIMIT, INDEX_LIMIT_BYTES, CountedIndex, DamagedPack, PackIndex, check_paths

PIECE_BYTES = 4 << 20  # of one object, uncompressed: some 25,000 frames
OBJECT_LIMIT_BYTES = INDEX_LIMIT_BYTES + PIECE_BYTES
"""Of an object, compressed or not: an index that is larger than a piece has one of its own."""
_ENTRIES_LIMIT = 2 * ENTRIES_LIMIT  # a piece has no more than the largest index, and one behind it
_LEVEL = 9  # written once, read by every replica
_ARRAY_32 = b"\xdd"  # msgpack's word for an array whose length is in the next four bytes


class DamagedLogIndexes(ValueError):
    """The object is not what was written."""


class CopiedIndex(msgspec.Struct, frozen=True, array_like=True):
    """The index of one pack, and which pack that was."""

    pack: str
    """Its key, behind the session's prefix of log packs."""
    size: int
    """Bytes of the pack."""
    index: PackIndex

    @property
    def hour(self) -> str:
        """In which the pack was sealed, as keys spell it."""
        return self.pack.partition("/")[0]


class LogIndexes:
    """Indexes on their way into one object, encoded as they come."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._digest = hashlib.blake2b(digest_size=16)
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._parts)

    def add(self, copied: CopiedIndex) -> bool:
        """Whether there was room for it; there always is for the first one."""
        part = msgspec.msgpack.encode(copied)
        if self._parts and self._bytes + len(part) > PIECE_BYTES:
            return False
        self._digest.update(f"{copied.pack} {copied.size}\n".encode())
        self._parts.append(part)
        self._bytes += len(part)
        return True

    def key(self, session: SessionId, node_id: str) -> LogIndexKey:
        """Whoever collects the same packs writes the same bytes under the same key."""
        return LogIndexKey(session, node_id, self._digest.hexdigest(), len(self._parts))

    def to_bytes(self) -> bytes:
        text = b"".join([_ARRAY_32, len(self._parts).to_bytes(4, "big"), *self._parts])
        return zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True).compress(text)


def decode_log_indexes(data: bytes) -> list[CopiedIndex]:
    """Raises DamagedLogIndexes."""
    try:
        text = decompressed(data, OBJECT_LIMIT_BYTES)
        counted = msgspec.msgpack.decode(text, type=list[_CountedCopy])
        if sum(copied.index.check() for copied in counted) > _ENTRIES_LIMIT:
            raise DamagedLogIndexes(f"more than {_ENTRIES_LIMIT} entries")
        del counted
        copies = msgspec.msgpack.decode(text, type=list[CopiedIndex])
        for copied in copies:
            check_paths(copied.index)
    except (zstandard.ZstdError, msgspec.DecodeError, UnicodeDecodeError, RecursionError, DamagedPack) as exc:
        raise DamagedLogIndexes(str(exc)) from exc
    return copies


class _CountedCopy(msgspec.Struct, array_like=True):
    pack: str
    size: int
    index: CountedIndex


def copied_index(session: SessionId, pack: str, size: int, index: PackIndex) -> CopiedIndex:
    return CopiedIndex(pack.removeprefix(LogPackKey.prefix(session)), size, index)


def pack_key(session: SessionId, copied: CopiedIndex) -> str:
    return f"{LogPackKey.prefix(session)}{copied.pack}"
