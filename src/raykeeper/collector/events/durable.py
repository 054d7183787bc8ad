"""Files that are whole after a crash or not there at all."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def make_folder(folder: Path) -> None:
    """Make a folder and its parents, each of which a crash then leaves in place."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Make what was created, renamed or deleted in a folder survive a crash."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_file(path: Path, data: bytes, scratch: Path) -> None:
    """Write a whole file, durably; `scratch` is where it grows, on the same file system. Leaves nothing on failure."""
    try:
        write_new(scratch, data)
        make_folder(path.parent)
        scratch.rename(path)
        sync_folder(path.parent)
    finally:
        scratch.unlink(missing_ok=True)


def write_new(path: Path, data: bytes) -> None:
    """Write a file that nobody else has made, and sync it; what has its name goes, and a link's target stays."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def read_file(path: Path, limit: int) -> bytes:
    """All of a regular file of at most `limit` bytes. Raises OSError, also for a link or a FIFO."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > limit:
            raise OSError(errno.EFBIG, f"no regular file of at most {limit} bytes", str(path))
        return file.read(limit)


def is_own_file(path: Path, limit: int) -> bool:
    """Whether it is a regular file, by no link, of at most `limit` bytes."""
    try:
        status = path.lstat()
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size <= limit
