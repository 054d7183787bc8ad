"""A bounded folder of fetched objects, shared by the processes of one machine. Losing it loses nothing but time, also
while it is in use: `restore` brings back what is held, and folders are made again where they are gone.

What is in use is a hard link in a folder of this process's own: no other process can evict it from under a query.
Guarantees: a file is there whole or not at all, whenever a process dies.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
import shutil
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from raykeeper.errors import RaykeeperError, Unavailable
from raykeeper.storage.errors import ObjectTooLarge
from raykeeper.storage.store import ObjectStore

FETCHES_AT_ONCE = 16
_LOCK_POLL_SECONDS = 0.05
_EVICT_BYTES = 64 << 20
"""Fetched since the last look at the folder: another look at hundreds of files after each of them takes seconds."""
_FETCH_TRIES = 10  # a file may be evicted, or the folder deleted, between two steps


class DamagedFile(RaykeeperError):
    """The store has another object under this key than the one that was put there."""

    def __init__(self, key: str, size: str, expected: int) -> None:
        super().__init__(f"{key!r} has {size} bytes instead of {expected}")


class LocalCache:
    """Objects of one store by key; the longest unused go first once there are more than `limit_bytes`."""

    def __init__(self, folder: Path, limit_bytes: int) -> None:
        self._objects = folder / "objects"
        self._incoming = folder / "incoming"
        self._works = folder / "work"
        self._limit_bytes = limit_bytes
        (folder / "held").mkdir(parents=True, exist_ok=True)
        remove_abandoned(folder / "held")
        self._held, self._lock = own_folder(folder / "held")
        self._make_folders()
        self._holders: Counter[str] = Counter()
        self._fetching: dict[str, asyncio.Task[None]] = {}
        self._slots = asyncio.Semaphore(FETCHES_AT_ONCE)
        self._grown_bytes = 0

    def close(self) -> None:
        """Let go of everything that is held."""
        shutil.rmtree(self._held, ignore_errors=True)
        os.close(self._lock)

    async def hold(self, store: ObjectStore, sizes: Mapping[str, int]) -> list[Path]:
        """Local files of these objects, fetched where they are not there yet, until `release` is called.

        Raises DamagedFile for one that is not as large as it should be, and does not keep it.
        """
        if (wanted := sum(sizes.values())) > self._limit_bytes:
            raise Unavailable("cache", f"{wanted} bytes of tables have no room in the {self._limit_bytes} of the cache")
        held = await asyncio.gather(*(self._hold_one(store, key, size) for key, size in sizes.items()))
        try:
            for (key, size), path in zip(sizes.items(), held, strict=True):
                self._check(key, size, path)
        except DamagedFile:
            self.release(held)
            raise
        self._evict_if_grown()
        return held

    def _check(self, key: str, expected: int, path: Path) -> None:
        with suppress(FileNotFoundError):  # it is gone again, and brought back when it is read
            if (size := path.stat().st_size) != expected:
                (self._objects / path.name).unlink(missing_ok=True)
                raise DamagedFile(key, str(size), expected)

    async def restore(self, store: ObjectStore, keys: Iterable[str]) -> None:
        """Fetch those of these held objects whose files are gone."""
        lost = [key for key in keys if not self.held_path(store, key).exists()]
        await asyncio.gather(*(self._bring(store, key, self._limit_bytes) for key in lost))
        self._evict_if_grown()

    def has(self, store: ObjectStore, keys: Iterable[str]) -> bool:
        """Whether all these objects have files here."""
        names = [_file_name(store, key) for key in keys]
        return all((self._held / name).exists() or (self._objects / name).exists() for name in names)

    def held_path(self, store: ObjectStore, key: str) -> Path:
        """Where the object's file is while it is held."""
        return self._held / _file_name(store, key)

    def release(self, paths: Iterable[Path]) -> None:
        """These files are not needed any more."""
        for path in paths:
            self._holders[path.name] -= 1
            if self._holders[path.name] <= 0:
                del self._holders[path.name]
                path.unlink(missing_ok=True)
        self._evict()

    def adopt(self, store: ObjectStore, key: str, path: Path) -> None:
        """Take a local file for what the store has, or will have, under the key; hold it before anything goes."""
        self._make_folders()
        path.replace(self._objects / _file_name(store, key))

    def discard(self, store: ObjectStore, key: str) -> None:
        """Let go of an object that will not be asked for again; whoever holds its file keeps it."""
        (self._objects / _file_name(store, key)).unlink(missing_ok=True)

    @asynccontextmanager
    async def work_folder(self, name: str) -> AsyncIterator[Path]:
        """A folder that one process of the machine uses at a time; what was left in it by a dead one is still there.

        It is removed when the work ends well.
        """
        folder = self._works / name
        self._make_folders()
        while (lock := _try_lock(self._works / f"{name}.lock")) is None:  # noqa: ASYNC110 - see below
            await asyncio.sleep(_LOCK_POLL_SECONDS)  # another process's lock tells nobody when it is free
        try:
            folder.mkdir(parents=True, exist_ok=True)
            yield folder
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)  # it may be gone already
        finally:
            os.close(lock)

    async def _hold_one(self, store: ObjectStore, key: str, size: int) -> Path:
        name = _file_name(store, key)
        self._holders[name] += 1
        try:
            await self._bring(store, key, size)
        except ObjectTooLarge as exc:
            self.release([self._held / name])
            raise DamagedFile(key, "more", size) from exc
        except BaseException:
            self.release([self._held / name])
            raise
        return self._held / name

    async def _bring(self, store: ObjectStore, key: str, limit_bytes: int) -> None:
        """Have the object's file among those held."""
        name = _file_name(store, key)
        for _ in range(_FETCH_TRIES):
            if self._link(name):
                return
            await self._fetch(store, key, name, limit_bytes)
        raise Unavailable("cache", "its files vanish as soon as they are there", retry_after=1)

    def _make_folders(self) -> None:
        for path in (self._objects, self._incoming, self._works, self._held):
            path.mkdir(parents=True, exist_ok=True)

    def _link(self, name: str) -> bool:
        """Hold a file that is there; False when it is not."""
        held, source = self._held / name, self._objects / name
        try:
            os.utime(source, ns=(time.time_ns(),) * 2)  # used just now; the kernel's own stamp is 4 ms coarse
        except FileNotFoundError:
            return held.exists()
        try:
            os.link(source, held)
        except FileExistsError:
            return True
        except FileNotFoundError:
            return False
        return True

    async def _fetch(self, store: ObjectStore, key: str, name: str, limit_bytes: int) -> None:
        """Fetch an object once, however many wait for it."""
        if name not in self._fetching:
            task = asyncio.create_task(self._fetch_file(store, key, name, limit_bytes))
            self._fetching[name] = task
            task.add_done_callback(lambda _: self._fetching.pop(name, None))
        await asyncio.shield(self._fetching[name])

    async def _fetch_file(self, store: ObjectStore, key: str, name: str, limit_bytes: int) -> None:
        incoming = self._incoming / f"{name}-{os.urandom(6).hex()}"
        # Whoever wants the file looks again where somebody deletes folders between two of these steps.
        with suppress(FileNotFoundError, FileExistsError):
            self._make_folders()
            async with self._slots:
                await store.get_file(key, incoming, limit_bytes)
            with suppress(FileExistsError):
                os.link(incoming, self._held / name)  # before anything may evict it
            self._grown_bytes += incoming.stat().st_size
            incoming.replace(self._objects / name)
        self._evict_if_grown(_EVICT_BYTES)

    def _evict_if_grown(self, by_bytes: int = 1) -> None:
        if self._grown_bytes >= by_bytes:
            self._evict()

    def _evict(self) -> None:
        """Remove the longest unused files nobody holds, until the rest is within the limit."""
        self._grown_bytes = 0
        found = sorted(_files(self._objects), key=lambda item: item[1].st_mtime_ns)
        excess = sum(status.st_size for _, status in found) - self._limit_bytes
        for path, status in found:
            if excess <= 0:
                return
            if status.st_nlink == 1:
                path.unlink(missing_ok=True)
                excess -= status.st_size


