"""Numbers over time: means are exact, whatever the parts of the time are."""

from __future__ import annotations

import random

import pytest

from raykeeper.history.overview.task_counts import Bins, Edges, bins_over, mean_levels, spans_levels, spans_peaks


def edges(bins: Bins, times: list[int]) -> Edges:
    """As the statements count them."""
    numbers: dict[int, int] = {}
    tails: dict[int, float] = {}
    for ns in times:
        part = min(bins.number - 1, max(0, (ns - bins.begin_ns) // bins.width_ns))
        numbers[part] = numbers.get(part, 0) + 1
        tails[part] = tails.get(part, 0.0) + bins.begin_ns + (part + 1) * bins.width_ns - ns
    return Edges(numbers, tails)


@pytest.mark.parametrize("seed", range(5))
def test_levels_from_edges_are_those_of_the_spans_themselves(seed: int) -> None:
    dice = random.Random(seed)
    bins = Bins(1000, 137_000_000, 24)
    begins = [dice.randrange(bins.begin_ns, bins.end_ns) for _ in range(200)]
    spans = [(begin, dice.randrange(begin, bins.end_ns)) for begin in begins]
    levels = mean_levels(bins, edges(bins, begins), edges(bins, [end for _, end in spans]))
    assert levels == pytest.approx(spans_levels(bins, spans), abs=0.002)
    assert sum(levels) * bins.width_ns == pytest.approx(sum(end - begin for begin, end in spans), rel=0.001)


def test_what_never_ends_stays_to_the_last_part() -> None:
    bins = Bins(0, 10_000_000, 4)
    assert mean_levels(bins, edges(bins, [15_000_000]), Edges()) == (0, 0.5, 1, 1)


def test_parts_cover_the_whole_stretch_and_are_never_empty() -> None:
    assert bins_over(5, 5).width_ns > 0
    for length in (1, 96_000_001, 3600 * 10**9 + 7):
        bins = bins_over(100, 100 + length)
        assert bins.end_ns >= 100 + length


def test_spans_that_reach_beyond_count_within_alone() -> None:
    bins = Bins(1000, 10, 2)
    assert spans_levels(bins, [(0, 5000), (1005, 1010)]) == (1.5, 1)
    assert spans_levels(bins, [(0, 10), (5000, 6000)]) == (0, 0)


def test_nodes_are_counted_whole_at_their_most_in_each_part() -> None:
    bins = Bins(0, 10, 4)
    assert spans_peaks(bins, [(5, 40), (12, 14), (14, 18), (25, 26)]) == (1, 2, 2, 1)
    assert spans_peaks(bins, [(-50, 100)]) == (1, 1, 1, 1)
    assert spans_peaks(bins, []) == (0, 0, 0, 0)
