"""Ray Data is asked about only where it is used: the question alone makes an actor."""

from __future__ import annotations

import json
from typing import Any

import pytest

from raykeeper.collector.poll.living import LivingActors, lives, living_actors
from raykeeper.ray.dashboard import Answer
from support.clocks import ManualClock

HOLD_SECONDS = 15.0


def listed(*rows: dict[str, Any], total: int | None = None) -> Answer:
    counts = {"total": len(rows) if total is None else total, "num_after_truncation": len(rows)}
    return said({"result": True, "msg": "", "data": {"result": {**counts, "result": list(rows)}}})


def said(value: Any, status: int = 200) -> Answer:
    return Answer(status, json.dumps(value).encode(), "application/json")


class Head:
    """Answers the same until told otherwise, and counts."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.asked: list[str] = []

    async def get(self, path: str, limit_bytes: int | None = None) -> Answer:
        self.asked.append(path)
        return self.answer


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (listed(), False),
        (listed({"actor_id": "a"}), True),
        (listed(total=20_000), None),
        (said({"result": True}), None),
        (said([], 500), None),
        (Answer(200, b"\xff", "text/plain"), None),
    ],
)
def test_only_a_whole_list_without_the_actor_says_that_there_is_none(answer: Answer, expected: bool | None) -> None:
    assert lives(answer) is expected


async def test_an_actor_that_is_missing_is_looked_for_again_later() -> None:
    head, clock = Head(listed()), ManualClock()
    living = LivingActors(head, clock, HOLD_SECONDS)
    assert [await living.may_live("_StatsActor") for _ in range(3)] == [False, False, False]
    assert head.asked == [living_actors("_StatsActor")]
    clock.advance(HOLD_SECONDS)
    head.answer = listed({"actor_id": "a"})
    assert await living.may_live("_StatsActor")


async def test_an_actor_that_was_seen_is_not_looked_for_any_more() -> None:
    head = Head(listed({"actor_id": "a"}))
    living = LivingActors(head, ManualClock(), HOLD_SECONDS)
    assert [await living.may_live("_StatsActor") for _ in range(3)] == [True, True, True]
    assert len(head.asked) == 1


async def test_where_the_dashboard_does_not_say_the_actor_may_be_there() -> None:
    head = Head(said({}, 404))
    living = LivingActors(head, ManualClock(), HOLD_SECONDS)
    assert await living.may_live("_StatsActor")
    head.answer = listed()
    assert not await living.may_live("_StatsActor")
