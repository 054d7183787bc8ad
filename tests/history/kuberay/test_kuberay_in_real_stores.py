"""KubeRay's keys in real object stores: question marks and blanks in names, ranges of whole files."""

from __future__ import annotations

from pathlib import Path

import pytest

from raykeeper.clock import SystemClock
from raykeeper.history.commands.import_sessions.from_bucket import BucketImport
from raykeeper.history.logs.store import LogStore
from raykeeper.history.store.kuberay.objects import FRAME_BYTES
from raykeeper.history.store.kuberay.overlay import KubeRayOverlay
from raykeeper.layout.keys import EventSegmentKey, PolledKey
from raykeeper.layout.polled import decode_polled
from raykeeper.layout.segments import read_lines
from raykeeper.storage.opening import open_store
from raykeeper.storage.store import ObjectStore
from support.ingest_scene import HEAD, WORKER_NODE, finished_task
from support.kuberay_buckets import OF_A_JOB, PLAIN, KubeRayBucket
from support.object_store_settings import EVERY_STORE, Stores

PLACEMENT_GROUPS = "/api/v0/placement_groups?detail=1&limit=10000"
LOG = b"0123456789abcde\n" * (FRAME_BYTES // 16 + 1000)


@pytest.fixture
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Stores:
    return Stores(request, tmp_path)


async def fill(store: ObjectStore) -> None:
    for place in (PLAIN, OF_A_JOB):
        bucket = KubeRayBucket(store, place, "gzip")
        await bucket.put_marker()
        await bucket.put_events(HEAD, finished_task(1))
        await bucket.put_events(WORKER_NODE, finished_task(2))
        await bucket.put_logs(HEAD, {"gcs_server.out": LOG, "old/a b+c.log": b"odd name\n"})
        await bucket.put_answer(PLACEMENT_GROUPS, {"result": True})


@pytest.mark.parametrize("server", EVERY_STORE)
async def test_a_kuberay_bucket_is_read_and_imported_from_every_store(stores: Stores, server: str) -> None:
    source, target = open_store(stores.settings(server)), open_store(stores.settings("local"))
    await fill(source)
    overlay = KubeRayOverlay(source, SystemClock())
    session = OF_A_JOB.session
    lines = [
        line
        async for stat in overlay.list(EventSegmentKey.prefix(session))
        for line in read_lines(await overlay.get(stat.key))
    ]
    assert len(lines) == len(finished_task(1)) + len(finished_task(2))
    polled = [stat.key async for stat in overlay.list(PolledKey.prefix(session))]
    assert [decode_polled(await overlay.get(key)).path for key in polled] == [PLACEMENT_GROUPS]
    logs = LogStore(overlay, SystemClock())
    files = (await logs.files(session, HEAD)).by_path
    assert files.keys() == {"gcs_server.out", "old/a b+c.log"}
    read = [piece async for piece in logs.reader.stream(files["gcs_server.out"], FRAME_BYTES - 20, len(LOG))]
    assert b"".join(read) == LOG[FRAME_BYTES - 20 :]
    tally = await BucketImport(source, target, SystemClock(), lambda _: None).run()
    assert (tally.sessions, tally.unreadable) == (2, [])
    assert [stat.key async for stat in target.list(EventSegmentKey.prefix(session))] == [
        stat.key async for stat in overlay.list(EventSegmentKey.prefix(session))
    ]
