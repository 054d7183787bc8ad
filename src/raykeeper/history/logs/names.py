"""Names of log files: which ones a pattern means, as Python's `Path.glob` decides on the node, and which group each is
in. Pure.

A folder is there because a file below it is; empty ones are not known. Folders end in a slash.
"""

from __future__ import annotations

import fnmatch
import itertools
import posixpath
import re
from collections.abc import Iterable
from pathlib import PurePosixPath

_BY_WORD = (
    ("raylet.", "raylet"),
    ("gcs_server.", "gcs_server"),
    ("log_monitor", "internal"),
    ("monitor", "autoscaler"),
    ("agent.", "agent"),
    ("dashboard.", "dashboard"),
)


def grouped(names: Iterable[str]) -> dict[str, list[str]]:
    """Group to names, in the order they come."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(group_of(name), []).append(name)
    return groups


def group_of(name: str) -> str:
    """Where Ray's log page shows this file or folder."""
    if "worker" in name and name.endswith(".out"):
        return "worker_out"
    if "worker" in name and name.endswith(".err"):
        return "worker_err"
    if "core-worker" in name and name.endswith(".log"):
        return "core_worker"
    if "core-driver" in name and name.endswith(".log"):
        return "driver"
    return next((group for word, group in _BY_WORD if word in name), "internal")


_RAY_FOLDER = "/tmp/ray"  # noqa: S108 - Ray's own, and only for what a message says


def _logs_folder(session: str) -> str:
    """As Ray calls it in its messages."""
    return f"{_RAY_FOLDER}/{session}/logs"


def path_under_logs(filename: str, session: str) -> str | None:
    """The path relative to `logs/`, for a relative or absolute one; None for what is outside."""
    root = _logs_folder(session)
    if filename.startswith("/"):
        inside = filename.partition(f"/{session}/logs/")[2]
        filename = f"{root}/{inside}" if inside else filename
    path = posixpath.normpath(posixpath.join(root, filename))
    return path.removeprefix(f"{root}/") if path.startswith(f"{root}/") else None


def absolute_path(filename: str, session: str) -> str:
    """As Ray's message names a file that is not there."""
    return posixpath.normpath(posixpath.join(_logs_folder(session), filename))


PATTERN_LIMIT = 300
"""Characters of a pattern, as of what is searched for. A longer one is refused."""
_ANY_FOLDERS = "**"
_WILD = re.compile(r"[*?\[]")


class InvalidPattern(ValueError):
    """No name can match, because this is no pattern for names under `logs/`."""


def matching_names(paths: Iterable[str], pattern: str) -> list[str]:
    """Files and folders that the pattern matches, sorted; `./` is the folder itself. Raises InvalidPattern."""
    matchers = _parse(pattern)
    files = {tuple(path.split("/")) for path in paths}
    folders = {file[:depth] for file in files for depth in range(len(file))}
    names = [_folder_name(folder) for folder in folders if _matches(folder, matchers, is_folder=True)]
    if not pattern.endswith("/"):
        names += ["/".join(file) for file in files if _matches(file, matchers, is_folder=False)]
    return sorted(names)


def fixed_folder(pattern: str) -> str:
    """The folder that every match is in, with a slash behind it; empty for `logs/` itself."""
    *folders, _ = pattern.rstrip("/").split("/")
    fixed = itertools.takewhile(lambda part: not _WILD.search(part), folders)
    return "".join(f"{part}/" for part in fixed)


def _folder_name(folder: tuple[str, ...]) -> str:
    return "/".join(folder or (".",)) + "/"


def _parse(pattern: str) -> list[re.Pattern[str] | None]:
    """One matcher for each part of the pattern; None stands for any number of folders, and never follows another."""
    if len(pattern) > PATTERN_LIMIT:
        raise InvalidPattern(f"Invalid glob filter: it has more than {PATTERN_LIMIT} characters")
    path = PurePosixPath(pattern)
    if not path.parts or path.anchor or ".." in path.parts:
        raise InvalidPattern(f"Invalid glob filter: {pattern}. It must be a relative path and cannot contain '..'.")
    if any(_ANY_FOLDERS in part and part != _ANY_FOLDERS for part in path.parts):
        raise InvalidPattern("Invalid pattern: '**' can only be an entire path component")
    # `translate` makes expressions that take linear time, whatever a request writes into them.
    matchers = [None if part == _ANY_FOLDERS else re.compile(fnmatch.translate(part)) for part in path.parts]
    return [one for at, one in enumerate(matchers) if one or not at or matchers[at - 1]]


def _matches(names: tuple[str, ...], matchers: list[re.Pattern[str] | None], *, is_folder: bool) -> bool:
    """Walk the names with the set of all places in the pattern that may be reached."""
    places = _skipped({0}, matchers)
    for depth, name in enumerate(names):
        stands_for_folder = is_folder or depth < len(names) - 1
        places = _skipped(
            {
                place if matchers[place] is None else place + 1
                for place in places
                if place < len(matchers) and _takes(matchers[place], name, stands_for_folder)
            },
            matchers,
        )
    return len(matchers) in places


def _takes(matcher: re.Pattern[str] | None, name: str, is_folder: bool) -> bool:
    return is_folder if matcher is None else matcher.match(name) is not None


def _skipped(places: set[int], matchers: list[re.Pattern[str] | None]) -> set[int]:
    """The places, and the one behind each `**`, which may stand for no folder at all."""
    return places | {place + 1 for place in places if place < len(matchers) and matchers[place] is None}
