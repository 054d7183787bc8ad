"""Ray's folder as the collector touches it: the one module that opens, lists or asks for anything below it.

The folder belongs to code that nobody vouches for: every name may become a link, a FIFO or another folder between two
calls. So each step down is one `openat` that follows no link, from a folder that is held open; only regular files of
the same file system are read, never waiting for a writer, and never more than somebody asked for. All of it blocks for
as long as the disk does, and is for threads.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from raykeeper.layout.names import is_session_name

MAX_NAMES = 50_000
"""In one folder; further ones are not looked at, which whoever lists is told."""
MAX_DEPTH = 32
"""Folders inside each other below `logs/`; Ray's are 3 deep. What lies deeper is not looked at, and told."""
MAX_OPEN_FOLDERS = 48
"""Of one session at a time: more than any path is deep."""
LAST_NS = 7_258_118_400_000_000_000
"""The year 2200. `touch` knows times that no calendar does: a later one counts as this."""
LOGS = "logs"
SESSION_PREFIX = "session_"
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MOUNT = re.compile(rb"^mnt_id:\s*(\d+)$", re.MULTILINE)


class NotOurs(OSError):
    """What lies there is none of Ray's files: a link, a FIFO, a device, another file system."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(errno.ELOOP, why, name)


@dataclass(frozen=True)
class Entry:
    """One name in a folder, as it was when the folder was listed."""

    name: str
    inode: int
    is_file: bool
    is_folder: bool


@dataclass(frozen=True)
class Listing:
    """The names in a folder."""

    entries: list[Entry]
    is_cut: bool
    """There are more than were wanted; which ones are listed is the file system's choice."""


@dataclass(frozen=True)
class ReadFile:
    """The beginning of a small file."""

    data: bytes
    mtime_ns: int


