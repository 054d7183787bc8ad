"""Turns go round those who wait, however much one of them wants."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from raykeeper.history.fair_turns import FairTurns
from support.conditions import until


async def served(turns: FairTurns, owners: list[str]) -> list[str]:
    """Everybody asks at once; the order in which they are served."""
    order: list[str] = []

    async def work(owner: str) -> None:
        async with turns.turn(owner):
            order.append(owner)
            await asyncio.sleep(0)

    await asyncio.gather(*map(work, owners))
    return order


async def test_who_asks_for_little_does_not_wait_behind_who_asks_for_much() -> None:
    order = await served(FairTurns(1, share=1), ["a"] * 5 + ["b", "c"])
    assert order == ["a", "a", "b", "c", "a", "a", "a"]


async def test_nobody_takes_more_than_the_share() -> None:
    turns = FairTurns(4, share=2)
    async with AsyncExitStack() as stack:
        for _ in range(2):
            await stack.enter_async_context(turns.turn("greedy"))
        third = asyncio.create_task(stack.enter_async_context(turns.turn("greedy")))
        await until(lambda: turns.waiting_of("greedy") == 1)
        async with turns.turn("modest"), turns.turn("modest"):
            assert not third.done()
        assert not third.done(), "its share is used up, whatever is free"
        third.cancel()
        await asyncio.gather(third, return_exceptions=True)
    assert turns.waiting_of("greedy") == 0


async def test_who_gives_up_leaves_the_turn_to_others() -> None:
    turns = FairTurns(1, share=1)
    async with turns.turn("a"):
        gone = asyncio.create_task(turns.turn("b").__aenter__())
        await until(lambda: turns.waiting_of("b") == 1)
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        assert turns.waiting_of("b") == 0, "who has gone takes no place among those who may wait"
    assert await served(turns, ["c", "b"]) == ["c", "b"]
