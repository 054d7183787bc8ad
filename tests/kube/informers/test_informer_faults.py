"""Informers stay complete and correct while everything around them breaks and changes keep coming."""

from __future__ import annotations

import asyncio
import contextlib
import random
import uuid
from collections.abc import AsyncIterator

import pytest
from prometheus_client import CollectorRegistry

from bed.control_plane import ControlPlane
from bed.faults import TcpProxy
from bed.fixtures import make_namespace
from kube.informers.test_informer import CONFIG_MAPS, ConfigMap, Diary, a_config_map, kube_for, running
from raykeeper.api.meta import ObjectKey
from raykeeper.backoff import Backoff
from raykeeper.errors import Unavailable
from raykeeper.kube.client import Kube
from raykeeper.kube.errors import AlreadyExists, NotFound, TooManyRequests
from raykeeper.kube.informers.cache import Cache
from raykeeper.kube.informers.informer import Informer
from raykeeper.kube.informers.reflector import WatchSettings
from raykeeper.kube.metrics import KubeMetrics
from support.conditions import until

NAMESPACE = "changes"
CHANGES = 5000
NAMES = 300
DOOMED = [f"doomed-{number}" for number in range(60)]
"""Objects that end, all of them, while the informer is cut off, and are never made again."""
WRITERS = 8
SILENCE_SECONDS = 2.0
SETTINGS = WatchSettings(
    page_size=50, silence_seconds=SILENCE_SECONDS, backoff=Backoff(base=0.1, limit=1.0, jitter=0.3)
)


class Stream:
    """Random creates, changes and deletes, until enough were made and every fault has had its turn."""

    def __init__(self, kube: Kube, seed: int) -> None:
        self.made = 0
        self.faults_over = False
        self._kube = kube
        self._dice = random.Random(seed)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(WRITERS):
                group.create_task(self._write())

    async def _write(self) -> None:
        while self.made < CHANGES or not self.faults_over:
            key = ObjectKey(NAMESPACE, f"map-{self._dice.randrange(NAMES)}")
            try:
                await self._change(key, self._dice.choice(("create", "create", "change", "change", "delete")))
                self.made += 1
            except (AlreadyExists, NotFound):
                pass  # another writer was first, or an earlier try did go through
            except (Unavailable, TooManyRequests):
                await asyncio.sleep(0.2)  # the API server is down on purpose

    async def _change(self, key: ObjectKey, verb: str) -> None:
        if verb == "create":
            await self._kube.create(CONFIG_MAPS, a_config_map(key.name), key.namespace)
        elif verb == "change":
            await self._kube.merge_patch(CONFIG_MAPS, key, {"data": {"value": str(self._dice.random())}})
        else:
            await self._kube.delete(CONFIG_MAPS, key)


class Watcher:
    """An informer behind a proxy, with what its handlers heard."""

    def __init__(self, kube: Kube) -> None:
        self.metrics = KubeMetrics(CollectorRegistry())
        self.informer = Informer(
            kube, CONFIG_MAPS, self.metrics, namespaces=[NAMESPACE], labels="test=yes", settings=SETTINGS
        )
        self.diary = Diary()
        self.informer.on_change(self.diary.note)

    def counted(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(name, {"resource": "configmaps", **labels}) or 0.0

    @property
    def failures(self) -> float:
        """How often a watch ended for another reason than its time."""
        return self.counted("raykeeper_informer_watch_ends_total", cause="error")


@contextlib.asynccontextmanager
async def watching(plane: ControlPlane, proxy: TcpProxy) -> AsyncIterator[Watcher]:
    through_proxy = plane.kubeconfig(server=f"https://127.0.0.1:{proxy.port}")
    async with kube_for(through_proxy) as kube:
        watcher = Watcher(kube)
        async with running(watcher.informer):
            yield watcher


async def caught_up(direct: Kube, watcher: Watcher) -> None:
    """Return once the informer shows something that was made just now."""
    marker = f"marker-{uuid.uuid4().hex[:8]}"
    await direct.create(CONFIG_MAPS, a_config_map(marker), NAMESPACE)
    await until(lambda: ObjectKey(NAMESPACE, marker) in watcher.informer.cache)


async def every_fault(plane: ControlPlane, proxy: TcpProxy, direct: Kube, watcher: Watcher) -> None:
    """Each way a watch can be lost, one after the other, each until the informer has noticed and recovered."""
    await asyncio.to_thread(proxy.cut)
    await caught_up(direct, watcher)

    failures = watcher.failures
    proxy.stall()
    await until(lambda: watcher.failures > failures)
    proxy.flow()
    await caught_up(direct, watcher)

    await asyncio.to_thread(plane.restart_apiserver)  # kill -9
    await caught_up(direct, watcher)

    await asyncio.to_thread(proxy.refuse)
    for name in DOOMED:
        await direct.delete(CONFIG_MAPS, ObjectKey(NAMESPACE, name))
    await asyncio.to_thread(plane.forget_history)  # etcd compacted: watch and continue tokens of before get 410
    await asyncio.to_thread(proxy.accept)
    await caught_up(direct, watcher)


def state_of(cache: Cache[ConfigMap]) -> dict[ObjectKey, tuple[str, bytes]]:
    return {item.key: (item.metadata.resource_version, bytes(item.data)) for item in cache}


async def fresh_state(kube: Kube) -> dict[ObjectKey, tuple[str, bytes]]:
    items = await kube.list(CONFIG_MAPS, NAMESPACE, labels="test=yes")
    return {item.key: (item.metadata.resource_version, bytes(item.data)) for item in items}


async def test_the_cache_equals_a_fresh_list_after_five_thousand_changes_and_every_fault(
    own_control_plane: ControlPlane, caplog: pytest.LogCaptureFixture
) -> None:
    plane = own_control_plane
    await asyncio.to_thread(make_namespace, plane, NAMESPACE)
    with TcpProxy("127.0.0.1", plane.ports.apiserver) as proxy:
        async with kube_for(plane.admin_kubeconfig) as direct, watching(plane, proxy) as watcher:
            for name in DOOMED:
                await direct.create(CONFIG_MAPS, a_config_map(name), NAMESPACE)
            stream = Stream(direct, seed=7)
            writing = asyncio.create_task(stream.run())
            await until(lambda: stream.made > 500)
            await every_fault(plane, proxy, direct, watcher)
            stream.faults_over = True
            await writing

            expected = await fresh_state(direct)
            await until(lambda: state_of(watcher.informer.cache) == expected)
            live = {item.key: item.metadata.uid for item in watcher.informer.cache}

    assert stream.made >= CHANGES
    assert watcher.diary.state == live, "a handler missed an addition or a removal"
    assert watcher.counted("raykeeper_informer_watch_ends_total", cause="expired") >= 1, "410 was never met"
    assert watcher.failures >= 2, "the cut and the silence were not noticed"
    assert "handler failed" not in caplog.text  # the diary raises when told of the end of something it never heard of
