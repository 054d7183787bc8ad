"""What kind of log a path is: the user's output or Ray's own, appended to or rewritten. Pure."""

from __future__ import annotations

import re
from enum import IntEnum


class Kind(IntEnum):
    """In the order of importance at a node's end."""

    USER = 0
    """Written by tasks, actors, drivers, Serve, Train or Data, or about what became of users' jobs."""
    COMPONENT = 1
    """Written by Ray's own processes about themselves."""


_USER_FILE = re.compile(
    r"(worker-.*\.(out|err)|job-driver-.*\.log|runtime_env_setup-.*\.log|events/event_JOBS\.log)(\.\d+)?"
)
_USER_FOLDERS = ("serve/", "train/", "ray-data/")
_REWRITTEN = re.compile(r"(.*/)?debug_state(_gcs)?\.txt")
_SKIPPED_FOLDERS = frozenset({"runtime_resources"})
# Ray numbers what it finds in the way when it starts anew in a session: `raylet.out`, `raylet.1.out`. A number at the
# end is another thing, rotation.
_NUMBERED = re.compile(
    r"(?:raylet|gcs_server|monitor|log_monitor|dashboard|dashboard_agent|runtime_env_agent|ray_client_server)"
    r"(?:\.(?P<index>\d+))?\.(?:out|err|log)(?:\.\d+)?"
)


def kind_of(path: str) -> Kind:
    """By the path relative to `logs/`."""
    is_user = path.startswith(_USER_FOLDERS) or _USER_FILE.fullmatch(path)
    return Kind.USER if is_user else Kind.COMPONENT


def is_rewritten(path: str) -> bool:
    """Whether Ray is known to write the file anew each time."""
    return _REWRITTEN.fullmatch(path) is not None


def is_skipped(folder: str) -> bool:
    """Whether nothing below a folder of that name is a log."""
    return folder in _SKIPPED_FOLDERS


def start_index(path: str) -> int | None:
    """Which start of Ray in this directory wrote a component's log, from 0; None for other files."""
    found = _NUMBERED.fullmatch(path)
    return int(found["index"] or 0) if found else None
