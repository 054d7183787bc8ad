"""The collector's own address: what it shows, and what the kubelet asks for before it ends a head."""

from __future__ import annotations

import asyncio
import logging
import re
import urllib.error
import urllib.request
from asyncio import open_connection, to_thread
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from bed.ports import free_port
from bed.waiting import PATIENCE_SECONDS
from raykeeper.collector.metrics import CollectorMetrics
from raykeeper.collector.watching import LAST_POLL_PAUSE_SECONDS, MAX_CONNECTIONS, Watching
from raykeeper.errors import Misconfigured
from raykeeper.settings.addresses import Address
from support.clocks import ManualClock


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

    async def answers(self, path: str) -> bool:
        try:
            return (await self.get(path))[0] == 200
        except OSError:
            return False

    def _get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()


async def refused(address: Address, *, is_required: bool) -> None:
    """Listen where somebody else does already."""
    async with Watching(address, CollectorRegistry(), ManualClock(), None, is_required=is_required):
        pass


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
        assert (await scene.get("/last-poll"))[0] == 200
        scene.clock.advance(LAST_POLL_PAUSE_SECONDS - 0.1)
        answers = await asyncio.gather(*(scene.get("/last-poll") for _ in range(3)))
        assert [code for code, _ in answers] == [200, 200, 200]
        assert scene.polls == 2


async def test_an_address_that_somebody_asked_for_and_that_is_taken_stops_it_by_name() -> None:
    async with watching() as scene:
        with pytest.raises(Misconfigured, match=f"--metrics-addr='127.0.0.1:{scene.port}' cannot be used"):
            await refused(Address("127.0.0.1", scene.port), is_required=True)


async def test_an_address_that_nobody_asked_for_may_be_another_containers(caplog: pytest.LogCaptureFixture) -> None:
    async with watching() as scene:
        await refused(Address("127.0.0.1", scene.port), is_required=False)
    warned = [record.message for record in caplog.records if record.levelno >= logging.WARNING]
    assert warned == ["nobody can watch this collector"]


async def test_clients_that_say_nothing_keep_nobody_out() -> None:
    async with watching() as scene:
        silent = [await open_connection("127.0.0.1", scene.port) for _ in range(MAX_CONNECTIONS)]
        assert await scene.answers("/healthz")
        assert await silent[0][0].read() == b""
        for _, writer in silent:
            writer.close()


async def test_whoever_asks_for_polls_without_end_is_hung_up_on_first() -> None:
    async with watching() as scene:
        await scene.get("/last-poll")
        others = [await open_connection("127.0.0.1", scene.port) for _ in range(3 * MAX_CONNECTIONS)]
        for _, writer in others:
            writer.write(b"GET /last-poll HTTP/1.1\r\n\r\n")
        reader, writer = await open_connection("127.0.0.1", scene.port, local_addr=("127.0.0.2", 0))
        writer.write(b"GET /last-poll HTTP/1.1\r\n\r\n")
        more = [await open_connection("127.0.0.1", scene.port) for _ in range(MAX_CONNECTIONS)]
        for _, another in more:
            another.write(b"GET /last-poll HTTP/1.1\r\n\r\n")
        scene.clock.advance(LAST_POLL_PAUSE_SECONDS)
        assert (await asyncio.wait_for(reader.read(), PATIENCE_SECONDS)).startswith(b"HTTP/1.1 200 OK")
        assert scene.polls == 2
        for _, another in (*others, *more, (reader, writer)):
            another.close()


def test_every_metric_that_the_manual_names_is_there() -> None:
    registry = CollectorRegistry()
    CollectorMetrics(registry)
    there = {sample.name for metric in registry.collect() for sample in metric.samples}
    there |= {f"{metric.name}_total" for metric in registry.collect() if metric.type == "counter"}
    manual = Path("docs/collector.md").read_text().partition("| metric `raykeeper_collector_…`")[2].partition("\n\n")[0]
    named = re.findall(r"`([a-z_]+)(?:\{\w+\})?`", "\n".join(line.split("|")[1] for line in manual.splitlines()[2:]))
    assert len(named) > 15
    assert {f"raykeeper_collector_{name}" for name in named} <= there


async def test_a_workers_collector_has_nobody_to_ask() -> None:
    async with watching(is_head=False) as scene:
        assert (await scene.get("/last-poll"))[0] == 404
