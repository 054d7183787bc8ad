"""Tables and manifests in a store are believed as far as they can be checked, and made anew where they are damaged."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from raykeeper.errors import Unavailable
from raykeeper.history.ingest.follower import SessionFollower
from raykeeper.history.ingest.manifests import Manifest, find_published, newest_manifest
from raykeeper.history.ingest.sessions import SessionMissing, Sessions, SessionsSettings
from raykeeper.history.ingest.table_builder import GONE
from raykeeper.history.query.database import Database
from raykeeper.layout.keys import manifest_key, manifests_prefix
from raykeeper.storage.store import OBJECT_LIMIT_BYTES, ObjectStore
from support.clocks import ManualClock
from support.conditions import eventually
from support.ingest_scene import SESSION, finished_task, local_store, put_records, put_segment

SEGMENTS = 3
COUNT = "SELECT count(task_id) AS tasks FROM tasks"


@pytest.fixture
async def store(tmp_path: Path) -> ObjectStore:
    """A session that ended, of which nobody made tables yet."""
    store = local_store(tmp_path / "store")
    for number in range(SEGMENTS):
        await put_segment(store, number, finished_task(number))
    await put_records(store, datetime.now(UTC), is_ended=True)
    return store


@asynccontextmanager
async def a_server(
    store: ObjectStore, folder: Path, clock: ManualClock | None = None
) -> AsyncIterator[tuple[Sessions, Callable[[], Awaitable[int]]]]:
    """A history server, and how many tasks it answers with, asking again when it says so."""
    settings = SessionsSettings(folder, patience=timedelta(minutes=1))
    sessions = Sessions(store, clock or ManualClock(now=datetime.now(UTC)), settings)
    database = Database(folder)

    async def once() -> list[int]:
        try:
            opened = await sessions.open(SESSION)
            return [(await database.query(COUNT, opened.tables))[0]["tasks"]]
        except Unavailable:
            return []

    async def tasks() -> int:
        return (await eventually(once))[0]

    try:
        yield sessions, tasks
    finally:
        await sessions.close()
        await database.close()


async def publish(store: ObjectStore, folder: Path) -> Manifest:
    """As a server does that reads the session to its end."""
    async with a_server(store, folder) as (_, tasks):
        assert await tasks() == SEGMENTS
        await eventually(lambda: newest_manifest(store, SESSION))
    found = await newest_manifest(store, SESSION)
    assert found is not None
    return found.manifest


@pytest.mark.parametrize(
    "name", ["1.json", "².json", "999999999.json", "0000000001.json", "x.json", f"{chr(0x661) * 9}.json"]
)
async def test_objects_that_are_no_manifests_are_passed_over(name: str, store: ObjectStore, tmp_path: Path) -> None:
    manifest = await publish(store, tmp_path / "a")
    (tmp_path / "store" / manifests_prefix(SESSION) / name).write_bytes(msgspec.json.encode(manifest))
    async with asyncio.timeout(60), a_server(store, tmp_path / "b") as (_, tasks):
        assert await tasks() == SEGMENTS
    assert (await find_published(store, SESSION)).highest == 1


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"generation": 1}', b"\xff", b"[" * 100_000, None])
async def test_a_manifest_that_cannot_be_read_is_replaced(
    body: bytes | None, store: ObjectStore, tmp_path: Path
) -> None:
    manifest = await publish(store, tmp_path / "a")
    cut = msgspec.json.encode(manifest)[:-40] if body is None else body
    await store.put(manifest_key(SESSION, 1), cut)
    async with a_server(store, tmp_path / "b") as (_, tasks):
        assert await tasks() == SEGMENTS
        await eventually(lambda: newest_manifest(store, SESSION))
    found = await find_published(store, SESSION)
    assert found.newest is not None
    assert (found.newest.number, found.newest.manifest.tasks) == (2, SEGMENTS)


async def test_a_manifest_names_tables_of_its_own_session_alone(store: ObjectStore, tmp_path: Path) -> None:
    manifest = await publish(store, tmp_path / "a")
    assert manifest.facts is not None
    for number, planted in enumerate(
        [
            msgspec.structs.replace(manifest, as_of_ns=2**63 - 1),
            msgspec.structs.replace(manifest, cluster_end_ns=-(2**62)),
            msgspec.structs.replace(
                manifest, facts=msgspec.structs.replace(manifest.facts, polled=("v1/data/x/y/z/polled/p/1.json.zst",))
            ),
            msgspec.structs.replace(manifest, tables=_elsewhere(manifest, "v1/data/other/c/s/tables/tasks/x-00-00000")),
            msgspec.structs.replace(manifest, tables=_elsewhere(manifest, "../../etc/passwd")),
            msgspec.structs.replace(
                manifest, tables=_elsewhere(manifest, f"{SESSION.prefix}tables/tasks/../x-00-00000")
            ),
            msgspec.structs.replace(manifest, tables=_elsewhere(manifest, f"{SESSION.prefix}tables/tasks/x-99-00000")),
        ],
        start=2,
    ):
        await store.put(manifest_key(SESSION, number), msgspec.json.encode(planted))
        found = await find_published(store, SESSION)
        assert (found.highest, found.newest and found.newest.number) == (number, 1)
    async with a_server(store, tmp_path / "b") as (_, tasks):
        assert await tasks() == SEGMENTS


def _elsewhere(manifest: Manifest, key: str) -> dict[str, tuple[object, ...]]:
    [file] = manifest.tables["tasks"]
    return {**manifest.tables, "tasks": (msgspec.structs.replace(file, key=f"{key}.parquet"),)}


@pytest.mark.parametrize("damage", ["cut", "no Parquet", "other columns", "gone"])
async def test_tables_that_cannot_be_read_are_made_anew(damage: str, store: ObjectStore, tmp_path: Path) -> None:
    manifest = await publish(store, tmp_path / "a")
    [file] = manifest.tables["tasks"]
    whole = await store.get(file.key)
    if damage == "cut":
        await store.put(file.key, whole[:-10])
    elif damage == "no Parquet":
        await store.put(file.key, b"x" * len(whole))
    elif damage == "gone":
        await store.delete(file.key)
    else:
        [jobs] = manifest.tables["nodes"] or manifest.tables["task_list"]
        other = await store.get(jobs.key)
        planted = msgspec.structs.replace(file, size=len(other))
        await store.put(file.key, other)
        changed = msgspec.structs.replace(manifest, tables={**manifest.tables, "tasks": (planted,)})
        await store.put(manifest_key(SESSION, 1), msgspec.json.encode(changed))
    async with a_server(store, tmp_path / "b") as (_, tasks):
        assert await tasks() == SEGMENTS

        async def is_replaced() -> bool:
            return (await find_published(store, SESSION)).highest == 2

        await eventually(is_replaced)


async def test_damage_that_is_found_while_the_session_is_looked_at_is_replaced_unasked(
    store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = await publish(store, tmp_path / "a")
    [file] = manifest.tables["tasks"]
    await store.put(file.key, (await store.get(file.key))[:-10])
    found, list_segments, distrust = asyncio.Event(), SessionFollower._list_segments, SessionFollower._distrust

    async def list_after(follower: SessionFollower) -> None:
        await found.wait()
        await list_segments(follower)

    def note(follower: SessionFollower, manifest: Manifest, *, in_store: bool = False) -> bool:
        found.set()
        return distrust(follower, manifest, in_store=in_store)

    monkeypatch.setattr(SessionFollower, "_list_segments", list_after)
    monkeypatch.setattr(SessionFollower, "_distrust", note)
    database = Database(tmp_path / "b")
    async with a_server(store, tmp_path / "b") as (sessions, _):
        opened = await sessions.open(SESSION)
        with pytest.raises(Unavailable):
            await database.query(COUNT, opened.tables)

        async def is_replaced() -> bool:
            return (await find_published(store, SESSION)).highest == 2

        await eventually(is_replaced, seconds=30)
    await database.close()


async def test_a_replica_that_missed_a_segment_never_replaces_what_another_saw(
    store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two replicas one is told once that a listed segment is not there; the third sees what the other one made."""
    slow = local_store(tmp_path / "store")
    missed = 0

    async def find(key: str, limit_bytes: int = OBJECT_LIMIT_BYTES) -> bytes | None:
        nonlocal missed
        if "/events/" in key and not missed:
            missed += 1
            return None
        return await ObjectStore.find(slow, key, limit_bytes)

    monkeypatch.setattr(slow, "find", find)
    clock = ManualClock(now=datetime.now(UTC))
    async with a_server(slow, tmp_path / "slow", clock) as (sessions, tasks):
        assert await tasks() == SEGMENTS - 1
        opened = await sessions.open(SESSION)
        assert [gap.reason for gap in opened.gaps] == [GONE]
        assert not opened.is_final
        assert await newest_manifest(store, SESSION) is None, "what lacks a segment is not final"
        manifest = await publish(store, tmp_path / "quick")
        clock.advance(10)
        assert await tasks() == SEGMENTS, "it looked again"
    for file in manifest.files():
        assert (await store.stat(file.key)).size == file.size
    async with a_server(store, tmp_path / "third") as (sessions, tasks):
        assert await tasks() == SEGMENTS
        assert (await sessions.open(SESSION)).gaps == ()


async def test_a_deleted_session_is_gone_after_five_minutes(store: ObjectStore, tmp_path: Path) -> None:
    clock = ManualClock(now=datetime.now(UTC))
    async with a_server(store, tmp_path / "a", clock) as (sessions, tasks):
        assert await tasks() == SEGMENTS
        await eventually(lambda: newest_manifest(store, SESSION))
        for key in [item.key async for item in store.list(SESSION.prefix)]:
            await store.delete(key)
        clock.advance(301)

        async def is_gone() -> bool:
            try:
                await sessions.open(SESSION)
            except SessionMissing:
                return True
            return False

        await eventually(is_gone)
    assert [item.key async for item in store.list(SESSION.prefix)] == [], "nothing is written back"
