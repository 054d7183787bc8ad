"""Versions are read as Kubernetes' generic parser reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raykeeper.api.versions import Version, parse_version, version


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2.52.0", version(2, 52)),
        ("2.52", version(2, 52)),
        ("v2.52.1", version(2, 52, 1)),
        (" 2.52.1", version(2, 52, 1)),
        ("2.53.0rc1", version(2, 53)),
        ("2.53.0.dev0", version(2, 53)),
        ("2.9.3-py310-gpu", version(2, 9, 3)),
        ("0.8.7", version(0, 8, 7)),
        ("2.052.0", version(2, 52)),
        ("2.52.0.1", version(2, 52, 0, 1)),
    ],
)
def test_numbers_at_the_start_are_the_version(text: str, expected: Version) -> None:
    assert parse_version(text) == expected


@pytest.mark.parametrize("text", ["", "nightly", "2", "v2", "latest-2.52", "02.52", "2.52\n", "V2.52", "-2.52", "a.b"])
def test_other_texts_are_no_version(text: str) -> None:
    assert parse_version(text) is None


def test_a_missing_number_counts_as_zero() -> None:
    assert version(2, 52) == version(2, 52, 0) < version(2, 52, 1) < version(2, 53) < version(10)


def test_a_version_prints_with_three_numbers() -> None:
    assert str(version(2, 52)) == "2.52.0"


@given(st.lists(st.integers(0, 10**6), min_size=2, max_size=5), st.lists(st.integers(0, 10**6), min_size=2, max_size=5))
def test_versions_order_as_their_numbers_do(left: list[int], right: list[int]) -> None:
    width = max(len(left), len(right))
    padded = [numbers + [0] * (width - len(numbers)) for numbers in (left, right)]
    texts = [".".join(map(str, numbers)) for numbers in (left, right)]
    parsed = [parse_version(text) for text in texts]
    assert parsed[0] is not None
    assert parsed[1] is not None
    assert (parsed[0] < parsed[1]) == (padded[0] < padded[1])
