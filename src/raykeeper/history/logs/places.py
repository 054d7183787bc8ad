"""Where a path of Ray's is under `logs/`. Pure.

Ray keeps a session in `<its folder>/<session name>/logs`; the folder is not known here and does not matter.
"""

from __future__ import annotations

import posixpath

_RAY_FOLDER = "/tmp/ray"  # noqa: S108 - Ray's own, and only for what a message says


def logs_folder(session: str) -> str:
    """As Ray calls it in its messages."""
    return f"{_RAY_FOLDER}/{session}/logs"


def path_under_logs(filename: str, session: str) -> str | None:
    """The path relative to `logs/`, for a relative or absolute one; None for what is outside."""
    root = logs_folder(session)
    if filename.startswith("/"):
        inside = filename.partition(f"/{session}/logs/")[2]
        filename = f"{root}/{inside}" if inside else filename
    path = posixpath.normpath(posixpath.join(root, filename))
    return path.removeprefix(f"{root}/") if path.startswith(f"{root}/") else None


def absolute_path(filename: str, session: str) -> str:
    """As Ray's message names a file that is not there."""
    return posixpath.normpath(posixpath.join(logs_folder(session), filename))
