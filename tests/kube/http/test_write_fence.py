"""A fence is asked at the last moment before a write leaves, however long the write had to wait before."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from bed.control_plane import ControlPlane
from bed.faults import Fault, HttpFaults, TcpProxy
from bed.waiting import PATIENCE_SECONDS
from raykeeper.api.meta import JSON, ObjectKey
from raykeeper.kube.client import Kube
from raykeeper.kube.errors import NotLeading
from raykeeper.kube.resources import CONFIG_MAPS
from support.conditions import until
from support.kube_clients import connected


class Gate:
    """A fence moved by hand; after `open_for` checks it closes by itself."""

    def __init__(self, open_for: int | None = None) -> None:
        self.is_open = True
        self.checks = 0
        self._open_for = open_for

    def check(self) -> None:
        self.checks += 1
        if not self.is_open or (self._open_for is not None and self.checks > self._open_for):
            raise NotLeading("write withheld")


def a_config_map(namespace: str) -> JSON:
    return {"metadata": {"name": "a", "namespace": namespace}}


@pytest.fixture
def faults(control_plane: ControlPlane) -> Iterator[HttpFaults]:
    with HttpFaults(control_plane) as faults:
        yield faults


async def test_a_closed_fence_stops_every_kind_of_write_and_no_read(kube: Kube, namespace: str) -> None:
    gate = Gate()
    gate.is_open = False
    fenced, key, body = kube.with_fence(gate), ObjectKey(namespace, "a"), a_config_map(namespace)
    await kube.create(CONFIG_MAPS, body)
    before = await fenced.get(CONFIG_MAPS, key)
    writes = [
        fenced.create(CONFIG_MAPS, a_config_map(namespace) | {"data": {"x": "y"}}),
        fenced.replace(CONFIG_MAPS, body | {"data": {"x": "y"}}),
        fenced.merge_patch(CONFIG_MAPS, key, {"data": {"x": "y"}}),
        fenced.json_patch(CONFIG_MAPS, key, [{"op": "add", "path": "/data", "value": {}}]),
        fenced.apply(CONFIG_MAPS, body | {"data": {"x": "y"}}, field_manager="me"),
        fenced.delete(CONFIG_MAPS, key),
        fenced.delete_collection(CONFIG_MAPS, namespace),
        fenced.subresource(CONFIG_MAPS, key, "status", body={}),
        fenced.with_budget(1, 1).delete(CONFIG_MAPS, key),
    ]
    outcomes = await asyncio.gather(*writes, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [NotLeading] * len(writes)
    assert await kube.get(CONFIG_MAPS, key) == before


async def test_an_open_fence_lets_writes_pass(kube: Kube, namespace: str) -> None:
    await kube.with_fence(Gate()).create(CONFIG_MAPS, a_config_map(namespace))
    assert await kube.find(CONFIG_MAPS, ObjectKey(namespace, "a")) is not None


async def test_a_fence_that_closes_while_a_write_waits_for_the_rate_limit_stops_it(
    control_plane: ControlPlane, faults: HttpFaults, namespace: str
) -> None:
    async with connected(control_plane.kubeconfig(server=faults.server), qps=2, burst=1) as kube:
        await kube.list(CONFIG_MAPS, namespace)  # takes the only token
        gate = Gate()
        write = asyncio.create_task(kube.with_fence(gate).create(CONFIG_MAPS, a_config_map(namespace)))
        await asyncio.sleep(0)
        gate.is_open = False
        with pytest.raises(NotLeading):
            await write
    assert [method for method, _ in faults.requests] == ["GET"]


async def test_a_fence_that_closes_while_a_connection_is_made_stops_the_write(
    control_plane: ControlPlane, kube: Kube, namespace: str
) -> None:
    with TcpProxy("127.0.0.1", control_plane.ports.apiserver) as proxy:
        async with connected(control_plane.kubeconfig(server=f"https://127.0.0.1:{proxy.port}")) as slow:
            gate = Gate()
            proxy.stall()
            write = asyncio.create_task(slow.with_fence(gate).create(CONFIG_MAPS, a_config_map(namespace)))
            await until(lambda: proxy.accepted)
            gate.is_open = False
            proxy.flow()
            with pytest.raises(NotLeading):
                await write
    assert await kube.find(CONFIG_MAPS, ObjectKey(namespace, "a")) is None


async def test_every_attempt_asks_the_fence_again(
    control_plane: ControlPlane, faults: HttpFaults, namespace: str
) -> None:
    faults.inject(Fault(429, method="POST", retry_after=0))
    async with connected(control_plane.kubeconfig(server=faults.server)) as kube:
        with pytest.raises(NotLeading):
            await kube.with_fence(Gate(open_for=2)).create(CONFIG_MAPS, a_config_map(namespace))
    assert len(faults.requests) == 2


async def test_an_attempt_that_the_http_library_makes_by_itself_asks_the_fence_too(
    control_plane: ControlPlane, faults: HttpFaults, namespace: str
) -> None:
    faults.inject(Fault(None, method="DELETE"))
    async with connected(control_plane.kubeconfig(server=faults.server)) as kube:
        await kube.list(CONFIG_MAPS, namespace)
        with pytest.raises(NotLeading):
            await kube.with_fence(Gate(open_for=1)).delete(CONFIG_MAPS, ObjectKey(namespace, "a"))
    assert [method for method, _ in faults.requests] == ["GET", "DELETE"]


async def test_a_budget_of_its_own_is_not_eaten_by_other_requests(control_plane: ControlPlane, namespace: str) -> None:
    async with connected(control_plane.admin_kubeconfig, qps=0.01, burst=1) as kube:
        await kube.list(CONFIG_MAPS, namespace)  # the next would wait for 100 s
        async with asyncio.timeout(PATIENCE_SECONDS):
            await kube.with_budget(10, 1).create(CONFIG_MAPS, a_config_map(namespace))
