"""Files and folders below a root, opened without following a single link.

Whoever may write into the folder of a store could else have another program read or write files elsewhere. Every part
of a path is opened from the descriptor of the one before it. The root itself is the user's choice and may be a link.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LINK = (errno.ELOOP, errno.ENOTDIR)  # what a link is called that is not followed, alone or as a folder


@contextmanager
def opened_folder(root: Path, path: str, *, makes_it: bool = False) -> Iterator[int]:
    """The descriptor of a folder below the root; with `makes_it`, it and those above it are made, each synced.

    Raises FileNotFoundError where a part is a link, NotADirectoryError where it is a file, or to be made and a link.
    """
    if makes_it:
        _make_root(root)
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in filter(None, path.split("/")):
            below = _made(name, descriptor) if makes_it else _open(name, _FOLDER, descriptor)
            os.close(descriptor)
            descriptor = below
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def opened_file(root: Path, key: str) -> Iterator[int]:
    """The descriptor of a file below the root. Raises FileNotFoundError for a link, a pipe or a device, too."""
    path, _, name = key.rpartition("/")
    with opened_folder(root, path) as folder:
        descriptor = _open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, folder)
    try:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), key)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise FileNotFoundError(errno.ENOENT, "it is no plain file", key)
        yield descriptor
    finally:
        os.close(descriptor)


def stat_file(root: Path, key: str) -> os.stat_result:
    """Of a file below the root. Raises FileNotFoundError for anything else."""
    path, _, name = key.rpartition("/")
    with opened_folder(root, path) as folder:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if not stat.S_ISREG(found.st_mode):
        raise FileNotFoundError(errno.ENOENT, "it is no plain file", key)
    return found


def sync(descriptor: int) -> None:
    """Make what a folder's names are durable, where the file system can."""
    try:
        os.fsync(descriptor)
    except OSError as exc:
        if exc.errno not in _NO_SYNC:
            raise


_NO_SYNC = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP})  # of buckets and shares mounted as folders


def _open(name: str, flags: int, folder: int) -> int:
    try:
        return os.open(name, flags, dir_fd=folder)
    except OSError as exc:
        if exc.errno in _LINK and stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            raise FileNotFoundError(errno.ENOENT, "a link, which is not followed", name) from exc
        raise


def _made(name: str, folder: int) -> int:
    """The descriptor of a folder that is there, or is now."""
    try:
        os.mkdir(name, dir_fd=folder)
    except FileExistsError:
        try:
            return _open(name, _FOLDER, folder)
        except (FileNotFoundError, NotADirectoryError) as exc:
            raise NotADirectoryError(errno.ENOTDIR, "an object has the name of this folder", name) from exc
    sync(folder)
    return _open(name, _FOLDER, folder)


def _make_root(root: Path) -> None:
    """Make the folder of the store and those above it, each synced into its parent."""
    if root.is_dir():
        return
    _make_root(root.parent)
    root.mkdir(exist_ok=True)
    with opened_folder(root.parent, "") as parent:
        sync(parent)
