"""Writes speed up while they succeed and stop when they do not."""

from __future__ import annotations

import asyncio

import pytest

from raykeeper.operator.shared.slow_start import LARGEST_BATCH, slow_start


class Server:
    """Counts what is written at the same time; refuses everything from the given item on."""

    def __init__(self, refuse_from: int = 10**9) -> None:
        self.asked: list[int] = []
        self.most_at_once = 0
        self._now = 0
        self._refuse_from = refuse_from

    async def write(self, item: int) -> None:
        self.asked.append(item)
        self._now += 1
        self.most_at_once = max(self.most_at_once, self._now)
        await asyncio.sleep(0)
        self._now -= 1
        if item >= self._refuse_from:
            raise PermissionError(f"quota used up at {item}")


async def test_everything_is_written_once_and_in_parallel() -> None:
    server = Server()
    await slow_start(range(500), server.write)
    assert server.asked == list(range(500))
    assert server.most_at_once == LARGEST_BATCH


async def test_a_server_that_refuses_is_asked_once() -> None:
    server = Server(refuse_from=0)
    with pytest.raises(ExceptionGroup):
        await slow_start(range(500), server.write)
    assert server.asked == [0]


async def test_after_a_refusal_the_rest_is_left_for_the_next_time() -> None:
    server = Server(refuse_from=5)
    with pytest.raises(ExceptionGroup) as caught:
        await slow_start(range(500), server.write)
    assert server.asked == list(range(7))
    assert [str(error) for error in caught.value.exceptions] == ["quota used up at 5", "quota used up at 6"]


async def test_nothing_to_write_is_no_failure() -> None:
    await slow_start([], Server().write)
