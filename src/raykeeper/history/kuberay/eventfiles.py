"""KubeRay's event files as segments of ours: lines under zstd, from plain lines, gzip, or a JSON array of old.

Guarantees: the same file gives the same bytes. A damaged file gives a damaged segment with the lines before the damage,
so that whoever reads it finds the gap.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import msgspec
import zstandard

from raykeeper.layout.segments import LEVEL

_GZIP = 31  # zlib's word for gzip with any window
_TEXT_BYTES = 4 << 20  # inflated at a time, whatever a file claims to hold
ARRAY_LIMIT_BYTES = 128 << 20
"""Of text in an old JSON array, which is read as a whole; KubeRay's files have at most 100 MB."""


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

    def feed(self, piece: bytes) -> None:
        """Take the next bytes of the file; after damage nothing more is taken."""
        if self.damage:
            return
        try:
            for text in self._inflater.inflate(piece) if self._inflater else (piece,):
                self._take(text)
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

    @property
    def is_at_end(self) -> bool:
        """Whether the last member is whole."""
        return self._member.eof

    def inflate(self, piece: bytes) -> Iterator[bytes]:
        """The text in the next bytes, in pieces of bounded size. Raises zlib.error."""
        while piece:
            if self._member.eof:
                self._member = zlib.decompressobj(_GZIP)
            yield self._member.decompress(piece, _TEXT_BYTES)
            piece = self._member.unused_data if self._member.eof else self._member.unconsumed_tail
