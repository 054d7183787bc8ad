"""A journal: bodies as Ray sent them, one after the other, each with its length and a checksum. Pure.

A crash may leave the last record half written. That body was never acknowledged, so reading ends before it.
"""

from __future__ import annotations

import enum
import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_MAGIC = b"RKJ1"
_HEADER = struct.Struct("<4sBxxxQQI")  # magic, flags, received ns, length, checksum of all that and the body
HEADER_BYTES = _HEADER.size
_CHECKSUM_BYTES = 4


class BodyFlag(enum.IntFlag):
    """What must be known of a body to read it."""

    NONE = 0
    GZIP = 1
    DEFLATE = 2
    UNKNOWN_ENCODING = 4
    CUT = 8
    """Only its beginning was kept: it was longer than any batch of Ray may be."""


@dataclass(frozen=True)
class JournalRecord:
    """One body read back. The view is valid as long as the buffer it was read from."""

    received_ns: int
    flags: BodyFlag
    body: memoryview


def header_of(received_ns: int, flags: BodyFlag, length: int, body_checksum: int) -> bytes:
    """What stands before a body of this length and checksum."""
    facts = _HEADER.pack(_MAGIC, flags, received_ns, length, 0)[:-_CHECKSUM_BYTES]
    return facts + struct.pack("<I", zlib.crc32(facts, body_checksum))


def checksum_of(parts: Iterable[bytes], so_far: int = 0) -> int:
    """The checksum of a body that came in parts."""
    for part in parts:
        so_far = zlib.crc32(part, so_far)
    return so_far


def read_journal(data: memoryview) -> Iterator[JournalRecord]:
    """Every whole record in order; ends before the first that is torn or damaged."""
    position = 0
    while (record := _record_at(data, position)) is not None:
        yield record
        position += HEADER_BYTES + len(record.body)


def _record_at(data: memoryview, position: int) -> JournalRecord | None:
    header = data[position : position + HEADER_BYTES]
    if len(header) < HEADER_BYTES:
        return None
    magic, flags, received_ns, length, checksum = _HEADER.unpack(header)
    body = data[position + HEADER_BYTES : position + HEADER_BYTES + length]
    if magic != _MAGIC or len(body) < length:
        return None
    if zlib.crc32(header[:-_CHECKSUM_BYTES], zlib.crc32(body)) != checksum:
        return None
    return JournalRecord(received_ns, BodyFlag(flags), body)
