"""What people say about a kind of failure: one object for each time that somebody said something. Pure data.

The last one counts, by its key. None is ever written over.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import ClassVar

from raykeeper.layout.keys import VERSION
from raykeeper.layout.names import from_segment, to_segment
from raykeeper.layout.records import Record

NOTES_PREFIX = f"{VERSION}/failure-notes/"
NOTE_CHARS = 1000
_KEY = re.compile(re.escape(NOTES_PREFIX) + r"(?P<fingerprint>[^/]+)/(?P<ns>\d{19})-(?P<nonce>[0-9a-f]{8})\.json")


class FailureNote(Record, frozen=True, kw_only=True, omit_defaults=True):
    """What was said last counts: a note without text takes the one before it back."""

    limit_bytes: ClassVar[int] = 16 * 1024
    at: datetime
    text: str = ""
    is_muted: bool = False
    """Lists leave the failure out, until somebody asks for those that are muted."""
    namespaces: tuple[str, ...] = ()
    """Where its author, who may not see all of them, saw the failure: only who may see each of these reads the note.
    Empty for a note to everybody."""


def notes_prefix(fingerprint: str) -> str:
    """Of all that was ever said about one kind of failure."""
    return f"{NOTES_PREFIX}{to_segment(fingerprint)}/"


def note_key(fingerprint: str, unix_ns: int, nonce: str) -> str:
    """`nonce` tells apart what two people say in the same moment."""
    return f"{notes_prefix(fingerprint)}{unix_ns:019d}-{nonce}.json"


def parse_note_key(key: str) -> str | None:
    """The fingerprint that a note is about; None for any other key."""
    found = _KEY.fullmatch(key)
    try:
        return from_segment(found["fingerprint"]) if found else None
    except ValueError:
        return None
