"""What the store folder holds, by the names of its files."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from raykeeper.layout.keys import EventSegmentKey, SessionId, parse_sealed_key

_NS_PER_MICROSECOND = 1_000


def newest_event(store: Path, session: SessionId) -> datetime | None:
    """When the session's last events were sealed, in the precision of a datetime; None where there are none."""
    files = (store / EventSegmentKey.prefix(session)).rglob(f"*{EventSegmentKey.suffix}")
    keys = [parse_sealed_key(file.relative_to(store).as_posix()) for file in files]
    sealed = [key.sealed_ns for key in keys if key]
    return to_datetime(max(sealed)) if sealed else None


def to_datetime(unix_ns: int) -> datetime:
    """Rounded down, so that nobody waits for a moment that never is."""
    seconds, rest = divmod(unix_ns, 1_000_000_000)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest // _NS_PER_MICROSECOND)
