"""Writes speed up while they succeed and stop when they do not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container

import pytest

from raykeeper.errors import Unavailable
from raykeeper.kube.errors import Forbidden
from raykeeper.operator.shared.slow_start import LARGEST_BATCH, slow_start


def quota(item: int) -> Exception:
    return Forbidden("POST /pods", 403, "Forbidden", f"quota used up at {item}")


def away(item: int) -> Exception:
    return Unavailable("API server", f"nobody answered {item}")


ErrorOf = Callable[[int], Exception]


class Server:
    """Counts what is written at the same time; refuses everything from the given item on, or the given items."""

    def __init__(self, refuse_from: int = 10**9, refused: Container[int] = (), error: ErrorOf = quota) -> None:
        self.asked: list[int] = []
        self._refused = refused
        self._error = error
        self.most_at_once = 0
        self._now = 0
        self._refuse_from = refuse_from

    async def write(self, item: int) -> None:
        self.asked.append(item)
        self._now += 1
        self.most_at_once = max(self.most_at_once, self._now)
        await asyncio.sleep(0)
        self._now -= 1
        if item >= self._refuse_from or item in self._refused:
            raise self._error(item)


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
    assert [str(error)[-1] for error in caught.value.exceptions] == ["5", "6"]


async def test_what_is_refused_holds_up_only_its_kin() -> None:
    server = Server(refused=range(0, 100, 2))
    with pytest.raises(ExceptionGroup) as caught:
        await slow_start(range(100), server.write, lambda item: item % 4)
    assert sorted(server.asked) == [0, 1, 2, *range(3, 100, 2)], "two of four kin are refused, each asked for once"
    assert len(caught.value.exceptions) == 2


async def test_a_server_that_is_away_is_asked_nothing_more() -> None:
    server = Server(refuse_from=5, error=away)
    with pytest.raises(ExceptionGroup):
        await slow_start(range(500), server.write, lambda item: item)
    assert server.asked == list(range(7))


async def test_nothing_to_write_is_no_failure() -> None:
    await slow_start([], Server().write)
