"""The time zone that a schedule is read in: the one it names, else that of the operator, both with their rules for the
days on which clocks change.
"""

from __future__ import annotations

import os
from datetime import UTC, tzinfo
from functools import cache
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

LOCALTIME: Final = Path("/etc/localtime")


def parse_zone(name: str | None) -> tzinfo:
    """The time zone of that name; the operator's own without one. Raises `ValueError` for what is none."""
    if name is None:
        return operators_zone(os.environ.get("TZ"))
    if name == "Local":
        raise ValueError("it is not a name that says where")
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError("use a name such as Europe/Berlin") from error


@cache
def operators_zone(variable: str | None, localtime: Path = LOCALTIME) -> tzinfo:
    """By the variable TZ, as Go reads it: a name or a file; empty is UTC, and without it there is /etc/localtime.

    Raises `ValueError` for a variable that names no zone: schedules would fire at another time than people expect.
    """
    name = variable.removeprefix(":") if variable is not None else str(localtime)
    if not name or (variable is None and not localtime.exists()):
        return UTC
    try:
        if not name.startswith("/"):
            return ZoneInfo(name)
        with Path(name).open("rb") as file:
            return ZoneInfo.from_file(file)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        cure = "name one here, such as Europe/Berlin"
        raise ValueError(f"the operator's own zone is not known (TZ={variable or ''}): {cure}") from error
