"""Log files out of packs: overlaps, gaps, damage, tails, and files larger than memory should be."""

from __future__ import annotations

import asyncio
import itertools
import tracemalloc
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raykeeper.history.logs import indexes as indexes_module
from raykeeper.history.logs.indexes import PackIndexes
from raykeeper.history.logs.query import without_codes
from raykeeper.history.logs.reader import LogReader
from raykeeper.history.logs.store import LogStore
from raykeeper.layout.logs import DELETED, StoredLog
from raykeeper.layout.packs import Gap
from raykeeper.storage.backends.backend import StoreSettings
from raykeeper.storage.backends.local import LOCAL
from raykeeper.storage.local.localstore import LocalStore
from raykeeper.storage.store import ObjectStore
from support.clocks import ManualClock
from support.history_scene import HEAD_ID, SESSION, PackBuilder, local_store


async def text_of(logs: LogStore, path: str, start: int = 0, end: int | None = None) -> bytes:
    stored = (await logs.files(SESSION, HEAD_ID)).by_path[path]
    return b"".join([piece async for piece in logs.reader.stream(stored, start, stored.size if end is None else end)])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def store(folder: Path) -> ObjectStore:
    return local_store(folder)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def logs(store: ObjectStore, clock: ManualClock) -> LogStore:
    return LogStore(store, clock)


async def test_a_file_is_put_together_from_overlapping_frames_of_many_packs(store: ObjectStore, logs: LogStore) -> None:
    text, packs = bytes(range(256)) * 4, PackBuilder(store)
    for start, end in ((0, 300), (600, 1024), (200, 650)):
        packs.add("raylet.out", text[start:end], offset=start)
        packs.add("other.log", b"other")
        await packs.put()
    assert await text_of(logs, "raylet.out") == text
    assert await text_of(logs, "raylet.out", 150, 700) == text[150:700]


class RangesStore(LocalStore):
    """A store that knows which ranges it was asked for."""

    def __init__(self, folder: Path) -> None:
        super().__init__(StoreSettings(LOCAL, str(folder)))
        self.ranges: list[tuple[int, int]] = []

    async def read_range(self, key: str, offset: int, length: int) -> bytes:
        self.ranges.append((offset, length))
        return await super().read_range(key, offset, length)


async def test_the_index_of_a_small_pack_is_asked_for_once_and_not_beyond_its_end(folder: Path) -> None:
    store = RangesStore(folder)
    packs = PackBuilder(store)
    packs.add("raylet.out", b"text")
    size = len(await store.get(await packs.put()))
    assert "raylet.out" in (await LogStore(store, ManualClock()).files(SESSION, HEAD_ID)).by_path
    assert store.ranges == [(0, size)]


async def test_rotation_does_not_mix_files(store: ObjectStore, logs: LogStore) -> None:
    packs = PackBuilder(store)
    packs.add("raylet.out", b"old\n", generation="first")
    await packs.put()
    packs.add("raylet.out.1", b"end of old\n", offset=4, generation="first")
    packs.add("raylet.out", b"new\n", generation="second")
    await packs.put()
    assert await text_of(logs, "raylet.out") == b"new\n"
    assert await text_of(logs, "raylet.out.1") == b"old\nend of old\n"


async def test_a_name_is_its_successors_also_where_the_end_of_the_first_file_comes_to_a_server_that_looks(
    store: ObjectStore, clock: ManualClock, logs: LogStore
) -> None:
    packs = PackBuilder(store)
    packs.add("raylet.out", b"first\n", generation="2-1")
    packs.add("raylet.out", b"second\n", generation="1-2")  # by a clock that was set back in between
    await packs.put()
    assert await text_of(logs, "raylet.out") == b"first\n"
    packs.writer.add_gap(Gap("raylet.out", "2-1", 6, 0, DELETED))
    await packs.put()
    clock.advance(5)
    assert await text_of(logs, "raylet.out") == b"second\n"


async def test_a_file_rewritten_in_place_has_its_last_version(store: ObjectStore, logs: LogStore) -> None:
    packs = PackBuilder(store)
    for version in (b"a long first version", b"second"):
        packs.add("debug_state.txt", version, is_whole=True)
        await packs.put()
    assert await text_of(logs, "debug_state.txt") == b"second"


