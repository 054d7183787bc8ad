"""When a session began, in UTC. Ray names sessions by the head container's local time and never says its zone there."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

_NAME = re.compile(r"session_(\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d_\d{6})_\d+")
_ZONE_STEP = timedelta(minutes=15)  # every zone of the world is a multiple of this away from UTC
_WIDEST_ZONE = timedelta(hours=14)
FIRST_FILE_WITHIN = timedelta(minutes=5)
"""Ray writes its first file a second after it named the session; a starved machine takes longer."""


def session_started_at(name: str, first_file: datetime | None, utc_offset: timedelta | None = None) -> datetime | None:
    """The start to the microsecond where the name can be trusted, else the time of the first file; None without both.

    `utc_offset` is what the head says about its zone. Without it the zone is the one by which the name's minutes and
    seconds fit the first file.
    """
    local = _local_time(name)
    if local is None:
        return first_file
    if utc_offset is not None:
        return local - utc_offset
    if first_file is None:
        return None
    offset = zone_offset(local, first_file)
    return first_file if offset is None else local - offset


def zone_offset(local: datetime, about: datetime) -> timedelta | None:
    """How far a clock was ahead of UTC that read `local` at about that time; None where no zone of the world fits.

    `local` is what the clock read, as if that were UTC.
    """
    offset = _ZONE_STEP * round((local - about) / _ZONE_STEP)
    fits = abs(offset) <= _WIDEST_ZONE and abs(about - (local - offset)) <= FIRST_FILE_WITHIN
    return offset if fits else None


def observe_first_file(session: Path) -> datetime | None:
    """The oldest change of anything in the session's folder or its `logs/`; None if nothing can be read there."""
    oldest = min((*_change_times(session), *_change_times(session / "logs")), default=None)
    return None if oldest is None else datetime.fromtimestamp(oldest, UTC)


def _change_times(folder: Path) -> Iterator[float]:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                yield entry.stat(follow_symlinks=False).st_mtime
    except OSError:
        return  # not there yet, or another uid's: what was read before counts


def _local_time(name: str) -> datetime | None:
    """The name's time as if it were UTC; None for a name that Ray did not make."""
    if not (found := _NAME.fullmatch(name)):
        return None
    try:
        return datetime.strptime(found[1], "%Y-%m-%d_%H-%M-%S_%f").replace(tzinfo=UTC)
    except ValueError:
        return None
