"""A real MinIO that is down, slow or refuses: Ray hears 200 all the while, and everything arrives."""

from __future__ import annotations

import logging
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from bed.faults.tcp import TcpProxy
from bed.minio import Minio
from raykeeper.storage.opening import open_store
from raykeeper.storage.patience import Patience
from raykeeper.storage.settings.sources import read_store_settings
from raykeeper.storage.store import ObjectStore
from support.conditions import until
from support.event_scene import Scene, a_scene, stored_events
from support.ray_event_batches import EventMaker, body_of, line_of

IMPATIENT = Patience(attempts=1)


def a_store(minio: Minio, bucket: str, endpoint: str, secret_key: str = "") -> ObjectStore:
    environment = {
        "S3_BUCKET": bucket,
        "S3_ENDPOINT": endpoint,
        "S3FORCE_PATH_STYLE": "true",
        "AWS_ACCESS_KEY_ID": minio.access_key,
        "AWS_SECRET_ACCESS_KEY": secret_key or minio.secret_key,
    }
    return open_store(read_store_settings("s3", "root", environment), IMPATIENT)


async def objects_of(store: ObjectStore) -> dict[str, bytes]:
    return {stat.key: await store.get(stat.key) async for stat in store.list("")}


async def post_some(scene: Scene, maker: EventMaker, kept: list[bytes]) -> None:
    """Batches that Ray must hear 200 for."""
    for _ in range(5):
        events = maker.events(300)
        assert await scene.post(body_of(events)) == [200]
        kept += map(line_of, events)


async def test_events_outlive_an_outage_and_a_slow_bucket(
    tmp_path: Path, minio: Minio, bucket: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "raykeeper.collector.bucket")
    maker, kept = EventMaker(), list[bytes]()
    port = urlsplit(minio.endpoint).port or 0
    with TcpProxy("127.0.0.1", port) as proxy:
        store = a_store(minio, bucket, f"http://127.0.0.1:{proxy.port}")
        async with a_scene(tmp_path, segment_max_bytes=300_000, busy_seal_seconds=0.2, idle_seal_seconds=0.2) as scene:
            scene.bucket.connect(store)
            await post_some(scene, maker, kept)
            await scene.until_shipped()
            proxy.refuse()
            await post_some(scene, maker, kept)
            await until(lambda: scene.metric("put_errors_total", cause="unavailable") > 3)
            await post_some(scene, maker, kept)
            assert scene.metric("bucket_up") == 0
            assert scene.path.unsent_bytes > 0
            proxy.bytes_per_second = 1e6
            proxy.accept()
            await post_some(scene, maker, kept)
            assert await scene.flush(30) == 0
            assert scene.metric("bucket_up") == 1
    assert sorted(stored_events(await objects_of(a_store(minio, bucket, minio.endpoint)))) == sorted(kept)
    said = [record.message for record in caplog.records]
    assert said.count("bucket does not take objects, data waits on disk") == 1
    assert said.count("bucket takes objects again") == 1


async def test_events_wait_until_the_credentials_are_right(
    tmp_path: Path, minio: Minio, bucket: str, caplog: pytest.LogCaptureFixture
) -> None:
    maker, kept = EventMaker(), list[bytes]()
    async with a_scene(tmp_path, segment_max_bytes=300_000, busy_seal_seconds=0.2, idle_seal_seconds=0.2) as scene:
        scene.bucket.connect(a_store(minio, bucket, minio.endpoint, secret_key="wrong"))
        await post_some(scene, maker, kept)
        await until(lambda: scene.metric("put_errors_total", cause="refused") > 2)
        told = [str(vars(record)) for record in caplog.records if record.message.startswith("bucket does not take")]
        assert len(told) == 1
        assert bucket in told[0]
        store = a_store(minio, bucket, minio.endpoint)
        scene.bucket.connect(store)
        assert await scene.flush(30) == 0
    assert sorted(stored_events(await objects_of(store))) == sorted(kept)
