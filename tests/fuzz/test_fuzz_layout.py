"""Whatever lies in the bucket, a pack or a segment is read or called damaged: nothing else happens."""

from __future__ import annotations

from fuzz.fuzzing import walk
from raykeeper.layout.packs import DamagedPack, parse_index, read_frame
from raykeeper.layout.segments import TornSegment, read_lines


def test_any_pack_is_read_or_damaged() -> None:
    def read(data: bytes) -> None:
        try:
            index = parse_index(data)
        except DamagedPack:
            return
        for frame in index.frames:
            try:
                assert len(read_frame(frame, data[frame.position : frame.position + frame.size])) == frame.length
            except DamagedPack:
                continue

    assert walk("packs", read) > 10


def test_any_segment_gives_lines_until_it_is_torn() -> None:
    def read(data: bytes) -> None:
        try:
            for line in read_lines(data):
                assert b"\n" not in line
        except TornSegment:
            return

    assert walk("segments", read) > 10
