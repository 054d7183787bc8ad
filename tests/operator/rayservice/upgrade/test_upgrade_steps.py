"""The steps of an incremental upgrade, from every state that there can be."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raykeeper.operator.rayservice.upgrade.steps import (
    UNDIVIDED,
    WHOLE,
    Direction,
    Pace,
    Shares,
    View,
    is_over,
    next_step,
)
from support.rayservice_facts import NOW

FORWARD, BACK = Direction.FORWARD, Direction.BACK
PACE = Pace(step=10, interval=timedelta(seconds=30), surge=20)
READY = View()
PERCENT = st.integers(1, WHOLE)
PACES = st.builds(
    lambda step, surge: Pace(min(step, surge), timedelta(seconds=30), surge),
    PERCENT,
    PERCENT,
)
MOST_STEPS = 3 * WHOLE + 3
"""Each moves at least one percent of one of the three numbers."""


def walk(shares: Shares, direction: Direction, pace: Pace, steps: int = MOST_STEPS) -> list[Shares]:
    """All that comes, with nothing to wait for."""
    walked, now = [shares], shares.moved_at or NOW
    for _ in range(steps):
        now += pace.interval
        after = next_step(walked[-1], direction, pace, READY, now).shares
        if after == walked[-1]:
            return walked
        walked.append(after)
    raise AssertionError(f"it does not end: {walked[-3:]}")


def numbers(walked: list[Shares]) -> list[tuple[int, int, int]]:
    return [(one.active_capacity, one.pending_capacity, one.traffic) for one in walked]


def test_capacity_goes_ahead_of_traffic_and_the_old_cluster_follows() -> None:
    pace = replace(PACE, step=25, surge=50)
    assert numbers(walk(UNDIVIDED, FORWARD, pace)) == [
        (100, 0, 0),
        (100, 50, 0),
        (100, 50, 25),
        (100, 50, 50),
        (50, 50, 50),
        (50, 100, 50),
        (50, 100, 75),
        (50, 100, 100),
        (0, 100, 100),
    ]


def test_all_at_once_is_blue_green() -> None:
    pace = replace(PACE, step=100, surge=100)
    assert numbers(walk(UNDIVIDED, FORWARD, pace)) == [(100, 0, 0), (100, 100, 0), (100, 100, 100), (0, 100, 100)]


def test_a_rollback_is_the_same_the_other_way_round() -> None:
    half_way = Shares(50, 100, 75, NOW)
    assert numbers(walk(half_way, BACK, replace(PACE, step=25, surge=50))) == [
        (50, 100, 75),
        (50, 100, 50),
        (50, 50, 50),
        (100, 50, 50),
        (100, 50, 25),
        (100, 50, 0),
        (100, 0, 0),
    ]


@given(PACES)
def test_every_upgrade_ends_with_all_on_the_new_cluster(pace: Pace) -> None:
    end = walk(UNDIVIDED, FORWARD, pace)[-1]
    assert is_over(end, FORWARD)
    assert numbers([end]) == [(0, 100, 100)]


@given(PACES, st.data())
def test_whatever_way_it_is_turned_it_stays_within_its_limits_and_ends(pace: Pace, data: st.DataObject) -> None:
    shares = UNDIVIDED
    for direction in data.draw(st.lists(st.sampled_from(Direction), max_size=6)):
        walked = walk(shares, direction, pace)
        for one in walked:
            assert one.active_capacity + one.pending_capacity <= WHOLE + pace.surge
            assert one.traffic <= one.pending_capacity
            assert WHOLE - one.traffic <= one.active_capacity
        assert is_over(walked[-1], direction)
        shares = data.draw(st.sampled_from(walked))
    assert is_over(walk(shares, BACK, pace)[-1], BACK)


@given(
    st.builds(Shares, st.integers(0, WHOLE), st.integers(0, WHOLE), st.integers(0, WHOLE)),
    PACES,
    st.sampled_from(Direction),
)
def test_from_numbers_that_another_operator_left_it_ends_as_well(
    shares: Shares, pace: Pace, direction: Direction
) -> None:
    assert is_over(walk(shares, direction, pace)[-1], direction)


@given(PACES, PACES, st.data())
def test_a_pace_that_is_changed_on_the_way_is_taken_from_there(first: Pace, second: Pace, data: st.DataObject) -> None:
    shares = data.draw(st.sampled_from(walk(UNDIVIDED, FORWARD, first)))
    walked = walk(shares, FORWARD, second)
    assert is_over(walked[-1], FORWARD)
    assert all(one.active_capacity >= WHOLE - one.traffic for one in walked)


def test_traffic_waits_for_its_interval_and_says_until_when() -> None:
    shares = Shares(100, 20, 10, NOW - timedelta(seconds=12))
    step = next_step(shares, FORWARD, PACE, READY, NOW)
    assert (step.shares, step.look_at) == (shares, NOW + timedelta(seconds=18))
    later = next_step(shares, FORWARD, PACE, READY, NOW + timedelta(seconds=18))
    assert later.shares == Shares(100, 20, 20, NOW + timedelta(seconds=18))


@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize(
    "view",
    [View(capacity_waits="why"), View(traffic_waits="why"), View(taker_waits="why")],
    ids=["capacity", "gateway", "taker"],
)
def test_traffic_does_not_move_while_something_is_waited_for(view: View, direction: Direction) -> None:
    shares = Shares(70, 50, 40, NOW - timedelta(hours=1))
    step = next_step(shares, direction, PACE, view, NOW)
    assert (step.shares, step.told) == (shares, "why")


def test_capacity_is_given_up_only_once_the_gateway_sends_traffic_elsewhere() -> None:
    shares = Shares(100, 20, 20, NOW)
    assert next_step(shares, FORWARD, PACE, View(traffic_waits="why"), NOW).shares == shares
    assert next_step(shares, FORWARD, PACE, View(taker_waits="it is busy"), NOW).shares == replace(
        shares, active_capacity=80
    )


def test_more_capacity_is_asked_for_once_the_other_has_given_up_its_own() -> None:
    shares = Shares(80, 20, 20, NOW)
    assert next_step(shares, FORWARD, PACE, View(capacity_waits="why"), NOW).shares == shares
    assert next_step(shares, FORWARD, PACE, View(traffic_waits="no Gateway"), NOW).shares == replace(
        shares, pending_capacity=40
    )


def test_traffic_comes_back_at_once_from_a_cluster_that_answers_nobody() -> None:
    dead = View("it has no head", "no endpoints", "", is_giver_dead=True)
    assert next_step(Shares(40, 80, 60, NOW), BACK, PACE, dead, NOW).shares == Shares(100, 0, 0, NOW)
    forward = next_step(Shares(40, 80, 60, NOW), FORWARD, PACE, dead, NOW)
    assert forward.shares.traffic == 60, "a new cluster whose rival is dead is not given more than it can take"


def test_an_upgrade_is_held_until_it_is_approved() -> None:
    held = replace(PACE, pause_at=15)
    assert numbers(walk(UNDIVIDED, FORWARD, held)) == [(100, 0, 0), (100, 20, 0), (100, 20, 10), (100, 20, 15)]
    assert numbers(walk(UNDIVIDED, FORWARD, replace(PACE, pause_at=0))) == [(100, 0, 0), (100, 20, 0)]
    paused = Shares(80, 40, 25, NOW - timedelta(hours=1))
    assert next_step(paused, FORWARD, held, READY, NOW).shares == paused
    assert "held at 25 %" in next_step(paused, FORWARD, held, READY, NOW).told
    assert is_over(walk(paused, FORWARD, PACE)[-1], FORWARD)
    assert is_over(walk(paused, BACK, held)[-1], BACK), "a rollback asks nobody"
