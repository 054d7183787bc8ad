"""Polled answers as objects: one JSON record under zstd. Pure."""

from __future__ import annotations

import hashlib

import msgspec
import zstandard

from raykeeper.layout.bounded import decompressed
from raykeeper.layout.names import to_segment
from raykeeper.layout.records import PolledAnswer, decode_record, encode_record

LEVEL = 3
MAX_SEGMENT_BYTES = 200  # a local folder takes names of 255 bytes, and writes through a longer, temporary one
_KEPT_CHARACTERS = 48  # of a longer path: enough for its endpoint; encoded they are at most three times as long
LIMIT_BYTES = 128 << 20  # uncompressed; collectors keep 32 MB of an answer, and escaping may double it


class DamagedAnswer(ValueError):
    """The bytes are no polled answer, or a piece of one."""


def polled_name(path: str) -> str:
    """The name that the answer to `path` is stored under: the path, or its beginning and a digest if it is too long."""
    if len(to_segment(path)) <= MAX_SEGMENT_BYTES:
        return path
    return f"{path[:_KEPT_CHARACTERS]}#{hashlib.blake2b(path.encode(), digest_size=16).hexdigest()}"


def encode_polled(answer: PolledAnswer) -> bytes:
    """The object's bytes."""
    return zstandard.ZstdCompressor(level=LEVEL, write_checksum=True).compress(encode_record(answer))


def decode_polled(data: bytes) -> PolledAnswer:
    """The answer as it was stored. Raises DamagedAnswer."""
    try:
        return decode_record(decompressed(data, LIMIT_BYTES), PolledAnswer)
    except (zstandard.ZstdError, msgspec.DecodeError, RecursionError) as exc:
        raise DamagedAnswer(str(exc)) from exc


def polled_body(body: bytes) -> msgspec.Raw:
    """An answer's body for its record: byte for byte if it is JSON, else its text as a JSON string."""
    try:
        msgspec.json.decode(body, type=msgspec.Raw)
        body.decode()  # the check above does not look inside strings
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # the last: nested too deeply for a reader
        return msgspec.Raw(msgspec.json.encode(body.decode(errors="replace")))
    return msgspec.Raw(body)
