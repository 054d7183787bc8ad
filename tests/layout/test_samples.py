"""Resource samples as objects: rows become columns and come back, and nothing that is read is believed."""

from __future__ import annotations

import msgspec
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from raykeeper.layout.samples import (
    MAX_GPUS,
    MAX_ROWS,
    TEXT_LIMIT_BYTES,
    DamagedSamples,
    GpuSample,
    Sample,
    SampleBlock,
    decode_block,
    encode_block,
    rounded,
    to_block,
)

START = 1_794_769_200  # the beginning of an hour

values = st.none() | st.integers(0, 1 << 53)
gpus = st.builds(GpuSample, index=st.integers(0, 8), name=st.sampled_from(["A100", "H100"]), used=values, memory=values)
rows = st.builds(Sample, at=st.integers(START, START + 3599), cpu=values, memory=values, gpus=st.tuples(gpus))


@given(st.lists(rows, min_size=1, max_size=30))
def test_rows_come_back_at_their_time(samples: list[Sample]) -> None:
    block = decode_block(encode_block(to_block(samples)))
    newest = {sample.at - sample.at % 10: sample for sample in samples}
    for row, cpu in enumerate(block.values(block.cpu)):
        at = block.start + 10 * row
        assert cpu == (newest[at].cpu if at in newest else None)
    for columns in block.gpus:
        for row, used in enumerate(block.values(columns.used)):
            sample = newest.get(block.start + 10 * row)
            same = (
                [gpu.used for gpu in sample.gpus if (gpu.index, gpu.name) == (columns.index, columns.name)]
                if sample
                else []
            )
            assert used == (same[0] if same else None)


def test_what_never_changes_is_stored_once() -> None:
    samples = [Sample(at=START + 10 * row, cpu=row, cpu_total=800) for row in range(360)]
    block = to_block(samples)
    assert (block.cpu_total, block.rows) == (800, 360)
    assert block.values(block.cpu_total) == [800] * 360


def test_a_missing_row_is_none_in_every_column() -> None:
    block = to_block([Sample(at=START, cpu=1, cpu_total=8), Sample(at=START + 20, cpu=1, cpu_total=8)])
    assert (block.cpu, block.cpu_total) == ([1, None, 1], [8, None, 8])


def test_a_day_of_a_busy_node_is_below_two_hundred_kilobytes() -> None:
    def sample(row: int) -> Sample:
        noise = (row * 7919) % 1000
        return Sample(
            at=START + 10 * row,
            cpu=noise,
            cpu_total=800,
            memory=rounded(9000 + noise / 3, 4),
            memory_total=32768,
            object_store=1000 + noise % 90,
            received=rounded(noise * 12345.6, 3),
            sent=rounded(noise * 2345.6, 3),
            disk=50_000 + row // 3,
            disk_total=100_000,
        )

    assert 24 * len(encode_block(to_block([sample(row) for row in range(360)]))) < 200_000


@pytest.mark.parametrize(
    ("value", "expected"), [(0, 0), (7.4, 7), (999, 999), (1234, 1230), (1235, 1240), (99951, 100_000)]
)
def test_numbers_keep_the_digits_that_count(value: float, expected: int) -> None:
    assert rounded(value, 3) == expected


def packed(block: object) -> bytes:
    return zstandard.compress(msgspec.json.encode(block))


@pytest.mark.parametrize(
    "block",
    [
        {},
        {"start": START, "rows": 0},
        {"start": START, "rows": MAX_ROWS + 1},
        {"start": START + 1, "rows": 1},
        {"start": -10, "rows": 1},
        {"start": 10**12, "rows": 1},
        {"start": START, "rows": 2, "cpu": [1]},
        {"start": START, "rows": 1, "cpu": [1, 2]},
        {"start": START, "rows": 1, "cpu": [-1]},
        {"start": START, "rows": 1, "cpu": [1.5]},
        {"start": START, "rows": 1, "cpu": "much"},
        {"start": START, "rows": 1, "cpu": [1 << 60]},
        {"start": START, "rows": 1, "gpus": [{"index": 0}] * (MAX_GPUS + 1)},
        {"start": START, "rows": 2, "gpus": [{"index": 0, "used": [1]}]},
        {"start": START, "rows": 1, "gpus": [{"index": 0, "name": "x" * 1000}]},
    ],
)
def test_what_no_collector_writes_is_damaged(block: object) -> None:
    with pytest.raises(DamagedSamples):
        decode_block(packed(block))


def test_a_bomb_is_damaged_before_it_goes_off() -> None:
    with pytest.raises(DamagedSamples):
        decode_block(zstandard.compress(b" " * (TEXT_LIMIT_BYTES + 1)))


def test_fields_of_later_versions_are_passed_over() -> None:
    later = {**msgspec.to_builtins(SampleBlock(start=START, rows=1, cpu=7)), "tpus": [1]}
    assert decode_block(packed(later)).cpu == 7
