"""The collector's own address: what it shows, and what the kubelet asks for before it ends a head."""

from __future__ import annotations

import urllib.error
import urllib.request
from asyncio import to_thread
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from prometheus_client import CollectorRegistry

from bed.ports import free_port
from clocks import ManualClock
from raykeeper.collector.watching import LAST_POLL_PAUSE_SECONDS, Watching
from raykeeper.settings.addresses import Address


class Scene:
    """A listening collector, and how often its head was asked."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.port = free_port()
        self.polls = 0

    async def poll(self, seconds: float) -> bool:
        self.polls += 1
        return seconds > 1

    async def get(self, path: str) -> tuple[int, str]:
        return await to_thread(self._get, path)

    def _get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()


@asynccontextmanager
async def watching(*, is_head: bool = True) -> AsyncIterator[Scene]:
    scene = Scene()
    address, poll = Address("127.0.0.1", scene.port), scene.poll if is_head else None
    async with Watching(address, CollectorRegistry(), scene.clock, poll):
        yield scene


async def test_the_kubelet_is_answered_once_the_head_was_asked_everything() -> None:
    async with watching() as scene:
        assert await scene.get("/last-poll") == (200, "done\n")
        assert scene.polls == 1
        assert (await scene.get("/healthz"))[0] == 200


async def test_nobody_can_keep_the_head_busy_by_asking_for_it() -> None:
    async with watching() as scene:
        codes = [(await scene.get("/last-poll"))[0] for _ in range(3)]
        assert codes == [200, 429, 429]
        scene.clock.advance(LAST_POLL_PAUSE_SECONDS)
        assert (await scene.get("/last-poll"))[0] == 200
        assert scene.polls == 2


async def test_a_workers_collector_has_nobody_to_ask() -> None:
    async with watching(is_head=False) as scene:
        assert (await scene.get("/last-poll"))[0] == 404
