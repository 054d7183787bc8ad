"""Many small objects of a day of the catalog in one: who lists a past day reads this instead of each of them. Pure.

It is a copy and decides nothing. A part counts only while the object it was copied from is there unchanged, so that
late, changed and deleted entries are seen whatever is in here, and it may be deleted at any time.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime

import msgspec
import zstandard

from raykeeper.layout.bounded import decompressed
from raykeeper.layout.keys import catalog_day_prefix
from raykeeper.layout.records import Record

_NAME = re.compile(r"v1/catalog/(?P<day>\d{4}-\d\d-\d\d)/compacted-(?P<digest>[0-9a-f]{32})\.json\.zst")
_LEVEL = 9  # written once, read by every replica
_MAX_BYTES = 256 << 20  # ten times a day of a hundred thousand sessions


class CompactedPart(Record, frozen=True, kw_only=True, omit_defaults=True):
    """One object, and what the store said of it when it was copied."""

    key: str
    size: int
    modified: datetime
    body: msgspec.Raw
    """Its JSON, byte for byte."""


class DamagedCompaction(ValueError):
    """The object is not what was written."""


@dataclass(frozen=True, order=True)
class CompactedKey:
    """Named after what is in it: whoever compacts the same objects writes the same bytes under the same key."""

    day: date
    digest: str

    @property
    def key(self) -> str:
        return f"{catalog_day_prefix(self.day)}compacted-{self.digest}.json.zst"


def compacted_key(day: date, parts: Iterable[CompactedPart]) -> CompactedKey:
    facts = sorted(f"{part.key} {part.size} {part.modified.timestamp()}" for part in parts)
    return CompactedKey(day, hashlib.blake2b("\n".join(facts).encode(), digest_size=16).hexdigest())


def parse_compacted_key(key: str) -> CompactedKey | None:
    """The facts in the key; None for any other key."""
    found = _NAME.fullmatch(key)
    try:
        return CompactedKey(date.fromisoformat(found["day"]), found["digest"]) if found else None
    except ValueError:
        return None


def encode_compacted(parts: Iterable[CompactedPart]) -> bytes:
    in_order = sorted(parts, key=lambda part: part.key)
    return zstandard.ZstdCompressor(level=_LEVEL).compress(msgspec.json.encode(in_order))


def decode_compacted(data: bytes) -> tuple[CompactedPart, ...]:
    """Raises DamagedCompaction."""
    try:
        text = decompressed(data, _MAX_BYTES)
        return msgspec.json.decode(text, type=tuple[CompactedPart, ...])
    except (zstandard.ZstdError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise DamagedCompaction(str(exc)) from exc