class Folder:
    """One folder, held open. A name in it is one step: none holds a slash."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._device = os.fstat(descriptor).st_dev

    def close(self) -> None:
        os.close(self.descriptor)

    @property
    def mtime_ns(self) -> int:
        return _time(os.fstat(self.descriptor))

    def folder(self, name: str) -> Folder:
        """A folder in this one. Raises OSError, also where a link is in its place."""
        child = Folder(os.open(name, _FOLDER, dir_fd=self.descriptor))
        if child._device != self._device:
            child.close()
            raise NotOurs(name, "it is on another file system")
        return child

    def status(self, name: str) -> os.stat_result:
        """Of what has the name now, and of a link itself. Raises OSError."""
        return os.stat(name, dir_fd=self.descriptor, follow_symlinks=False)

    def changed_ns(self, name: str) -> int:
        """When it was last changed; 0 where it is not there."""
        try:
            return _time(self.status(name))
        except OSError:
            return 0

    def open_file(self, name: str) -> int:
        """A descriptor of a regular file, for the caller to close. Raises OSError for anything else."""
        descriptor = os.open(name, _FILE, dir_fd=self.descriptor)
        try:
            self._check_file(name, descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def read(self, name: str, limit: int) -> ReadFile:
        """The first `limit` bytes of a regular file. Raises OSError."""
        descriptor = self.open_file(name)
        try:
            return ReadFile(os.pread(descriptor, limit, 0), _time(os.fstat(descriptor)))
        finally:
            os.close(descriptor)

    def read_end(self, name: str, limit: int) -> bytes:
        """The last `limit` bytes of a regular file. Raises OSError."""
        descriptor = self.open_file(name)
        try:
            return os.pread(descriptor, limit, max(0, os.fstat(descriptor).st_size - limit))
        finally:
            os.close(descriptor)

    def disk(self) -> tuple[int, int]:
        """Bytes that are used of its file system, and that may be, as `df` counts them. Raises OSError."""
        found = os.fstatvfs(self.descriptor)
        used = (found.f_blocks - found.f_bfree) * found.f_frsize
        return used, used + found.f_bavail * found.f_frsize  # what is kept for root is neither

    def link_target(self, name: str) -> str:
        """What a link says, which is all it is used for. Raises OSError."""
        return os.readlink(name, dir_fd=self.descriptor)

    def list(self, limit: int = MAX_NAMES) -> Listing:
        """What lies here, at most `limit` names of it. Raises OSError."""
        with os.scandir(self.descriptor) as found:
            entries = [
                Entry(e.name, e.inode(), e.is_file(follow_symlinks=False), e.is_dir(follow_symlinks=False))
                for e in islice(found, limit)
            ]
            return Listing(entries, is_cut=next(found, None) is not None)

    def change_times_ns(self) -> Iterator[int]:
        """When each of the names here was last changed; what goes meanwhile is left out."""
        return (changed for entry in self.list().entries if (changed := self.changed_ns(entry.name)))

    def _check_file(self, name: str, descriptor: int) -> None:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise NotOurs(name, "it is no regular file")
        # Overlays give files the number of the disk below: then the mount itself is asked for.
        if status.st_dev != self._device and _mount_of(descriptor) != _mount_of(self.descriptor):
            raise NotOurs(name, "it is on another file system")


class LogTree:
    """The folders below one session's `logs/`, opened as they are needed, and closed together.

    For one pass: a folder that is held open may have another name by now.
    """

    def __init__(self, session: Path) -> None:
        self._session = session
        self._open: OrderedDict[str, Folder] = OrderedDict()

    def folder(self, prefix: str) -> Folder:
        """By its path below `logs/`, which is empty or ends in a slash. Raises OSError."""
        if (known := self._open.get(prefix)) is not None:
            self._open.move_to_end(prefix)
            return known
        if prefix.count("/") > MAX_DEPTH:
            raise NotOurs(prefix, f"it is more than {MAX_DEPTH} folders deep")
        if prefix:
            parent, _, name = prefix[:-1].rpartition("/")
            opened = self.folder(f"{parent}/" if parent else "").folder(name)
        else:
            with ray_session(self._session) as session:
                opened = session.folder(LOGS)
        self._open[prefix] = opened
        if len(self._open) > MAX_OPEN_FOLDERS:
            self._open.popitem(last=False)[1].close()
        return opened

    def status(self, path: str) -> os.stat_result:
        """Of a file, by its path below `logs/`. Raises OSError."""
        prefix, name = _split(path)
        return self.folder(prefix).status(name)

    def open_file(self, path: str) -> int:
        """A descriptor for the caller to close. Raises OSError."""
        prefix, name = _split(path)
        return self.folder(prefix).open_file(name)

    def close(self) -> None:
        while self._open:
            self._open.popitem()[1].close()


@contextmanager
def ray_root(root: Path) -> Iterator[Folder]:
    """The folder itself, which whoever configured the collector named: its own path may hold links. Raises OSError."""
    folder = Folder(os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
    try:
        yield folder
    finally:
        folder.close()


@contextmanager
def ray_session(path: Path, *below: str) -> Iterator[Folder]:
    """A session's folder, or one in it, by its path in Ray's folder. Raises OSError."""
    with ray_root(path.parent) as root:
        folder = root.folder(path.name)
        try:
            for name in below:
                inner = folder.folder(name)
                folder.close()
                folder = inner
            yield folder
        finally:
            folder.close()


def is_session_folder(entry: Entry) -> bool:
    """Whether Ray may have made it: a folder whose name can be part of a key."""
    return entry.is_folder and entry.name.startswith(SESSION_PREFIX) and is_session_name(entry.name)


def _split(path: str) -> tuple[str, str]:
    prefix, slash, name = path.rpartition("/")
    return prefix + slash, name


def _time(status: os.stat_result) -> int:
    return min(max(status.st_mtime_ns, 0), LAST_NS)


def _mount_of(descriptor: int) -> bytes:
    """The kernel's number of the mount that a descriptor was opened in."""
    information = os.open(f"/proc/self/fdinfo/{descriptor}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        found = _MOUNT.search(os.read(information, 4096))
    finally:
        os.close(information)
    return found[1] if found else b""
