"""The cache may be deleted at any time: queries bring back what the store has, and the rest is made anew."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from raykeeper.history.ingest.manifests import newest_manifest
from raykeeper.history.ingest.session import Session, TablesLost
from raykeeper.history.ingest.sessions import Sessions, SessionsSettings
from raykeeper.history.query.database import Database
from raykeeper.history.store.disk_cache import LocalCache
from raykeeper.storage.store import ObjectStore
from support.clocks import ManualClock
from support.conditions import eventually
from support.ingest_scene import HEAD, SESSION, finished_task, local_store, put_records, put_segment

COUNT = "SELECT count(*) AS n FROM tasks"


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    return local_store(tmp_path / "store")


@pytest.fixture
def cache_folder(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@asynccontextmanager
async def replica(store: ObjectStore, folder: Path, clock: ManualClock) -> AsyncIterator[tuple[Sessions, Database]]:
    sessions = Sessions(store, clock, SessionsSettings(folder, patience=timedelta(minutes=1)))
    database = Database(folder)
    try:
        yield sessions, database
    finally:
        await sessions.close()
        await database.close()


async def counted(database: Database, opened: Session) -> int:
    [row] = await database.query(COUNT, opened.tables)
    return int(row["n"])


def lose(folder: Path, name: str) -> None:
    """Delete every file of one object."""
    for path in folder.rglob(f"*{name}"):
        path.unlink()


async def test_tables_of_the_store_come_back_in_the_middle_of_reading(store: ObjectStore, cache_folder: Path) -> None:
    clock = ManualClock(now=datetime.now(UTC))
    await put_segment(store, 0, finished_task(0), HEAD)
    await put_records(store, clock.now(), is_ended=True)
    async with replica(store, cache_folder, clock) as (sessions, database):
        opened = await sessions.open(SESSION)
        await eventually(lambda: newest_manifest(store, SESSION))
        for _ in range(2):
            assert await counted(database, opened) == 1
            shutil.rmtree(cache_folder)
        assert await counted(database, opened) == 1


async def test_tables_of_no_store_are_made_anew(store: ObjectStore, cache_folder: Path) -> None:
    clock = ManualClock(now=datetime.now(UTC))
    await put_segment(store, 0, finished_task(0), HEAD)
    await put_records(store, clock.now(), is_ended=False)
    async with replica(store, cache_folder, clock) as (sessions, database):
        opened = await sessions.open(SESSION)
        assert await counted(database, opened) == 1
        assert await newest_manifest(store, SESSION) is None  # too little to be published
        shutil.rmtree(cache_folder)
        with pytest.raises(TablesLost):
            await counted(database, opened)
        await put_segment(store, 1, finished_task(1), HEAD)
        clock.advance(4)
        assert await counted(database, await sessions.open(SESSION)) == 2


async def test_only_what_is_gone_is_fetched_again(
    store: ObjectStore, cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = [f"v1/object-{number}" for number in range(3)]
    for key in keys:
        await store.put(key, key.encode())
    cache = LocalCache(cache_folder, 1 << 20)
    paths = await cache.hold(store, {key: len(key) for key in keys})
    assert cache.has(store, keys)
    lose(cache_folder, "object-1")
    assert not cache.has(store, keys)
    fetched: list[str] = []
    get_file = store.get_file

    async def noted(key: str, path: Path, limit_bytes: int | None = None) -> None:
        fetched.append(key)
        await get_file(key, path, limit_bytes)

    monkeypatch.setattr(store, "get_file", noted)
    await cache.restore(store, keys)
    assert fetched == ["v1/object-1"]
    assert [path.read_bytes() for path in paths] == [key.encode() for key in keys]
    cache.release(paths)
    assert not any(path.exists() for path in paths)
    cache.close()
