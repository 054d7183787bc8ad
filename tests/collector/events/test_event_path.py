"""From Ray's POST to the bucket: everything arrives, under its place, through outages and full disks."""

from __future__ import annotations

import asyncio
import errno
import logging
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bed.waiting import BUSY_FACTOR
from raykeeper.collector.events import disk, path, sealer, spool, uploads
from raykeeper.collector.events.cadence import is_due
from raykeeper.collector.events.durable import sync_folder
from raykeeper.collector.events.sealed import SealedFiles
from raykeeper.collector.events.sealing import read_closed
from raykeeper.layout.keys import parse_sealed_key
from raykeeper.settings.values import MIB
from support.conditions import until
from support.event_scene import (
    Directory,
    MemoryStore,
    a_scene,
    event_settings,
    stored_events,
    stored_rejects,
    unavailable,
)
from support.ray_event_batches import NODE_HEX, SESSION, EventMaker, body_of, line_of


def spooled(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


async def test_events_arrive_byte_for_byte_and_leave_the_disk(tmp_path: Path) -> None:
    maker = EventMaker()
    batches = [maker.events(size) for size in (1, 300, 7)]
    async with a_scene(tmp_path, busy_seal_seconds=0.05, idle_seal_seconds=0.05) as scene:
        assert await scene.post(*map(body_of, batches)) == [200] * 3
        await scene.until_shipped()
        assert scene.path.oldest_unsent_seconds == 0
        assert stored_events(scene.store.objects, SESSION, NODE_HEX) == [line_of(e) for batch in batches for e in batch]
    assert spooled(tmp_path) == []


async def test_keys_carry_namespace_cluster_session_and_node(tmp_path: Path) -> None:
    async with a_scene(tmp_path) as scene:
        await scene.post(body_of(EventMaker().events(1)))
        assert await scene.flush() == 0
        (facts,) = map(parse_sealed_key, scene.store.objects)
        assert facts is not None
        assert (str(facts.session), facts.node_id) == (f"team/raycluster/{SESSION}", NODE_HEX)
        assert abs(facts.sealed_ns / 1e9 - time.time()) < 60


def test_a_journal_is_sealed_by_size_by_age_or_under_pressure(tmp_path: Path) -> None:
    settings = event_settings(tmp_path, busy_seal_seconds=5.0, idle_seal_seconds=90.0)
    assert is_due(8 * MIB, 0.0, settings)
    assert not is_due(MIB, 4.9, settings)
    assert is_due(MIB, 5.0, settings)
    assert not is_due(1000, 89.0, settings)
    assert is_due(1000, 90.0, settings)
    assert is_due(1000, 1.0, settings, is_pressed=True)
    assert not is_due(0, 1000.0, settings, is_pressed=True)


async def test_a_full_journal_is_sealed_at_once(tmp_path: Path) -> None:
    async with a_scene(tmp_path, segment_max_bytes=100_000) as scene:
        await scene.post(*(body_of(EventMaker(seed).events(150)) for seed in range(3)))
        await scene.until_shipped()
        assert len(scene.store.objects) == 3


async def test_events_wait_for_their_node_id(tmp_path: Path) -> None:
    events = EventMaker().events(5, nodeId="")
    async with a_scene(tmp_path, idle_seal_seconds=0.01, busy_seal_seconds=0.01) as scene:
        await scene.post(body_of(events))
        await until(lambda: scene.path.oldest_unsent_seconds > 0.2)
        assert not scene.store.objects
        scene.directory.nodes[SESSION] = NODE_HEX
        await scene.until_shipped()
        assert stored_events(scene.store.objects, SESSION, NODE_HEX) == [line_of(event) for event in events]


async def test_events_whose_node_stays_unknown_are_filed_under_the_pod(tmp_path: Path) -> None:
    async with a_scene(tmp_path, idle_seal_seconds=0.01, node_wait_seconds=0.2) as scene:
        await scene.post(body_of(EventMaker().events(5, nodeId="")))
        await scene.until_shipped()
        assert len(stored_events(scene.store.objects, SESSION, "unknown-pod-1")) == 5


async def test_a_flush_does_not_wait_for_the_node_id(tmp_path: Path) -> None:
    async with a_scene(tmp_path) as scene:
        await scene.post(body_of(EventMaker().events(5, nodeId="")))
        assert await scene.flush() == 0
        assert len(stored_events(scene.store.objects, SESSION, "unknown-pod-1")) == 5


async def test_what_is_set_aside_lies_beside_the_current_session(tmp_path: Path) -> None:
    async with a_scene(tmp_path, directory=Directory({"now": NODE_HEX}, "now")) as scene:
        await scene.post(b"not JSON " + "ä".encode() * MIB)
        assert await scene.flush() == 0
        (facts,) = map(parse_sealed_key, scene.store.objects)
        assert facts is not None
        assert (facts.folder, facts.session.session, facts.node_id) == ("rejects", "now", NODE_HEX)
        (reject,) = stored_rejects(scene.store.objects)
        assert (reject.text[:10], reject.is_cut) == ("not JSON ä", True)


async def test_the_next_life_ships_what_the_last_left(tmp_path: Path) -> None:
    store, maker = MemoryStore(outage=unavailable()), EventMaker()
    first, second = maker.events(40), maker.events(40)
    async with a_scene(tmp_path, store, idle_seal_seconds=0.01) as scene:
        await scene.post(body_of(first))
        await until(lambda: list((tmp_path / "sealed").rglob("*.zst")))
    async with a_scene(tmp_path, store) as scene:
        await scene.post(body_of(second))  # stays in the journal
    assert not store.objects
    store.outage = None
    async with a_scene(tmp_path, store) as scene:
        await scene.until_shipped()
    assert stored_events(store.objects) == [line_of(event) for event in first + second]
    assert spooled(tmp_path) == []


async def test_a_journal_sealed_twice_overwrites_and_never_doubles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events, store = EventMaker().events(10), MemoryStore()
    monkeypatch.setattr(Path, "unlink", lambda *_, **__: None)  # as if the process died before each deletion
    for _ in range(3):
        async with a_scene(tmp_path, store) as scene:
            if not store.objects:
                await scene.post(body_of(events))
            await scene.flush()
    assert len(store.order) > 1
    assert stored_events(store.objects) == [line_of(event) for event in events]


async def test_while_the_bucket_is_down_ray_gets_200_until_the_budget_ends_and_then_all_arrives(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = MemoryStore(outage=unavailable())
    kept: list[bytes] = []
    async with a_scene(tmp_path, store, spool_max_bytes=2 * MIB) as scene:
        with caplog.at_level(logging.INFO):
            refused, seed = 0, 0

            def is_full() -> bool:  # sealing makes no more room; right after it there is some
                return scene.metric("event_unsent_bytes") > MIB and not list((tmp_path / "journals").iterdir())

            while not refused or not is_full():
                events = EventMaker(seed).events(200)
                if await scene.post(body_of(events)) == [200]:
                    kept += map(line_of, events)
                    seed += 1
                else:
                    refused += 1
                    await asyncio.sleep(0.05)
            assert sum(map(len, kept)) > 4 * MIB  # what is sealed takes a tenth
            assert sum(path.stat().st_size for path in spooled(tmp_path)) <= 2.2 * MIB
            assert scene.path.figures.batches_refused == scene.metric("batches_refused_total") == refused
            assert scene.metric("bucket_up") == 0
            store.outage = None
            await scene.until_shipped()
            assert await scene.post(body_of(events)) == [200]
            assert await scene.flush() == 0
    assert stored_events(store.objects) == kept + [line_of(event) for event in events]
    said = [record.message for record in caplog.records]
    told = said.count("events refused: no room on disk until the bucket takes what is there")
    assert 1 <= told == said.count("events accepted again") <= refused
    assert said.count("bucket does not take objects, data waits on disk") == 1


async def test_a_bucket_that_fails_at_random_gets_everything(tmp_path: Path) -> None:
    class Flaky(MemoryStore):
        async def put(self, key: str, data: bytes) -> None:
            if self.calls % 3:
                self.calls += 1
                raise unavailable()
            await super().put(key, data)

    store, maker, kept = Flaky(), EventMaker(), []
    async with a_scene(tmp_path, store, segment_max_bytes=50_000) as scene:
        for _ in range(10):
            events = maker.events(100)
            kept += events
            await scene.post(body_of(events))
        assert await scene.flush() == 0
    assert sorted(stored_events(store.objects)) == sorted(map(line_of, kept))


async def test_a_full_disk_is_answered_with_503_and_heals_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    maker = EventMaker()
    first, second, third = maker.events(5), maker.events(5), maker.events(5000)
    write = disk.write_parts
    is_full = False

    def write_some(descriptor: int, parts: list[bytes]) -> None:
        if is_full:
            write(descriptor, [b"".join(parts)[:50]])
            raise OSError(errno.ENOSPC, "No space left on device")
        write(descriptor, parts)

    monkeypatch.setattr(disk, "write_parts", write_some)
    async with a_scene(tmp_path) as scene:
        assert await scene.post(body_of(first)) == [200]
        is_full = True
        assert await scene.post(body_of(second), body_of(third)) == [503, 503]
        is_full = False
        assert await scene.post(body_of(second), body_of(third)) == [200, 200]
        assert await scene.flush() == 0
        # A large body is split when it is sealed: no order is promised between it and a small one.
        assert sorted(stored_events(scene.store.objects)) == sorted(map(line_of, first + second + third))
        assert scene.metric("spool_bytes") == 0
    assert spooled(tmp_path) == []


async def test_with_no_room_for_sealed_segments_they_go_straight_to_the_bucket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(SealedFiles, "write", refuse)
    events = EventMaker().events(10)
    async with a_scene(tmp_path) as scene:
        await scene.post(body_of(events))
        assert await scene.flush() == 0
    assert stored_events(scene.store.objects) == [line_of(event) for event in events]
    assert spooled(tmp_path) == []


async def test_a_journal_that_cannot_be_sealed_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures: list[object] = []

    def fail_once(*args: object) -> object:
        if not failures:
            failures.append(args)
            raise ZeroDivisionError
        return read_closed(*args)  # type: ignore[arg-type]  # as they are given

    monkeypatch.setattr(sealer, "read_closed", fail_once)
    monkeypatch.setattr(sealer, "RETRY_SECONDS", 0.01)
    maker = EventMaker()
    async with a_scene(tmp_path, segment_max_bytes=1000) as scene:
        await scene.post(*(body_of(maker.events(10)) for _ in range(5)))
        await scene.until_shipped()
        assert len(stored_events(scene.store.objects)) == 50
        assert scene.metric("seal_errors_total") == 1


async def test_a_flush_ends_at_its_deadline_and_says_what_is_left(tmp_path: Path) -> None:
    store = MemoryStore(outage=unavailable())
    async with a_scene(tmp_path, store) as scene:
        await scene.post(body_of(EventMaker().events(10)))
        started = time.monotonic()
        assert await scene.flush(0.3) > 0
        assert time.monotonic() - started < 5 * BUSY_FACTOR


async def test_at_the_end_the_newest_goes_first(tmp_path: Path) -> None:
    store = MemoryStore()
    store.gate.clear()
    async with a_scene(tmp_path, store, segment_max_bytes=1, parallel_uploads=1) as scene:
        for seed in range(4):
            await scene.post(body_of(EventMaker(seed).events(1)))
            await until(lambda seed=seed: len(list((tmp_path / "sealed").rglob("*.zst"))) == seed + 1)  # type: ignore[misc]
        flushing = asyncio.create_task(scene.flush())
        await asyncio.sleep(0.05)
        store.gate.set()
        assert await flushing == 0
    oldest, *rest = store.order
    assert oldest == min(store.order)  # it was under way already
    assert rest == sorted(rest, reverse=True)


async def test_the_last_post_is_known(tmp_path: Path) -> None:
    async with a_scene(tmp_path) as scene:
        assert scene.path.last_post_at is None
        await scene.post(b"[]")
        assert scene.path.last_post_at is not None
        assert 0 <= scene.clock.steady() - scene.path.last_post_at < 30


async def test_answers_wait_a_little_while_sealing_is_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def slowly(*args: object) -> object:
        time.sleep(0.2)
        return read_closed(*args)  # type: ignore[arg-type]  # as they are given

    monkeypatch.setattr(sealer, "read_closed", slowly)
    bodies = [body_of(EventMaker(seed).events(100)) for seed in range(20)]
    async with a_scene(tmp_path, segment_max_bytes=80_000, spool_max_bytes=1_600_000) as scene:
        assert await scene.post(*bodies) == [200] * 20  # faster than this they would not have fit
        assert await scene.flush() == 0
        assert len(stored_events(scene.store.objects)) == 2000


def test_listening_needs_no_compressor_and_no_object_store() -> None:
    program = (
        "import sys; import raykeeper.collector.events.path;"
        "print(*sorted({'opendal', 'zstandard', 'aiohttp', 'starlette', 'duckdb', 'json'} & set(sys.modules)))"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert loaded.stdout.split() == []


async def test_a_bug_while_uploading_costs_nothing_but_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "RETRY_SECONDS", 0.01)
    store = MemoryStore(outage=ZeroDivisionError())
    async with a_scene(tmp_path, store, idle_seal_seconds=0.01) as scene:
        await scene.post(body_of(EventMaker().events(3)))
        await until(lambda: store.calls > 2)
        store.outage = None
        await scene.until_shipped()
        assert len(stored_events(store.objects)) == 3


async def test_a_journal_that_cannot_be_closed_is_closed_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failures = 3

    def refuse_for_a_while(folder: Path) -> None:
        nonlocal failures
        failures -= 1
        if failures >= 0:
            raise OSError(errno.EIO, "Input/output error")
        sync_folder(folder)

    monkeypatch.setattr(spool, "sync_folder", refuse_for_a_while)
    monkeypatch.setattr(path, "LOOK_SECONDS", 0.01)
    maker = EventMaker()
    async with a_scene(tmp_path, idle_seal_seconds=0.01) as scene:
        for _ in range(3):
            assert await scene.post(body_of(maker.events(3))) == [200]
        await scene.until_shipped()
        assert len(stored_events(scene.store.objects)) == 9
