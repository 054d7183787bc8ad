"""Heads are asked in the background: controllers read the last answer, and are woken when it became another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from raykeeper.api.meta import ObjectKey
from raykeeper.backoff import Backoff
from raykeeper.clock import SystemClock
from raykeeper.errors import Unavailable
from raykeeper.operator.rayhead import poller as polling
from raykeeper.operator.rayhead.poller import HeadPoller, OwnerKey, Reading, Standing
from raykeeper.operator.rayhead.questions import Question
from support.conditions import until

JOB = OwnerKey("RayJob", ObjectKey("ns", "job"))
SOON = 0.01


class Scripted:
    """A head that a test gives its answers."""

    def __init__(self, answer: str | Exception) -> None:
        self.answer = answer
        self.asked = 0

    async def __call__(self) -> str:
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def a_question(head: Scripted, name: str = "job", place: str = "head") -> Question[str]:
    return Question(name, place, head, SOON)


class Polling(HeadPoller):
    """With the keys it woke."""

    def __init__(self) -> None:
        super().__init__(SystemClock())
        self.woken: list[ObjectKey] = []
        self.on_change("RayJob", self.woken.append)


@pytest.fixture
async def poller(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Polling]:
    monkeypatch.setattr(polling, "SILENT_BACKOFF", Backoff(base=SOON, limit=SOON))
    poller = Polling()
    task = asyncio.create_task(poller.run())
    yield poller
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_an_answer_is_there_when_it_came_and_its_owner_is_woken_once(poller: Polling) -> None:
    head = Scripted("RUNNING")
    question = a_question(head)
    poller.follow(JOB, [question])
    assert poller.reading(JOB, question) == Reading(), "following does not wait"
    await until(lambda: head.asked >= 5)
    assert poller.reading(JOB, question).answer == "RUNNING"
    assert poller.woken == [JOB.key], "the same answer again is no news"
    head.answer = "SUCCEEDED"
    await until(lambda: len(poller.woken) == 2)
    assert poller.reading(JOB, question).answer == "SUCCEEDED"


async def test_a_head_that_fails_is_told_once_and_the_last_answer_stays_with_its_age(poller: Polling) -> None:
    head = Scripted("RUNNING")
    question = a_question(head)
    poller.follow(JOB, [question])
    await until(lambda: poller.woken == [JOB.key])
    head.answer = Unavailable("head", "connection refused")
    await until(lambda: len(poller.woken) == 2)
    head.answer = Unavailable("head", "no answer in time")
    asked = head.asked
    await until(lambda: head.asked >= asked + 5)
    assert len(poller.woken) == 2, "that it still fails, in other words, is no news"
    reading = poller.reading(JOB, question)
    assert (reading.answer, reading.is_current) == ("RUNNING", False)
    assert "no answer in time" in (reading.failure or "")
    assert reading.answered_at is not None
    assert reading.failing_since is not None
    assert reading.age_seconds(reading.answered_at + timedelta(seconds=7)) == 7
    head.answer = "RUNNING"
    await until(lambda: len(poller.woken) == 3)
    assert poller.reading(JOB, question).is_current


async def test_a_head_that_never_answered_is_told_once(poller: Polling) -> None:
    head = Scripted(Unavailable("head", "connection refused"))
    question = a_question(head)
    poller.follow(JOB, [question])
    await until(lambda: head.asked >= 5)
    assert poller.woken == [JOB.key]
    assert not poller.reading(JOB, question).has_answer


async def test_what_is_no_longer_followed_is_not_asked_any_more(poller: Polling) -> None:
    old, new = Scripted("old"), Scripted("new")
    poller.follow(JOB, [a_question(old, place="first head")])
    await until(lambda: old.asked >= 1)
    poller.follow(JOB, [a_question(new, place="second head")])
    await until(lambda: new.asked >= 3)
    asked = old.asked
    await until(lambda: new.asked >= 10)
    assert old.asked <= asked + 1, "one may have been on its way"
    assert len(poller) == 1
    poller.forget(JOB)
    assert len(poller) == 0
    assert poller.reading(JOB, a_question(new, place="second head")) == Reading()


async def test_following_again_keeps_the_answer_and_does_not_ask_sooner(poller: Polling) -> None:
    head = Scripted("RUNNING")
    patient = Question("job", "head", head, 600.0)
    poller.follow(JOB, [patient])
    await until(lambda: poller.reading(JOB, patient).has_answer)
    for _ in range(5):
        poller.follow(JOB, [Question("job", "head", head, 600.0)])
        await asyncio.sleep(0)
    assert poller.reading(JOB, patient).answer == "RUNNING"
    assert head.asked == 1


async def silence() -> str:
    await asyncio.sleep(3600)
    return ""


def follow_dead(poller: Polling, namespace: str, number: int) -> None:
    for one in range(number):
        owner = OwnerKey("RayJob", ObjectKey(namespace, f"dead-{one}"))
        poller.follow(owner, [Question("job", f"dead {one}", silence)])


async def test_heads_that_say_nothing_do_not_keep_others_from_being_asked(poller: Polling) -> None:
    live = Scripted("RUNNING")
    poller.follow(JOB, [a_question(live)])
    await until(lambda: live.asked >= 1)
    follow_dead(poller, "ns", 3 * polling.DIRECT_AT_ONCE[Standing.NEW])
    await asyncio.sleep(0.05)
    asked = live.asked
    await until(lambda: live.asked >= asked + 3)


@pytest.mark.parametrize("dead_namespaces", [1, 3])
async def test_dead_heads_of_some_namespaces_do_not_keep_a_new_head_of_another_waiting(
    poller: Polling, dead_namespaces: int
) -> None:
    for number in range(dead_namespaces):
        follow_dead(poller, f"dead-{number}", 3 * polling.DIRECT_AT_ONCE[Standing.NEW])
    await asyncio.sleep(0.05)
    live = Scripted("RUNNING")
    poller.follow(JOB, [a_question(live)])
    await until(lambda: live.asked >= 3)


async def test_heads_that_were_found_dead_do_not_keep_a_new_head_of_their_namespace_waiting(poller: Polling) -> None:
    dead = [polling._Poll(JOB, Question("job", f"dead {one}", silence), failures=1) for one in range(500)]
    for poll in dead:
        poller._schedule(poll, 0.0)
    await asyncio.sleep(0.05)
    live = Scripted("RUNNING")
    poller.follow(JOB, [a_question(live)])
    await until(lambda: live.asked >= 3)


async def test_a_bug_in_a_question_stops_no_other(poller: Polling) -> None:
    async def broken() -> str:
        raise ZeroDivisionError

    live = Scripted("RUNNING")
    poller.follow(JOB, [Question("broken", "head", broken, SOON), a_question(live)])
    await until(lambda: live.asked >= 3)