def _file_name(store: ObjectStore, key: str) -> str:
    digest = hashlib.sha256(f"{store.describe()}\0{key}".encode()).hexdigest()[:24]
    return f"{digest}-{key.rsplit('/', 1)[-1]}"


def _files(folder: Path) -> list[tuple[Path, os.stat_result]]:
    found = []
    for entry in os.scandir(folder) if folder.exists() else ():
        try:
            found.append((Path(entry.path), entry.stat()))
        except FileNotFoundError:
            continue  # another process evicted it
    return found


def own_folder(parent: Path) -> tuple[Path, int]:
    """A new folder, and the lock that says that its owner lives."""
    name = os.urandom(8).hex()
    lock = _try_lock(parent / f"{name}.lock")
    assert lock is not None, "a name nobody else knows"  # noqa: S101 - narrows the type
    folder = parent / name
    folder.mkdir()
    return folder, lock


def remove_abandoned(parent: Path) -> None:
    """Remove the folders of processes that died: their locks are free."""
    for path in parent.glob("*.lock"):
        lock = _try_lock(path)
        if lock is not None:
            shutil.rmtree(path.with_suffix(""), ignore_errors=True)
            path.unlink(missing_ok=True)
            os.close(lock)


def _try_lock(path: Path) -> int | None:
    """A descriptor that holds the lock until it is closed or the process dies; None while another has it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
