"""What a journal gives back after any crash."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raykeeper.collector.events.disk import Batch, LargeBody, OpenJournal, take_over
from raykeeper.collector.events.journal import BodyFlag, read_journal

BODIES = st.lists(st.binary(max_size=200), max_size=8)


def record(body: bytes, received_ns: int = 7) -> bytes:
    return b"".join(a_batch(body, received_ns).record())


def a_batch(body: bytes, received_ns: int = 7) -> Batch:
    middle = len(body) // 2
    return Batch(received_ns, BodyFlag.NONE, [body[:middle], body[middle:]], len(body))


def bodies_in(data: bytes) -> list[bytes]:
    return [bytes(record.body) for record in read_journal(memoryview(data))]


@given(BODIES, st.data())
def test_any_prefix_gives_the_whole_bodies_before_the_cut(bodies: list[bytes], data: st.DataObject) -> None:
    records = [record(body) for body in bodies]
    cut = data.draw(st.integers(0, sum(map(len, records))))
    whole = sum(end <= cut for end in accumulate(map(len, records)))
    assert bodies_in(b"".join(records)[:cut]) == bodies[:whole]


@given(BODIES, st.binary(max_size=100))
def test_garbage_after_the_last_body_invents_nothing(bodies: list[bytes], garbage: bytes) -> None:
    data = b"".join(map(record, bodies))
    assert bodies_in(data + garbage) == bodies
    assert bodies_in(data + bytes(4096)) == bodies  # what a file system may leave behind a crash


@given(st.lists(st.binary(min_size=1, max_size=60), min_size=1, max_size=5), st.data())
def test_a_changed_byte_never_shows_as_a_body(bodies: list[bytes], data: st.DataObject) -> None:
    journal = bytearray(b"".join(map(record, bodies)))
    place = data.draw(st.integers(0, len(journal) - 1))
    journal[place] ^= data.draw(st.integers(1, 255))
    ends = list(accumulate(len(record(body)) for body in bodies))
    assert bodies_in(bytes(journal)) == bodies[: sum(end <= place for end in ends)]


def test_time_and_flags_come_back() -> None:
    data = b"".join(Batch(12345, BodyFlag.GZIP | BodyFlag.CUT, [b"x"], 1).record())
    (read,) = read_journal(memoryview(data))
    assert (read.received_ns, read.flags) == (12345, BodyFlag.GZIP | BodyFlag.CUT)


@settings(deadline=None, max_examples=20)
@given(st.lists(BODIES.filter(bool), max_size=5))
def test_bodies_are_on_disk_once_appended(tmp_path_factory: pytest.TempPathFactory, groups: list[list[bytes]]) -> None:
    folder = tmp_path_factory.mktemp("journal")
    journal = OpenJournal(folder, 1)
    for group in groups:
        journal.append([a_batch(body) for body in group])
    assert bodies_in(journal.path.read_bytes()) == [body for group in groups for body in group]
    assert journal.path.stat().st_size == journal.size
    closed = journal.close(99)
    assert (closed.path.name, closed.size) == ("99.closed", journal.size)


def test_a_large_body_becomes_a_journal_of_one_record(tmp_path: Path) -> None:
    large = LargeBody(tmp_path, 5)
    large.write([b"abc", b"", b"def"])
    large.write([b"ghi"])
    closed = large.close(BodyFlag.DEFLATE, 6)
    (read,) = read_journal(memoryview(closed.path.read_bytes()))
    assert (bytes(read.body), read.flags, read.received_ns) == (b"abcdefghi", BodyFlag.DEFLATE, 5)
    assert closed.size == closed.path.stat().st_size


def test_the_next_life_closes_open_journals_and_deletes_unacknowledged_bodies(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "journals"
    assert take_over(folder, 1) == []
    OpenJournal(folder, 10).append([a_batch(b"left")])
    OpenJournal(folder, 11).close(12)
    (folder / "13.part").write_bytes(b"half a body")
    left = take_over(folder, 100)
    assert [(journal.closed_ns, journal.path.name) for journal in left] == [(12, "12.closed"), (100, "100.closed")]
    assert bodies_in(left[1].path.read_bytes()) == [b"left"]
    assert len(list(folder.iterdir())) == 2


def test_a_failed_append_leaves_no_half_body(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = OpenJournal(tmp_path, 1)
    journal.append([a_batch(b"kept")])

    def refuse(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fdatasync", refuse)
    with pytest.raises(OSError, match="No space left"):
        journal.append([a_batch(b"refused")])
    assert journal.is_broken
    assert bodies_in(journal.path.read_bytes()) == [b"kept"]
