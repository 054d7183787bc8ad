"""The local cache stays within its limit, gives nothing away that is in use, and survives crashes."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from raykeeper.history.store.disk_cache import LocalCache
from raykeeper.storage.errors import ObjectMissing
from raykeeper.storage.store import ObjectStore
from support.ingest_scene import local_store

KB = 1024


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    return local_store(tmp_path / "store")


async def filled(store: ObjectStore, count: int) -> list[str]:
    keys = [f"v1/object-{number}" for number in range(count)]
    for key in keys:
        await store.put(key, key.encode().ljust(KB, b"."))
    return keys


def cached(folder: Path) -> set[str]:
    return {path.name.rsplit("-", 2)[-1] for path in (folder / "objects").iterdir()}


async def test_the_longest_unused_objects_go_first(store: ObjectStore, tmp_path: Path) -> None:
    keys = await filled(store, 5)
    cache = LocalCache(tmp_path / "cache", 3 * KB)
    for number in (0, 1, 2, 0, 3, 4):
        cache.release(await cache.hold(store, {keys[number]: KB}))
    assert cached(tmp_path / "cache") == {"0", "3", "4"}
    cache.close()


async def test_what_is_held_is_not_evicted_by_another_process(store: ObjectStore, tmp_path: Path) -> None:
    keys = await filled(store, 6)
    cache, other = LocalCache(tmp_path / "cache", 2 * KB), LocalCache(tmp_path / "cache", 2 * KB)
    [held] = await cache.hold(store, {keys[0]: KB})
    for key in keys[1:]:
        other.release(await other.hold(store, {key: KB}))
    assert held.read_bytes().startswith(b"v1/object-0")
    cache.release([held])
    assert not held.exists()
    cache.close()
    other.close()


async def test_an_object_that_many_want_is_fetched_once(
    store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [key] = await filled(store, 1)
    fetched: list[str] = []
    get_file = store.get_file

    async def counted(key: str, path: Path, limit_bytes: int | None = None) -> None:
        fetched.append(key)
        await asyncio.sleep(0.01)
        await get_file(key, path, limit_bytes)

    monkeypatch.setattr(store, "get_file", counted)
    cache = LocalCache(tmp_path / "cache", KB)
    paths = await asyncio.gather(*(cache.hold(store, {key: KB}) for _ in range(5)))
    assert (fetched, len({path for [path] in paths})) == ([key], 1)
    cache.close()


async def test_a_missing_object_is_missing_and_nothing_is_left_of_it(store: ObjectStore, tmp_path: Path) -> None:
    cache = LocalCache(tmp_path / "cache", KB)
    with pytest.raises(ObjectMissing):
        await cache.hold(store, {"v1/nothing": KB})
    assert not list((tmp_path / "cache" / "objects").iterdir())
    cache.close()


async def test_what_a_dead_process_held_is_let_go_of(tmp_path: Path) -> None:
    program = (
        "import os, pathlib, sys\n"
        "from raykeeper.history.store.disk_cache import LocalCache\n"
        "cache = LocalCache(pathlib.Path(sys.argv[1]), 1)\n"
        "os._exit(9)\n"
    )
    await asyncio.to_thread(subprocess.run, [sys.executable, "-c", program, str(tmp_path / "cache")])
    assert len(list((tmp_path / "cache" / "held").iterdir())) == 2
    cache = LocalCache(tmp_path / "cache", KB)
    assert len(list((tmp_path / "cache" / "held").iterdir())) == 2  # its own folder and lock
    cache.close()


async def test_one_at_a_time_works_in_a_folder_and_failures_leave_it(tmp_path: Path) -> None:
    cache = LocalCache(tmp_path / "cache", KB)

    async def fail() -> None:
        async with cache.work_folder("work") as folder:
            (folder / "half").touch()
            raise ValueError("crash")

    with pytest.raises(ValueError, match="crash"):
        await fail()
    async with cache.work_folder("work") as folder:
        assert (folder / "half").exists()
        waiting = asyncio.create_task(fail())
        done, _ = await asyncio.wait([waiting], timeout=0.2)
        assert not done
    with pytest.raises(ValueError, match="crash"):
        await waiting
    cache.close()
