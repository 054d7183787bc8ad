"""Polled answers as objects: one JSON record under zstd. Pure."""

from __future__ import annotations

import codecs
import hashlib

import msgspec
import zstandard

from raykeeper.layout.bounded import decompressed, element_bound
from raykeeper.layout.names import to_segment
from raykeeper.layout.records import PolledAnswer, decode_record, encode_record

LEVEL = 3
MAX_SEGMENT_BYTES = 200  # a local folder takes names of 255 bytes, and writes through a longer, temporary one
_KEPT_CHARACTERS = 48  # of a longer path: enough for its endpoint; encoded they are at most three times as long
LIMIT_BYTES = 48 << 20
"""Uncompressed; collectors keep 32 MB of an answer."""
OBJECT_LIMIT_BYTES = 40 << 20
"""Compressed, if that can be done at all."""
ELEMENT_LIMIT = 2_000_000
"""Of an answer; the statistics of 1,500 nodes have 1.6 million. Decoded, they take 200 MB."""
TEXT_LIMIT_BYTES = 4 << 20
"""Kept of an answer that is no JSON; a text of Ray's has a few kilobytes."""
_PIECE_BYTES = 1 << 20


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
        text = decompressed(data, LIMIT_BYTES)
        if element_bound(text) > ELEMENT_LIMIT:
            raise DamagedAnswer(f"it may have more than {ELEMENT_LIMIT} elements")
        return decode_record(text, PolledAnswer)
    except (zstandard.ZstdError, msgspec.DecodeError, RecursionError) as exc:
        raise DamagedAnswer(str(exc)) from exc


def polled_body(body: bytes) -> msgspec.Raw:
    """An answer's body for its record: byte for byte if it is JSON, else the beginning of its text as a JSON string."""
    try:
        msgspec.json.decode(body, type=msgspec.Raw)
        _check_text(body)  # which the decoder does not: it passes over what is inside of strings
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # the last: nested too deeply for a reader
        return msgspec.Raw(msgspec.json.encode(body[:TEXT_LIMIT_BYTES].decode(errors="replace")))
    return msgspec.Raw(body)


def _check_text(text: bytes) -> None:
    """Raises UnicodeDecodeError. In pieces: all of it as text may take four times as much memory."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    for start in range(0, len(text), _PIECE_BYTES):
        decoder.decode(text[start : start + _PIECE_BYTES])
    decoder.decode(b"", final=True)
