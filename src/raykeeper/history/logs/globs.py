"""Which names a pattern means, as Python's `Path.glob` decides on the node itself. Pure: names come from packs.

A folder is there because a file below it is; empty ones are not known. Folders end in a slash.
"""

from __future__ import annotations

import fnmatch
import itertools
import re
from collections.abc import Iterable
from pathlib import PurePosixPath

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
    """One matcher for each part of the pattern; None stands for any number of folders."""
    path = PurePosixPath(pattern)
    if not path.parts or path.anchor or ".." in path.parts:
        raise InvalidPattern(f"Invalid glob filter: {pattern}. It must be a relative path and cannot contain '..'.")
    if any(_ANY_FOLDERS in part and part != _ANY_FOLDERS for part in path.parts):
        raise InvalidPattern("Invalid pattern: '**' can only be an entire path component")
    # `translate` makes expressions that take linear time, whatever a request writes into them.
    return [None if part == _ANY_FOLDERS else re.compile(fnmatch.translate(part)) for part in path.parts]


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
    """The places, and those behind each `**`, which may stand for no folder at all."""
    reached = set(places)
    for place in sorted(places):
        while place < len(matchers) and matchers[place] is None:
            place += 1
            reached.add(place)
    return reached
