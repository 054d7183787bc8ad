"""Segments keep lines byte for byte, and give the good ones before damage is told."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raykeeper.layout.segments import TornSegment, compress_lines, read_lines

lines = st.lists(st.binary().filter(lambda line: b"\n" not in line))


@given(lines, lines)
@settings(deadline=None)  # a busy machine is no fault of the lines
def test_lines_come_back_as_they_were_from_any_number_of_frames(first: list[bytes], second: list[bytes]) -> None:
    assert list(read_lines(compress_lines(first) + compress_lines(second))) == first + second


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_a_torn_segment_gives_its_whole_lines_first(share: float) -> None:
    numbers = [b"%d" % number for number in range(100_000)]
    whole = compress_lines([b"good"]) + compress_lines(numbers)
    got: list[bytes] = []
    with pytest.raises(TornSegment):
        got.extend(read_lines(whole[: int(len(whole) * share)]))
    assert got == [b"good", *numbers[: len(got) - 1]]


def test_what_is_no_segment_is_called_torn() -> None:
    with pytest.raises(TornSegment):
        list(read_lines(b"not zstd at all"))
