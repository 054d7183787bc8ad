"""An object store in a local folder: durable, whole objects, create-only between processes, listed as S3 lists.

Others may write into the folder, so no link in it is followed: a link is no object.

opendal's own folder store syncs nothing to disk and decides about "create only" before it writes (docs/decisions).
"""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import stat
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import BinaryIO, TypeVar

from raykeeper.storage.backends.backend import StoreSettings
from raykeeper.storage.errors import ObjectMissing, ObjectTooLarge, StoreRefused, StoreUnavailable
from raykeeper.storage.files import write_whole_file
from raykeeper.storage.local.beneath import opened_file, opened_folder, stat_file, sync
from raykeeper.storage.local.walk import Walk
from raykeeper.storage.store import (
    OBJECT_LIMIT_BYTES,
    Names,
    ObjectStat,
    ObjectStore,
    checked_key,
    checked_prefix,
)

T = TypeVar("T")
Naming = Callable[[str, int, str, int], None]
"""Gives a file of one folder a name in another; both folders are descriptors."""

INCOMING = ".incoming"
"""Where objects are written before they get their name; never listed. On the same file system, so that a link works."""
_STALE_SECONDS = 24 * 3600.0  # no write lasts that long: what is older was left by a crash
# What buckets and shares say that are mounted as folders, where they have no links.
_NO_LINKS = frozenset({errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP})
_NAME_BYTES = 255  # of a file or folder, on every usual file system
_LISTED_AT_ONCE = 1000
_COPIED_AT_ONCE = 1024 * 1024


