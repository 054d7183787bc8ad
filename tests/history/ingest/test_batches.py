"""The plan of an ingest follows from its inputs alone."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raykeeper.history.ingest.batches import (
    BATCH_BYTES,
    RANGE_BYTES,
    SMALL_BYTES,
    Segment,
    TaskRange,
    generation_name,
    is_worth_folding,
    parse_range,
    plan_batches,
    range_bits,
    scale_of,
    task_ranges,
)

sizes = st.lists(st.integers(1, 20 << 20), max_size=30)


def segments(found: list[int]) -> list[Segment]:
    return [Segment(f"hour/{number:03d}", size) for number, size in enumerate(found)]


@given(sizes)
def test_every_segment_is_in_one_batch_and_no_batch_is_too_large(found: list[int]) -> None:
    batches = plan_batches(segments(found))
    assert [segment for batch in batches for segment in batch.segments] == segments(found)
    limit = BATCH_BYTES * scale_of(sum(found))
    assert all(len(batch.segments) == 1 or sum(s.size for s in batch.segments) <= limit for batch in batches)


@given(sizes)
def test_the_order_in_which_segments_were_found_does_not_matter(found: list[int]) -> None:
    shuffled = segments(found)
    random.Random(1).shuffle(shuffled)
    assert plan_batches(shuffled) == plan_batches(segments(found))


def test_a_generation_is_named_after_its_inputs_and_its_end() -> None:
    assert generation_name(["b", "a"], None) == generation_name(["a", "b"], None)
    others = {generation_name(["a"], 1), generation_name(["a", "b"], None), generation_name(["a"], None, "base")}
    assert len(others | {generation_name(["a"], None)}) == 4


@pytest.mark.parametrize(("ranges", "bits"), [(0, 0), (1, 0), (2, 1), (3, 2), (33, 5), (400, 7), (10**6, 12)])
def test_ranges_hold_a_bounded_number_of_bytes(ranges: int, bits: int) -> None:
    assert range_bits(ranges * RANGE_BYTES) == bits


def test_ranges_times_batches_grow_slower_than_the_session() -> None:
    def reads(megabytes: int) -> int:
        found = [Segment(f"{number:06d}", 1 << 20) for number in range(megabytes)]
        return len(plan_batches(found)) << range_bits(megabytes << 20)

    assert reads(64) == 16 << 4
    assert reads(512) == 64 << 6  # eight times the bytes, 16 times the files
    assert reads(2600) == 163 << 7


@pytest.mark.parametrize("bits", [0, 1, 4, 7])
def test_ranges_cover_every_task_id_once_and_in_order(bits: int) -> None:
    found = list(task_ranges(bits))
    assert found[0].first == "0000"
    assert found[-1].end == "g"
    assert [part.end for part in found[:-1]] == [part.first for part in found[1:]]


@given(st.integers(0, 7), st.integers(0, 7), st.data())
def test_a_range_overlaps_exactly_the_files_that_share_ids_with_it(one: int, other: int, data: st.DataObject) -> None:
    first = TaskRange(data.draw(st.integers(0, 2**one - 1)), one)
    second = TaskRange(data.draw(st.integers(0, 2**other - 1)), other)
    shares = max(first.first, second.first) < min(first.end, second.end)
    assert first.may_overlap(f"generation-{second.name}") is shares
    assert parse_range(f"a-b-{first.name}") == first


@given(st.integers(0, 7), st.integers(0, 7), st.data())
def test_a_range_is_read_from_exactly_the_partitions_that_hold_its_ids(
    bits: int, partition_bits: int, data: st.DataObject
) -> None:
    part = TaskRange(data.draw(st.integers(0, 2**bits - 1)), bits)
    partitions = task_ranges(partition_bits)
    holding = [item.number for item in partitions if max(item.first, part.first) < min(item.end, part.end)]
    assert list(part.partitions(partition_bits)) == holding


def test_what_changed_is_folded_once_keeping_it_apart_costs_as_much() -> None:
    folded, new = 400 << 20, 1 << 20
    assert not is_worth_folding(folded, 19 << 20, new)
    assert is_worth_folding(folded, 21 << 20, new)
    assert is_worth_folding(SMALL_BYTES, 1, 1)
