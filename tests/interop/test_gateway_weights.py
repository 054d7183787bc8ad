"""Incremental upgrades through a real Gateway, Traefik, with scripted heads: weights as requests see them.

Pods have addresses here, and nothing runs in them: one server of the test listens at all addresses that pods may have.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Network

import aiohttp
import pytest
from aiohttp import web

from bed.control_plane import ControlPlane
from bed.crds import install_ray_crds
from bed.fixtures import TEST_SETTINGS, NewControlPlane
from bed.kwok import Kwok
from bed.node.commands import run
from bed.traefik import CLASS, traefik_on, way_in
from raykeeper.api.containers import SERVE_PORT
from support.conditions import until
from support.gateway_scene import (
    AUTOSCALED,
    OTHER,
    THIRD,
    GatewayScene,
    a_gateway_scene,
    a_routed_service,
    a_strategy,
)
from support.scripted_server import served

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

PODS = IPv4Network("198.18.0.0/16")
"""Set aside for tests of networks (RFC 2544), so that nobody else is there."""
GATEWAY = PODS[-2]
PAUSE_SECONDS = 0.02
SAMPLE = 200
SECONDS = 120.0


@pytest.fixture(scope="module")
def plane(new_control_plane: NewControlPlane) -> Iterator[ControlPlane]:
    plane = new_control_plane(replace(TEST_SETTINGS, pod_cidr=str(PODS)))
    install_ray_crds(plane)
    kwok = Kwok(plane)
    kwok.up(nodes=1)
    run(["ip", "route", "add", "local", str(PODS), "dev", "lo"])
    try:
        with traefik_on(plane, GATEWAY):
            yield plane
    finally:
        run(["ip", "route", "delete", "local", str(PODS), "dev", "lo"])
        kwok.down()


@dataclass
class Caller:
    """Somebody who asks without a break."""

    answers: list[str] = field(default_factory=list)
    """The address of the pod that each request came to, or how it failed, in their order."""

    async def run(self) -> None:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(10)) as session:
            while True:
                self.answers.append(await self._ask(session))
                await asyncio.sleep(PAUSE_SECONDS)

    async def _ask(self, session: aiohttp.ClientSession) -> str:
        try:
            async with session.get(way_in(GATEWAY)) as answer:
                return await answer.text() if answer.status == 200 else f"failed: {answer.status}"
        except aiohttp.ClientError as error:
            return f"failed: {error!r}"

    async def next(self, count: int) -> Counter[str]:
        """What comes of the next requests."""
        before = len(self.answers)
        await until(lambda: len(self.answers) >= before + count, seconds=SECONDS)
        return Counter(self.answers[before : before + count])

    @property
    def failed(self) -> Counter[str]:
        return Counter(answer for answer in self.answers if answer.startswith("failed"))


async def tell_address(request: web.BaseRequest) -> web.StreamResponse:
    assert request.transport is not None
    return web.Response(text=request.transport.get_extra_info("sockname")[0])


@pytest.fixture
async def scene(plane: ControlPlane) -> AsyncIterator[GatewayScene]:
    async with a_gateway_scene(plane) as scene, served(tell_address, host="0.0.0.0", port=SERVE_PORT):
        scene.is_gateway_working = False  # Traefik is the one who tells
        yield scene


@contextlib.asynccontextmanager
async def asking() -> AsyncIterator[Caller]:
    caller = Caller()
    task = asyncio.create_task(caller.run())
    try:
        yield caller
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def address_of(scene: GatewayScene, cluster: str) -> str:
    return str((await scene.head_pod(cluster))["status"]["podIP"])


async def has_share(scene: GatewayScene, caller: Caller, cluster: str, percent: int) -> None:
    """Fails unless so many of the next requests come to the cluster; the Gateway sends them round in turn."""
    await scene.says("GatewayReady", "True")
    address = await address_of(scene, cluster)
    await until(lambda: address in caller.answers[-10:], seconds=SECONDS)
    answers = await caller.next(SAMPLE)
    share = answers[address] * 100 / SAMPLE
    print(f"{percent} % of the traffic was asked for, {share:.1f} % of {SAMPLE} requests got there")
    assert abs(share - percent) < 5, answers


async def test_traffic_moves_step_by_step_and_back_and_no_request_fails(scene: GatewayScene) -> None:
    strategy = a_strategy(step=25, surge=50, interval=1, gatewayClassName=CLASS)
    await scene.apply(a_routed_service({"raykeeper.io/pause-upgrade-at": "25"}, upgradeStrategy=strategy))
    async with scene.operating():
        first = await scene.has_ended()
        await scene.says("GatewayReady", "True")
        async with asking() as caller:
            only = await address_of(scene, first)
            await until(lambda: only in caller.answers, seconds=SECONDS)
            caller.answers.clear()

            await scene.patch(rayClusterConfig=OTHER)
            second = await scene.has_pending()
            await scene.has_weights({first: 75, second: 25})
            await has_share(scene, caller, second, 25)

            await scene.patch(rayClusterConfig=AUTOSCALED)
            await scene.has_clusters(first)
            assert await caller.next(SAMPLE) == {only: SAMPLE}

            await scene.patch(rayClusterConfig=THIRD)
            third = await scene.has_pending()
            await scene.annotate(pause_upgrade_at="75", approve_upgrade="")
            await scene.has_weights({first: 25, third: 75})
            await has_share(scene, caller, third, 75)
            await scene.annotate(approve_upgrade=third)
            assert await scene.has_ended(other_than=first) == third
            await scene.says("GatewayReady", "True")
            last = await address_of(scene, third)
            assert (await caller.next(SAMPLE))[last] >= SAMPLE - 10
        print(f"a rollback and an upgrade: {len(caller.answers)} requests")
        assert not caller.failed
