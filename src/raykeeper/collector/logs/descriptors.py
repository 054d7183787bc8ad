"""Open log files: few, and surely the files they are meant to be.

A file that is open can still be read after its name is gone, and nobody else gets its inode meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from raykeeper.collector.logs.tracked import TrackedFile

OpenByPath = Callable[[TrackedFile], int]
"""A descriptor of what has the file's path now. Raises OSError."""


class AnotherFile(OSError):
    """The path leads to another file than the one that was listed."""


class OpenFiles:
    """Descriptors of tracked files, at most `limit` of them kept."""

    def __init__(self, limit: int, open_by_path: OpenByPath) -> None:
        self._limit = limit
        self._open_by_path = open_by_path
        self._descriptors: dict[TrackedFile, int] = {}

    def __len__(self) -> int:
        return len(self._descriptors)

    def __iter__(self) -> Iterator[TrackedFile]:
        return iter(tuple(self._descriptors))

    def kept(self, file: TrackedFile) -> int | None:
        """The descriptor that is kept for the file, if one is."""
        return self._descriptors.get(file)

    def keep(self, file: TrackedFile) -> None:
        """Hold the file open from now on, as long as there is room. Raises OSError."""
        if file not in self._descriptors and len(self._descriptors) < self._limit:
            self._descriptors[file] = self._opened(file)

    def hand_over(self, file: TrackedFile, successor: TrackedFile) -> None:
        """Keep what is open for one generation for the next one of the same inode."""
        if file in self._descriptors:
            self._descriptors[successor] = self._descriptors.pop(file)

    @property
    def is_crowded(self) -> bool:
        """Whether there is hardly room for more."""
        return len(self._descriptors) * 4 > self._limit * 3

    def close(self, file: TrackedFile) -> None:
        """Hold it no longer."""
        descriptor = self._descriptors.pop(file, None)
        if descriptor is not None:
            os.close(descriptor)

    def close_all(self) -> None:
        for file in self:
            self.close(file)

    @contextmanager
    def reading(self, file: TrackedFile) -> Iterator[int]:
        """The kept descriptor, or one for the time of the block. Raises OSError."""
        kept = self._descriptors.get(file)
        if kept is not None:
            yield kept
            return
        if file.is_deleted:
            raise FileNotFoundError(file.path)
        descriptor = self._opened(file)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _opened(self, file: TrackedFile) -> int:
        descriptor = self._open_by_path(file)
        if os.fstat(descriptor).st_ino != file.inode:
            os.close(descriptor)
            raise AnotherFile(file.path)
        return descriptor
