"""KubeRay's objects under keys of ours: what each reads as."""

from __future__ import annotations

import asyncio
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec
import zstandard

from raykeeper.history.store.kuberay.keys import KNOWN_PATHS
from raykeeper.layout.bounded import element_bound
from raykeeper.layout.packs import FILE_LIMIT_BYTES, Frame, Gap, PackIndex, encode_index
from raykeeper.layout.polled import LIMIT_BYTES, encode_polled, polled_body
from raykeeper.layout.records import PolledAnswer
from raykeeper.layout.segments import LEVEL, TEXT_LIMIT_BYTES
from raykeeper.storage.store import ObjectStat, ObjectStore

BLOCK_BYTES = 128 * 1024  # the most that a block of zstd may hold
FRAME_BYTES = 8 * BLOCK_BYTES
_FILLER_BYTES = 64 * 1024  # as much as readers of packs take from the end
_INDEX_BYTES = 8192  # of an index without frames: names of fields, one gap, zstd's own, trailer
MAX_LOG_BYTES = 32 << 30
"""Of a log file that is read: more frames have no room in an index. No log is so long, but a sparse file may be."""
_TOO_LARGE = f"the file has more than {MAX_LOG_BYTES >> 30} GiB"
_ENTRY_BYTES = 80  # of one frame in the index besides its names: six numbers of at most nine bytes, and zstd's bound
_MAGIC = b"\x28\xb5\x2f\xfd"
_DESCRIPTOR = b"\xa0"  # four bytes of content size, a single segment, neither checksum nor dictionary (RFC 8878)
_HEADER_BYTES = len(_MAGIC) + len(_DESCRIPTOR) + 4
_BLOCK_HEADER_BYTES = 3


def raw_frame(text: bytes) -> bytes:
    """A zstd frame that holds the text as it is."""
    starts = range(0, max(1, len(text)), BLOCK_BYTES)
    parts = [_MAGIC, _DESCRIPTOR, len(text).to_bytes(4, "little")]
    for start in starts:
        block = text[start : start + BLOCK_BYTES]
        parts += [(len(block) << 3 | (start == starts[-1])).to_bytes(_BLOCK_HEADER_BYTES, "little"), block]
    return b"".join(parts)


