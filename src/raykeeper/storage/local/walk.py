"""The keys of a folder in the order in which S3 lists them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path


def walk(root: Path, prefix: str, after: str, hidden: Path) -> Iterator[str]:
    """Keys under `root` that start with `prefix` and sort behind `after`; what is in `hidden` has no key.

    Folders that hold no such key are not opened.
    """
    folder, _, _ = prefix.rpartition("/")
    yield from _walk(root / folder, f"{folder}/" if folder else "", prefix, after, hidden)


def _walk(folder: Path, path: str, prefix: str, after: str, hidden: Path) -> Iterator[str]:
    for name in _sorted_names(folder, hidden):
        key = path + name
        if name.endswith("/"):
            # Of a folder's keys all, some or none start with the prefix, and likewise sort behind `after`.
            may_match = key.startswith(prefix) or prefix.startswith(key)
            if may_match and (key > after or after.startswith(key)):
                yield from _walk(folder / name, key, prefix, after, hidden)
        elif key.startswith(prefix) and key > after:
            yield key


def _sorted_names(folder: Path, hidden: Path) -> list[str]:
    """Names in a folder, those of folders with a slash: `a.b` comes before `a/c`, as the bytes of the keys do."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name + "/" * entry.is_dir() for entry in entries if Path(entry.path) != hidden)
    except (FileNotFoundError, NotADirectoryError):
        return []
