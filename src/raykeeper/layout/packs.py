"""Log packs: byte ranges of many files as zstd frames that can each be read alone, and an index at the end.

A pack is its frames, then the index (msgpack under zstd), then a trailer: the index's size and a magic word. A reader
fetches the trailer and index with one range read from the end, then any frame with one more.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Annotated

import msgspec
import zstandard

from raykeeper.layout.bounded import decompressed

MAGIC = b"RKPACK01"
_TRAILER = struct.Struct("<Q8s")
TRAILER_BYTES = _TRAILER.size
LEVEL = 3

# Bounds of what a reader believes. An index is data that anybody with the bucket's keys may have written.
INDEX_LIMIT_BYTES = 16 << 20
"""Uncompressed: some 150,000 frames."""
FRAME_LIMIT_BYTES = 16 << 20
"""Of one frame, as text or packed. Collectors write 256 KB, and 4 MB of a file that is rewritten in place."""
FILE_LIMIT_BYTES = 1 << 60
"""Of one log file, with what is missing from it."""
ENTRIES_LIMIT = 100_000
"""Frames and gaps of one pack; collectors close one before it has so many."""
PATH_LIMIT = 4096
"""Characters of a path, as on Linux."""
DEPTH_LIMIT = 100
"""Folders of a path inside each other; collectors go down 32."""
_ENTRY_BYTES = 160  # of an entry beside its path: five numbers of nine bytes, a generation, words of ours
_NAME_LIMIT = 255
_REASON_LIMIT = 4096

_Place = Annotated[int, msgspec.Meta(ge=0, le=FILE_LIMIT_BYTES)]
_FrameBytes = Annotated[int, msgspec.Meta(ge=0, le=FRAME_LIMIT_BYTES)]
_Path = Annotated[str, msgspec.Meta(max_length=PATH_LIMIT)]
_Generation = Annotated[str, msgspec.Meta(max_length=_NAME_LIMIT)]


class DamagedPack(ValueError):
    """The bytes are no pack, or a piece of one."""


class Frame(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One byte range of one file, and where in the pack it is."""

    path: _Path
    """Relative to the session's `logs/`."""
    generation: _Generation
    """Tells apart files that had the same path one after the other (rotation): first-seen time and inode."""
    offset: _Place
    """Of the first byte in that file."""
    length: _FrameBytes
    """Bytes of the file."""
    position: _Place
    """Of the frame in the pack."""
    size: _FrameBytes
    """Bytes of the frame."""
    read_ns: Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
    """When the bytes were read, in nanoseconds since 1970."""
    is_whole: bool = False
    """The file is rewritten in place: this frame is all of it and replaces earlier ones."""


