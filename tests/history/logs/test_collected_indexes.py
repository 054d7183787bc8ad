"""Indexes of packs are read as one object, and whatever came, went or broke since is seen all the same."""

from __future__ import annotations

import asyncio
import time
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from raykeeper.history.commands.delete import Deletion
from raykeeper.history.logs.collected import COLLECTED_FROM, CollectedIndexes, Collecting, NodeCollections
from raykeeper.history.logs.store import LogStore
from raykeeper.history.program import open_history
from raykeeper.history.settings import HistorySettings, HistoryStoreSettings
from raykeeper.history.store.kuberay.overlay import KubeRayOverlay
from raykeeper.layout import logindexes
from raykeeper.layout.keys import LogPackKey, log_indexes_prefix, parse_log_index_key
from raykeeper.layout.logindexes import copied_index
from raykeeper.layout.logs import Hole, plan_read
from raykeeper.layout.packs import Frame, PackIndex
from raykeeper.storage.errors import StoreUnavailable
from raykeeper.storage.opening import open_store
from raykeeper.storage.settings.urls import parse_store_url
from support import ingest_scene
from support.clocks import ManualClock
from support.conditions import until
from support.counting_stores import Asked, CountingStore, FullStore, ReadOnlyStore
from support.history_scene import HEAD_ID, SEALED_NS, SESSION, STARTED_AT, WORKER_ID, PackBuilder, local_store
from support.ingest_scene import finished_task, put_records, put_segment
from support.kuberay_buckets import PLAIN, KubeRayBucket
from support.log_scene import LATER, PACKS, collections, facts, fill, looked, settled, write_pack
from support.object_store_settings import Stores


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "store"


async def test_the_next_replica_reads_one_object_instead_of_every_pack(folder: Path) -> None:
    await fill(local_store(folder))
    first = await looked(CountingStore(folder))
    [collection] = collections(folder)
    store = CountingStore(folder)
    assert facts(await looked(store)) == facts(first)
    assert store.asked == Asked(opened=[collection])
    assert collections(folder) == [collection]


@pytest.mark.parametrize(
    ("packs", "at", "is_collected"),
    [
        (COLLECTED_FROM, STARTED_AT + timedelta(minutes=61), True),
        (COLLECTED_FROM, STARTED_AT + timedelta(minutes=59), False),
        (COLLECTED_FROM - 1, STARTED_AT + timedelta(minutes=61), False),
    ],
)
async def test_enough_packs_of_an_hour_that_is_over_are_collected(
    folder: Path, packs: int, at: datetime, *, is_collected: bool
) -> None:
    await fill(local_store(folder), packs)
    await looked(CountingStore(folder), at=ManualClock(now=at))
    assert bool(collections(folder)) == is_collected


async def test_what_a_server_saw_come_is_collected_once_the_hour_is_over(folder: Path) -> None:
    store, clock = CountingStore(folder), ManualClock(now=STARTED_AT)
    logs, packs = LogStore(store, clock), PackBuilder(store)
    for number in range(PACKS):
        packs.add("raylet.out", b"x", offset=number)
        await packs.put()
        clock.advance(5)
        await logs.files(SESSION, HEAD_ID)
    await settled()
    assert collections(folder) == []
    clock.advance(3600)
    await logs.files(SESSION, HEAD_ID)
    await settled()
    [collection] = collections(folder)
    found = parse_log_index_key(collection)
    assert found is not None
    assert found.packs == PACKS
    assert len(store.asked.ranges) == PACKS


async def test_a_final_session_is_collected_whole_and_not_again(folder: Path) -> None:
    for node_id in (HEAD_ID, WORKER_ID):
        await fill(local_store(folder), node_id=node_id)
    for _ in range(2):
        store = CountingStore(folder)
        LogStore(store, ManualClock(now=STARTED_AT)).collect(SESSION)
        await settled()
        assert len(collections(folder)) == 2
    assert store.asked == Asked(), "the names say that nothing is missing"


async def test_the_first_replica_that_ingests_a_final_session_collects_its_indexes(tmp_path: Path) -> None:
    """Through all that the program wires together; the packs are of an hour that is not over."""
    folder, url = tmp_path / "store", f"file://{tmp_path}/store"
    await put_segment(local_store(folder), 0, finished_task(1))
    await put_records(local_store(folder), STARTED_AT, is_ended=True)
    for number in range(PACKS):
        write_pack(folder, time.time_ns(), number, ingest_scene.SESSION)
    (tmp_path / "cache").mkdir()
    async with open_history(
        HistorySettings(HistoryStoreSettings(url)), parse_store_url(url, {}), tmp_path / "cache"
    ) as history:
        await history.sessions.open(ingest_scene.SESSION)
        await until(lambda: collections(folder, ingest_scene.SESSION))


