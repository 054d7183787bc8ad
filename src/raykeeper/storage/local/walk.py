"""The objects of a folder in the order in which S3 lists them. Links are no objects."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from raykeeper.storage.local.beneath import opened_folder


@dataclass(frozen=True)
class Walk:
    """Keys under `root` that start with `prefix` and sort behind `after`; no other folders are opened."""

    root: Path
    prefix: str
    after: str
    hidden: str
    """The name of a folder of the root that has no keys."""

    def objects(self) -> Iterator[tuple[str, os.stat_result]]:
        folder, _, _ = self.prefix.rpartition("/")
        return self._below(f"{folder}/" if folder else "")

    def _below(self, path: str) -> Iterator[tuple[str, os.stat_result]]:
        for key, found in self._sorted(path):
            if found is None:
                yield from self._below(key)
            else:
                yield key, found

    def _sorted(self, path: str) -> list[tuple[str, os.stat_result | None]]:
        """What is wanted of a folder; folders have a slash and no facts: `a.b` is before `a/c`, as in keys."""
        try:
            with opened_folder(self.root, path) as folder, os.scandir(folder) as entries:
                found = [item for entry in entries if (item := self._wanted(path, entry))]
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(found, key=lambda item: item[0])

    def _wanted(self, path: str, entry: os.DirEntry[str]) -> tuple[str, os.stat_result | None] | None:
        key = path + entry.name
        if entry.is_dir(follow_symlinks=False):
            key += "/"
            # Of a folder's keys all, some or none start with the prefix, and likewise sort behind `after`.
            may_match = key.startswith(self.prefix) or self.prefix.startswith(key)
            is_ahead = key > self.after or self.after.startswith(key)
            return (key, None) if may_match and is_ahead and key != f"{self.hidden}/" else None
        if not (key.startswith(self.prefix) and key > self.after and entry.is_file(follow_symlinks=False)):
            return None
        try:
            return key, entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            return None  # deleted while we looked
