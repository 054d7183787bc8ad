"""Every store behaves alike: what collector and history rely on, on each real server and in a local folder."""

from __future__ import annotations

import asyncio
import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from raykeeper.clock import SystemClock
from raykeeper.storage.backends.backend import StoreSettings
from raykeeper.storage.backends.gcs import GCS
from raykeeper.storage.backends.local import LOCAL
from raykeeper.storage.errors import ObjectMissing, ObjectTooLarge
from raykeeper.storage.opening import open_store
from raykeeper.storage.remote.operators import PART_BYTES
from raykeeper.storage.store import ObjectStore, ObjectTail
from support.object_store_settings import EVERY_STORE, Stores

# Everything that percent-encoding may leave in a name, and what it makes of the rest.
ODD_KEYS = [
    "v1/catalog/2026-01-01/a~b~session_2026-01-01_10-00-00_000001_1.start.json",
    "v1/odd/50%25.json",
    "v1/odd/a%20b%2Fc.json",
    "v1/odd/%E4%BD%A0%F0%9F%98%80.json",
    "v1/odd/.hidden",
    "v1/odd/-_.~0",
    "v1/odd/a+b=c&d.json",
]


@pytest.fixture(params=EVERY_STORE)
def settings(request: pytest.FixtureRequest, stores: Stores) -> StoreSettings:
    return stores.settings(request.param)


@pytest.fixture
async def store(settings: StoreSettings) -> ObjectStore:
    return open_store(settings)


async def keys_of(store: ObjectStore, prefix: str, after: str = "") -> list[str]:
    return [found.key async for found in store.list(prefix, after=after)]


async def test_an_object_is_read_back_as_it_was_put(store: ObjectStore) -> None:
    await store.put("a/b.json", b"first")
    await store.put("a/b.json", b"second")
    await store.put("a/empty", b"")
    assert await store.get("a/b.json") == b"second"
    assert await store.find("a/b.json") == b"second"
    assert await store.get("a/empty") == b""
    assert (await store.tail("a/empty", 10)).data == b""


async def test_a_missing_object_is_told_by_its_key(store: ObjectStore) -> None:
    await store.put("a/b", b"content")
    reads = [store.get("a/none"), store.stat("a/none"), store.tail("a/none", 9), store.read_range("a/none", 0, 4)]
    for read in reads:
        with pytest.raises(ObjectMissing, match=re.escape(f"{store.describe()}: there is no object 'a/none'")):
            await read
    assert await store.find("a/none") is None
    assert await store.find("a") is None  # a folder is no object


async def test_an_object_is_read_whole_up_to_a_bound(store: ObjectStore) -> None:
    content = bytes(range(256)) * 8192
    await store.put("a/large", content)
    assert await store.get("a/large", len(content)) == content
    for limit in (len(content) - 1, 1000, 0):
        with pytest.raises(ObjectTooLarge, match=f"'a/large' has more than {limit} bytes"):
            await store.get("a/large", limit)
    with pytest.raises(ObjectTooLarge):
        await store.find("a/large", 10)
    assert await store.get("a/large") == content, "the connection of the one that was cut is not used again"


async def test_an_object_is_created_only_once(store: ObjectStore) -> None:
    assert await store.create("manifests/1.json", b"first") is True
    assert await store.create("manifests/1.json", b"second") is False
    assert await store.get("manifests/1.json") == b"first"


async def test_of_racing_creators_exactly_one_wins(settings: StoreSettings) -> None:
    rivals = [open_store(settings) for _ in range(4)]
    await rivals[0].put("warm", b"up")
    for round_number in range(5):
        key = f"manifests/{round_number}.json"
        won = await asyncio.gather(*(rival.create(key, b"by %d" % n) for n, rival in enumerate(rivals)))
        assert sorted(won) == [False, False, False, True]
        assert await rivals[0].get(key) == b"by %d" % won.index(True)


@pytest.mark.parametrize(
    ("offset", "length", "expected"),
    [(0, 4, b"0123"), (3, 4, b"3456"), (8, 100, b"89"), (10, 5, b""), (500, 5, b""), (2, 0, b"")],
)
async def test_a_range_ends_where_the_object_ends(
    store: ObjectStore, offset: int, length: int, expected: bytes
) -> None:
    await store.put("ten", b"0123456789")
    assert await store.read_range("ten", offset, length) == expected


async def test_the_tail_tells_the_size_of_the_whole(store: ObjectStore) -> None:
    await store.put("ten", b"0123456789")
    assert await store.tail("ten", 3) == ObjectTail(size=10, data=b"789")
    assert (await store.tail("ten", 1000)).data == b"0123456789"


