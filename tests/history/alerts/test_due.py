"""What is due, when, and for how long an attempt belongs to whoever claimed it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from raykeeper.history.alert_receivers import AlertTiming
from raykeeper.history.alerts.due import Claim, Due, Marks, Step, claim_seconds, plan_alert

ENDED = datetime(2026, 11, 17, 12, 0, tzinfo=UTC)
TIMING = AlertTiming()


def due(after: float, marks: Marks | None = None, *, is_known: bool = True, since: datetime = ENDED) -> Due:
    """For a job that ended so many seconds ago."""
    now = ENDED + timedelta(seconds=after)
    return plan_alert(ENDED, is_cause_known=is_known, marks=marks or Marks(), since=since, now=now, timing=TIMING)


def claimed(attempt: int, after: float) -> Marks:
    return Marks(Claim(attempt, ENDED + timedelta(seconds=after)))


def test_an_alert_waits_until_the_last_lines_are_stored() -> None:
    assert due(TIMING.settle_seconds - 1).step is Step.WAIT
    assert due(TIMING.settle_seconds) == Due(Step.SEND, 0)


def test_a_cause_that_stays_unknown_is_told_as_provisional() -> None:
    assert due(TIMING.cause_wait_seconds - 1, is_known=False).step is Step.WAIT
    assert due(TIMING.cause_wait_seconds, is_known=False) == Due(Step.SEND, 0, is_provisional=True)


def test_a_job_that_ended_before_the_receiver_was_there_is_not_told() -> None:
    assert due(60, since=ENDED + timedelta(seconds=1)).step is Step.NOTHING


def test_what_was_sent_or_given_up_is_over() -> None:
    assert due(60, Marks(is_over=True)).step is Step.NOTHING
    assert due(1e6, Marks(is_over=True)).step is Step.NOTHING


def test_an_attempt_of_somebody_else_is_waited_for_and_then_followed_by_the_next() -> None:
    assert due(60, claimed(0, 40)).step is Step.WAIT
    assert due(40 + TIMING.retry_seconds + 3, claimed(0, 40)) == Due(Step.SEND, 1)


@pytest.mark.parametrize(("attempt", "seconds"), [(0, 30), (1, 60), (2, 120), (5, 600), (500, 600)])
def test_pauses_double_up_to_ten_minutes(attempt: int, seconds: float) -> None:
    assert claim_seconds(attempt, TIMING) == seconds


def test_what_is_too_old_is_given_up_whatever_was_tried() -> None:
    assert due(TIMING.max_age_seconds + 1).step is Step.GIVE_UP
    assert due(TIMING.max_age_seconds + 1, claimed(7, TIMING.max_age_seconds)).step is Step.GIVE_UP


def test_a_clock_that_is_an_hour_ahead_delays_nothing() -> None:
    assert due(-3600) == Due(Step.SEND, 0)
    assert due(-5).step is Step.WAIT
