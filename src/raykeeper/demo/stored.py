"""What the store folder holds, by the names of its files."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from raykeeper.layout.keys import EventSegmentKey, SessionId, parse_sealed_key
from raykeeper.times import from_ns


def newest_event(store: Path, session: SessionId) -> datetime | None:
    """When the session's last events were sealed, in the precision of a datetime; None where there are none."""
    files = (store / EventSegmentKey.prefix(session)).rglob(f"*{EventSegmentKey.suffix}")
    keys = [parse_sealed_key(file.relative_to(store).as_posix()) for file in files]
    sealed = [key.sealed_ns for key in keys if key]
    return from_ns(max(sealed)) if sealed else None