async def test_objects_are_listed_in_the_order_of_their_bytes(
    request: pytest.FixtureRequest, store: ObjectStore
) -> None:
    keys = ["a", "b-c/x", "b.c/x", "b/a", "b/c/d", "b/c0", "b0", "c/x", "c~x"]
    for key in reversed(keys):
        await store.put(key, key.encode())
    if "seaweedfs" in request.node.name:
        assert sorted(await keys_of(store, "")) == keys  # it lists folder by folder
    else:
        assert await keys_of(store, "") == keys
    assert await keys_of(store, "b/") == ["b/a", "b/c/d", "b/c0"]
    assert await keys_of(store, "b/c") == ["b/c/d", "b/c0"]
    assert await keys_of(store, "b", after="b/c/d") == ["b/c0", "b0"]
    assert await keys_of(store, "", after="b/c/zzz") == ["b/c0", "b0", "c/x", "c~x"]
    assert await keys_of(store, "nothing/") == []
    assert await keys_of(store, "b", after="c") == []


async def test_folders_are_listed_one_level_deep(store: ObjectStore) -> None:
    for key in ["v1/b/c/d", "v1/a/x", "v1/a~b/y", "v1/file", "top"]:
        await store.put(key, b"content")
    assert await store.list_folders("v1/") == ["a", "a~b", "b"]
    assert await store.list_folders("") == ["v1"]
    assert await store.list_folders("v1/none/") == []


async def test_more_objects_than_a_page_holds_are_all_listed(store: ObjectStore) -> None:
    keys = [f"many/{number:05d}.json" for number in range(1040)]
    at_once = asyncio.Semaphore(16)

    async def put(key: str) -> None:
        async with at_once:
            await store.put(key, b"x")

    await store.put("many-more", b"not of this prefix")
    await asyncio.gather(*map(put, keys))
    assert await keys_of(store, "many/") == keys
    assert await keys_of(store, "many/", after=keys[1029]) == keys[1030:]


@pytest.mark.parametrize("key", ODD_KEYS)
async def test_odd_characters_stay_as_they_are(store: ObjectStore, key: str) -> None:
    await store.put(key, key.encode())
    assert await store.get(key) == key.encode()
    assert await keys_of(store, key) == [key]
    folder, _, _ = key.rpartition("/")
    assert await keys_of(store, f"{folder}/") == [key]


async def test_a_large_file_goes_in_parts_and_comes_back_whole(
    settings: StoreSettings, store: ObjectStore, tmp_path: Path
) -> None:
    if settings.backend is GCS:
        pytest.skip("fake-gcs-server lacks the multipart uploads of Google's XML API, which opendal uses")
    content = os.urandom(2 * PART_BYTES + 4321)
    (tmp_path / "large").write_bytes(content)
    await store.put_file("large.pack", tmp_path / "large")
    assert (await store.stat("large.pack")).size == len(content)
    await store.get_file("large.pack", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == content
    assert await store.read_range("large.pack", PART_BYTES - 5, 10) == content[PART_BYTES - 5 : PART_BYTES + 5]


async def test_a_small_file_needs_no_parts(store: ObjectStore, tmp_path: Path) -> None:
    (tmp_path / "small").write_bytes(b"content")
    await store.put_file("small.pack", tmp_path / "small")
    await store.get_file("small.pack", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == b"content"


async def test_deleting_twice_is_as_good_as_once(store: ObjectStore) -> None:
    await store.put("a/b", b"content")
    await store.delete("a/b")
    await store.delete("a/b")
    assert await store.find("a/b") is None
    assert await keys_of(store, "") == []


async def test_an_object_has_a_size_and_the_stores_time(store: ObjectStore) -> None:
    await store.put("a/b", b"content")
    about_now = datetime.now(UTC)
    (listed,) = [found async for found in store.list("a/")]
    for found in (await store.stat("a/b"), listed):
        assert (found.key, found.size) == ("a/b", 7)
        assert abs(found.modified - about_now) < timedelta(seconds=5)


async def test_the_stores_clock_is_ours_within_the_error_it_tells(store: ObjectStore) -> None:
    offset = await store.put_and_compare_clocks("nodes/1/node.json", b"{}", SystemClock())
    assert abs(offset.seconds) <= offset.error_seconds + 0.05  # the local clock of files ticks every few ms
    assert offset.error_seconds < 5


async def test_stores_under_different_roots_share_nothing(settings: StoreSettings) -> None:
    one = open_store(settings)
    other = open_store(StoreSettings(**{**vars(settings), "root": f"{settings.root}2"}))
    await one.put("a", b"of one")
    await other.put("b", b"of the other")
    assert await keys_of(one, "") == ["a"]
    assert await keys_of(other, "") == ["b"]
    assert await other.find("a") is None


@pytest.mark.parametrize("key", ["", "/a", "a/", "a//b", "a/../b", "./a", "a\\b", "a\nb"])
async def test_a_key_that_not_every_store_can_hold_is_our_bug(tmp_path: Path, key: str) -> None:
    with pytest.raises(ValueError, match="cannot be the key"):
        await open_store(StoreSettings(LOCAL, str(tmp_path))).put(key, b"content")
