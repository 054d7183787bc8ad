"""Decides what is due for one receiver about one job. Pure: times come in, an action comes out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from raykeeper.backoff import Backoff
from raykeeper.history.alert_receivers import AlertTiming

LONGEST_PAUSE_SECONDS = 600.0
MOST_ATTEMPTS = 999_999  # as many as keys can spell; a day has 200
_WRONG_CLOCK_SECONDS = 60.0
_CLOCKS = timedelta(seconds=2)  # how far two readings of the store's clock may differ


@dataclass(frozen=True)
class Claim:
    """An attempt that somebody made, or is about to make."""

    attempt: int
    at: datetime
    """By the store's clock."""


@dataclass(frozen=True)
class Marks:
    """What the store says of one alert."""

    last_claim: Claim | None = None
    is_over: bool = False
    """It was sent, or given up."""


NO_MARKS = Marks()


class Step(Enum):
    NOTHING = "nothing"
    """And nothing ever will be."""
    WAIT = "wait"
    SEND = "send"
    GIVE_UP = "give up"


@dataclass(frozen=True)
class Due:
    step: Step
    attempt: int = 0
    is_provisional: bool = False


def plan_alert(
    ended_at: datetime, *, is_cause_known: bool, marks: Marks, since: datetime, now: datetime, timing: AlertTiming
) -> Due:
    """What to do about a job that failed. `since` is when the receiver was first seen; all times but the job's end are
    by the store's clock."""
    age = (now - ended_at).total_seconds()
    if age < -_WRONG_CLOCK_SECONDS:  # the head's clock is wrong: nobody knows how long ago it was
        age = timing.settle_seconds
    if marks.is_over or ended_at < since:
        return Due(Step.NOTHING)
    attempt = marks.last_claim.attempt + 1 if marks.last_claim else 0
    if age > timing.max_age_seconds or attempt > MOST_ATTEMPTS:
        return Due(Step.GIVE_UP)
    if age < timing.settle_seconds or not _has_passed(marks.last_claim, now, timing):
        return Due(Step.WAIT)
    if not is_cause_known and age < timing.cause_wait_seconds:
        return Due(Step.WAIT)
    return Due(Step.SEND, attempt, is_provisional=not is_cause_known)


def claim_seconds(attempt: int, timing: AlertTiming) -> float:
    """How long an attempt belongs to whoever claimed it, and so the pause until the next one."""
    return Backoff(timing.retry_seconds, max(timing.retry_seconds, LONGEST_PAUSE_SECONDS)).delay(attempt + 1)


def _has_passed(claim: Claim | None, now: datetime, timing: AlertTiming) -> bool:
    return claim is None or now - claim.at > timedelta(seconds=claim_seconds(claim.attempt, timing)) + _CLOCKS