async def test_whoever_collects_the_same_packs_writes_the_same_object(tmp_path: Path) -> None:
    for name in ("read", "final"):
        await fill(local_store(tmp_path / name))
    await asyncio.gather(*(looked_only(tmp_path / "read") for _ in range(3)))
    LogStore(local_store(tmp_path / "final"), ManualClock()).collect(SESSION)
    await settled()
    [by_readers], [by_ingest] = (collections(tmp_path / name) for name in ("read", "final"))
    assert by_readers == by_ingest
    assert (tmp_path / "read" / by_readers).read_bytes() == (tmp_path / "final" / by_ingest).read_bytes()


async def looked_only(folder: Path) -> None:
    await LogStore(CountingStore(folder), ManualClock(now=LATER)).files(SESSION, HEAD_ID)


async def test_many_indexes_are_collected_in_pieces(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logindexes, "PIECE_BYTES", 1000)
    await fill(local_store(folder))
    first = await looked(CountingStore(folder))
    pieces = [parse_log_index_key(key) for key in collections(folder)]
    assert len(pieces) > 2
    assert sum(piece.packs for piece in pieces if piece) == PACKS
    store = CountingStore(folder)
    assert facts(await looked(store)) == facts(first)
    assert store.asked.ranges == []


async def test_what_waits_to_be_collected_is_bounded_and_a_node_of_any_size_is_taken(folder: Path) -> None:
    store, index = CountingStore(folder), PackIndex((Frame("raylet.out", "1-1", 0, 1, 0, 10, 1),))
    collecting = Collecting(store, CollectedIndexes(store), max_waiting=PACKS - 1)
    keys = [LogPackKey(SESSION, HEAD_ID, SEALED_NS, number).key for number in range(PACKS)]
    for node_id in (HEAD_ID, WORKER_ID):
        copies = {key: copied_index(SESSION, key, 100, index) for key in keys}
        collecting.collect_read(NodeCollections(SESSION, node_id), copies)
    await settled()
    assert [HEAD_ID in key for key in collections(folder)] == [True], "the other is left to whoever reads it next"
    collecting.collect_read(NodeCollections(SESSION, WORKER_ID), copies)
    await settled()
    assert len(collections(folder)) == 2


async def test_a_server_that_ends_does_not_wait_for_what_it_collects(folder: Path) -> None:
    await fill(local_store(folder))
    logs = LogStore(CountingStore(folder), ManualClock(now=LATER))
    await logs.files(SESSION, HEAD_ID)
    await logs.close()
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert collections(folder) == []


async def test_packs_that_came_later_are_read_beside_what_is_collected(folder: Path) -> None:
    await fill(local_store(folder))
    await looked(CountingStore(folder))
    keys = await fill(local_store(folder), PACKS + 3)
    store = CountingStore(folder)
    assert (await looked(store)).by_path["raylet.out"].size == 9 * (PACKS + 3)
    assert sorted(store.asked.ranges) == keys[PACKS:]
    assert len(collections(folder)) == 1


async def test_a_pack_that_is_gone_or_another_is_not_believed_in(folder: Path) -> None:
    keys = await fill(local_store(folder))
    await looked(CountingStore(folder))
    await local_store(folder).delete(keys[3])
    await local_store(folder).put(keys[5], b"no pack")
    files = await looked(CountingStore(folder))
    plan = plan_read(files.by_path["raylet.out"], 0, 9 * PACKS)
    assert [(hole.start, hole.end) for hole in plan if isinstance(hole, Hole)] == [(27, 36), (45, 54)]
    assert list(files.damaged) == [keys[5]]


