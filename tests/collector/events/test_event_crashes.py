"""kill -9: what was acknowledged is kept, and without its disk the loss is bounded by the age of a seal."""

from __future__ import annotations

import asyncio
import random
import shutil
import time
from pathlib import Path

from bed.waiting import BUSY_FACTOR
from support.conditions import until
from support.event_process import EventProcess
from support.event_scene import RayClient, stored_events
from support.ray_event_batches import EventMaker, body_of, line_of

KILLS = 50


class Agent:
    """Posts like Ray's agent: a batch that was not acknowledged is sent again, byte for byte, until it is."""

    def __init__(self) -> None:
        self.sent: set[bytes] = set()
        self.acknowledged: dict[bytes, float] = {}
        self._maker = EventMaker(9)
        self._batch: list[bytes] = []

    async def post_until_killed(self, port: int) -> None:
        async with RayClient(port) as client:
            status = 200
            while status == 200:
                self._batch = self._batch or [line_of(event) for event in self._maker.events(40)]
                self.sent.update(self._batch)
                try:
                    status = await client.post(b"[" + b",".join(self._batch) + b"]")
                except ConnectionError:
                    return
                if status == 200:
                    self.acknowledged |= dict.fromkeys(self._batch, time.monotonic())
                    self._batch = []


async def test_every_acknowledged_event_survives_fifty_kills(tmp_path: Path) -> None:
    dice = random.Random(50)
    agent = Agent()
    async with EventProcess(tmp_path, "segment_max_bytes=100000", "idle_seal_seconds=0.05") as process:
        for _ in range(KILLS):
            await process.start()
            posting = asyncio.create_task(agent.post_until_killed(process.port))
            await asyncio.sleep(dice.uniform(0, 0.2))  # the random moment itself
            await process.kill()
            await posting
        await process.start()
        assert await process.end() == 0
    stored = stored_events(process.objects())
    assert len(agent.acknowledged) > KILLS
    assert set(agent.acknowledged) - set(stored) == set()
    assert set(stored) <= agent.sent
    print(f"{len(agent.acknowledged)} events acknowledged, {len(stored)} stored, {len(set(stored))} of them different")


async def test_with_the_disk_gone_the_loss_is_no_older_than_a_seal(tmp_path: Path) -> None:
    seal_seconds, upload_seconds = 0.5, 2 * BUSY_FACTOR
    agent = Agent()
    async with EventProcess(tmp_path, f"busy_seal_seconds={seal_seconds}", "idle_seal_seconds=0.5") as process:
        await process.start()
        posting = asyncio.create_task(agent.post_until_killed(process.port))
        await until(lambda: len(process.objects()) >= 3)
        await process.kill()
        killed_at = time.monotonic()
        await posting
    shutil.rmtree(process.spool)
    lost = set(agent.acknowledged) - set(stored_events(process.objects()))
    loss_seconds = killed_at - min((agent.acknowledged[line] for line in lost), default=killed_at)
    print(f"lost {len(lost)} of {len(agent.acknowledged)} events, the last {loss_seconds:.2f} s")
    assert len(lost) < len(agent.acknowledged)
    assert loss_seconds < seal_seconds + upload_seconds


async def test_a_torn_end_of_a_journal_costs_no_acknowledged_event(tmp_path: Path) -> None:
    maker = EventMaker()
    kept = maker.events(30)
    async with EventProcess(tmp_path) as process:
        await process.start()
        async with RayClient(process.port) as client:
            assert await client.post(body_of(kept)) == 200
        await process.kill()
        (journal,) = (process.spool / "journals").glob("*.open")
        with journal.open("ab") as file:
            file.write(b"RKJ1" + bytes(1000))  # a body whose write the crash interrupted
        await process.start()
        assert await process.end() == 0
    assert stored_events(process.objects()) == [line_of(event) for event in kept]
