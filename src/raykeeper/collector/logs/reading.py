"""From files with news to packs, and from packs that the bucket has to positions. Runs in the reader's thread.

A range is checked after it was read: the file must still begin and continue as it did. So bytes of two generations
never mix, whenever a truncation happens.
"""

from __future__ import annotations

import hashlib
import os
from collections import deque
from dataclasses import dataclass, field

from raykeeper.clock import Clock
from raykeeper.collector.logs.losses import Losses
from raykeeper.collector.logs.times import unix_ns
from raykeeper.collector.logs.tracked import (
    SIGNATURE_BYTES,
    UNKNOWN_TIME,
    Group,
    SentTail,
    Signature,
    TrackedFile,
    Version,
)
from raykeeper.collector.logs.tracker import WHOLE_BYTES_MAX, LogTracker
from raykeeper.layout.packs import FILE_LIMIT_BYTES, INDEX_LIMIT_BYTES, Gap, PackWriter

REFUSED_SECONDS = 3600.0
"""Until files are tried again whose pack the store refused for good."""
FRAME_BYTES = 256 << 10
"""Of text. A reader of one task's lines fetches a frame or two."""
TEXT_BYTES_MAX = 64 << 20
"""Of text in one pack: a second's work where everything is slow."""
INDEX_BYTES_MAX = INDEX_LIMIT_BYTES // 4
"""Of a pack's frames in its index, and once more of its gaps. A reader believes no larger one, and whatever else is in
the pack would be lost with it."""


@dataclass
class Range:
    """Bytes of a file that are to be read."""

    file: TrackedFile
    start: int
    end: int


@dataclass(frozen=True)
class Piece:
    """What a pack says about a file, to be remembered once the bucket has it."""

    file: TrackedFile
    name: str
    start: int
    end: int
    signature: Signature
    mtime_ns: int
    """When the file was last written, as far as was known then."""
    version: Version | None = None
    digest: bytes = b""


@dataclass
class Parcel:
    """One pack on its way, and what is true once it has arrived."""

    group: Group
    data: bytes = b""
    """Empty where there was nothing to tell after all."""
    pieces: list[Piece] = field(default_factory=list)
    gaps: tuple[Gap, ...] = ()
    replaced: list[TrackedFile] = field(default_factory=list)
    """Files that turned out to be others than those which were sent."""
    text_bytes: int = 0


