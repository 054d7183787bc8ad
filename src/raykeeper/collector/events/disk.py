"""What happens to journals on disk. All of it blocks, and runs in the spool's one disk thread.

In the folder: `<ns>.open` is being appended to, `<ns>.part` is one large body on its way in, `<ns>.closed` waits to be
sealed. The name of a closed journal is the moment it was closed, from which the keys of its segments follow.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from raykeeper.collector.events.durable import is_own_file, make_folder, sync_folder
from raykeeper.collector.events.journal import HEADER_BYTES, BodyFlag, checksum_of, header_of
from raykeeper.collector.events.limits import MAX_JOURNAL_BYTES

_OPEN, _PART, _CLOSED = ".open", ".part", ".closed"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NAME = re.compile(r"[0-9]{1,19}")
_MAX_PARTS = 256  # of one writev; the kernel takes up to 1024


@dataclass(frozen=True)
class Batch:
    """One body in memory, in the pieces in which it came."""

    received_ns: int
    flags: BodyFlag
    parts: Sequence[bytes]
    size: int

    @property
    def record_bytes(self) -> int:
        return HEADER_BYTES + self.size

    def record(self) -> list[bytes]:
        """The bytes of its record, in pieces."""
        return [header_of(self.received_ns, self.flags, self.size, checksum_of(self.parts)), *self.parts]


@dataclass(frozen=True, order=True)
class ClosedJournal:
    """A journal that nobody appends to any more."""

    closed_ns: int
    path: Path
    size: int
    was_written_whole: bool = False
    """Whether this process wrote and acknowledged all `size` bytes; an earlier one may have been killed in between."""


class OpenJournal:
    """The journal that bodies are appended to."""

    def __init__(self, folder: Path, opened_ns: int) -> None:
        self.path = folder / f"{opened_ns}{_OPEN}"
        self.opened_ns = opened_ns
        self.size = 0
        self.is_broken = False
        """After a failed append nobody knows what the disk has beyond `size`: it takes no more."""
        self._descriptor = os.open(self.path, _NEW | os.O_APPEND, 0o600)
        sync_folder(folder)

    def append(self, batches: Sequence[Batch]) -> None:
        """Make the bodies durable, with one fsync for all. On OSError none of them counts as kept."""
        try:
            write_parts(self._descriptor, [part for batch in batches for part in batch.record()])
            os.fdatasync(self._descriptor)
        except OSError:
            self.is_broken = True
            os.ftruncate(self._descriptor, self.size)  # gives the space of a half-written body back
            raise
        self.size += sum(batch.record_bytes for batch in batches)

    def close(self, closed_ns: int) -> ClosedJournal:
        """Give it the name under which it is sealed. The caller syncs the folder. Raises OSError where somebody took
        it away.
        """
        try:
            if not os.path.samestat(os.fstat(self._descriptor), self.path.lstat()):
                raise FileNotFoundError(errno.ENOENT, "another file has its name", str(self.path))
            return _closed(self.path, closed_ns, self.size)
        finally:
            os.close(self._descriptor)


class LargeBody:
    """A body that grows in a file of its own, which becomes a journal of one record."""

    def __init__(self, folder: Path, received_ns: int) -> None:
        self._path = folder / f"{received_ns}{_PART}"
        self._received_ns = received_ns
        self._size = self._checksum = 0
        self._file: FileIO | None = None

    def write(self, parts: Sequence[bytes]) -> None:
        write_parts(self._opened().fileno(), parts)
        self._checksum = checksum_of(parts, self._checksum)
        self._size += sum(map(len, parts))

    def close(self, flags: BodyFlag, closed_ns: int) -> ClosedJournal:
        """Make it durable under its final name."""
        with self._opened() as file:
            os.pwrite(file.fileno(), header_of(self._received_ns, flags, self._size, self._checksum), 0)
            os.fsync(file.fileno())
        closed = _closed(self._path, closed_ns, HEADER_BYTES + self._size)
        sync_folder(self._path.parent)
        return closed

    def discard(self) -> None:
        if self._file is not None:
            self._file.close()
        self._path.unlink(missing_ok=True)

    def _opened(self) -> FileIO:
        if self._file is None:
            self._file = FileIO(os.open(self._path, _NEW, 0o600), "wb")
            self._file.seek(HEADER_BYTES)
        return self._file


def write_parts(descriptor: int, parts: Sequence[bytes]) -> None:
    """Write all parts, in as few calls as the kernel allows."""
    left = [memoryview(part) for part in parts if part]
    while left:
        written = os.writev(descriptor, left[:_MAX_PARTS])
        while left and written >= len(left[0]):
            written -= len(left.pop(0))
        if left:
            left[0] = left[0][written:]


def take_over(folder: Path, closed_ns: int) -> list[ClosedJournal]:
    """The journals that earlier lives left, closed and oldest first. What was not acknowledged is deleted.

    What is no regular file is none of ours, and stays where it is.
    """
    make_folder(folder)
    for part in _own_files(folder, _PART):
        part.unlink()
    for number, path in enumerate(sorted(_own_files(folder, _OPEN))):
        _closed(path, closed_ns + number, path.lstat().st_size)
    sync_folder(folder)
    found = [path for path in _own_files(folder, _CLOSED) if _NAME.fullmatch(path.stem)]
    return sorted(ClosedJournal(int(path.stem), path, path.lstat().st_size) for path in found)


def _own_files(folder: Path, ending: str) -> list[Path]:
    return [path for path in folder.glob(f"*{ending}") if is_own_file(path, MAX_JOURNAL_BYTES)]


def _closed(path: Path, closed_ns: int, size: int) -> ClosedJournal:
    final = path.with_name(f"{closed_ns}{_CLOSED}")
    path.rename(final)
    return ClosedJournal(closed_ns, final, size, was_written_whole=True)
