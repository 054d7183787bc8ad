"""The viewer's windows into log files: numbers, marks, gaps, filters, errors, secrets, and files of any size."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raykeeper.history.logs import reader
from raykeeper.history.logs.levels import Level, level_of, may_have_error
from raykeeper.history.logs.lines import MARKS_OF_FILE, STEP_BYTES, LineCounter, LineMarks
from raykeeper.history.logs.store import FilePlace, LogStore
from raykeeper.history.search import log_view
from raykeeper.history.search.log_view import (
    LINE_CHARS,
    SCANNED_BYTES,
    WINDOW_BYTES,
    WINDOW_LINES,
    GrowingLines,
    LogWindow,
    ViewedFile,
    growing_lines,
)
from raykeeper.history.search.match import AnyCaseMatcher
from raykeeper.history.text import styled_texts, without_ansi
from raykeeper.layout.logs import Hole, Slice, StoredLog, plan_read
from raykeeper.storage.store import ObjectStore
from support.clocks import ManualClock
from support.counting_stores import CountingStore
from support.history_scene import HEAD_ID, SESSION, PackBuilder, local_store

TOKEN = "hf_abcdefghijklmnopqrstuvwxyz"
FILE = "worker-1.out"
PATIENCE = 60.0


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    return local_store(tmp_path / "store")


async def viewed(store: ObjectStore, text: bytes, frame: int = 1 << 16) -> ViewedFile:
    """A file of that text, in frames of so many bytes."""
    packs = PackBuilder(store)
    for start in range(0, len(text), frame):
        packs.add(FILE, text[start : start + frame], offset=start)
    await packs.put()
    return await opened(store)


async def opened(store: ObjectStore) -> ViewedFile:
    logs = LogStore(store, ManualClock())
    return ViewedFile(logs, SESSION, (await logs.files(SESSION, HEAD_ID)).by_path[FILE])


def numbered(count: int) -> bytes:
    return b"".join(f"line {number}\n".encode() for number in range(1, count + 1))


def check_numbers(window: LogWindow) -> None:
    for line in window.lines:
        assert line.text == f"line {line.number}"


async def test_a_line_is_found_by_its_number_and_marked(store: ObjectStore) -> None:
    file = await viewed(store, numbered(300_000))
    window = await file.at_line(200_000)
    assert window is not None
    check_numbers(window)
    assert [line.number for line in window.lines if line.is_here] == [200_000]
    assert len(window.lines) <= WINDOW_LINES


async def test_an_offset_is_shown_with_its_line_marked_and_lines_around_it(store: ObjectStore) -> None:
    text = numbered(50_000)
    window = await (await viewed(store, text)).around(text.index(b"line 31234\n") + 3)
    [here] = [line for line in window.lines if line.is_here]
    check_numbers(window)
    assert here.number == 31234
    assert window.lines[0].number is not None
    assert window.lines[0].number < 31234 < window.lines[0].number + len(window.lines)


async def test_pages_of_a_file_follow_each_other_without_repeats_or_gaps(store: ObjectStore) -> None:
    file = await viewed(store, numbered(5000), frame=1000)
    forward, at = list[int | None](), 0
    while at < file.stored.size:
        window = await file.from_offset(at)
        forward += [line.number for line in window.lines]
        at = window.end
    assert forward == list(range(1, 5001))
    back, end = list[int | None](), file.stored.size
    while end > 0:
        window = await file.before_offset(end)
        back = [line.number for line in window.lines] + back
        end = window.begin
    assert back == forward


async def test_the_end_of_a_file_is_shown_to_its_last_byte(store: ObjectStore) -> None:
    window = await (await viewed(store, numbered(9000) + b"no end of line")).before_offset(2**62)
    assert (window.lines[-1].text, window.lines[-1].number) == ("no end of line", 9001)
    assert window.end == window.size


async def test_a_line_beyond_the_last_shows_the_end(store: ObjectStore) -> None:
    window = await (await viewed(store, numbered(20))).at_line(500)
    assert window is not None
    assert window.lines[-1].number == 20
    assert window.lines[-1].is_here


async def test_an_empty_file_has_no_lines(store: ObjectStore) -> None:
    packs = PackBuilder(store)
    packs.add(FILE, b"")
    await packs.put()
    window = await (await opened(store)).around(7)
    assert (window.lines, window.size) == ((), 0)


async def test_missing_bytes_are_a_row_of_their_own_and_cost_no_number(store: ObjectStore) -> None:
    packs = PackBuilder(store)
    packs.add(FILE, b"line 1\nline 2 is c")
    packs.lose(FILE, 18, 2_000_000_000, "the disk was full")
    packs.add(FILE, b"ut\nline 3\n", offset=2_000_000_018)
    await packs.put()
    gap = (None, "2,000,000,000 bytes of this log are missing here: the disk was full")
    window = await (await opened(store)).around(0)
    assert [(line.number, line.text) for line in window.lines] == [(1, "line 1"), (2, "line 2 is c"), gap]
    assert window.end == 2_000_000_018
    later = await (await opened(store)).before_offset(2**62)
    assert [(line.number, line.text) for line in later.lines] == [gap, (None, "ut"), (3, "line 3")]
    assert later.begin == 18


async def test_a_line_longer_than_a_window_is_shown_in_part(store: ObjectStore) -> None:
    file = await viewed(store, b"x" * 300_000 + b"\nlast\n")
    window = await file.from_offset(100_000)
    assert len(window.lines) == 1
    assert len(window.lines[0].text) <= LINE_CHARS + 2
    assert window.end > 100_000
    assert (await file.before_offset(2**62)).lines[-1].text == "last"


async def test_a_window_of_a_large_file_reads_a_few_frames(tmp_path: Path) -> None:
    await viewed(local_store(tmp_path / "store"), numbered(400_000), frame=1 << 16)
    counting = CountingStore(tmp_path / "store")
    logs = LogStore(counting, ManualClock())
    stored = (await logs.files(SESSION, HEAD_ID)).by_path[FILE]
    counting.asked.ranges.clear()
    window = await ViewedFile(logs, SESSION, stored).from_offset(0)
    assert window.lines[0].number == 1
    assert len(counting.asked.ranges) <= 2


async def test_numbers_come_later_in_a_file_that_takes_long_to_count(store: ObjectStore) -> None:
    file = await viewed(store, numbered(200_000))
    offset = file.stored.size - 7
    assert await file.logs.lines.line_at(SESSION, file.stored, offset, 0.0) is None
    assert await file.logs.lines.line_at(SESSION, file.stored, file.stored.size, PATIENCE) == 200_001


async def test_a_file_that_grows_is_counted_on_from_where_it_was(store: ObjectStore) -> None:
    file, packs = await viewed(store, numbered(1000)), PackBuilder(store, sequence=1)
    counter = LineCounter(store)
    size = file.stored.size
    assert await counter.line_at(SESSION, file.stored, size, PATIENCE) == 1001
    packs.add(FILE, b"line 1001\nline 1002\n", offset=size)
    await packs.put()
    grown = (await opened(store)).stored
    assert await counter.line_at(SESSION, grown, grown.size, PATIENCE) == 1003
    assert await counter.offset_of(SESSION, grown, 1002, PATIENCE) == size + len("line 1001\n")


def test_a_file_of_any_length_has_a_bounded_number_of_marks() -> None:
    marks = LineMarks()
    for _ in range(3 * MARKS_OF_FILE):
        marks.add(STEP_BYTES, 10)
    assert len(marks.offsets) <= MARKS_OF_FILE
    for offset in (0, 5 * STEP_BYTES + 7, marks.at):
        at, ends = marks.before_offset(offset)
        assert offset - 2 * marks.step <= at <= offset
        assert ends == at // STEP_BYTES * 10


@settings(max_examples=25, deadline=None)
@given(st.lists(st.binary(max_size=30), max_size=60), st.integers(1, 40))
def test_lines_and_offsets_are_each_others_inverse(
    tmp_path_factory: pytest.TempPathFactory, parts: list[bytes], frame: int
) -> None:
    lines = [part.replace(b"\n", b"") for part in parts]
    text = b"".join(line + b"\n" for line in lines)

    async def check() -> None:
        file = await viewed(local_store(tmp_path_factory.mktemp("store")), text or b"\n", frame)
        at = 0
        for number, line in enumerate(lines, 1):
            assert await file.logs.lines.offset_of(SESSION, file.stored, number, PATIENCE) == at
            assert await file.logs.lines.line_at(SESSION, file.stored, at, PATIENCE) == number
            at += len(line) + 1

    asyncio.run(check())


async def test_lines_with_some_words_are_shown_with_their_numbers_whatever_their_case(store: ObjectStore) -> None:
    text = b"".join(b"The Needle\n" if number % 1000 == 0 else b"hay\n" for number in range(1, 10_001))
    window = await (await viewed(store, text)).with_words("nEEDLE", 0)
    assert [line.number for line in window.lines] == list(range(1000, 10_001, 1000))
    assert window.end == window.size


async def test_many_lines_with_some_words_come_in_pages(store: ObjectStore) -> None:
    file = await viewed(store, numbered(2000))
    found, at = list[str](), 0
    while at < file.stored.size:
        window = await file.with_words("line", at)
        found += [line.text for line in window.lines]
        assert len(window.lines) <= WINDOW_LINES
        at = window.end
    assert found == [f"line {number}" for number in range(1, 2001)]


@pytest.mark.parametrize("line", [b"e\n", b"Error: e\n"])
async def test_others_are_answered_while_a_log_that_is_all_hits_is_looked_through(
    store: ObjectStore, line: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The work is done in threads, and no more of it than a page shows."""
    file = await viewed(store, line * (2_000_000 // len(line)), frame=1 << 20)
    threads, first_in = list[int](), AnyCaseMatcher.first_in

    def noting(matcher: AnyCaseMatcher, line: str) -> int | None:
        threads.append(threading.get_ident())
        return first_in(matcher, line)

    monkeypatch.setattr(AnyCaseMatcher, "first_in", noting)
    assert len((await file.with_words("e", 0)).lines) == WINDOW_LINES
    assert len(threads) <= 4 * WINDOW_LINES
    assert threading.get_ident() not in threads


async def test_errors_are_looked_for_in_a_thread(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    file, threads = await viewed(store, b"no error here\n" * 5000), set[int]()

    def noting(line: str) -> Level:
        threads.add(threading.get_ident())
        return level_of(line)

    monkeypatch.setattr(log_view, "level_of", noting)
    assert (await file.next_error(0)).offset is None
    assert threads
    assert threading.get_ident() not in threads


async def test_a_file_of_many_pieces_is_planned_in_a_thread(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, threads = await viewed(store, b"x\n" * 6000, frame=2), set[int]()

    def noting(stored: StoredLog, start: int, end: int) -> list[Slice | Hole]:
        threads.add(threading.get_ident())
        return plan_read(stored, start, end)

    monkeypatch.setattr(reader, "plan_read", noting)
    await file.from_offset(100)
    await file.with_words("x", 0)
    assert await file.at_line(5000)
    assert threads
    assert threading.get_ident() not in threads


async def test_looking_on_leads_past_a_gap_of_any_size(store: ObjectStore) -> None:
    packs, behind = PackBuilder(store), 20 + 3 * SCANNED_BYTES
    packs.add(FILE, b"needle Error: one\n12")
    packs.lose(FILE, 20, behind - 20, "the disk was full")
    packs.add(FILE, b"\nneedle Error: two\n", offset=behind)
    await packs.put()
    file = await opened(store)
    first = await file.with_words("needle", 0)
    assert ([line.text for line in first.lines], first.end) == (["needle Error: one"], behind)
    second = await file.with_words("needle", first.end)
    assert ([line.text for line in second.lines], second.end) == (["needle Error: two"], file.stored.size)
    nothing = await file.next_error(18)
    assert (nothing.offset, nothing.looked_until) == (None, behind)
    assert (await file.next_error(behind)).offset == behind + 1


async def test_nobody_finds_out_a_secret_by_filtering(store: ObjectStore) -> None:
    key = b"-----BEGIN PRIVATE KEY-----\n" + b"MIIabcdefgh\n" * 20 + b"-----END PRIVATE KEY-----\n"
    file = await viewed(store, f"token={TOKEN}\nplain\n".encode() + key)
    assert (await file.with_words("hf_abc", 0)).lines == ()
    assert (await file.with_words("MIIabc", 0)).lines == ()
    [line] = (await file.with_words("token=", 0)).lines
    assert TOKEN not in line.text


LONG = b"x" * 100_000
SECRET = b"q7Z9k2W4Xv8Bn3Mc6Lp1"


@pytest.mark.parametrize("text", [LONG + b" token=" + SECRET + b" " + LONG, b"token=" + SECRET + b"\n"], ids=len)
async def test_no_place_to_begin_or_end_shows_half_of_a_secret(store: ObjectStore, text: bytes) -> None:
    """Wherever a client has a log cut: in the viewer, in a filter and in a tail."""
    file, at = await viewed(store, text), text.index(SECRET)
    place = FilePlace(SESSION, HEAD_ID, file.stored.generation)
    for cut in range(at, at + len(SECRET)):
        windows = [await file.from_offset(cut), await file.before_offset(cut), await file.around(cut)]
        windows.append(await file.from_offset(max(0, cut - WINDOW_BYTES)))
        growing = await growing_lines(file.logs, place, cut, None)
        shown = [line for window in windows for line in window.lines] + growing.take(text[cut:], is_last=True)
        for part in (SECRET[:8], SECRET[10:16], SECRET[-6:]):
            assert part.decode() not in "".join(line.text for line in shown)
            assert (await file.with_words(part.decode(), cut)).lines == ()


async def test_a_line_at_the_end_of_what_one_request_scans_is_left_to_the_next(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = b"x\n" * 10 + b"token=" + SECRET + b" needle\n" + b"x\n" * 10
    for end in range(20, 70):
        monkeypatch.setattr(log_view, "SCANNED_BYTES", end)
        file = await viewed(store, text)
        first = await file.with_words(SECRET[:10].decode(), 0)
        assert first.lines == ()
        assert 0 < first.end <= end
        assert text[first.end - 1 : first.end] == b"\n"


def test_a_line_of_a_growing_file_that_is_too_long_is_masked_where_it_is_cut() -> None:
    line = b"x" * ((1 << 20) - 20) + b" token=" + SECRET + b" " + LONG + b"\n"
    for piece in (100_000, 8192 + 13):
        growing = GrowingLines(0, 1)
        pieces = (line[at : at + piece] for at in range(0, len(line), piece))
        lines = [one for part in pieces for one in growing.take(part)]
        assert len(lines) > 1
        assert lines[-1].end == len(line)


async def test_secrets_are_masked_where_colours_would_hide_them(store: ObjectStore) -> None:
    file = await viewed(store, b"password=\x1b[31mhunter2\x1b[0m\n-----BEGIN PRIVATE KEY-----\nMIIabc\n")
    texts = [line.text for line in (await file.around(0)).lines]
    assert "hunter2" not in texts[0]
    assert texts[2] == "<redacted>"


async def test_a_key_that_begins_before_the_window_is_still_one(store: ObjectStore) -> None:
    key = b"-----BEGIN PRIVATE KEY-----\n" + b"MIIabcdefgh\n" * 20
    text = b"x\n" * 30_000 + key
    window = await (await viewed(store, text)).from_offset(len(text) - 60)
    assert {line.text for line in window.lines} == {"<redacted>"}


async def test_the_next_error_is_found_far_down(store: ObjectStore) -> None:
    text = numbered(100_000) + b"2026-11-15 ERROR worker.py:3 -- it broke\n" + numbered(10)
    file = await viewed(store, text)
    found = await file.next_error(0)
    assert found.offset == text.index(b"2026-11-15 ERROR")
    behind = await file.next_error(text.index(b"line 1\n", found.offset))
    assert (behind.offset, behind.looked_until) == (None, len(text))


@pytest.mark.parametrize(
    ("line", "level"),
    [
        ("2026-11-15 20:00:00,123 ERROR worker.py:3 -- it broke", "error"),
        ("[2026-11-15 20:00:00,123 E 17 17] raylet.cc:3: it broke", "error"),
        ("[2026-11-15 20:00:00,123 I 17 17] raylet.cc:3: all is well", "info"),
        ("Traceback (most recent call last):", "error"),
        ("ValueError: boom", "error"),
        ("ray.exceptions.RayTaskError(ValueError): ray::f() (pid=7)", "error"),
        ("CUDA error: out of memory", "error"),
        ("UserWarning: this is old", "warning"),
        ("2026-11-15 WARNING x", "warning"),
        ("no errors: 0 failed", ""),
        ("INFO all good", "info"),
        ("DEBUG x", "debug"),
        ("epoch 3 loss 0.1", ""),
    ],
)
def test_the_level_of_a_line_is_known_by_the_words_of_loggers(line: str, level: str) -> None:
    assert level_of(line) == level
    assert may_have_error(line.encode()) or level != "error"


def test_colours_of_terminals_are_names() -> None:
    line = "\x1b[1;31mred\x1b[0m plain \x1b[38;5;40mgreen\x1b[39m\x1b[2Kx\x1b[38;2;10;10;250mblue\x1b[48;5;1my"
    parts = styled_texts(line)
    assert parts == [
        ("red", "bold red"),
        (" plain ", ""),
        ("green", "green"),
        ("x", ""),
        ("blue", "blue"),
        ("y", "blue"),
    ]
    assert "".join(text for text, _ in parts) == without_ansi(line)


@given(st.text(alphabet="\x1b[0123456789;mKab<", max_size=60))
def test_a_line_with_any_codes_has_the_text_that_is_left_without_them(line: str) -> None:
    parts = styled_texts(line)
    assert "".join(text for text, _ in parts) == without_ansi(line)
    assert all(name.isalpha() for _, style in parts for name in style.split())


def test_lines_of_a_growing_file_are_whole_numbered_and_masked() -> None:
    growing = GrowingLines(100, 7)
    first = growing.take(b"one\ntw")
    second = growing.take(b"o\n-----BEGIN PRIVATE KEY-----\n")
    third = growing.take(b"MIIabc\n")
    last = growing.take(b"rest", is_last=True)
    lines = [*first, *second, *third, *last]
    assert [line.number for line in lines] == [7, 8, 9, 10, 11]
    assert [line.offset for line in lines] == [100, 104, 108, 136, 143]
    assert [line.text for line in (*first, *third, *last)] == ["one", "<redacted>", "<redacted>"]
    assert len(first) == 1


async def test_a_window_has_a_bounded_size_whatever_the_lines_are(store: ObjectStore) -> None:
    window = await (await viewed(store, b"\n" * 100_000)).from_offset(0)
    assert len(window.lines) == WINDOW_LINES
    assert window.end - window.begin <= WINDOW_BYTES