class LogReader:
    """Reads ranges into packs."""

    def __init__(self, tracker: LogTracker, losses: Losses, clock: Clock) -> None:
        self._tracker = tracker
        self._losses = losses
        self._clock = clock
        self._packs = 0

    def build(self, group: Group, ranges: deque[Range], pack_bytes: int, *, in_turn: bool) -> Parcel:
        """A pack of the next ranges, taken off the queue: one frame of each in turn, or one range after the other."""
        self._packs += 1
        draft = _Draft(Parcel(group, gaps=self._losses.gaps(group, INDEX_BYTES_MAX)))
        with self._tracker.one_pass():
            while ranges and draft.has_room(pack_bytes):
                wanted = ranges.popleft()
                if self._add_frame(draft, wanted):
                    (ranges.append if in_turn else ranges.appendleft)(wanted)
        # Their generation is known from now on, so that a crash before the answer repeats bytes and not files.
        new = dict.fromkeys(piece.file for piece in draft.parcel.pieces if not piece.file.told_name)
        self._tracker.positions.remember(new, is_urgent=False)
        return draft.finished()

    def commit(self, parcel: Parcel) -> None:
        """The bucket has the pack: go on behind it, also after a restart."""
        for piece in parcel.pieces:
            _advance(piece)
        known = dict.fromkeys(piece.file for piece in parcel.pieces if not piece.file.is_finished)
        self._tracker.positions.remember(known)
        self._losses.told(parcel.group, parcel.gaps)
        for file in known:
            self._tracker.note(file)
        with self._tracker.one_pass():
            for file in parcel.replaced:
                if not file.is_finished:
                    self._tracker.replaced(file)

    def postpone(self, parcel: Parcel) -> None:
        """The store refuses the pack for good: leave its files alone for a long while."""
        for piece in parcel.pieces:
            self._tracker.postpone(piece.file, REFUSED_SECONDS)
        self._losses.told(parcel.group, parcel.gaps)

    def _add_frame(self, draft: _Draft, wanted: Range) -> bool:
        """Read the next bytes of a range; True if some of it is left."""
        file = wanted.file
        file.served = self._packs
        try:
            if file.is_whole:
                return self._add_version(draft, file)
            return self._add_bytes(draft, wanted)
        except OSError as exc:
            self._tracker.failed(file, exc)
            return False

    def _add_version(self, draft: _Draft, file: TrackedFile) -> bool:
        with self._tracker.open_files.reading(file) as descriptor:
            data = os.pread(descriptor, WHOLE_BYTES_MAX, 0)
            status = os.fstat(descriptor)
        version = Version(min(status.st_size, FILE_LIMIT_BYTES), status.st_mtime_ns)
        if len(data) < min(version.size, WHOLE_BYTES_MAX) or not data:
            self._tracker.postpone(file)  # it is being written this moment
            return False
        digest = hashlib.blake2b(data, digest_size=16).digest()
        if digest != file.sent_digest or file.name != file.told_name:
            draft.writer.add(file.name, file.generation, 0, data, unix_ns(self._clock), is_whole=True)
            draft.parcel.text_bytes += len(data)
            if version.size > len(data):
                rest = version.size - len(data)
                draft.writer.add_gap(Gap(file.name, file.generation, len(data), rest, "too large for a rewritten file"))
        draft.parcel.pieces.append(Piece(file, file.name, 0, len(data), file.signature, file.mtime_ns, version, digest))
        return False

    def _add_bytes(self, draft: _Draft, wanted: Range) -> bool:
        file = wanted.file
        sent, signature = draft.cursors.get(file, (file.sent, file.signature))
        length = min(FRAME_BYTES, wanted.end - wanted.start)
        with self._tracker.open_files.reading(file) as descriptor:
            data = os.pread(descriptor, length, wanted.start)
            is_same = signature.matches(descriptor, sent)
        if not is_same or len(data) < length:
            draft.parcel.replaced.append(file)
            return False
        end = wanted.start + length
        draft.writer.add(file.name, file.generation, wanted.start, data, unix_ns(self._clock))
        draft.parcel.text_bytes += length
        after = signature.extended(data) if wanted.start == sent else Signature(signature.head, data[-SIGNATURE_BYTES:])
        draft.parcel.pieces.append(Piece(file, file.name, wanted.start, end, after, file.mtime_ns))
        if wanted.start == sent:
            draft.cursors[file] = (end, after)
        wanted.start = end
        return end < wanted.end


@dataclass
class _Draft:
    """A pack being filled."""

    parcel: Parcel
    writer: PackWriter = field(default_factory=PackWriter)
    cursors: dict[TrackedFile, tuple[int, Signature]] = field(default_factory=dict)
    """How far each file is in this pack, and how it is recognised from there."""

    def has_room(self, pack_bytes: int) -> bool:
        """Whether another frame may go into the pack."""
        is_large = self.writer.size >= pack_bytes or self.parcel.text_bytes >= TEXT_BYTES_MAX
        return not is_large and self.writer.index_bytes < INDEX_BYTES_MAX

    def finished(self) -> Parcel:
        for gap in self.parcel.gaps:
            self.writer.add_gap(gap)
        if self.writer:
            self.parcel.data = self.writer.to_bytes()
        return self.parcel


def _advance(piece: Piece) -> None:
    """Remember in the file what the bucket has."""
    file = piece.file
    file.told_name = piece.name
    if piece.version is not None:
        file.sent_version, file.sent_digest = piece.version, piece.digest
        file.size, file.mtime_ns = piece.version
        return
    if piece.mtime_ns != file.mtime_ns:
        file.mtime_ns = UNKNOWN_TIME  # perhaps it was truncated under way: the next look compares it with what was sent
    if piece.start <= file.sent:
        file.sent, file.signature = max(file.sent, piece.end), piece.signature
    else:
        file.tail_sent = SentTail(piece.start, piece.end, piece.signature.tail)
    if file.tail_sent is not None and file.sent >= file.tail_sent.start:
        file.sent, file.signature = file.tail_sent.end, Signature(file.signature.head, file.tail_sent.tail)
        file.tail_sent = None
