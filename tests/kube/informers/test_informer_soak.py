"""The same faults for ten minutes, and an outage of ten: outside CI, by `make soak`."""

from __future__ import annotations

import asyncio
import time

import pytest

from bed.control_plane import ControlPlane
from bed.faults import TcpProxy
from bed.fixtures import make_namespace
from kube.informers.test_informer import CONFIG_MAPS, a_config_map, kube_for
from kube.informers.test_informer_faults import (
    DOOMED,
    NAMESPACE,
    Stream,
    every_fault,
    fresh_state,
    state_of,
    watching,
)
from support.conditions import until

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]

SOAK_SECONDS = 600.0


async def make_doomed(plane: ControlPlane) -> None:
    async with kube_for(plane.admin_kubeconfig) as direct:
        for name in DOOMED:
            await direct.create(CONFIG_MAPS, a_config_map(name), NAMESPACE)


async def test_ten_minutes_of_faults_end_in_a_cache_that_equals_a_fresh_list(own_control_plane: ControlPlane) -> None:
    plane = own_control_plane
    await asyncio.to_thread(make_namespace, plane, NAMESPACE)
    with TcpProxy("127.0.0.1", plane.ports.apiserver) as proxy:
        async with kube_for(plane.admin_kubeconfig) as direct, watching(plane, proxy) as watcher:
            stream = Stream(direct, seed=int(time.time()))
            writing = asyncio.create_task(stream.run())
            ends = time.monotonic() + SOAK_SECONDS
            while time.monotonic() < ends:
                await make_doomed(plane)
                await every_fault(plane, proxy, direct, watcher)
            stream.faults_over = True
            await writing
            expected = await fresh_state(direct)
            await until(lambda: state_of(watcher.informer.cache) == expected)
            assert watcher.diary.state == {item.key: item.metadata.uid for item in watcher.informer.cache}


async def test_an_outage_of_ten_minutes_is_caught_up_with(own_control_plane: ControlPlane) -> None:
    plane, key = own_control_plane, "after-the-outage"
    async with kube_for(plane.admin_kubeconfig) as direct:
        with TcpProxy("127.0.0.1", plane.ports.apiserver) as proxy:
            async with watching(plane, proxy) as watcher:
                await asyncio.to_thread(plane.apiserver.kill)
                await asyncio.sleep(SOAK_SECONDS)
                assert watcher.informer.problem is not None
                await asyncio.to_thread(plane.apiserver.start)
                await asyncio.to_thread(plane.wait_ready)
                await direct.create(CONFIG_MAPS, a_config_map(key), NAMESPACE)
                await until(lambda: any(item.metadata.name == key for item in watcher.informer.cache))
                assert watcher.informer.problem is None
