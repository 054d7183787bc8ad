"""Lines under zstd: event segments and what was set aside. A line is kept byte for byte."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import zstandard

_PIECE_BYTES = 1 << 14  # compressed; about ten times that in text
LEVEL = 1  # 9.8:1 on Ray's events, as level 3 does, at half the CPU


class TornSegment(ValueError):
    """A segment ends in the middle or is not zstd: its good lines came first."""


def compress_lines(lines: Iterable[bytes]) -> bytes:
    """One zstd frame that holds each line and a newline after it."""
    compressor = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True).compressobj()
    parts = [compressor.compress(line + b"\n") for line in lines]
    return b"".join(parts) + compressor.flush()


def read_lines(data: bytes) -> Iterator[bytes]:
    """Each line without its newline, of any number of frames, with memory for one piece at a time.

    Raises TornSegment after the last whole line of data that is damaged.
    """
    rest = b""
    for piece in _decompressed(data):
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines
    if rest:
        raise TornSegment("the last line has no end")


def _decompressed(data: bytes) -> Iterator[bytes]:
    """The text of all frames in pieces. Frames are walked by hand: zstandard's reader takes a cut for the end."""
    decompressor = zstandard.ZstdDecompressor()
    left = memoryview(data)
    while left:
        frame = decompressor.decompressobj()
        while left and not frame.eof:
            piece, left = left[:_PIECE_BYTES], left[_PIECE_BYTES:]
            try:
                yield frame.decompress(piece)
            except zstandard.ZstdError as exc:
                raise TornSegment(str(exc)) from exc
            if frame.eof and frame.unused_data:
                left = memoryview(data)[len(data) - len(left) - len(frame.unused_data) :]
        if not frame.eof:
            raise TornSegment("the last frame has no end")
