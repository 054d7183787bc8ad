"""Back-off: longer each time, never beyond its limit, spread but never out of order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raykeeper.backoff import Backoff

BACKOFFS = st.builds(
    Backoff,
    base=st.floats(0.001, 10),
    limit=st.floats(10, 10_000),
    factor=st.floats(1, 10),
    jitter=st.floats(0, 0.99),
)


def test_delays_double_up_to_the_limit() -> None:
    backoff = Backoff(base=1.0, limit=10.0)
    assert [backoff.delay(failures) for failures in range(1, 7)] == [1, 2, 4, 8, 10, 10]


@given(backoff=BACKOFFS, failures=st.integers(1, 1_000_000))
def test_a_delay_stays_within_the_jitter_of_its_limit_however_long_it_fails(backoff: Backoff, failures: int) -> None:
    assert 0 < backoff.delay(failures) <= backoff.limit * (1 + backoff.jitter)


@given(backoff=BACKOFFS, failures=st.integers(1, 100))
def test_without_its_jitter_a_delay_is_never_shorter_than_the_one_before(backoff: Backoff, failures: int) -> None:
    def middle(low: float, high: float) -> float:
        return (low + high) / 2

    assert backoff.delay(failures, middle) <= backoff.delay(failures + 1, middle)


def test_jitter_spreads_to_both_sides() -> None:
    backoff = Backoff(base=10.0, limit=10.0, jitter=0.3)
    assert backoff.delay(1, min) == pytest.approx(7)
    assert backoff.delay(1, max) == pytest.approx(13)