async def test_a_damaged_object_is_told_once_and_made_again(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    await fill(local_store(folder))
    whole = await looked(CountingStore(folder))
    [collection] = collections(folder)
    good = (folder / collection).read_bytes()
    (folder / collection).write_bytes(good[:-5] + b"wrong")
    caplog.clear()
    assert facts(await looked(CountingStore(folder))) == facts(whole)
    told = [line.message for line in caplog.records if line.levelname == "WARNING"]
    assert told == ["collected log indexes cannot be read"]
    assert [(folder / key).read_bytes() for key in collections(folder)] == [good]


@pytest.mark.parametrize(("kind", "level"), [(ReadOnlyStore, "INFO"), (FullStore, "WARNING")])
async def test_a_store_that_takes_nothing_is_read_all_the_same(
    folder: Path, kind: type[CountingStore], level: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    await fill(local_store(folder))
    logs = LogStore(kind(folder), ManualClock(now=LATER))
    assert (await logs.files(SESSION, HEAD_ID)).by_path["raylet.out"].size == 9 * PACKS
    await settled()
    assert [(line.levelname, "collected" in line.message) for line in caplog.records] == [(level, True)]


async def test_a_store_that_may_only_be_read_is_tried_once(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    for node_id in (HEAD_ID, WORKER_ID):
        await fill(local_store(folder), node_id=node_id)
    store = ReadOnlyStore(folder)
    logs = LogStore(store, ManualClock(now=LATER))
    for node_id in (HEAD_ID, WORKER_ID):
        await logs.files(SESSION, node_id)
        await settled()
    before = len(store.asked.ranges)
    logs.collect(SESSION)
    await settled()
    assert len(caplog.records) == 1
    assert len(store.asked.ranges) == before


async def test_an_answer_that_failed_loses_nothing_of_what_was_collected(folder: Path) -> None:
    await fill(local_store(folder))
    await looked(CountingStore(folder))
    [late] = (await fill(local_store(folder), PACKS + 1))[PACKS:]
    store = FlakyStore(folder)
    logs = LogStore(store, ManualClock(now=LATER))
    with pytest.raises(StoreUnavailable):
        await logs.files(SESSION, HEAD_ID)
    assert (await logs.files(SESSION, HEAD_ID)).by_path["raylet.out"].size == 9 * (PACKS + 1)
    assert store.asked.ranges == [late]


class FlakyStore(CountingStore):
    """The first range cannot be read."""

    has_failed = False

    async def read_range(self, key: str, offset: int, length: int) -> bytes:
        if not self.has_failed:
            self.has_failed = True
            raise StoreUnavailable("local", key, "connection reset")
        return await super().read_range(key, offset, length)


async def test_nothing_is_collected_of_what_kuberay_stored(folder: Path) -> None:
    store = CountingStore(folder)
    bucket = KubeRayBucket(store, PLAIN)
    await bucket.put_marker()
    await bucket.put_logs(HEAD_ID, {f"worker-{number}.out": b"line\n" for number in range(2 * COLLECTED_FROM)})
    clock = ManualClock(now=LATER + timedelta(days=1000))
    logs = LogStore(KubeRayOverlay(store, clock), clock)
    assert len((await logs.files(PLAIN.session, HEAD_ID)).by_path) == 2 * COLLECTED_FROM
    logs.collect(PLAIN.session)
    await settled()
    assert collections(folder, PLAIN.session) == []


async def test_a_deleted_session_takes_its_collected_indexes_with_it(folder: Path) -> None:
    await fill(local_store(folder))
    await looked(CountingStore(folder))
    deletion = Deletion(local_store(folder), ManualClock(now=LATER))
    await deletion.delete(await deletion.find(SESSION))
    assert collections(folder) == []


DAY_PACKS = 17_000


async def test_a_day_of_output_opens_with_a_few_reads(folder: Path) -> None:
    """A pack every five seconds, with some frames each."""
    for number in range(DAY_PACKS):
        write_pack(folder, SEALED_NS + 5 * number * 1_000_000_000, number)
    LogStore(CountingStore(folder), ManualClock()).collect(SESSION)
    await settled()
    store = CountingStore(folder)
    files = await looked(store, at=ManualClock(now=LATER + timedelta(days=1)))
    assert {path: len(stored.frames) for path, stored in files.by_path.items()} == {
        f"worker-{file}.out": DAY_PACKS for file in range(4)
    }
    assert len(store.asked.opened) + len(store.asked.ranges) < 10


@pytest.mark.bed
async def test_indexes_are_collected_in_a_real_bucket(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    bucket = Stores(request, tmp_path).settings("minio")
    await fill(open_store(bucket))
    first = await looked(open_store(bucket))
    keys = [stat.key async for stat in open_store(bucket).list(log_indexes_prefix(SESSION))]
    assert [parse_log_index_key(key) is not None for key in keys] == [True]
    assert facts(await looked(open_store(bucket))) == facts(first)
