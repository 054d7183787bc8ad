"""Who may follow a log when many want to."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from raykeeper.history.logs import stream_slots
from raykeeper.history.logs.stream_slots import NoSlot, StreamSlots


async def follow(slots: StreamSlots, client: str, began: asyncio.Event | None = None) -> str:
    """As a browser does: for as long as it is let."""
    async with slots.slot(client):
        if began is not None:
            began.set()
        await asyncio.Event().wait()
    return "taken away"


async def following(slots: StreamSlots, client: str, number: int) -> list[asyncio.Task[str]]:
    tasks = []
    for _ in range(number):
        began = asyncio.Event()
        tasks.append(asyncio.create_task(follow(slots, client, began)))
        await asyncio.wait_for(began.wait(), 10)
    return tasks


async def ended(*tasks: asyncio.Task[str]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_one_client_may_have_all_while_nobody_else_wants_any() -> None:
    slots = StreamSlots(5)
    tasks = await following(slots, "greedy", 5)
    with pytest.raises(NoSlot):
        await follow(slots, "greedy")
    await ended(*tasks)
    await ended(*await following(slots, "greedy", 5))


async def test_another_client_takes_the_oldest_slot_of_who_has_most() -> None:
    slots = StreamSlots(5)
    greedy, modest = await following(slots, "greedy", 4), await following(slots, "modest", 1)
    late = await following(slots, "late", 1)
    assert await asyncio.wait_for(greedy[0], 10) == "taken away"
    assert [task.done() for task in (*greedy[1:], *modest, *late)] == [False] * 5
    await ended(*greedy[1:], *modest, *late)


async def test_slots_are_shared_and_nobody_takes_more_than_others_have() -> None:
    slots = StreamSlots(4)
    first = await following(slots, "first", 4)
    second = await following(slots, "second", 2)
    assert await asyncio.gather(*first[:2]) == ["taken away"] * 2
    with pytest.raises(NoSlot):
        await follow(slots, "second")
    third = await following(slots, "third", 0)
    await ended(*first[2:], *second, *third)


async def stall(slots: StreamSlots, client: str, began: asyncio.Event) -> str:
    """As a client does that asks and never reads."""
    async with slots.slot(client) as slot:
        with slot.sending():
            began.set()
            await asyncio.Event().wait()
    return "taken away"


async def test_who_does_not_read_gives_way_also_to_the_same_client(monkeypatch: pytest.MonkeyPatch) -> None:
    slots, began = StreamSlots(3), asyncio.Event()
    reading = await following(slots, "proxy", 2)
    stalled = asyncio.create_task(stall(slots, "proxy", began))
    await asyncio.wait_for(began.wait(), 10)
    with pytest.raises(NoSlot):
        await follow(slots, "proxy")
    monkeypatch.setattr(stream_slots, "STALLED_SECONDS", 0.0)
    late = await following(slots, "proxy", 1)
    assert await asyncio.wait_for(stalled, 10) == "taken away"
    assert [task.done() for task in (*reading, *late)] == [False] * 3
    await ended(*reading, *late)


async def test_a_slot_that_is_taken_away_before_it_is_held_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    slots = StreamSlots(1)
    monkeypatch.setattr(stream_slots, "STALLED_SECONDS", 0.0)
    slot = slots.take("a")
    slot.blocked_since = asyncio.get_running_loop().time()
    other = slots.take("a")
    async with asyncio.timeout(10), slot.held():
        await asyncio.Event().wait()
    with pytest.raises(NoSlot):
        slots.take("a")
    other.give_back()
    slots.take("a").give_back()


async def test_an_error_inside_gives_the_slot_back_and_stays_what_it_is() -> None:
    slots = StreamSlots(1)
    for error in (ValueError("x"), TimeoutError("own")):
        with pytest.raises(type(error)):
            async with slots.slot("a"):
                raise error
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(slots.slot("b"))
