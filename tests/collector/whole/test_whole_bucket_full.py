"""The whole collector beside a MinIO whose disk is full: Ray is heard as long as there is room here."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bed.fixtures import run_folder
from bed.minio import BUCKET, Minio
from collector.ray_folders import NODE_A, SESSION, a_port_file, a_session, written
from collector.whole.minio_collectors import (
    AWAY,
    BACK,
    TEAM,
    a_collector,
    post_batch,
    post_some,
    stored_log,
    until_all_is_sent,
    until_puts_fail,
    until_something_is_stored,
)
from raykeeper.layout.keys import end_record_key
from raykeeper.layout.records import EndRecord, decode_record
from raykeeper.storage.errors import StoreUnavailable
from raykeeper.storage.opening import open_store
from raykeeper.storage.patience import Patience
from raykeeper.storage.settings.sources import read_store_settings
from raykeeper.storage.store import ObjectStore
from support.collector_processes import CollectorProcess, ended
from support.collector_stores import objects_in, s3_environment
from support.event_scene import stored_events
from support.ray_event_batches import EventMaker
from support.small_disks import a_small_disk

MIB = 2**20
DISK_BYTES = 24 * MIB
BUDGET_MIB = 1
WORKER = "worker-" + "f" * 56 + "-01000000-12.out"
TEXT = b"said while the bucket was full\n" * 1000

pytestmark = pytest.mark.bed


@pytest.fixture
def small_minio(request: pytest.FixtureRequest) -> Iterator[Minio]:
    """A MinIO on a disk of its own."""
    server = Minio.create(run_folder(request.config) / f"small-minio-{os.urandom(4).hex()}")
    with a_small_disk(server.folder / "minio", DISK_BYTES):
        server.up()
        yield server
        server.down()


async def test_a_full_bucket_is_waited_for_and_said_once_and_with_room_made_everything_arrives(
    tmp_path: Path, small_minio: Minio
) -> None:
    session = a_session(tmp_path / "ray")
    a_port_file(session, NODE_A)
    small_minio.make_bucket("history")
    others = open_store(read_store_settings("s3", "", s3_environment(small_minio, BUCKET)), Patience(attempts=1))
    maker, kept = EventMaker(session=SESSION, node=NODE_A), list[bytes]()
    collector = a_collector(
        tmp_path, s3_environment(small_minio, "history"), "--seal-age=200ms", f"--event-max-disk-mb={BUDGET_MIB}"
    )
    with ended(collector):
        collector.start()
        await post_some(collector, maker, kept)
        await until_something_is_stored(collector)
        await fill(others)
        written(session / "logs" / WORKER, TEXT)
        await post_until_refused(collector, maker, kept)
        assert sum(map(len, kept)) > BUDGET_MIB * MIB  # Ray heard 200 while sealing still made room
        assert "XMinioStorageFull" in collector.wait_for(AWAY)["cause"]
        await until_puts_fail(collector)
        assert (collector.metric("bucket_up"), collector.metric("batches_refused_total") > 0) == (0, True)
        await empty(others)
        await until_all_is_sent(collector)
        await post_some(collector, maker, kept)
        assert collector.metric("bucket_up") == 1
        assert await asyncio.to_thread(collector.end) == 0
        assert (len(collector.said(AWAY)), len(collector.said(BACK))) == (1, 1)
    objects = await objects_in(small_minio, "history")
    assert sorted(stored_events(objects, SESSION, NODE_A)) == sorted(kept)
    assert stored_log(objects, WORKER) == TEXT
    assert decode_record(objects[end_record_key(TEAM, NODE_A)], EndRecord).is_complete


async def fill(store: ObjectStore) -> None:
    """Leave no room, not even for a byte."""
    number = 0
    for size in (MIB, 64 * 1024, 4 * 1024, 1):
        is_full = False
        while not is_full:
            try:
                await store.put(f"filler/{number}", os.urandom(size))
                number += 1
            except StoreUnavailable as exc:  # now and then MinIO says IncompleteBody instead: ask again
                is_full = "XMinioStorageFull" in str(exc)


async def empty(store: ObjectStore) -> None:
    for key in [stat.key async for stat in store.list("filler/")]:
        await store.delete(key)


async def post_until_refused(collector: CollectorProcess, maker: EventMaker, kept: list[bytes]) -> None:
    """Post as Ray does until the answer is 503, and stays so."""
    refused_in_a_row = 0
    while refused_in_a_row < 3:
        status = await post_batch(collector, maker, kept)
        assert status in (200, 503)
        refused_in_a_row = refused_in_a_row + 1 if status == 503 else 0
        await asyncio.sleep(0.3 if status == 503 else 0)  # Ray waits longer
