"""Log files put together again from the indexes of many packs. Pure: fetching frames is the caller's.

A file is known by its generation, which renames keep: what was `raylet.out` and is now `raylet.out.1` is one file whose
frames carry the name it had when they were read. A frame without bytes only tells a new name. Frames of one generation
may overlap, where a collector was stopped between a put and remembering it; overlapping bytes are the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from raykeeper.layout.packs import Frame, Gap, PackIndex, parse_index, read_frame

DELETED = "deleted"
"""Reason of a gap of no bytes, which tells that a file was deleted after all of it was stored."""


@dataclass
class StoredLog:
    """One generation of one log file, as the packs of its node tell it."""

    generation: str
    path: str = ""
    """The name it had last."""
    is_whole: bool = False
    """Rewritten in place: only the newest frame counts."""
    frames: list[tuple[str, Frame]] = field(default_factory=list)
    """Every frame with the key of its pack."""
    gaps: list[Gap] = field(default_factory=list)
    last_read_ns: int = 0
    is_deleted: bool = False
    """It is no longer on its node's disk."""

    @property
    def size(self) -> int:
        """Bytes up to the last one that is stored or known to be lost."""
        if self.is_whole:
            return max((frame.read_ns, frame.length) for _, frame in self.frames)[1]
        stored = (frame.offset + frame.length for _, frame in self.frames)
        return max([*stored, *(gap.offset + gap.length for gap in self.gaps)], default=0)


@dataclass(frozen=True)
class Slice:
    """The bytes [start, end) of a file are in this frame of this pack."""

    pack: str
    frame: Frame
    start: int
    end: int


@dataclass(frozen=True)
class Hole:
    """The bytes [start, end) of a file are not in the store. The reason is empty where nobody wrote it down."""

    start: int
    end: int
    reason: str = ""


def generation_name(seen_ns: int, inode: int) -> str:
    """What a collector calls a file that it first saw then, in nanoseconds since 1970."""
    return f"{seen_ns}-{inode}"


def first_seen_ns(generation: str) -> int:
    """When a generation was first seen; 0 for a name that no collector gives."""
    seen_ns, _, _ = generation.partition("-")
    return int(seen_ns) if seen_ns.isdecimal() else 0


def collect_logs(indexes: Iterable[tuple[str, PackIndex]]) -> dict[str, StoredLog]:
    """Every generation in the packs of one session and node, given by key and index in any order."""
    logs: dict[str, StoredLog] = {}
    for pack, index in indexes:
        for frame in index.frames:
            stored = logs.get(frame.generation)
            if stored is None:  # a file has thousands of frames, so none is made to be thrown away
                stored = logs[frame.generation] = StoredLog(frame.generation)
            stored.frames.append((pack, frame))
            stored.is_whole |= frame.is_whole
            if frame.read_ns >= stored.last_read_ns:
                stored.path, stored.last_read_ns = frame.path, frame.read_ns
        for gap in index.gaps:
            stored = logs.setdefault(gap.generation, StoredLog(gap.generation))
            stored.path = stored.path or gap.path
            stored.gaps.append(gap)
            stored.is_deleted |= gap.reason == DELETED
    return logs


def newest_by_path(logs: Iterable[StoredLog]) -> dict[str, StoredLog]:
    """For each name the file that has it: of several that had it last, one that is not deleted, begun the latest.

    Not the one read last: a file that was deleted may be read to its end after its successor was begun.
    """

    def claim(stored: StoredLog) -> tuple[bool, int]:
        return not stored.is_deleted, first_seen_ns(stored.generation)

    return {stored.path: stored for stored in sorted(logs, key=claim)}


def plan_read(stored: StoredLog, start: int, end: int) -> list[Slice | Hole]:
    """Where the bytes [start, end) are, in order and without overlap; never beyond the file's size."""
    if stored.is_whole:
        pack, frame = max(stored.frames, key=lambda item: item[1].read_ns)
        end = min(end, frame.length)
        return [Slice(pack, frame, start, end)] if start < end else []
    end, at, pieces = min(end, stored.size), start, list[Slice | Hole]()
    touching = [item for item in stored.frames if item[1].offset < end and item[1].offset + item[1].length > start]
    reasons = _Reasons(stored.gaps)
    for pack, frame in sorted(touching, key=lambda item: (item[1].offset, -item[1].length)):
        upto = min(frame.offset + frame.length, end)
        if upto <= at:
            continue
        if frame.offset > at:
            pieces.append(reasons.hole(at, min(frame.offset, end)))
            at = min(frame.offset, end)
        if at < upto:
            pieces.append(Slice(pack, frame, at, upto))
            at = upto
    return [*pieces, reasons.hole(at, end)] if at < end else pieces


class _Reasons:
    """Why ranges are missing. Asked in order, so that each gap is looked at once, however many holes there are."""

    def __init__(self, gaps: Iterable[Gap]) -> None:
        self._gaps = sorted(gaps, key=lambda gap: gap.offset)
        self._at = 0

    def hole(self, start: int, end: int) -> Hole:
        """The range as one hole, with the reason of the first gap that touches it."""
        while self._at < len(self._gaps) and _end(self._gaps[self._at]) <= start:
            self._at += 1
        gap = self._gaps[self._at] if self._at < len(self._gaps) else None
        return Hole(start, end, gap.reason if gap and gap.offset < end else "")


def _end(gap: Gap) -> int:
    return gap.offset + gap.length


def read_log(stored: StoredLog, start: int, end: int, fetch: Callable[[str, Frame], bytes]) -> tuple[bytes, list[Hole]]:
    """The stored bytes of [start, end) one after the other, and what is missing between them.

    `fetch` answers with the frame's bytes in its pack. Raises DamagedPack.
    """
    parts, holes = list[bytes](), list[Hole]()
    for piece in plan_read(stored, start, end):
        if isinstance(piece, Hole):
            holes.append(piece)
        else:
            text = read_frame(piece.frame, fetch(piece.pack, piece.frame))
            parts.append(text[piece.start - piece.frame.offset : piece.end - piece.frame.offset])
    return b"".join(parts), holes


def logs_of_packs(packs: Mapping[str, bytes]) -> tuple[dict[str, StoredLog], Callable[[str, Frame], bytes]]:
    """Every generation in whole packs that are at hand, and how their frames are fetched."""
    logs = collect_logs((key, parse_index(pack)) for key, pack in packs.items())
    return logs, lambda key, frame: packs[key][frame.position : frame.position + frame.size]
