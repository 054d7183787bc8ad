"""What user code posts to the sink, or puts into the spool, costs no event of Ray's and reaches nobody else."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import os
import time
from collections import Counter
from functools import partial
from pathlib import Path

from bed.waiting import BUSY_FACTOR, wait_until
from collector.ray_folders import NODE_A, NODE_B, SESSION, a_port_file, a_session, written
from collector.whole.hostile import TEAM, Neighbourhood
from raykeeper.collector.events.disk import Batch
from raykeeper.collector.events.journal import BodyFlag
from raykeeper.collector.events.limits import MAX_JOURNAL_BYTES
from raykeeper.collector.events.sink import MAX_CONNECTIONS
from raykeeper.layout.keys import EventSegmentKey, SessionId
from raykeeper.layout.segments import compress_lines
from support.collector_processes import CollectorProcess, ended

MEMORY_BYTES = 256 << 20
RAY_GIVES_UP_SECONDS = 3.0
BOMBS = {
    "brackets": gzip.compress(b'[{"a":[' + b"[]," * (10 << 20) + b"[]]}]"),
    "brackets of a malformed body": gzip.compress(b'[{"a":[' + b"[]," * (5 << 20) + b"[]]},x]"),
    "objects": gzip.compress(b"[" + b'{"a":1},' * (3 << 20) + b"{}]"),
    "places at which an event may begin": gzip.compress(b'[{"a":' + b'{"b":"},{"' * (1 << 20) + b"]"),
    "escaped quotes without an end": gzip.compress(b'[{"a":"' + b'\\"' * (4 << 20)),
    "a text without an end": gzip.compress(b'[{"a":"' + b"x" * (14 << 20)),
    "many gzip members": gzip.compress(b"") * 28_000,
    "one long text": gzip.compress(b'[{"sessionName":"' + b"a" * (30 << 20) + b'"}]'),
    "more than it says": gzip.compress(b" " * (400 << 20)),
}


async def test_a_small_post_that_becomes_large_takes_neither_memory_nor_time(tmp_path: Path) -> None:
    there = Neighbourhood(tmp_path)
    peak = slowest = 0.0
    with ended(there.collector):
        there.collector.start()
        for bomb in BOMBS.values():
            assert len(bomb) < 600_000
            assert await there.post(bomb, Content_Encoding="gzip") == 200
            for _ in range(10):
                began = time.monotonic()
                await there.post_honest()
                slowest = max(slowest, time.monotonic() - began)
                peak = max(peak, there.resident_bytes)
                await asyncio.sleep(0.1)  # the pace of the work
        await asyncio.to_thread(wait_until, "all is sent", lambda: not there.collector.metric("event_unsent_bytes"))
        peak = max(peak, there.resident_bytes)
        there.collector.end()
    print(f"{len(BOMBS)} bombs: {peak / 2**20:.0f} MB at most, slowest honest post {slowest:.2f} s")
    assert peak < MEMORY_BYTES
    assert slowest < RAY_GIVES_UP_SECONDS * BUSY_FACTOR
    assert there.stored.event_ids() == Counter(there.acknowledged)


async def test_what_somebody_put_into_the_spool_is_neither_believed_nor_followed(tmp_path: Path) -> None:
    there = Neighbourhood(tmp_path)
    spool, victim = tmp_path / "spool", SessionId("victim-ns", "victim", SESSION)
    forged = compress_lines([b'{"eventType":"FORGED"}'])
    written(spool / "sealed" / EventSegmentKey(victim, NODE_A, time.time_ns(), 0).key, forged)
    link = spool / "sealed" / EventSegmentKey(TEAM, NODE_A, time.time_ns(), 0).key
    link.parent.mkdir(parents=True)
    link.symlink_to(written(tmp_path / "token", b"TOP-SECRET"))
    target = written(tmp_path / "target", b"precious")
    (spool / "logs").mkdir()
    (spool / "logs" / "positions.new").symlink_to(target)
    with ended(there.collector):
        there.collector.start()
        there.say(b"a line\n")
        await there.post_honest()
        there.collector.end()
    assert target.read_bytes() == b"precious"
    assert b"FORGED" not in there.shipped()
    assert there.namespaces() == {"local"}
    assert b"TOP-SECRET" not in there.shipped()
    assert there.stored.event_ids() == Counter(there.acknowledged)


async def test_a_spool_full_of_traps_neither_stops_a_start_nor_holds_it_up(tmp_path: Path) -> None:
    there = Neighbourhood(tmp_path)
    sealed, journals = tmp_path / "spool" / "sealed", tmp_path / "spool" / "journals"
    key = EventSegmentKey(TEAM, NODE_A, time.time_ns(), 0).key
    for folder in (journals / "1.part", journals / "2.open", journals / "3.closed", sealed / "x.tmp", sealed / key):
        folder.mkdir(parents=True)
    for number, name in enumerate(("4.part", "5.open", "6.closed")):
        os.mkfifo(journals / name)
        (journals / f"{number + 7}.closed").symlink_to(written(tmp_path / "token", b"TOP-SECRET"))
    os.mkfifo(sealed / f"{key}.zst")
    (tmp_path / "empty").mkdir()
    (sealed / "v2").symlink_to(tmp_path / "empty")
    with ended(there.collector):
        there.collector.start()
        await there.post_honest()
        assert there.collector.end() == 0
    assert b"TOP-SECRET" not in there.shipped()
    assert there.stored.event_ids() == Counter(there.acknowledged)


async def test_the_longest_journal_that_is_believed_is_sealed_within_the_sidecars_memory(tmp_path: Path) -> None:
    there = Neighbourhood(tmp_path)
    journals = tmp_path / "spool" / "journals"
    journals.mkdir(parents=True)
    planted = b'{"eventId":"planted","sessionName":"%s","text":"%s"}' % (SESSION.encode(), b"x" * 900)
    for number, limit in enumerate((MAX_JOURNAL_BYTES, MAX_JOURNAL_BYTES + 8192)):
        body = b"[" + b",".join([planted] * (limit // (len(planted) + 1))) + b"]"
        (journals / f"{number + 1}.closed").write_bytes(b"".join(Batch(1, BodyFlag.NONE, [body], len(body)).record()))
    with ended(there.collector):
        there.collector.start()
        await there.post_honest()
        await asyncio.to_thread(wait_until, "it is sealed", lambda: not (journals / "1.closed").exists())
        peak = there.collector.peak_bytes
        there.collector.end()
    assert peak < MEMORY_BYTES
    assert (journals / "2.closed").exists(), "too long to be ours"
    assert set(there.acknowledged) <= there.stored.event_ids().keys()


def sealed_files(folder: Path) -> list[Path]:
    return [path for path in (folder / "spool" / "sealed").rglob("*.zst") if path.is_file()]


async def test_an_end_owns_up_to_events_that_could_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "store").touch()  # a bucket that takes nothing
    there = Neighbourhood(tmp_path)
    with ended(there.collector):
        there.collector.start()
        for _ in range(3):
            await there.post_honest()
            await asyncio.sleep(0.7)  # each batch is a sealed file of its own
        sealed = await asyncio.to_thread(wait_until, "a batch is sealed", lambda: sealed_files(tmp_path))
        sealed[0].unlink()
        sealed[0].mkdir()
        (tmp_path / "store").unlink()
        there.collector.terminate()
        assert there.collector.wait() == 1
    end = there.stored.end(NODE_A)
    assert end is not None
    assert not end.is_complete
    assert end.missing_event_bytes > 0


async def test_a_made_up_latest_session_takes_the_blame_for_nothing(tmp_path: Path) -> None:
    (tmp_path / "store").touch()  # a bucket that takes nothing
    there = Neighbourhood(tmp_path)
    with ended(there.collector):
        there.collector.start()
        await there.post_honest()
        sealed = await asyncio.to_thread(wait_until, "a batch is sealed", lambda: sealed_files(tmp_path))
        a_port_file(a_session(there.ray, "session_2026-11-16_00-00-00_000000_1"), NODE_B)
        await asyncio.sleep(2.5)  # the collector looks once a second
        sealed[0].unlink()
        sealed[0].mkdir()
        (tmp_path / "store").unlink()
        there.collector.terminate()
        assert there.collector.wait() == 1
    end = there.stored.end(NODE_A)
    assert end is not None
    assert (end.is_complete, end.missing_event_bytes > 0) == (False, True)


async def test_a_body_of_thousands_of_sessions_becomes_few_objects(tmp_path: Path) -> None:
    there = Neighbourhood(tmp_path)
    names = [b'{"eventType":"X","sessionName":"session_%d"}' % number for number in range(4000)]
    with ended(there.collector):
        there.collector.start()
        assert await there.post(b"[" + b",".join(names) + b"]") == 200
        await there.post_honest()
        there.collector.end()
    assert there.session_count() < 50
    assert there.stored.event_ids() == Counter(there.acknowledged)


async def test_lengths_that_are_only_said_take_no_room(tmp_path: Path) -> None:
    there = Neighbourhood(tmp_path)
    with ended(there.collector):
        there.collector.start()
        head = b"POST /v1/events HTTP/1.1\r\nContent-Length: 104857000\r\n\r\n"
        stalled = [await asyncio.open_connection("127.0.0.1", there.port) for _ in range(3)]
        for _, writer in stalled:
            writer.write(head)
            await writer.drain()
        await there.post_honest()
        for _, writer in stalled:
            writer.close()
            await asyncio.gather(writer.wait_closed(), return_exceptions=True)
        there.collector.end()
    assert there.stored.event_ids() == Counter(there.acknowledged)


async def test_posts_that_stall_or_drip_keep_nobody_out(tmp_path: Path) -> None:
    there = Neighbourhood(tmp_path)
    with ended(there.collector):
        there.collector.start()
        port, head = there.port, b"POST /v1/events HTTP/1.1\r\nContent-Length: 100000\r\n\r\n["

        async def drip() -> None:
            """Begin a post, send a byte now and then, and begin the next one where it is hung up on."""
            while True:
                with contextlib.suppress(OSError):
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                    with contextlib.closing(writer):
                        writer.write(head)
                        while not writer.is_closing():
                            writer.write(b" ")
                            await writer.drain()
                            await asyncio.sleep(0.2)
                await asyncio.sleep(0.05)

        drips = [asyncio.create_task(drip()) for _ in range(2 * MAX_CONNECTIONS)]
        try:
            await asyncio.sleep(1)  # by now they have every place
            for _ in range(20):
                began = time.monotonic()
                await there.post_honest()
                assert time.monotonic() - began < RAY_GIVES_UP_SECONDS * BUSY_FACTOR
        finally:
            for task in drips:
                task.cancel()
            await asyncio.gather(*drips, return_exceptions=True)
        there.collector.end()
    assert there.stored.event_ids() == Counter(there.acknowledged)


async def test_a_journal_that_is_cut_or_replaced_costs_no_other(tmp_path: Path) -> None:
    there = Neighbourhood(tmp_path)
    journals = tmp_path / "spool" / "journals"
    with ended(there.collector):
        there.collector.start()
        for damage, losses in ((cut, 1), (taken_away, 2), (replaced_by_a_fifo, 3), (overwritten, 4)):
            there.acknowledged.clear()  # what the neighbour damages is lost
            await there.post_honest()
            files = [path for path in (tmp_path / "spool").rglob("*") if path.is_file()]
            assert [path for path in files if path.stat().st_mode & 0o077] == []
            for path in open_journals(journals):
                damage(path)
            await asyncio.to_thread(wait_until, "it is closed", lambda: not open_journals(journals))
            await asyncio.to_thread(wait_until, "it is told", partial(has_told, there.collector, losses))
            there.acknowledged.clear()
            await there.post_honest()
        there.collector.terminate()
        assert there.collector.wait() == 1
    assert set(there.acknowledged) <= there.stored.event_ids().keys()
    assert max(there.stored.event_ids().values()) == 1
    end = there.stored.end(NODE_A)
    assert end is not None
    assert not end.is_complete


def open_journals(folder: Path) -> list[Path]:
    return [path for path in folder.glob("*.open") if path.is_file()]


def has_told(collector: CollectorProcess, losses: int) -> bool:
    return len(collector.said("acknowledged events were removed from the spool")) == losses


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def taken_away(path: Path) -> None:
    path.unlink()


def replaced_by_a_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def overwritten(path: Path) -> None:
    path.write_bytes(os.urandom(5000))


async def test_a_web_page_cannot_post_events(tmp_path: Path) -> None:
    there = Neighbourhood(tmp_path)
    with ended(there.collector):
        there.collector.start()
        forged = b'[{"eventType":"FORGED","sessionName":"%s"}]' % SESSION.encode()
        assert await there.post(forged, Origin="https://evil.example", Content_Type="text/plain") == 403
        await there.post_honest()
        there.collector.end()
    assert there.stored.event_ids() == Counter(there.acknowledged)


async def test_somebody_elses_spool_stops_it_by_name(tmp_path: Path) -> None:
    there = Neighbourhood(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "spool").symlink_to(tmp_path / "elsewhere")
    with ended(there.collector):
        there.collector.start()
        assert there.collector.wait() == 2
    assert "--event-data-dir" in there.collector.output.read_text()
