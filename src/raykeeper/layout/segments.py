"""Lines under zstd: event segments and what was set aside. A line is kept byte for byte.

Whoever may write into the bucket decides what is read here, so everything has a bound: 32 KB of zstd may hold a GiB.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator

import zstandard

_PIECE_BYTES = 1 << 18
"""Of text that is decompressed at a time."""
LINE_LIMIT_BYTES = 16 << 20
"""A longer line is cut to this: it is no JSON any more, so readers count it as a bad one. DuckDB takes no longer."""
TEXT_LIMIT_BYTES = 256 << 20
"""Of one segment; what is beyond it is not read, and the segment is called torn. Collectors seal 64 MB at most, and
KubeRay's files have 100."""
OBJECT_LIMIT_BYTES = 128 << 20
"""Of one segment as an object; a larger one is not read."""
WINDOW_LIMIT_BYTES = 8 << 20
"""Of zstd's memory of what it wrote before; every reader must support so much (RFC 8878)."""
LEVEL = 1  # 9.8:1 on Ray's events, as level 3 does, at half the CPU

_MAGIC = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = range(0x184D2A50, 0x184D2A60)
_RLE_BLOCK = 1
_BLOCK_TEXT_BYTES = 128 << 10  # the most that one block of zstd holds

Bytes = bytes | mmap.mmap


class TornSegment(ValueError):
    """A segment ends in the middle, is not zstd or is far too large: its good lines came first."""


def compress_lines(lines: Iterable[bytes]) -> bytes:
    """One zstd frame that holds each line and a newline after it."""
    compressor = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True).compressobj()
    parts = [compressor.compress(line + b"\n") for line in lines]
    return b"".join(parts) + compressor.flush()


def read_lines(data: bytes) -> Iterator[bytes]:
    """Each line without its newline, of any number of frames, with memory for one piece and one line at a time.

    Raises TornSegment after the last whole line of data that is damaged, or has more than `TEXT_LIMIT_BYTES`.
    """
    rest = bytearray()
    for piece in _decompressed(data):
        *lines, last = piece.split(b"\n")
        for line in lines:
            yield _with(rest, line)
            rest = bytearray()
        rest += last[: LINE_LIMIT_BYTES - len(rest)]
    if rest:
        raise TornSegment("the last line has no end")


def is_whole(data: Bytes, start: int, end: int) -> bool:
    """Whether the bytes from `start` to `end` are whole zstd frames, by their headers alone (RFC 8878)."""
    return text_bound(data, start, end) is not None


def text_bound(data: Bytes, start: int, end: int) -> int | None:
    """The most text that these bytes can hold, by the headers of their frames; None if they are not whole frames."""
    at, blocks = start, 0
    while at < end:
        following, more = _frame_end(data, at, end)
        if following is None or following > end:
            return None
        at, blocks = following, blocks + more
    return blocks * _BLOCK_TEXT_BYTES


def _with(rest: bytearray, line: bytes) -> bytes:
    return bytes(rest + line[: LINE_LIMIT_BYTES - len(rest)]) if rest else line


def _decompressed(data: bytes) -> Iterator[bytes]:
    """The text of all frames in pieces. Frames are walked by hand: zstandard's reader takes a cut for the end."""
    left = TEXT_LIMIT_BYTES
    at = 0
    while at < len(data):
        end, _ = _frame_end(data, at, len(data))
        for piece in _text_of_frame(memoryview(data)[at:end]):
            left -= len(piece)
            if left < 0:
                raise TornSegment(f"it holds more than {TEXT_LIMIT_BYTES} bytes of text")
            yield piece
        if end is None or end > len(data):
            raise TornSegment("the last frame has no end")
        at = end


def _text_of_frame(frame: memoryview) -> Iterator[bytes]:
    reader = zstandard.ZstdDecompressor(max_window_size=WINDOW_LIMIT_BYTES).stream_reader(frame)
    try:
        while piece := reader.read(_PIECE_BYTES):
            yield piece
    except zstandard.ZstdError as exc:
        raise TornSegment(str(exc)) from exc


def _frame_end(data: Bytes, at: int, end: int) -> tuple[int | None, int]:
    """Where the frame that begins here ends, None if it does not, and its number of blocks."""
    if end - at < 8:
        return None, 0
    if int.from_bytes(data[at : at + 4], "little") in _SKIPPABLE:
        return at + 8 + int.from_bytes(data[at + 4 : at + 8], "little"), 0
    if data[at : at + 4] != _MAGIC:
        return None, 0
    descriptor = data[at + 4]
    is_single, has_checksum = bool(descriptor & 0x20), bool(descriptor & 0x04)
    content_size = (int(is_single), 2, 4, 8)[descriptor >> 6]
    at += 5 + (not is_single) + (0, 1, 2, 4)[descriptor & 3] + content_size
    blocks = 0
    while at + 3 <= end:
        header = int.from_bytes(data[at : at + 3], "little")
        is_last, kind, size = header & 1, header >> 1 & 3, header >> 3
        at += 3 + (1 if kind == _RLE_BLOCK else size)
        blocks += 1
        if is_last:
            return at + 4 * has_checksum, blocks
    return None, blocks
