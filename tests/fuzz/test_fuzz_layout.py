"""Whatever lies in the bucket, a pack or a segment is read or called damaged: nothing else happens."""

from __future__ import annotations

import zstandard

from fuzz.fuzzing import walk
from raykeeper.history.samples.table import block_lines
from raykeeper.layout.packs import DamagedPack, parse_index, read_frame
from raykeeper.layout.samples import MAX_ROWS, DamagedSamples, decode_block
from raykeeper.layout.segments import TornSegment, read_lines

BLOCK_WORDS = [b'"start":1794769200', b'"rows":12', b'"gpus":[', b"null", b"[", b"]", b"-1", b"1e308", b"9" * 30]


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


def test_any_block_of_samples_gives_lines_or_is_damaged() -> None:
    def read(data: bytes) -> None:
        for packed in (data, zstandard.compress(data)):
            try:
                block = decode_block(packed)
            except DamagedSamples:
                continue
            lines = block_lines("a" * 56, block, block.start, block.start + 3600)
            assert len(lines.node) <= MAX_ROWS // 30 + 1
            assert max(map(len, (*lines.node, *lines.gpus)), default=0) < 1 << 18

    assert walk("sample-blocks", read, words=BLOCK_WORDS) > 10
