"""Names as parts of keys: any text becomes one path segment, and comes back."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

MAX_SESSION_LENGTH = 128
"""Characters of a session's name; Ray's have 40. A name becomes a folder and part of a key."""
_SESSION = re.compile(rf"[A-Za-z0-9._-]{{1,{MAX_SESSION_LENGTH}}}")
_DOTS = {".": "%2E", "..": "%2E%2E"}
_PLAIN = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*", re.ASCII)
"""Nearly every name, and its own segment: a list of sessions parses a million of them."""


def to_segment(name: str) -> str:
    """One path segment for any non-empty name.

    `~` separates names in catalog keys and `.` and `..` mean folders to a local store, so these are encoded too.
    """
    if not name:
        raise ValueError("an empty name cannot be part of a key")
    if _PLAIN.fullmatch(name):
        return name
    return _DOTS.get(name) or quote(name, safe="").replace("~", "%7E")


def from_segment(segment: str) -> str:
    """The name that `to_segment` was given. Raises ValueError for what it never returns."""
    if _PLAIN.fullmatch(segment):
        return segment
    name = unquote(segment, errors="strict")
    if not name or to_segment(name) != segment:
        raise ValueError(f"{segment!r} is not a name of the layout")
    return name


def is_session_name(name: str) -> bool:
    """Whether a collector takes this for the name of a session: it can name a folder and part of a key."""
    return _SESSION.fullmatch(name) is not None and name not in _DOTS
