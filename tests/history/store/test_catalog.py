"""The list of sessions: order, paging, freshness, and what it costs at ten thousand."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bed.waiting import BUSY_FACTOR
from raykeeper.history.errors import InvalidQuery
from raykeeper.history.store.catalog import Catalog
from raykeeper.history.store.catalog_entries import Place, SessionFilter, parse_place
from raykeeper.layout.keys import CatalogKey, KubeFactsKey, SessionId
from raykeeper.layout.records import CatalogStart, encode_record
from raykeeper.storage.backends.backend import StoreSettings
from raykeeper.storage.backends.local import LOCAL
from raykeeper.storage.local.localstore import LocalStore
from raykeeper.storage.store import OBJECT_LIMIT_BYTES, ObjectStore
from support.clocks import ManualClock
from support.history_scene import SESSION, STARTED_AT, local_store, put_session


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    return local_store(tmp_path / "store")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def catalog(store: ObjectStore, clock: ManualClock) -> Catalog:
    return Catalog(store, clock)


def session(number: int) -> SessionId:
    return SessionId("team-a", f"train-{number % 7}", f"session_{number:05d}")


async def all_pages(catalog: Catalog, limit: int) -> list[SessionId]:
    ids, after = list[SessionId](), None
    while True:
        page = await catalog.page(limit, after)
        ids += [entry.id for entry in page.entries]
        if page.next_place is None:
            return ids
        after = parse_place(str(page.next_place))


@pytest.mark.parametrize("limit", [1, 4, 10, 100])
async def test_pages_show_every_session_once_newest_first(store: ObjectStore, catalog: Catalog, limit: int) -> None:
    for number in range(20):
        await put_session(store, session(number), started_at=STARTED_AT + timedelta(hours=5 * number))
    assert await all_pages(catalog, limit) == [session(number) for number in reversed(range(20))]


async def test_whoever_asks_while_the_store_is_listed_first_gets_the_list_too(
    store: ObjectStore, catalog: Catalog
) -> None:
    await put_session(store)
    pages = await asyncio.gather(*(catalog.page(10) for _ in range(3)))
    assert [len(page.entries) for page in pages] == [1, 1, 1]


async def test_sessions_that_started_at_the_same_moment_are_all_listed(store: ObjectStore, catalog: Catalog) -> None:
    for number in range(9):
        await put_session(store, session(number))
    assert sorted(await all_pages(catalog, 2)) == sorted(session(number) for number in range(9))


async def test_a_session_that_starts_while_somebody_pages_moves_nothing(
    store: ObjectStore, catalog: Catalog, clock: ManualClock
) -> None:
    for number in range(6):
        await put_session(store, session(number), started_at=STARTED_AT + timedelta(minutes=number))
    first = await catalog.page(3)
    await put_session(store, session(99), started_at=STARTED_AT + timedelta(hours=1))
    clock.advance(60)
    second = await catalog.page(3, first.next_place)
    assert [entry.id for entry in second.entries] == [session(2), session(1), session(0)]
    assert (await catalog.page(1)).entries[0].id == session(99)


async def test_an_end_is_seen_and_a_new_head_takes_it_back(
    store: ObjectStore, catalog: Catalog, clock: ManualClock
) -> None:
    await put_session(store)
    assert not (await catalog.page(1)).entries[0].has_ended
    await put_session(store, ended_at=STARTED_AT + timedelta(hours=1))
    clock.advance(10)
    assert (await catalog.page(1)).entries[0].has_ended
    await put_session(store, head_id="cc" * 28)
    clock.advance(10)
    assert not (await catalog.page(1)).entries[0].has_ended


async def test_an_unreadable_entry_is_counted_and_its_neighbours_are_listed(
    store: ObjectStore, catalog: Catalog, clock: ManualClock
) -> None:
    await put_session(store, session(1))
    broken = CatalogKey(STARTED_AT.date(), session(2), "start").key
    await store.put(broken, b'{"namespace": 7}')
    page = await catalog.page(10)
    assert ([entry.id for entry in page.entries], page.unreadable) == ([session(1)], 1)
    await put_session(store, session(2))
    clock.advance(10)
    assert ((await catalog.page(10)).unreadable, len((await catalog.page(10)).entries)) == (0, 2)


async def test_what_kubernetes_said_about_a_cluster_is_no_session(store: ObjectStore, catalog: Catalog) -> None:
    await put_session(store)
    await store.put(KubeFactsKey("team-a", "train", "4f1c", 1_794_000_000_000_000_000).key, b"")
    assert await catalog.is_known(SESSION)
    assert not await catalog.is_known(SessionId("team-a", "train", "kube"))


async def test_the_latest_session_is_the_one_that_started_last_not_the_last_name(
    store: ObjectStore, catalog: Catalog
) -> None:
    older = SessionId("team-a", "train", "session_2026-11-16_zone-ahead")
    await put_session(store, older, started_at=STARTED_AT - timedelta(hours=1))
    await put_session(store)
    assert await catalog.newest_of_cluster("team-a", "train") == SESSION
    assert await catalog.newest_of_cluster("team-a", "other") is None


async def test_the_newest_session_of_an_owner_is_found(store: ObjectStore, catalog: Catalog) -> None:
    for number in range(3):
        await put_session(
            store, session(number), started_at=STARTED_AT + timedelta(days=number), owner=("RayJob", "nightly")
        )
    found = await catalog.newest_of_owner("team-a", "rayjob", "nightly")
    assert found
    assert found.id == session(2)
    assert await catalog.newest_of_owner("team-b", "rayjob", "nightly") is None


async def put_many(store: ObjectStore) -> None:
    for number in range(6):
        owner = ("RayJob", "nightly") if number % 2 else ("", "")
        await put_session(store, session(number), started_at=STARTED_AT + timedelta(days=number), owner=owner)
    await put_session(store, SessionId("team-b", "serve", "session_x"), started_at=STARTED_AT)


@pytest.mark.parametrize(
    ("wanted", "numbers"),
    [
        (SessionFilter(namespace="team-a"), [5, 4, 3, 2, 1, 0]),
        (SessionFilter(cluster="train-3"), [3]),
        (SessionFilter(owner="nightly"), [5, 3, 1]),
        (SessionFilter(namespace="team-a", since=STARTED_AT + timedelta(days=4)), [5, 4]),
        (SessionFilter(namespace="team-a", until=STARTED_AT + timedelta(days=1)), [0]),
        (SessionFilter(text="NIGHT 00005"), [5]),
        (SessionFilter(text="train team-a 00002"), [2]),
        (SessionFilter(text="nothing-like-it"), []),
    ],
    ids=["namespace", "cluster", "owner", "since", "until", "words", "more-words", "no-match"],
)
async def test_the_list_is_narrowed(
    store: ObjectStore, catalog: Catalog, wanted: SessionFilter, numbers: list[int]
) -> None:
    await put_many(store)
    page = await catalog.page(10, wanted=wanted)
    assert [entry.id for entry in page.entries] == [session(number) for number in numbers]


@pytest.mark.parametrize("limit", [1, 2, 100])
async def test_the_oldest_come_first_if_that_is_wanted(store: ObjectStore, catalog: Catalog, limit: int) -> None:
    await put_many(store)
    found, after = list[SessionId](), None
    while True:
        page = await catalog.page(limit, after, SessionFilter(namespace="team-a"), "oldest")
        found += [entry.id for entry in page.entries]
        if (after := page.next_place) is None:
            break
    assert found == [session(number) for number in range(6)]


async def test_a_search_for_what_is_rare_ends_in_time_and_goes_on_where_it_ended(
    store: ObjectStore, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("raykeeper.history.store.catalog.LOOKED_AT", 3)
    await put_many(store)
    wanted = SessionFilter(cluster="train-0")
    first = await catalog.page(10, wanted=wanted)
    assert (first.entries, first.is_cut) == ((), True)
    second = await catalog.page(10, first.next_place, wanted)
    assert [entry.id for entry in second.entries] == [session(0)]


async def test_one_session_is_found_by_its_name(store: ObjectStore, catalog: Catalog) -> None:
    await put_many(store)
    found = await catalog.find(session(3))
    assert found
    assert (found.id, found.owner) == (session(3), "RayJob nightly")
    assert await catalog.find(SessionId("team-a", "train-3", "nope")) is None


@pytest.mark.parametrize(
    "text", ["", "x", "2026-11-15~a~b", "2026-11-15~a~b~c~d", "x~a~b~c", "2026-11-15~~b~c", "2026-11-15~a~b~%zz"]
)
def test_a_place_nobody_linked_to_is_refused(text: str) -> None:
    with pytest.raises(InvalidQuery):
        parse_place(text)


def test_a_place_survives_its_url() -> None:
    place = Place(datetime(2026, 11, 15, 20, 9, 58, 472817, tzinfo=UTC), SessionId("a~b", "c/d", "e f"))
    assert parse_place(str(place)) == place


async def test_ten_thousand_sessions_are_paged_quickly_by_their_catalog_objects_alone(tmp_path: Path) -> None:
    fill_catalog(tmp_path / "store", sessions=10_000, days=100)
    store = CatalogOnly(StoreSettings(LOCAL, str(tmp_path / "store")))
    catalog = Catalog(store, ManualClock())
    page = await catalog.page(50)
    cpu = time.process_time()
    for _ in range(20):
        page = await catalog.page(50, page.next_place)
    cpu = (time.process_time() - cpu) / 20
    assert len(page.entries) == 50
    assert cpu < 0.1 * BUSY_FACTOR


def fill_catalog(folder: Path, *, sessions: int, days: int) -> None:
    """Plain writes: syncing ten thousand files to disk is not what is measured."""
    for number in range(sessions):
        started_at = STARTED_AT - timedelta(days=number % days, seconds=number)
        id_ = session(number)
        start = CatalogStart(namespace=id_.namespace, cluster=id_.cluster, session=id_.session, started_at=started_at)
        path = folder / CatalogKey(started_at.date(), id_, "start").key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encode_record(start))


class CatalogOnly(LocalStore):
    """A store in which nothing but the catalog may be opened."""

    async def get(self, key: str, limit_bytes: int = OBJECT_LIMIT_BYTES) -> bytes:
        assert key.startswith("v1/catalog/")
        return await super().get(key, limit_bytes)