def raw_frame_size(length: int) -> int:
    """Bytes of the frame of so many bytes of text."""
    blocks = max(1, -(-length // BLOCK_BYTES))
    return _HEADER_BYTES + blocks * _BLOCK_HEADER_BYTES + length


_FULL_FRAME_BYTES = raw_frame_size(FRAME_BYTES)


@dataclass(frozen=True, slots=True)
class RawPack:
    """The pack of one file that nobody packed. Its size costs no work; its frames and index are made when read."""

    path: str
    generation: str
    whole_bytes: int
    """Of the file; of a very large one only the first part is in the pack, and the rest is a gap of it."""
    read_ns: int

    @property
    def file_bytes(self) -> int:
        """That are in the pack."""
        return min(self.whole_bytes, MAX_LOG_BYTES)

    @property
    def gaps(self) -> tuple[Gap, ...]:
        rest = min(self.whole_bytes, FILE_LIMIT_BYTES) - self.file_bytes
        return (Gap(self.path, self.generation, self.file_bytes, rest, _TOO_LARGE),) if rest else ()

    @property
    def frames(self) -> tuple[Frame, ...]:
        return tuple(self.touched(0, self.frames_end))

    @property
    def frames_end(self) -> int:
        """Where the last frame ends in the pack."""
        last = self._count - 1
        return last * _FULL_FRAME_BYTES + raw_frame_size(self.file_bytes - last * FRAME_BYTES)

    @property
    def size(self) -> int:
        """With room for the largest index that these frames may have."""
        names = len(self.path.encode()) + len(self.generation)
        return self.frames_end + _FILLER_BYTES + _INDEX_BYTES + self._count * (names + _ENTRY_BYTES)

    def ending(self) -> bytes:
        """What lies behind the last frame: the index, and before it bytes that mean nothing."""
        index = encode_index(PackIndex(self.frames, self.gaps))
        return bytes(self.size - self.frames_end - len(index)) + index

    def touched(self, start: int, end: int) -> Iterator[Frame]:
        """The frames that hold any of the pack's bytes [start, end)."""
        for number in range(start // _FULL_FRAME_BYTES, min(self._count, -(-end // _FULL_FRAME_BYTES))):
            yield self._frame(number)

    def _frame(self, number: int) -> Frame:
        offset = number * FRAME_BYTES
        length = min(FRAME_BYTES, self.file_bytes - offset)
        position, size = number * _FULL_FRAME_BYTES, raw_frame_size(length)
        return Frame(self.path, self.generation, offset, length, position, size, self.read_ns)

    @property
    def _count(self) -> int:
        """An empty file has an empty frame, which tells its name."""
        return max(1, -(-self.file_bytes // FRAME_BYTES))


_GZIP = 31  # zlib's word for gzip with any window
_TEXT_BYTES = 4 << 20  # inflated at a time, whatever a file claims to hold
ARRAY_LIMIT_BYTES = 128 << 20
"""Of text in an old JSON array, which is read as a whole; KubeRay's files have at most 100 MB."""
ARRAY_LIMIT_ELEMENTS = 8_000_000
"""Of such an array; Ray's events have one in 25 bytes. Each event costs an object while it is read."""
_FED_BYTES = 64 << 10  # to a decompressor at a time: it copies what is left of them at the end of each member
_MAX_MEMBERS = 100_000
"""Of one file of gzip; KubeRay writes one."""


class SegmentMaker:
    """Takes a file piece by piece, with memory for one piece and the segment."""

    def __init__(self, *, is_gzip: bool) -> None:
        self.damage = ""
        """Why the file could not be read to its end; empty if it could."""
        self._inflater = Inflater() if is_gzip else None
        self._compressor = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True).compressobj()
        self._parts: list[bytes] = []
        self._array: bytearray | None = None
        self._last = b""
        self._text_bytes = 0

    def feed(self, piece: bytes) -> None:
        """Take the next bytes of the file; after damage nothing more is taken."""
        if self.damage:
            return
        try:
            for text in self._inflater.inflate(piece) if self._inflater else (piece,):
                self._take(text)
                if self.damage:
                    return
        except zlib.error as exc:
            self.damage = f"not gzip: {exc}"

    def finish(self) -> bytes:
        """The segment."""
        if self._inflater and not self._inflater.is_at_end and not self.damage:
            self.damage = "the gzip stream has no end"
        if self._array is not None:
            self._take_array(self._array)
        elif not self.damage and self._last not in (b"", b"\n"):
            self._write(b"\n")
        if not self.damage:
            return b"".join([*self._parts, self._compressor.flush()])
        unended = b"".join([*self._parts, self._compressor.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)])
        return unended or zstandard.FRAME_HEADER

    def _take(self, text: bytes) -> None:
        self._text_bytes += len(text)
        if self._text_bytes > TEXT_LIMIT_BYTES:
            self.damage = f"more than {TEXT_LIMIT_BYTES} bytes of text"
            return
        if self._array is None and not self._last:
            text = text.lstrip()
            self._array = bytearray() if text.startswith(b"[") else None
        if self._array is None:
            self._write(text)
        elif len(self._array) + len(text) > ARRAY_LIMIT_BYTES:
            self.damage = f"an array of more than {ARRAY_LIMIT_BYTES} bytes"
        else:
            self._array += text

    def _take_array(self, text: bytearray) -> None:
        if element_bound(text) > ARRAY_LIMIT_ELEMENTS:
            self.damage = self.damage or f"an array of more than {ARRAY_LIMIT_ELEMENTS} elements"
            return
        try:
            for event in msgspec.json.decode(text, type=list[msgspec.Raw]):
                self._write(msgspec.json.format(event, indent=-1) + b"\n")
        except msgspec.DecodeError as exc:
            self.damage = self.damage or f"not a JSON array: {exc}"

    def _write(self, text: bytes) -> None:
        if text:
            self._parts.append(self._compressor.compress(text))
            self._last = text[-1:]


class Inflater:
    """Gzip of any number of members, one after the other."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_GZIP)
        self._members = 1

    @property
    def is_at_end(self) -> bool:
        """Whether the last member is whole."""
        return self._member.eof

    def inflate(self, piece: bytes) -> Iterator[bytes]:
        """The text in the next bytes, in pieces of bounded size. Raises zlib.error."""
        at, unread = 0, b""
        while unread or at < len(piece):
            if self._member.eof:
                self._begin_member()
            if not unread:
                unread = piece[at : at + _FED_BYTES]
                at += len(unread)
            yield self._member.decompress(unread, _TEXT_BYTES)
            unread = self._member.unused_data if self._member.eof else self._member.unconsumed_tail

    def _begin_member(self) -> None:
        self._members += 1
        if self._members > _MAX_MEMBERS:
            raise zlib.error(f"more than {_MAX_MEMBERS} members")
        self._member = zlib.decompressobj(_GZIP)


_PIECE_BYTES = 4 << 20  # of an event file read at a time


@dataclass(frozen=True)
class Adapted(ABC):
    """One object as our layout has it."""

    stat: ObjectStat
    """With our key. The size of events is an estimate of what they have as a segment."""

    @abstractmethod
    async def read(self, store: ObjectStore) -> bytes:
        """All of it. Raises ObjectMissing when KubeRay's object is gone."""

    async def read_range(self, store: ObjectStore, offset: int, length: int) -> bytes:
        return (await self.read(store))[offset : offset + length]


@dataclass(frozen=True)
class AdaptedRecord(Adapted):
    """A small record that follows from what KubeRay's listing shows."""

    data: bytes

    async def read(self, store: ObjectStore) -> bytes:  # noqa: ARG002 - nothing has to be read
        return self.data


@dataclass(frozen=True)
class AdaptedAnswer(Adapted):
    """An answer of the head's dashboard."""

    raw: ObjectStat
    path: str

    async def read(self, store: ObjectStore) -> bytes:
        answer = PolledAnswer(
            path=self.path,
            polled_at=self.raw.modified,
            status=200,
            body=polled_body(await store.get(self.raw.key, LIMIT_BYTES)),
            is_path_guessed=self.path not in KNOWN_PATHS,
        )
        return encode_polled(answer)


@dataclass(frozen=True)
class AdaptedEvents(Adapted):
    """An event file."""

    raw: ObjectStat
    is_gzip: bool

    async def read(self, store: ObjectStore) -> bytes:
        return (await self.convert(store))[0]

    async def convert(self, store: ObjectStore) -> tuple[bytes, str]:
        """The segment, and why the file could not be read to its end (empty if it could)."""
        maker = SegmentMaker(is_gzip=self.is_gzip)
        for offset in range(0, self.raw.size, _PIECE_BYTES):
            piece = await store.read_range(self.raw.key, offset, _PIECE_BYTES)
            await asyncio.to_thread(maker.feed, piece)
        return await asyncio.to_thread(maker.finish), maker.damage


@dataclass(frozen=True)
class AdaptedLog(Adapted):
    """A whole log file as a pack."""

    raw: ObjectStat
    pack: RawPack

    async def read(self, store: ObjectStore) -> bytes:
        return await self.read_range(store, 0, self.pack.size)

    async def read_range(self, store: ObjectStore, offset: int, length: int) -> bytes:
        """Assembled of the file's own bytes; what only touches the index reads none of them."""
        end, parts = min(offset + length, self.pack.size), list[bytes]()
        for frame in self.pack.touched(offset, end):
            text = await store.read_range(self.raw.key, frame.offset, frame.length) if frame.length else b""
            parts.append(raw_frame(text)[max(0, offset - frame.position) : end - frame.position])
        behind = self.pack.frames_end
        if end > behind:
            ending = await asyncio.to_thread(self.pack.ending)
            parts.append(ending[max(0, offset - behind) : end - behind])
        return b"".join(parts)