class Gap(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Bytes that were given up, and why."""

    path: _Path
    generation: _Generation
    offset: _Place
    length: _Place
    reason: Annotated[str, msgspec.Meta(max_length=_REASON_LIMIT)]


class PackIndex(msgspec.Struct, frozen=True):
    """What a pack holds."""

    frames: tuple[Frame, ...]
    gaps: tuple[Gap, ...] = ()

    @property
    def entries(self) -> int:
        return len(self.frames) + len(self.gaps)


class PackWriter:
    """Collects byte ranges in memory until the pack is closed."""

    def __init__(self) -> None:
        self._compressor = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True)
        self._parts: list[bytes] = []
        self._frames: list[Frame] = []
        self._gaps: list[Gap] = []
        self.size = 0
        """Bytes so far, without the index."""
        self.index_bytes = 0
        """About as many as the index will have, uncompressed: readers take `INDEX_LIMIT_BYTES` of it."""

    def __bool__(self) -> bool:
        return bool(self._frames or self._gaps)

    def add(
        self, path: str, generation: str, offset: int, data: bytes, read_ns: int, *, is_whole: bool = False
    ) -> None:
        """Append one byte range as a frame of its own."""
        packed = self._compressor.compress(data)
        self._frames.append(Frame(path, generation, offset, len(data), self.size, len(packed), read_ns, is_whole))
        self._parts.append(packed)
        self.size += len(packed)
        self.index_bytes += index_bytes(path)

    def add_gap(self, gap: Gap) -> None:
        self._gaps.append(gap)
        self.index_bytes += index_bytes(gap.path)

    def to_bytes(self) -> bytes:
        """The finished pack."""
        return b"".join([*self._parts, encode_index(PackIndex(tuple(self._frames), tuple(self._gaps)))])


def index_bytes(path: str) -> int:
    """What a frame or a gap of that path takes of an index, at most."""
    return len(path.encode(errors="replace")) + _ENTRY_BYTES


def encode_index(index: PackIndex) -> bytes:
    """What ends a pack: the index and the trailer behind it."""
    packed = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True).compress(msgspec.msgpack.encode(index))
    return packed + _TRAILER.pack(len(packed), MAGIC)


def index_size(tail: bytes) -> int:
    """Bytes of index and trailer together, from the last bytes of a pack. Raises DamagedPack."""
    if len(tail) < TRAILER_BYTES:
        raise DamagedPack("too short for a pack")
    size, magic = _TRAILER.unpack(tail[-TRAILER_BYTES:])
    if magic != MAGIC:
        raise DamagedPack("no pack: its last bytes are not the magic word")
    if size > INDEX_LIMIT_BYTES:
        raise DamagedPack(f"its index has {size} bytes where at most {INDEX_LIMIT_BYTES} may be")
    return int(size) + TRAILER_BYTES


def parse_index(tail: bytes) -> PackIndex:
    """The index, from at least the last `index_size` bytes of a pack. Raises DamagedPack."""
    size = index_size(tail)
    if size > len(tail):
        raise DamagedPack(f"the index is {size} bytes, {len(tail)} are there")
    packed = tail[len(tail) - size : len(tail) - TRAILER_BYTES]
    text = _decompress(packed, INDEX_LIMIT_BYTES)
    try:
        if len(text) > SMALL_INDEX_BYTES:
            msgspec.msgpack.decode(text, type=CountedIndex).check()
        index = msgspec.msgpack.decode(text, type=PackIndex)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise DamagedPack(f"index: {exc}") from exc
    check_paths(index)
    return index


SMALL_INDEX_BYTES = 1 << 20
"""Has no number of entries that matters."""


class CountedIndex(msgspec.Struct):
    """An index of which nothing is built, to be counted first: an entry takes 400 bytes of memory, and 20 here."""

    frames: list[msgspec.Raw]
    gaps: list[msgspec.Raw] = []

    def check(self) -> int:
        """How many entries there are. Raises DamagedPack for more than any collector writes."""
        entries = len(self.frames) + len(self.gaps)
        if entries > ENTRIES_LIMIT:
            raise DamagedPack(f"index: {entries} entries where at most {ENTRIES_LIMIT} may be")
        return entries


def check_paths(index: PackIndex) -> None:
    """Raises DamagedPack for a path that no collector writes."""
    paths = {frame.path for frame in index.frames} | {gap.path for gap in index.gaps}
    if any(path.count("/") > DEPTH_LIMIT for path in paths):
        raise DamagedPack(f"index: a path of more than {DEPTH_LIMIT} folders")


def read_frame(frame: Frame, packed: bytes) -> bytes:
    """The bytes of the file, from the frame's bytes in the pack. Raises DamagedPack."""
    data = _decompress(packed, frame.length)
    if len(data) != frame.length:
        raise DamagedPack(f"frame at {frame.position} holds {len(data)} bytes instead of {frame.length}")
    return data


def select_frames(frames: Sequence[Frame], path: str, generation: str, start: int, end: int) -> list[Frame]:
    """The frames that hold any of the bytes [start, end) of one file, by offset."""
    wanted = (frame for frame in frames if (frame.path, frame.generation) == (path, generation))
    touched = [frame for frame in wanted if frame.offset < end and frame.offset + frame.length > start]
    return sorted(touched, key=lambda frame: (frame.offset, frame.read_ns))


def _decompress(packed: bytes, limit: int) -> bytes:
    try:
        return decompressed(packed, limit)
    except zstandard.ZstdError as exc:
        raise DamagedPack(str(exc)) from exc
