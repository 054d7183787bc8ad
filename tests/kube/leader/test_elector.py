"""How an elector treats the work it runs, on the real API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from prometheus_client import CollectorRegistry

from bed.control_plane import ControlPlane
from raykeeper.api.meta import ObjectKey
from raykeeper.clock import SystemClock
from raykeeper.kube.client import Kube
from raykeeper.kube.connect.connection import load_connection
from raykeeper.kube.errors import NotLeading
from raykeeper.kube.leader.election import LeaderElector
from raykeeper.kube.leader.lease import ElectionSettings
from raykeeper.kube.leader.leaseclient import LeadershipLost
from raykeeper.kube.metrics import KubeMetrics
from raykeeper.kube.resources import CONFIG_MAPS, LEASES
from support.conditions import until

SETTINGS = ElectionSettings(lease_duration=8, renew_deadline=6.0, retry_period=0.2)


class Bench:
    """One elector and the Lease it competes for."""

    def __init__(self, kube: Kube, namespace: str, identity: str = "me") -> None:
        self.kube = kube
        # Not the operator's own name: its Leases concern every operator of the tests beside this one.
        self.key = ObjectKey(namespace, "an-election")
        self.registry = CollectorRegistry()
        metrics = KubeMetrics(self.registry)
        self.elector = LeaderElector(kube, self.key, identity, clock=SystemClock(), metrics=metrics, settings=SETTINGS)

    def start(self, lead: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
        return asyncio.create_task(self.elector.run(lead))

    async def holder(self) -> str:
        spec = (await self.kube.get(LEASES, self.key))["spec"]
        return str(spec["holderIdentity"])

    def is_leading(self) -> bool:
        return self.registry.get_sample_value("leader_election_master_status", {"name": self.key.name}) == 1


@pytest.fixture
async def bench(control_plane: ControlPlane, namespace: str) -> AsyncIterator[Bench]:
    connection = await load_connection(control_plane.admin_kubeconfig)
    async with Kube(connection, metrics=KubeMetrics(CollectorRegistry())) as kube:
        yield Bench(kube, namespace)


async def for_ever() -> None:
    await asyncio.Event().wait()


async def test_work_that_ends_gives_the_lease_back(bench: Bench) -> None:
    async def lead() -> None:
        assert bench.is_leading()
        assert await bench.holder() == "me"

    await bench.start(lead)
    assert await bench.holder() == ""
    assert not bench.is_leading()


async def test_work_that_fails_gives_the_lease_back_and_its_error_rises(bench: Bench) -> None:
    async def lead() -> None:
        raise ValueError("a bug of ours")

    with pytest.raises(ValueError, match="a bug of ours"):
        await bench.start(lead)
    assert await bench.holder() == ""


async def test_work_that_takes_long_to_stop_keeps_the_lease_until_then(bench: Bench) -> None:
    may_end = asyncio.Event()

    async def lead() -> None:
        try:
            await for_ever()
        finally:
            await may_end.wait()

    running = bench.start(lead)
    await until(bench.is_leading)
    running.cancel()
    # Longer than a lease that is not renewed would last.
    _, still = await asyncio.wait({running}, timeout=SETTINGS.lease_duration + 0.5)
    assert still
    assert await bench.holder() == "me"
    bench.elector.fence.check()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await bench.holder() == ""


async def test_nothing_can_be_written_after_the_work_has_ended(bench: Bench) -> None:
    await bench.start(_nothing)
    fenced = bench.kube.with_fence(bench.elector.fence)
    with pytest.raises(NotLeading):
        await fenced.create(CONFIG_MAPS, {"metadata": {"name": "late"}}, bench.key.namespace)
    assert await bench.kube.find(CONFIG_MAPS, ObjectKey(bench.key.namespace, "late")) is None


async def test_a_candidate_stopped_while_it_waits_leaves_the_lease_alone(bench: Bench) -> None:
    leading = bench.start(for_ever)
    await until(bench.is_leading)
    waiting = Bench(bench.kube, bench.key.namespace, "other").start(for_ever)
    await asyncio.wait({waiting}, timeout=3 * SETTINGS.retry_period)
    waiting.cancel()
    await asyncio.wait({waiting})
    assert await bench.holder() == "me"
    leading.cancel()
    await asyncio.wait({leading})


async def test_work_is_cancelled_when_another_holds_the_lease(bench: Bench) -> None:
    ended = asyncio.Event()

    async def lead() -> None:
        try:
            await for_ever()
        finally:
            assert not bench.elector.fence.is_open
            ended.set()

    running = bench.start(lead)
    await until(bench.is_leading)
    await bench.kube.merge_patch(LEASES, bench.key, {"spec": {"holderIdentity": "another"}})
    with pytest.raises(LeadershipLost, match="held by another"):
        await running
    assert ended.is_set()
    assert await bench.holder() == "another"


async def _nothing() -> None:
    return
