"""A whole log file seen as a log pack of ours, without reading it: where each byte would be follows from the size.

A zstd frame may hold its text uncompressed in blocks, so the frame around a piece of a file has a known size, and a
range of the pack is a range of the file with a few bytes between. 64 KB that no frame names lie before the index: a
reader that takes a pack's last bytes to find the index gets those, and nothing of the file is fetched.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from raykeeper.layout.packs import Frame, PackIndex, encode_index

BLOCK_BYTES = 128 * 1024  # the most that a block of zstd may hold
FRAME_BYTES = 8 * BLOCK_BYTES
_FILLER = bytes(64 * 1024)  # as much as readers of packs take from the end
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


@dataclass(frozen=True)
class RawPack:
    """The pack of one file that nobody packed."""

    path: str
    generation: str
    file_bytes: int
    read_ns: int

    @cached_property
    def frames(self) -> tuple[Frame, ...]:
        step = raw_frame_size(FRAME_BYTES)
        pieces = enumerate(range(0, max(1, self.file_bytes), FRAME_BYTES))
        return tuple(
            Frame(
                self.path,
                self.generation,
                offset,
                length := min(FRAME_BYTES, self.file_bytes - offset),
                number * step,
                raw_frame_size(length),
                self.read_ns,
            )
            for number, offset in pieces
        )

    @cached_property
    def ending(self) -> bytes:
        """What lies behind the last frame."""
        return _FILLER + encode_index(PackIndex(self.frames))

    @property
    def frames_end(self) -> int:
        return self.frames[-1].position + self.frames[-1].size

    @cached_property
    def size(self) -> int:
        return self.frames_end + len(self.ending)

    def touched(self, start: int, end: int) -> Iterator[Frame]:
        """The frames that hold any of the pack's bytes [start, end)."""
        for frame in self.frames[start // raw_frame_size(FRAME_BYTES) :]:
            if frame.position >= end:
                return
            yield frame
