"""A whole log file seen as a log pack of ours, without reading it: where each byte would be follows from the size.

A zstd frame may hold its text uncompressed in blocks, so the frame around a piece of a file has a known size, and a
range of the pack is a range of the file with a few bytes between. At least 64 KB that no frame names lie before the
index: a reader that takes a pack's last bytes to find the index gets those, and nothing of the file is fetched.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from raykeeper.layout.packs import Frame, PackIndex, encode_index

BLOCK_BYTES = 128 * 1024  # the most that a block of zstd may hold
FRAME_BYTES = 8 * BLOCK_BYTES
_FILLER_BYTES = 64 * 1024  # as much as readers of packs take from the end
_INDEX_BYTES = 1024  # of an index without frames: names of fields, zstd's own, trailer
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
    file_bytes: int
    read_ns: int

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
        index = encode_index(PackIndex(self.frames))
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
