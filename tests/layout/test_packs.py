"""Packs give back every byte range alone, and tell damage."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raykeeper.layout.packs import (
    DEPTH_LIMIT,
    ENTRIES_LIMIT,
    DamagedPack,
    Frame,
    Gap,
    PackIndex,
    PackWriter,
    encode_index,
    index_size,
    parse_index,
    read_frame,
    select_frames,
)

ranges = st.lists(st.tuples(st.sampled_from(["a.out", "b/c.err"]), st.binary(max_size=2000)), max_size=20)


def a_pack(*texts: bytes) -> bytes:
    writer, offset = PackWriter(), 0
    for text in texts:
        writer.add("a.out", "1-2", offset, text, 5)
        offset += len(text)
    return writer.to_bytes()


@given(ranges)
def test_every_range_reads_back_alone(written: list[tuple[str, bytes]]) -> None:
    writer = PackWriter()
    for number, (path, data) in enumerate(written):
        writer.add(path, "g", number * 10_000, data, number)
    pack = writer.to_bytes()
    index = parse_index(pack[-index_size(pack) :])
    found = [(f.path, read_frame(f, pack[f.position : f.position + f.size])) for f in index.frames]
    assert found == written


def test_the_index_carries_what_was_given_up() -> None:
    writer = PackWriter()
    gap = Gap("a.out", "1-2", 10, 500, "deleted while the bucket was down")
    writer.add_gap(gap)
    assert writer
    assert parse_index(writer.to_bytes()).gaps == (gap,)


def test_a_byte_range_selects_only_the_frames_that_hold_it() -> None:
    frames = parse_index(a_pack(b"0123", b"4567", b"89")).frames
    assert [f.offset for f in select_frames(frames, "a.out", "1-2", 3, 8)] == [0, 4]
    assert [f.offset for f in select_frames(frames, "a.out", "1-2", 8, 9)] == [8]
    assert select_frames(frames, "a.out", "another", 0, 9) == []


@pytest.mark.parametrize("cut", [0, 5, 15])
def test_a_pack_that_is_cut_short_is_called_damaged(cut: int) -> None:
    with pytest.raises(DamagedPack):
        parse_index(a_pack(b"some text")[:cut])


def test_a_changed_byte_in_a_frame_is_noticed() -> None:
    pack = bytearray(a_pack(b"some text " * 100))
    frame = parse_index(bytes(pack)).frames[0]
    pack[frame.position + frame.size - 6] ^= 0xFF
    with pytest.raises(DamagedPack):
        read_frame(frame, bytes(pack[frame.position : frame.position + frame.size]))


def test_an_index_that_claims_to_be_larger_than_the_pack_is_refused() -> None:
    pack = a_pack(b"x")
    with pytest.raises(DamagedPack, match="are there"):
        parse_index(pack[-20:])


@pytest.mark.parametrize(
    "index",
    [
        PackIndex(tuple(Frame("f", "1-1", number, 1, 0, 1, 5) for number in range(ENTRIES_LIMIT + 1))),
        PackIndex((), tuple(Gap("f", "1-1", number, 1, "") for number in range(ENTRIES_LIMIT + 1))),
        PackIndex((Frame("a/" * (DEPTH_LIMIT + 1) + "f", "1-1", 0, 1, 0, 1, 5),)),
    ],
    ids=["frames", "gaps", "folders in folders"],
)
def test_an_index_of_more_than_any_collector_writes_is_damaged(index: PackIndex) -> None:
    with pytest.raises(DamagedPack):
        parse_index(encode_index(index))
