"""When a session began, in UTC. Ray names sessions by the head container's local time and never says its zone there."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

from raykeeper.collector.rayfolder import LOGS, ray_session
from raykeeper.times import from_ns

_NAME = re.compile(r"session_(\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d_\d{6})_\d+")
_ZONE_STEP = timedelta(minutes=15)  # every zone of the world is a multiple of this away from UTC
_WIDEST_ZONE = timedelta(hours=14)
_FIRST_YEAR, _LAST_YEAR = 1971, 2199
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
    oldest_ns = min((*_change_times_ns(session), *_change_times_ns(session, LOGS)), default=None)
    return from_ns(oldest_ns)


def _change_times_ns(session: Path, *below: str) -> list[int]:
    try:
        with ray_session(session, *below) as folder:
            return list(folder.change_times_ns())
    except OSError:
        return []  # not there yet, or another uid's: what was read before counts


def _local_time(name: str) -> datetime | None:
    """The name's time as if it were UTC; None for a name that Ray did not make."""
    if not (found := _NAME.fullmatch(name)):
        return None
    try:
        local = datetime.strptime(found[1], "%Y-%m-%d_%H-%M-%S_%f").replace(tzinfo=UTC)
    except ValueError:
        return None
    return local if is_possible(local) else None


def is_possible(moment: datetime) -> bool:
    """Whether Ray can have run then; what user code writes into a name or a log may be any year of the calendar."""
    return _FIRST_YEAR <= moment.year <= _LAST_YEAR
