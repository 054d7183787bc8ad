"""An object store in a local folder: durable, whole objects, create-only between processes, listed as S3 lists.

opendal's own folder store syncs nothing to disk and decides about "create only" before it writes (docs/decisions).
"""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import BinaryIO, TypeVar

from raykeeper.storage.errors import ObjectMissing, StoreRefused, StoreUnavailable
from raykeeper.storage.files import write_whole_file
from raykeeper.storage.local.walk import walk
from raykeeper.storage.settings.storesettings import StoreSettings
from raykeeper.storage.store import Names, ObjectStat, ObjectStore, checked_key, checked_prefix

T = TypeVar("T")

INCOMING = ".incoming"
"""Where objects are written before they get their name; never listed. On the same file system, so that a link works."""
_STALE_SECONDS = 24 * 3600.0  # no write lasts that long: what is older was left by a crash
# What buckets and shares say that are mounted as folders, where they have neither links nor folders to sync.
_NO_LINKS = frozenset({errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP})
_NO_SYNC = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP})
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
        await self._write(key, lambda file: file.write(data), os.replace)

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

        await self._write(key, copy, os.replace)

    async def get(self, key: str) -> bytes:
        return await self._do(key, Path.read_bytes)

    async def read_range(self, key: str, offset: int, length: int) -> bytes:
        def read(path: Path) -> bytes:
            with path.open("rb") as file:
                return os.pread(file.fileno(), length, offset)

        return await self._do(key, read)

    async def stat(self, key: str) -> ObjectStat:
        return await self._do(key, lambda path: _stat(key, path))

    async def get_file(self, key: str, path: Path) -> None:
        size = (await self.stat(key)).size
        starts = range(0, size, _COPIED_AT_ONCE)
        await write_whole_file(path, (await self.read_range(key, start, _COPIED_AT_ONCE) for start in starts))

    async def list(self, prefix: str, *, after: str = "") -> AsyncIterator[ObjectStat]:
        if not _has_room_for(checked_prefix(prefix)):
            return
        found = walk(self._root, prefix, after, hidden=self._folder / INCOMING)
        while batch := await self._guarded(prefix, lambda: _some(found, self._root)):
            for stat in batch:
                if stat is not None:
                    yield stat

    async def list_folders(self, prefix: str) -> Names:
        if not _has_room_for(checked_prefix(prefix)):
            return []
        return await self._guarded(prefix, lambda: self._folders(self._root / prefix))

    async def delete(self, key: str) -> None:
        if _has_room_for(checked_key(key)):
            await self._do(key, lambda path: path.unlink(missing_ok=True))

    async def _write(self, key: str, write: Callable[[BinaryIO], object], name: Callable[[Path, Path], None]) -> None:
        if not _has_room_for(checked_key(key)):
            cure = "use shorter names, or a bucket"
            raise StoreRefused(self.describe(), key, f"names of files have at most {_NAME_BYTES} bytes", cure)
        await self._do(key, lambda path: self._place(path, write, name))

    async def _do(self, key: str, action: Callable[[Path], T]) -> T:
        path = self._root / checked_key(key)
        if not _has_room_for(key):
            raise ObjectMissing(self.describe(), key)
        return await self._guarded(key, lambda: action(path))

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

    def _place(self, path: Path, write: Callable[[BinaryIO], object], name: Callable[[Path, Path], None]) -> None:
        """Write, sync, then give it its name and sync that: after a crash the object is whole or not there."""
        with self._unnamed_file() as unnamed:
            with unnamed.open("wb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            _make_folder(path.parent)
            if path.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, "a folder has this name", str(path))
            name(unnamed, path)
        _sync_folder(path.parent)

    @contextmanager
    def _unnamed_file(self) -> Iterator[Path]:
        incoming = self._folder / INCOMING
        incoming.mkdir(parents=True, exist_ok=True)
        if not self._has_swept:
            self._has_swept = True
            _sweep(incoming)
        unnamed = incoming / os.urandom(8).hex()
        try:
            yield unnamed
        finally:
            unnamed.unlink(missing_ok=True)

    def _folders(self, folder: Path) -> Names:
        try:
            with os.scandir(folder) as entries:
                return sorted(entry.name for entry in entries if entry.is_dir() and entry.name != INCOMING)
        except (FileNotFoundError, NotADirectoryError):
            return []


def _has_room_for(key: str) -> bool:
    """Whether a file system can have these names; a bucket can have longer ones."""
    return all(len(os.fsencode(name)) <= _NAME_BYTES for name in key.split("/"))


def _stat(key: str, path: Path) -> ObjectStat:
    found = path.stat()
    if not path.is_file():
        raise FileNotFoundError(path)
    return ObjectStat(key, found.st_size, datetime.fromtimestamp(found.st_mtime, UTC))


def _some(keys: Iterator[str], root: Path) -> list[ObjectStat | None]:
    """The next few objects; None for each that was deleted while we looked."""
    return [_stat_if_there(key, root / key) for key in islice(keys, _LISTED_AT_ONCE)]


def _stat_if_there(key: str, path: Path) -> ObjectStat | None:
    try:
        return _stat(key, path)
    except FileNotFoundError:
        return None


def _make_folder(folder: Path) -> None:
    """Make a folder and those above it, each synced into its parent."""
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    try:
        folder.mkdir(exist_ok=True)
    except FileExistsError as exc:
        raise NotADirectoryError(errno.ENOTDIR, "an object has the name of this folder", str(folder)) from exc
    _sync_folder(folder.parent)


def _name_once(unnamed: Path, path: Path) -> None:
    """Give a file its name; FileExistsError where that is taken, whichever process took it."""
    try:
        os.link(unnamed, path)
    except OSError as exc:
        if exc.errno not in _NO_LINKS:
            raise
        # Claimed first, so that one of several wins. A crash in between leaves an empty object.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        unnamed.replace(path)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    except OSError as exc:
        if exc.errno not in _NO_SYNC:
            raise
    finally:
        os.close(handle)


def _sweep(incoming: Path) -> None:
    """Remove what crashed writers left."""
    oldest = time.time() - _STALE_SECONDS
    for file in incoming.iterdir():
        try:
            if file.stat().st_mtime < oldest:
                file.unlink()
        except FileNotFoundError:
            continue  # another process swept it, or its write was done
