"""The table of states: which signs of life make a session running, ended, crashed or final."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from raykeeper.history.state import Beat, Closing, State, Verdict, judge

NOW = datetime(2026, 11, 15, 20, 0, tzinfo=UTC)


def beat(seconds_ago: float, *, ended: bool = False, interval: float = 30.0) -> Beat:
    return Beat(NOW - timedelta(seconds=seconds_ago), ended, interval)


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


RUNNING = Verdict(State.RUNNING, is_final=False)


@pytest.mark.parametrize(
    ("head", "others", "closed_at", "verdict"),
    [
        (beat(0), [], None, RUNNING),
        (beat(89), [], None, RUNNING),
        (beat(90), [], None, Verdict(State.CRASHED, is_final=False)),
        (beat(299), [], None, Verdict(State.CRASHED, is_final=False)),
        (beat(300), [], None, Verdict(State.CRASHED, is_final=True)),
        # its own interval counts
        (beat(25, interval=10), [], None, RUNNING),
        (beat(31, interval=10), [], None, Verdict(State.CRASHED, is_final=False)),
        # a graceful end, however young the heartbeat
        (beat(1, ended=True), [], None, Verdict(State.ENDED, is_final=True)),
        (beat(4000, ended=True), [], None, Verdict(State.ENDED, is_final=True)),
        # workers that still send keep it from being final, and never make it running
        (beat(60, ended=True), [beat(10)], None, Verdict(State.ENDED, is_final=False)),
        (beat(200), [beat(10)], None, Verdict(State.CRASHED, is_final=False)),
        (beat(400), [beat(301), beat(1, ended=True)], None, Verdict(State.CRASHED, is_final=True)),
        (beat(0), [beat(9000)], None, RUNNING),
        # the observer saw the cluster go
        (beat(20), [], ago(10), Verdict(State.ENDED, is_final=False)),
        (beat(4000), [], ago(3000), Verdict(State.ENDED, is_final=True)),
        # and a head came back under the same session
        (beat(5), [], ago(600), RUNNING),
        (beat(200), [], ago(600), Verdict(State.CRASHED, is_final=False)),
        # nobody ever said anything
        (None, [], None, Verdict(State.CRASHED, is_final=True)),
        (None, [beat(10)], None, Verdict(State.CRASHED, is_final=False)),
        (None, [], ago(10), Verdict(State.ENDED, is_final=True)),
        # the store's clock was set back
        (beat(-5), [], None, RUNNING),
    ],
)
def test_signs_of_life_make_a_state(
    head: Beat | None, others: list[Beat], closed_at: datetime | None, verdict: Verdict
) -> None:
    closing = Closing(closed_at) if closed_at else None
    assert judge(head, others, closing=closing, now=NOW) == verdict


@pytest.mark.parametrize(
    ("head", "closed_at", "state"),
    [
        # known to be lost before its silence shows it
        (beat(20), ago(10), State.CRASHED),
        (None, ago(10), State.CRASHED),
        # it said goodbye after all
        (beat(20, ended=True), ago(10), State.ENDED),
        # and another one went on
        (beat(5), ago(600), State.RUNNING),
    ],
)
def test_a_session_that_lost_its_head_crashed(head: Beat | None, closed_at: datetime, state: State) -> None:
    assert judge(head, [], closing=Closing(closed_at, is_crash=True), now=NOW).state is state
