"""Whole log files into log packs: which pieces of which files share a pack, and under what key. Pure.

The same files give the same packs, so an import that was interrupted goes on where it was. Other files, or more of
them, give other keys: bytes that were packed before are then stored twice, which readers of packs bear.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from raykeeper.layout.keys import LogPackKey, SessionId

PACK_BYTES = 8 << 20
"""Text in one pack: as much as is held in memory at a time."""
FRAME_BYTES = 512 << 10
"""Text in one frame: what is read at least to show a line."""
_SECOND_NS = 1_000_000_000


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


def plan_packs(session: SessionId, node_id: str, files: Iterable[LogSource]) -> list[PlannedPack]:
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
    return newest - newest % _SECOND_NS + digest % _SECOND_NS


def _pieces(file: LogSource) -> Iterator[Piece]:
    """At least one, so that an empty file has a name in the store."""
    for offset in range(0, max(1, file.size), FRAME_BYTES):
        yield Piece(file, offset, min(FRAME_BYTES, file.size - offset))
