"""What goes wrong with a store is told in bounded time, with bucket and key: wait, or the user must act."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from bed.faults import TcpProxy
from bed.minio import Minio
from bed.ports import free_port
from bed.waiting import BUSY_FACTOR
from raykeeper.storage.backends.backend import StoreSettings
from raykeeper.storage.backends.s3 import S3
from raykeeper.storage.errors import BucketMissing, StoreRefused, StoreUnavailable
from raykeeper.storage.files import file_chunks
from raykeeper.storage.opening import open_store
from raykeeper.storage.patience import Patience
from raykeeper.storage.remote import remotestore
from raykeeper.storage.remote.operators import PART_BYTES
from raykeeper.storage.store import ObjectStore
from support.object_store_settings import REMOTE, Stores
from support.s3_faults import S3Faults

IMPATIENT = Patience(first_byte_seconds=0.4, attempts=2, longest_pause_seconds=0.1)

Call = Callable[[ObjectStore], Awaitable[object]]


async def drain(store: ObjectStore) -> None:
    async for _ in store.list("a/"):
        pass


READS: dict[str, Call] = {
    "get": lambda store: store.get("a/b"),
    "range": lambda store: store.read_range("a/b", 0, 1),
    "stat": lambda store: store.stat("a/b"),
    "tail": lambda store: store.tail("a/b", 1),
    "list": drain,
    "folders": lambda store: store.list_folders("a/"),
}
WRITES: dict[str, Call] = {
    "put": lambda store: store.put("a/b", b"content"),
    "create": lambda store: store.create("a/b", b"content"),
}
EVERY_CALL = READS | WRITES | {"delete": lambda store: store.delete("a/b")}


@pytest.fixture
def settings(stores: Stores) -> StoreSettings:
    return stores.settings("minio")


def at(settings: StoreSettings, port: int) -> StoreSettings:
    """The same bucket behind another port."""
    return replace(settings, endpoint=f"http://127.0.0.1:{port}")


@pytest.mark.bed
@pytest.mark.parametrize("call", EVERY_CALL)
async def test_wrong_keys_are_the_users_to_mend(settings: StoreSettings, call: str) -> None:
    await open_store(settings).put("a/b", b"content")
    wrong = replace(settings, secrets={**settings.secrets, "secret_access_key": "not-the-secret"})
    with pytest.raises(StoreRefused, match="check the credentials") as refused:
        await EVERY_CALL[call](open_store(wrong))
    told = str(refused.value)
    assert settings.bucket in told
    assert "'a/" in told
    assert not any(secret in told for secret in wrong.secrets.values())


@pytest.mark.parametrize("server", REMOTE)
async def test_wrong_keys_are_the_users_to_mend_on_every_store(stores: Stores, server: str) -> None:
    settings = stores.settings(server)
    if server == "fake_gcs":
        pytest.skip("an emulator of Google's store knows no users")
    wrong = replace(settings, secrets=dict.fromkeys(settings.secrets, "bm90IGl0"))
    with pytest.raises(StoreRefused, match=f"{settings.bucket}.*'a/b'"):
        await open_store(wrong).put("a/b", b"content")


@pytest.mark.bed
@pytest.mark.parametrize("server", ["minio", "azurite", "fake_gcs"])
@pytest.mark.parametrize("call", READS)
async def test_a_missing_bucket_is_not_taken_for_a_missing_object(stores: Stores, server: str, call: str) -> None:
    settings = stores.settings(server, bucket="nobody-made-this")
    with pytest.raises(BucketMissing, match=r"nobody-made-this.*'a?.*create it"):
        await READS[call](open_store(settings))


@pytest.mark.bed
@pytest.mark.parametrize("call", WRITES)
async def test_a_missing_bucket_of_google_must_be_created_by_the_user(stores: Stores, call: str) -> None:
    settings = stores.settings("fake_gcs", bucket="nobody-made-this")
    with pytest.raises(BucketMissing, match=r"nobody-made-this.*'a/b'.*create it"):
        await WRITES[call](open_store(settings))


@pytest.mark.bed
@pytest.mark.parametrize("server", ["minio", "azurite"])
async def test_the_first_write_makes_the_bucket(stores: Stores, server: str) -> None:
    settings = stores.settings(server)
    writers = [open_store(settings), open_store(settings)]
    await asyncio.gather(*(writer.put(f"{n}/{m}", b"content") for n, writer in enumerate(writers) for m in range(2)))
    assert [found.key async for found in writers[0].list("")] == ["0/0", "0/1", "1/0", "1/1"]


@pytest.mark.bed
async def test_a_bucket_that_may_not_be_made_is_the_users_to_make(settings: StoreSettings) -> None:
    impossible = replace(settings, bucket="A_b")  # no bucket may be called so
    with pytest.raises(StoreRefused, match="s3://A_b/some/root"):
        await open_store(impossible).put("a/b", b"content")


@pytest.mark.parametrize("call", EVERY_CALL)
async def test_a_dead_server_is_waited_for_by_the_caller(call: str) -> None:
    settings = StoreSettings(S3, "history", "root", f"http://127.0.0.1:{free_port()}", {"region": "us-east-1"}, KEYS)
    with pytest.raises(StoreUnavailable, match=re.escape("s3://history/root") + ".*'a/b?'.*Connection refused"):
        await EVERY_CALL[call](open_store(settings, IMPATIENT))


KEYS = {"access_key_id": "key", "secret_access_key": "secret-of-the-key"}


@pytest.mark.bed
@pytest.mark.parametrize("call", EVERY_CALL)
async def test_a_server_that_falls_silent_is_given_up_in_time(minio: Minio, settings: StoreSettings, call: str) -> None:
    with TcpProxy("127.0.0.1", urlsplit(minio.endpoint).port or 0) as proxy:
        store = open_store(at(settings, proxy.port), IMPATIENT)
        await store.put("a/b", b"content")
        proxy.stall()
        started = time.monotonic()
        with pytest.raises(StoreUnavailable, match=f"{settings.bucket}.*'a/b?'"):
            await EVERY_CALL[call](store)
        assert time.monotonic() - started < 4 * BUSY_FACTOR  # two attempts of 0.4 s, on a busy machine
        proxy.flow()


@pytest.mark.bed
async def test_a_slow_transfer_is_not_taken_for_silence(minio: Minio, settings: StoreSettings) -> None:
    content = bytes(600_000)
    with TcpProxy("127.0.0.1", urlsplit(minio.endpoint).port or 0) as proxy:
        store = open_store(at(settings, proxy.port), replace(IMPATIENT, attempts=1))
        await store.put("warm", b"up")
        proxy.bytes_per_second = 500_000.0  # 1.2 s, three times the silence that is borne
        await store.put("large", content)
        assert await store.get("large") == content


@pytest.mark.bed
async def test_errors_at_random_are_asked_over(minio: Minio, settings: StoreSettings) -> None:
    async with S3Faults(minio.endpoint).serving() as faults:
        store = open_store(replace(settings, endpoint=faults.url), Patience(attempts=8, longest_pause_seconds=0.05))
        await store.put("warm", b"up")
        faults.probability = 0.3
        keys = [f"a/{number:02d}" for number in range(25)]
        assert all(await asyncio.gather(*(store.create(key, key.encode()) for key in keys)))
        assert await asyncio.gather(*map(store.get, keys)) == [key.encode() for key in keys]
        assert [found.key async for found in store.list("a/")] == keys
        assert faults.struck > 10


@pytest.mark.bed
async def test_a_call_asks_only_as_often_as_it_is_told(minio: Minio, settings: StoreSettings) -> None:
    async with S3Faults(minio.endpoint).serving() as faults:
        store = open_store(replace(settings, endpoint=faults.url), IMPATIENT)
        faults.probability = 1.0
        with pytest.raises(StoreUnavailable, match="'a/b'"):
            await store.put("a/b", b"content")
        assert faults.struck == IMPATIENT.attempts


@pytest.mark.bed
async def test_a_creation_whose_answer_was_lost_is_still_ours(minio: Minio, settings: StoreSettings) -> None:
    async with S3Faults(minio.endpoint).serving() as faults:
        store = open_store(replace(settings, endpoint=faults.url), IMPATIENT)
        await store.put("warm", b"up")
        faults.probability, faults.times, faults.after_acting = 1.0, 1, True
        assert await store.create("manifests/1.json", b"ours") is True
        faults.times = 1
        assert await store.create("manifests/1.json", b"another's") is False
        assert await store.get("manifests/1.json") == b"ours"


@pytest.mark.bed
async def test_a_list_that_broke_off_goes_on_where_it_was(minio: Minio, settings: StoreSettings) -> None:
    direct = open_store(settings)
    keys = [f"many/{number:05d}" for number in range(1010)]
    for start in range(0, len(keys), 20):
        await asyncio.gather(*(direct.put(key, b"") for key in keys[start : start + 20]))
    async with S3Faults(minio.endpoint).serving() as faults:
        store = open_store(replace(settings, endpoint=faults.url), IMPATIENT)
        faults.path, faults.probability, faults.times = "continuation-token", 1.0, 1
        assert [found.key async for found in store.list("many/")] == keys
        assert faults.struck == 1


@pytest.mark.bed
async def test_a_large_file_survives_lost_parts(minio: Minio, settings: StoreSettings, tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(bytes(3 * PART_BYTES))
    async with S3Faults(minio.endpoint).serving() as faults:
        store = open_store(replace(settings, endpoint=faults.url), Patience(attempts=4, longest_pause_seconds=0.1))
        await store.put("warm", b"up")
        faults.path, faults.probability, faults.times = "partNumber", 1.0, 2
        await store.put_file("large.pack", tmp_path / "large")
        assert (await store.stat("large.pack")).size == 3 * PART_BYTES


@pytest.mark.bed
async def test_an_upload_that_failed_leaves_no_object(minio: Minio, settings: StoreSettings, tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(bytes(3 * PART_BYTES))
    async with S3Faults(minio.endpoint).serving() as faults:
        store = open_store(replace(settings, endpoint=faults.url), IMPATIENT)
        await store.put("warm", b"up")
        faults.path, faults.probability = "partNumber=3", 1.0
        with pytest.raises(StoreUnavailable, match=f"{settings.bucket}.*'large.pack'"):
            await store.put_file("large.pack", tmp_path / "large")
        assert await store.find("large.pack") is None


@pytest.mark.bed
async def test_a_file_that_shrinks_while_it_is_read_leaves_no_object(
    settings: StoreSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "shrinking"
    path.write_bytes(bytes(3 * PART_BYTES))

    async def shrinking(path: Path, size: int, chunk_bytes: int) -> AsyncIterator[bytes]:
        async for chunk in file_chunks(path, size, chunk_bytes):
            os.truncate(path, 2 * PART_BYTES)
            yield chunk

    monkeypatch.setattr(remotestore, "file_chunks", shrinking)
    store = open_store(settings)
    with pytest.raises(OSError, match="became shorter while it was read: 8388608 of 25165824"):
        await store.put_file("torn.pack", path)
    monkeypatch.undo()
    await store.put("warm", b"up")
    assert await store.find("torn.pack") is None
