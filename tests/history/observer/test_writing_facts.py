"""Batches become segments that are read back; an outage of the store costs nothing until memory is full."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from raykeeper.backoff import Backoff
from raykeeper.clock import SystemClock
from raykeeper.history.observer.metrics import ObserverMetrics
from raykeeper.history.observer.outbox import Outbox, OutboxLimits
from raykeeper.history.observer.writer import Writer
from raykeeper.history.store.kube_facts import KubeFacts, read_facts
from raykeeper.layout.keys import KubeFactsKey
from raykeeper.layout.kube_facts import PodFact
from support.conditions import eventually, until
from support.observer_scene import CLUSTER, StoreWithOutages

CLOCK = SystemClock()


class Scene:
    def __init__(self, folder: Path, limits: OutboxLimits) -> None:
        self.store, self.outbox = StoreWithOutages(folder), Outbox(limits)
        self.metrics = ObserverMetrics(CollectorRegistry())
        self.writer = Writer(self.outbox, self.store, CLOCK, self.metrics, Backoff(base=0.01, limit=0.05))
        self._began = CLOCK.now()

    def see(self, number: int, uid: str = "p-1") -> None:
        fact = PodFact(at=self._began + timedelta(milliseconds=number), uid=uid, name=uid, phase=f"phase {number}")
        self.outbox.add(CLUSTER, [fact], CLOCK.steady())

    async def read(self) -> KubeFacts:
        return await read_facts(self.store, CLUSTER.namespace, CLUSTER.cluster, CLUSTER.uid)

    async def segments(self) -> int:
        return len([stat async for stat in self.store.list(KubeFactsKey.folder(CLUSTER.namespace, CLUSTER.cluster))])

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.writer.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path / "store", OutboxLimits(settle_seconds=0.05, waiting_facts=50))


async def test_what_comes_together_is_one_segment(scene: Scene) -> None:
    for number in range(5):
        scene.see(number)
    async with scene.writing():
        await eventually(lambda: _has(scene, 5))
    facts = await scene.read()
    assert [pod.phase for pod in facts.pods] == [f"phase {number}" for number in range(5)]
    assert await scene.segments() == 1
    assert scene.metrics.segments._value.get() == 1
    assert scene.metrics.facts._value.get() == 5


async def test_an_outage_is_waited_out_and_nothing_is_lost(scene: Scene) -> None:
    scene.store.is_away = True
    async with scene.writing():
        for number in range(10):
            scene.see(number)
        await until(lambda: scene.store.refused >= 3)
        assert scene.metrics.lag._value.get() > 0
        scene.store.is_away = False
        await eventually(lambda: _has(scene, 10))
    facts = await scene.read()
    assert facts.is_complete
    assert scene.metrics.write_failures._value.get() >= 3
    assert scene.outbox.waiting == 0


async def test_a_long_outage_keeps_the_last_state_of_each_pod_and_tells_what_is_missing(scene: Scene) -> None:
    scene.store.is_away = True
    async with scene.writing():
        for number in range(500):
            scene.see(number, f"p-{number % 4}")
            assert scene.outbox.waiting <= 50
        await until(lambda: scene.store.refused >= 1)
        scene.store.is_away = False
        await until(lambda: scene.outbox.waiting == 0)
        await eventually(lambda: _has(scene, 4))
    facts = await scene.read()
    last = {pod.uid: pod.phase for pod in facts.pods}
    assert last == {f"p-{number % 4}": f"phase {number}" for number in range(496, 500)}
    assert len(facts.pods) + facts.lost_pods == 500
    assert scene.metrics.lost.labels("pod")._value.get() == facts.lost_pods


async def test_the_end_of_the_program_writes_what_still_waits(tmp_path: Path) -> None:
    scene = Scene(tmp_path, OutboxLimits(settle_seconds=3600))
    scene.see(1)
    async with scene.writing():
        await asyncio.sleep(0)
    assert await scene.segments() == 0
    await scene.writer.flush()
    assert len((await scene.read()).pods) == 1


async def test_a_name_that_another_replica_took_is_not_overwritten(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.see(1)
    await scene.writer.flush()
    other = Writer(scene.outbox, scene.store, CLOCK, scene.metrics)
    other._last_ns = scene.writer._last_ns - 1  # in the same nanosecond
    monkeypatch.setattr(CLOCK, "now", lambda: scene._began)
    scene.see(2)
    await other.flush()
    assert [pod.phase for pod in (await scene.read()).pods] == ["phase 1", "phase 2"]
    assert await scene.segments() == 2


async def _has(scene: Scene, facts: int) -> bool:
    return len((await scene.read()).pods) >= facts
