"""Days of the catalog are read as one object, and whatever came, changed or went since is seen all the same."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from raykeeper.history.commands.delete import Deletion
from raykeeper.history.store.catalog import Catalog
from raykeeper.layout.compacted import CompactedPart, compacted_key, decode_compacted, parse_compacted_key
from raykeeper.layout.keys import CATALOG_PREFIX, CatalogKey, SessionId, catalog_day_prefix
from support.clocks import ManualClock
from support.counting_stores import CountingStore, FullStore, ReadOnlyStore
from support.history_scene import STARTED_AT, local_store, put_session

SESSIONS = 20


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(now=STARTED_AT + timedelta(days=3))


def session(number: int) -> SessionId:
    return SessionId("team-a", "train", f"session_{number:05d}")


async def fill(folder: Path) -> None:
    store = local_store(folder)
    for number in range(SESSIONS):
        await put_session(store, session(number), started_at=STARTED_AT + timedelta(minutes=number))


def compactions(folder: Path) -> list[str]:
    keys = (path.relative_to(folder).as_posix() for path in (folder / CATALOG_PREFIX).rglob("compacted-*"))
    return sorted(key for key in keys if parse_compacted_key(key))


async def listed(folder: Path, clock: ManualClock) -> list[SessionId]:
    """As a replica lists them that knows nothing yet."""
    return [entry.id for entry in (await Catalog(CountingStore(folder), clock).page(100)).entries]


async def test_a_past_day_is_read_as_one_object_by_the_next_replica(folder: Path, clock: ManualClock) -> None:
    await fill(folder)
    first = await Catalog(CountingStore(folder), clock).page(100)
    [compaction] = compactions(folder)
    store = CountingStore(folder)
    assert await Catalog(store, clock).page(100) == first
    assert store.asked.opened == [compaction]


@pytest.mark.parametrize(("more", "is_compacted"), [(SESSIONS - 1, False), (SESSIONS, True)])
async def test_a_day_that_still_grows_is_compacted_again_once_it_has_doubled(
    more: int, *, is_compacted: bool, folder: Path
) -> None:
    await fill(folder)
    today = ManualClock(now=STARTED_AT + timedelta(hours=1))
    await listed(folder, today)
    first = compactions(folder)
    for number in range(100, 100 + more):
        await put_session(local_store(folder), session(number), started_at=STARTED_AT)
    assert len(await listed(folder, today)) == SESSIONS + more
    assert (len(first), compactions(folder) != first) == (1, is_compacted)


async def test_late_ends_and_late_sessions_are_seen_beside_the_compaction(folder: Path, clock: ManualClock) -> None:
    await fill(folder)
    await listed(folder, clock)
    store = CountingStore(folder)
    await put_session(store, session(0), started_at=STARTED_AT, ended_at=STARTED_AT + timedelta(days=2))
    await put_session(store, session(99), started_at=STARTED_AT + timedelta(hours=1))
    page = await Catalog(store, clock).page(100)
    assert page.entries[0].id == session(99)
    assert [entry.id for entry in page.entries if entry.has_ended] == [session(0)]
    assert len(store.asked.opened) == 4, "the compaction, the entry written anew, its end, and the new one"


async def test_a_deleted_session_is_gone_from_the_list_and_from_the_compaction(
    folder: Path, clock: ManualClock
) -> None:
    await fill(folder)
    await listed(folder, clock)
    deletion = Deletion(local_store(folder), clock)
    await deletion.delete(await deletion.find(session(3)))
    assert session(3) not in await listed(folder, clock)
    assert len(await listed(folder, clock)) == SESSIONS - 1
    [compaction] = compactions(folder)
    parts = decode_compacted(await local_store(folder).get(compaction))
    assert len(parts) == SESSIONS - 1
    assert not any("session_00003" in part.key for part in parts)


async def test_an_entry_that_was_removed_by_an_age_rule_is_not_listed_from_the_compaction(
    folder: Path, clock: ManualClock
) -> None:
    await fill(folder)
    await listed(folder, clock)
    await local_store(folder).delete(CatalogKey(STARTED_AT.date(), session(5), "start").key)
    assert session(5) not in await listed(folder, clock)


async def test_a_damaged_compaction_costs_time_alone(folder: Path, clock: ManualClock) -> None:
    await fill(folder)
    before = await listed(folder, clock)
    [compaction] = compactions(folder)
    (folder / compaction).write_bytes(b"not zstd")
    assert await listed(folder, clock) == before


async def test_replicas_that_compact_at_once_write_one_object(folder: Path, clock: ManualClock) -> None:
    await fill(folder)
    await asyncio.gather(*(listed(folder, clock) for _ in range(3)))
    assert len(compactions(folder)) == 1


async def test_a_day_that_grew_much_is_compacted_again_into_one(folder: Path, clock: ManualClock) -> None:
    await fill(folder)
    await listed(folder, clock)
    for number in range(100, 100 + SESSIONS):
        await put_session(local_store(folder), session(number), started_at=STARTED_AT)
    await listed(folder, clock)
    assert len(compactions(folder)) == 1
    store = CountingStore(folder)
    assert len((await Catalog(store, clock).page(100)).entries) == 2 * SESSIONS
    assert store.asked.opened == compactions(folder)


@pytest.mark.parametrize("kind", [ReadOnlyStore, FullStore])
async def test_a_store_that_takes_nothing_is_listed_all_the_same(
    kind: type[CountingStore], folder: Path, clock: ManualClock
) -> None:
    await fill(folder)
    page = await Catalog(kind(folder), clock).page(100)
    assert (len(page.entries), compactions(folder)) == (SESSIONS, [])


def test_the_key_of_a_compaction_follows_from_what_is_in_it() -> None:
    at = datetime(2026, 11, 15, tzinfo=UTC)
    parts = [CompactedPart(key=f"k{number}", size=number, modified=at, body=b"{}") for number in range(3)]  # type: ignore[arg-type]
    key = compacted_key(at.date(), parts)
    assert key == compacted_key(at.date(), reversed(parts))
    assert key != compacted_key(at.date(), parts[1:])
    assert parse_compacted_key(key.key) == key
    assert key.key.startswith(catalog_day_prefix(at.date()))