class LocalStore(ObjectStore):
    """Objects as files of a folder."""

    def __init__(self, settings: StoreSettings) -> None:
        self._settings = settings
        self._folder = Path(settings.bucket)
        self._root = self._folder / settings.root
        self._has_swept = False

    def describe(self) -> str:
        return self._settings.describe()

    async def put(self, key: str, data: bytes) -> None:
        await self._write(key, lambda file: file.write(data), _rename)

    async def create(self, key: str, data: bytes) -> bool:
        try:
            await self._write(key, lambda file: file.write(data), _name_once)
        except FileExistsError:
            return False
        return True

    async def put_file(self, key: str, path: Path) -> None:
        def copy(file: BinaryIO) -> None:
            with path.open("rb") as source:
                shutil.copyfileobj(source, file, _COPIED_AT_ONCE)

        await self._write(key, copy, _rename)

    async def get(self, key: str, limit_bytes: int = OBJECT_LIMIT_BYTES) -> bytes:
        def read() -> bytes:
            with opened_file(self._root, key) as descriptor, os.fdopen(descriptor, "rb", closefd=False) as file:
                return file.read(min(limit_bytes, os.fstat(descriptor).st_size) + 1)

        data = await self._do(key, read)
        if len(data) > limit_bytes:
            raise ObjectTooLarge(self.describe(), key, limit_bytes)
        return data

    async def read_range(self, key: str, offset: int, length: int) -> bytes:
        def read() -> bytes:
            with opened_file(self._root, key) as descriptor:
                return os.pread(descriptor, length, offset)

        return await self._do(key, read)

    async def stat(self, key: str) -> ObjectStat:
        return await self._do(key, lambda: _object_stat(key, stat_file(self._root, key)))

    async def get_file(self, key: str, path: Path, limit_bytes: int | None = None) -> None:
        size = (await self.stat(key)).size
        if limit_bytes is not None and size > limit_bytes:
            raise ObjectTooLarge(self.describe(), key, limit_bytes)
        starts = range(0, size, _COPIED_AT_ONCE)
        await write_whole_file(path, (await self.read_range(key, start, _COPIED_AT_ONCE) for start in starts))

    async def list(self, prefix: str, *, after: str = "") -> AsyncIterator[ObjectStat]:
        if not _has_room_for(checked_prefix(prefix)):
            return
        hidden = "" if self._settings.root else INCOMING
        found = Walk(self._root, prefix, after, hidden).objects()
        while batch := await self._guarded(prefix, lambda: list(islice(found, _LISTED_AT_ONCE))):
            for key, facts in batch:
                yield _object_stat(key, facts)

    async def list_folders(self, prefix: str) -> Names:
        if not _has_room_for(checked_prefix(prefix)):
            return []
        return await self._guarded(prefix, lambda: self._folders(prefix))

    async def delete(self, key: str) -> None:
        if _has_room_for(checked_key(key)):
            await self._do(key, lambda: self._unlink(key))

    async def _write(self, key: str, write: Callable[[BinaryIO], object], name: Naming) -> None:
        if not _has_room_for(checked_key(key)):
            cure = "use shorter names, or a bucket"
            cause = f"names of files have at most {_NAME_BYTES} bytes"
            raise StoreRefused(self.describe(), key, cause, cure, is_name=True)
        await self._do(key, lambda: self._place(key, write, name))

    async def _do(self, key: str, action: Callable[[], T]) -> T:
        if not _has_room_for(checked_key(key)):
            raise ObjectMissing(self.describe(), key)
        return await self._guarded(key, action)

    async def _guarded(self, key: str, action: Callable[[], T]) -> T:
        """The result of file work off the loop, with the errors of a store."""
        try:
            return await asyncio.to_thread(action)
        except FileExistsError:
            raise
        except (FileNotFoundError, IsADirectoryError) as exc:
            raise ObjectMissing(self.describe(), key) from exc
        except (PermissionError, NotADirectoryError) as exc:
            cure = "the folder must be writable for this user, and no object may be named like a folder"
            raise StoreRefused(self.describe(), key, str(exc.strerror), cure) from exc
        except OSError as exc:
            raise StoreUnavailable(self.describe(), key, str(exc.strerror or exc)) from exc

    def _place(self, key: str, write: Callable[[BinaryIO], object], name: Naming) -> None:
        """Write, sync, then give it its name and sync that: after a crash the object is whole or not there."""
        path, _, last = key.rpartition("/")
        with self._unnamed_file() as (incoming, unnamed):
            descriptor = os.open(unnamed, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666, dir_fd=incoming)
            with os.fdopen(descriptor, "wb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            with opened_folder(self._root, path, makes_it=True) as folder:
                if _is_folder(last, folder):
                    raise NotADirectoryError(errno.ENOTDIR, "a folder has this name", key)
                name(unnamed, incoming, last, folder)
                sync(folder)

    @contextmanager
    def _unnamed_file(self) -> Iterator[tuple[int, str]]:
        """The folder of files on their way, and a name in it that nobody has."""
        unnamed = os.urandom(8).hex()
        (self._folder / INCOMING).mkdir(parents=True, exist_ok=True)
        with opened_folder(self._folder, INCOMING) as incoming:
            if not self._has_swept:
                self._has_swept = True
                _sweep(incoming)
            try:
                yield incoming, unnamed
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(unnamed, dir_fd=incoming)

    def _unlink(self, key: str) -> None:
        path, _, last = key.rpartition("/")
        with suppress(FileNotFoundError), opened_folder(self._root, path) as folder:
            os.unlink(last, dir_fd=folder)

    def _folders(self, prefix: str) -> Names:
        try:
            with opened_folder(self._root, prefix) as folder, os.scandir(folder) as entries:
                found = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(name for name in found if name != INCOMING)


def _has_room_for(key: str) -> bool:
    """Whether a file system can have these names; a bucket can have longer ones."""
    return all(len(os.fsencode(name)) <= _NAME_BYTES for name in key.split("/"))


def _object_stat(key: str, found: os.stat_result) -> ObjectStat:
    return ObjectStat(key, found.st_size, datetime.fromtimestamp(found.st_mtime, UTC))


def _is_folder(name: str, folder: int) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def _rename(unnamed: str, incoming: int, name: str, folder: int) -> None:
    os.replace(unnamed, name, src_dir_fd=incoming, dst_dir_fd=folder)


def _name_once(unnamed: str, incoming: int, name: str, folder: int) -> None:
    """Give a file its name; FileExistsError where that is taken, whichever process took it."""
    try:
        os.link(unnamed, name, src_dir_fd=incoming, dst_dir_fd=folder)
    except OSError as exc:
        if exc.errno not in _NO_LINKS:
            raise
        # Claimed first, so that one of several wins. A crash in between leaves an empty object.
        os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666, dir_fd=folder))
        _rename(unnamed, incoming, name, folder)


def _sweep(incoming: int) -> None:
    """Remove what crashed writers left."""
    oldest = time.time() - _STALE_SECONDS
    for name in os.listdir(incoming):
        try:
            if os.stat(name, dir_fd=incoming, follow_symlinks=False).st_mtime < oldest:
                os.unlink(name, dir_fd=incoming)
        except FileNotFoundError:
            continue  # another process swept it, or its write was done