async def test_bytes_that_are_missing_are_said_where_they_are_missing(store: ObjectStore, logs: LogStore) -> None:
    packs = PackBuilder(store)
    packs.add("raylet.out", b"start\n")
    packs.lose("raylet.out", 6, 100, "deleted before it was read")
    packs.add("raylet.out", b"end\n", offset=106)
    await packs.put()
    text = (await text_of(logs, "raylet.out")).decode()
    assert text == "start\n\n[raykeeper: 100 bytes of this log are missing here: deleted before it was read]\nend\n"


async def test_a_damaged_frame_is_a_gap_and_its_neighbours_are_read(store: ObjectStore, logs: LogStore) -> None:
    packs = PackBuilder(store)
    packs.add("raylet.out", b"first" * 100)
    key = await packs.put()
    packs.add("raylet.out", b"second", offset=500)
    await packs.put()
    pack = bytearray(await store.get(key))
    pack[8] ^= 0xFF
    await store.put(key, bytes(pack))
    text = (await text_of(logs, "raylet.out")).decode()
    assert "500 bytes of this log are missing here" in text
    assert text.endswith("second")


@pytest.mark.parametrize(
    "damage", [b"", b"not a pack at all", b"x" * 8 + (1 << 40).to_bytes(8, "little") + b"RKPACK01"]
)
async def test_a_damaged_pack_is_told_and_the_others_are_read(
    store: ObjectStore, logs: LogStore, damage: bytes
) -> None:
    packs = PackBuilder(store)
    packs.add("lost.log", b"lost")
    key = await packs.put()
    packs.add("raylet.out", b"there")
    await packs.put()
    await store.put(key, damage)
    files = await logs.files(SESSION, HEAD_ID)
    assert (list(files.by_path), list(files.damaged)) == (["raylet.out"], [key])


async def test_new_packs_are_seen_within_seconds_and_old_ones_are_not_read_again(
    store: ObjectStore, clock: ManualClock, logs: LogStore
) -> None:
    packs = PackBuilder(store)
    packs.add("raylet.out", b"one\n")
    first = await packs.put()
    assert await text_of(logs, "raylet.out") == b"one\n"
    await store.put(first, b"no pack any more: whoever reads its index again fails")
    packs.add("raylet.out", b"two\n", offset=4)
    await packs.put()
    clock.advance(5)
    files = await logs.files(SESSION, HEAD_ID)
    assert (files.by_path["raylet.out"].size, files.damaged) == (8, {})


async def test_a_pack_of_a_node_whose_clock_is_hours_behind_is_found_in_the_end(
    store: ObjectStore, clock: ManualClock, logs: LogStore
) -> None:
    packs = PackBuilder(store)
    packs.add("raylet.out", b"x")
    key = await packs.put()
    await logs.files(SESSION, HEAD_ID)
    late = key.replace("2026-11-15T20", "2026-11-15T03").replace(str(1794772800000000000), str(1794711600000000000))
    packs.add("late.log", b"y")
    await store.put(late, packs.writer.to_bytes())
    clock.advance(301)
    assert "late.log" in (await logs.files(SESSION, HEAD_ID)).by_path


async def test_memory_for_indexes_is_bounded(store: ObjectStore, clock: ManualClock) -> None:
    indexes = PackIndexes(store, clock, max_frames=10)
    for number in range(8):
        packs = PackBuilder(store, node_id=f"{number:02d}" * 28)
        for file in range(4):
            packs.add(f"{file}.log", b"x")
        await packs.put()
    for node_id in await indexes.node_ids(SESSION):
        assert len((await indexes.of_node(SESSION, node_id)).logs) == 4
    assert sum(node.entries for node in indexes._nodes.values()) <= 10


