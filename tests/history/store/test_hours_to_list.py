"""From which hour on a listing finds all that is new: cheap most of the time, and whole now and then."""

from __future__ import annotations

from datetime import timedelta

import pytest

from raykeeper.history.store.hours_to_list import HoursToList
from raykeeper.layout.keys import hour_of
from raykeeper.times import to_ns
from support.clocks import ManualClock

RELIST = 600.0


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def hours(clock: ManualClock) -> HoursToList:
    return HoursToList(clock, RELIST)


def hour_before(clock: ManualClock, **ago: float) -> str:
    return hour_of(to_ns(clock.now() - timedelta(**ago)))


def test_all_is_listed_first_and_then_from_the_last_hour_on(hours: HoursToList, clock: ManualClock) -> None:
    assert hours.first() == ""
    hours.listed()
    assert hours.first() == hour_before(clock, hours=1)


def test_a_listing_that_broke_off_is_begun_again(hours: HoursToList) -> None:
    assert hours.first() == ""
    assert hours.first() == "", "nobody said that it came to its end"


def test_all_is_listed_again_after_a_while(hours: HoursToList, clock: ManualClock) -> None:
    hours.first()
    hours.listed()
    clock.advance(RELIST)
    assert hours.first() == ""
    hours.listed()
    assert hours.first() != ""


def test_a_short_listing_does_not_count_as_one_of_all(hours: HoursToList, clock: ManualClock) -> None:
    hours.first()
    hours.listed()
    clock.advance(RELIST - 1)
    hours.first()
    hours.listed()
    clock.advance(1)
    assert hours.first() == ""


def test_a_node_whose_clock_is_behind_is_followed_by_its_own_clock(hours: HoursToList, clock: ManualClock) -> None:
    hours.first()
    hours.listed()
    hours.saw("slow", to_ns(clock.now() - timedelta(hours=5)))
    hours.saw("right", to_ns(clock.now()))
    assert hours.first() == hour_before(clock, hours=6), "what was sealed an hour before may still come"
    clock.advance(RELIST)
    hours.first()
    hours.listed()
    assert hours.first() == hour_before(clock, hours=1), "it has sent nothing for long"
