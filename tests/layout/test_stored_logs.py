"""Log files are put together again from packs: by generation, under their last name, without overlaps."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from bed.waiting import BUSY_FACTOR
from raykeeper.layout.logs import DELETED, Hole, Slice, StoredLog, logs_of_packs, newest_by_path, plan_read, read_log
from raykeeper.layout.packs import Frame, Gap, PackWriter

TEXT = bytes(range(256)) * 4
ranges = st.lists(st.tuples(st.integers(0, 1000), st.integers(1, 200)), max_size=12)


def packs_of(*frames: tuple[str, str, int, bytes], gaps: tuple[Gap, ...] = ()) -> dict[str, bytes]:
    """A pack for each frame, read one after the other."""
    packs = {}
    for number, (path, generation, offset, data) in enumerate(frames):
        writer = PackWriter()
        writer.add(path, generation, offset, data, number)
        packs[f"{number}.pack"] = writer.to_bytes()
    writer = PackWriter()
    for gap in gaps:
        writer.add_gap(gap)
    return packs | {"gaps.pack": writer.to_bytes()}


def only(packs: dict[str, bytes]) -> tuple[StoredLog, bytes, list[Hole]]:
    logs, fetch = logs_of_packs(packs)
    (stored,) = logs.values()
    return stored, *read_log(stored, 0, stored.size, fetch)


@given(ranges.filter(bool), st.integers(0, 1100), st.integers(0, 1100))
def test_any_range_is_read_once_from_whatever_frames_there_are(frames: list[tuple[int, int]], a: int, b: int) -> None:
    packs = packs_of(*(("a.out", "1", start, TEXT[start : start + length]) for start, length in frames))
    logs, fetch = logs_of_packs(packs)
    data, holes = read_log(logs["1"], a, b, fetch)
    stored = {at for start, length in frames for at in range(start, min(start + length, len(TEXT)))}
    inside = range(a, min(b, logs["1"].size))
    assert data == bytes(TEXT[at] for at in inside if at in stored)
    assert [at for hole in holes for at in range(hole.start, hole.end)] == [at for at in inside if at not in stored]


def test_a_file_has_the_name_it_was_last_told_under() -> None:
    renamed = packs_of(("a.out", "1", 0, b"old"), ("a.out.1", "1", 3, b""), ("a.out", "2", 0, b"new"))
    logs, fetch = logs_of_packs(renamed)
    newest = newest_by_path(logs.values())
    assert {path: read_log(log, 0, 99, fetch) for path, log in newest.items()} == {
        "a.out.1": (b"old", []),
        "a.out": (b"new", []),
    }


def test_of_two_files_with_one_name_the_later_one_has_it_though_the_other_was_read_last() -> None:
    logs, _ = logs_of_packs(packs_of(("a.out", "20-7", 0, b"new"), ("a.out", "3-7", 0, b"old")))
    assert newest_by_path(logs.values())["a.out"].generation == "20-7"


def test_a_deleted_file_leaves_its_name_to_one_that_was_begun_earlier() -> None:
    gone = Gap("a.out.2", "20-7", 3, 0, DELETED)
    frames = (("a.out.2", "20-7", 0, b"old"), ("a.out.1", "3-8", 0, b"new"), ("a.out.2", "3-8", 3, b""))
    logs, fetch = logs_of_packs(packs_of(*frames, gaps=(gone,)))
    newest = newest_by_path(logs.values())["a.out.2"]
    assert read_log(newest, 0, newest.size, fetch) == (b"new", [])


def test_of_a_rewritten_file_only_the_last_version_counts() -> None:
    packs = {}
    for number, text in enumerate([b"a long version", b"short"]):
        writer = PackWriter()
        writer.add("debug_state.txt", "1", 0, text, number, is_whole=True)
        packs[str(number)] = writer.to_bytes()
    stored, data, holes = only(packs)
    assert (stored.size, data, holes) == (5, b"short", [])
    logs, fetch = logs_of_packs(packs)
    assert read_log(logs["1"], 1, 3, fetch) == (b"ho", [])


def test_a_hole_tells_why_it_is_there() -> None:
    gap = Gap("a.out", "1", 3, 4, "deleted before it was read")
    stored, data, holes = only(packs_of(("a.out", "1", 0, b"abc"), gaps=(gap,)))
    assert (stored.size, data) == (7, b"abc")
    assert holes == [Hole(3, 7, "deleted before it was read")]


def test_a_file_of_which_nothing_arrived_is_known_by_its_gap() -> None:
    stored, data, holes = only(packs_of(gaps=(Gap("a.out", "1", 0, 9, "gone"),)))
    assert (stored.path, data, holes) == ("a.out", b"", [Hole(0, 9, "gone")])


def test_a_read_touches_only_the_frames_it_needs() -> None:
    logs, _ = logs_of_packs(packs_of(*(("a.out", "1", at, TEXT[at : at + 100]) for at in range(0, 1000, 100))))
    pieces = plan_read(logs["1"], 250, 310)
    assert [(piece.start, piece.end) for piece in pieces] == [(250, 300), (300, 310)]
    assert all(isinstance(piece, Slice) for piece in pieces)


def test_a_file_of_thousands_of_holes_and_gaps_is_planned_at_once() -> None:
    """120,000 of each, 94 KB as a pack, took minutes: each hole looked through all gaps."""
    frames = [("pack", Frame("f", "1-1", 2 * number, 1, 0, 10, 5)) for number in range(100_000)]
    gaps = [Gap("f", "1-1", 10**9 + number, 1, "far away") for number in range(100_000)]
    gaps[7] = Gap("f", "1-1", 13, 1, "lost")
    began = time.process_time()
    plan = plan_read(StoredLog("1-1", "f", frames=frames, gaps=gaps), 0, 200_000)
    assert time.process_time() - began < 5 * BUSY_FACTOR
    holes = [piece for piece in plan if isinstance(piece, Hole)]
    assert len(holes) == 100_000
    assert [(hole.start, hole.end) for hole in holes if hole.reason] == [(13, 14)]