async def test_of_more_pieces_than_can_be_held_the_newest_are_shown_and_the_others_told(
    store: ObjectStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """60 packs of 450 KB with 300,000 pieces each took five gigabytes."""
    monkeypatch.setattr(indexes_module, "MAX_ENTRIES", 40)
    logs, packs = LogStore(store, clock), PackBuilder(store)
    for number in range(20):
        for file in range(4):
            packs.add(f"{number:02d}-{file}.log", b"x")
        await packs.put()
    found = await logs.files(SESSION, HEAD_ID)
    assert sorted(found.by_path)[-40:] == [f"{number:02d}-{file}.log" for number in range(10, 20) for file in range(4)]
    assert len(found.by_path) <= 40 + 4 * 4
    assert len(found.by_path) + 4 * len(found.damaged) == 80
    packs.add("new.log", b"fine")
    await packs.put()
    clock.advance(5)
    found = await logs.files(SESSION, HEAD_ID)
    assert {"new.log", "19-3.log"} <= found.by_path.keys()
    assert len(found.by_path) <= 40 + 4 * 4


@settings(max_examples=60, deadline=None)
@given(
    text=st.text("ab\n", max_size=40),
    cuts=st.lists(st.integers(0, 40), max_size=5),
    lines=st.integers(1, 12),
    start=st.integers(0, 10),
)
def test_the_last_lines_are_those_that_a_person_would_count(
    tmp_path_factory: pytest.TempPathFactory, text: str, cuts: list[int], lines: int, start: int
) -> None:
    content = text.encode()
    bounds = sorted({0, len(content), *(cut for cut in cuts if cut < len(content))})
    expected = b"".join(content.splitlines(keepends=True)[-lines:])

    async def look() -> None:
        store = local_store(tmp_path_factory.mktemp("store"))
        packs = PackBuilder(store)
        for first, last in itertools.pairwise(bounds):
            packs.add("a.log", content[first:last], offset=first)
        packs.add("a.log", b"", offset=len(content))
        await packs.put()
        logs = LogStore(store, ManualClock())
        stored = (await logs.files(SESSION, HEAD_ID)).by_path["a.log"]
        begin = await logs.reader.tail_start(stored, 0, len(content), lines)
        assert content[begin:] == expected
        limited = await logs.reader.tail_start(stored, min(start, len(content)), len(content), lines)
        assert limited == max(begin, min(start, len(content)))

    asyncio.run(look())


async def test_a_tail_reads_only_the_end_of_a_long_file(store: ObjectStore, folder: Path, clock: ManualClock) -> None:
    packs, line = PackBuilder(store), b"x" * 99 + b"\n"
    for tick in range(200):
        packs.add("long.log", line * 100, offset=tick * 10_000)
        await packs.put()
    counting = CountingReads(StoreSettings(LOCAL, str(folder)))
    logs = LogStore(counting, clock)
    stored = (await logs.files(SESSION, HEAD_ID)).by_path["long.log"]
    counting.reads = 0
    begin = await logs.reader.tail_start(stored, 0, stored.size, 150)
    tail = b"".join([piece async for piece in logs.reader.stream(stored, begin, stored.size)])
    assert tail == line * 150
    assert counting.reads <= 12


async def test_a_line_of_a_gigabyte_is_streamed_with_little_memory(store: ObjectStore, clock: ManualClock) -> None:
    """One frame stands for all of them, read again each time, so that the test needs no gigabyte of disk."""
    size, frames = 4 << 20, 256
    packs = PackBuilder(store)
    packs.add("big.log", b"x" * size)
    await packs.put()
    logs = LogStore(store, clock)
    small = (await logs.files(SESSION, HEAD_ID)).by_path["big.log"]
    [(pack, frame)] = small.frames
    big = StoredLog("g", "big.log")
    for number in range(frames):
        shifted = type(frame)(
            frame.path, "g", number * size, size, frame.position, frame.size, frame.read_ns, frame.is_whole
        )
        big.frames.append((pack, shifted))
    reader = LogReader(store, cache_bytes=0)
    tracemalloc.start()
    try:
        assert await reader.tail_start(big, 0, big.size, 1000) == 0
        total = 0
        async for piece in reader.stream(big, 0, big.size):
            total += len(piece)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (total, big.size) == (frames * size, 1 << 30)
    assert peak < 64 << 20


async def test_colours_are_taken_out_also_where_a_piece_cuts_them() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for piece in (b"\x1b[31mred\x1b", b"[0m plain \x1b[1", b";32mgreen\x1b[0m\x1b[K end\x1b"):
            yield piece

    text = b"".join([piece async for piece in without_codes(pieces())])
    assert text == b"red plain green\x1b[K end\x1b"


class CountingReads(LocalStore):
    """A store that counts how often it is read."""

    reads = 0

    async def read_range(self, key: str, offset: int, length: int) -> bytes:
        self.reads += 1
        return await super().read_range(key, offset, length)
