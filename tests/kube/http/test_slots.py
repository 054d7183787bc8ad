"""Slow requests leave connections to others, and waiting for one has an end."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from raykeeper.api.meta import ObjectKey
from raykeeper.clock import SystemClock
from raykeeper.errors import Unavailable
from raykeeper.kube.client import Kube
from raykeeper.kube.errors import NotDone, api_error
from raykeeper.kube.http.slots import RELAY_CONNECTIONS, WRITE_CONNECTIONS, Slot, Slots
from raykeeper.kube.http.unanswered import Patience
from raykeeper.kube.leader.election import LeaderElector
from raykeeper.kube.leader.lease import ElectionSettings
from raykeeper.kube.metrics import KubeMetrics
from raykeeper.kube.proxied import Backend, ask
from raykeeper.kube.resources import CONFIG_MAPS
from support.clocks import ManualClock
from support.conditions import until
from support.kube_clients import anonymous, connected
from support.scripted_server import served

QUICK = ElectionSettings(lease_duration=8, renew_deadline=6.0, retry_period=0.2)


class SlowAdmission:
    """An API server whose creates in namespace `slow` wait for a webhook, and which keeps one Lease."""

    def __init__(self) -> None:
        self.waiting = 0
        self.may_end = asyncio.Event()
        self.lease: web.Response | None = None

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.json() if request.can_read_body else {"metadata": {"name": "a"}}
        if "/leases" in request.path:
            return await self._answer_lease(request, body)
        if "/namespaces/slow/" in request.path and (request.method == "POST" or "/proxy/" in request.path):
            self.waiting += 1
            await self.may_end.wait()
        return web.json_response(body)

    async def _answer_lease(self, request: web.BaseRequest, body: dict[str, object]) -> web.StreamResponse:
        if request.method == "GET":
            return web.json_response({"kind": "Status", "status": "Failure", "reason": "NotFound"}, status=404)
        return web.json_response(body)


@asynccontextmanager
async def slow_admission(patience: Patience) -> AsyncIterator[tuple[SlowAdmission, Kube]]:
    server = SlowAdmission()
    async with served(server) as url, connected(anonymous(url), patience=patience) as kube:
        try:
            yield server, kube
        finally:
            server.may_end.set()


async def create(kube: Kube, namespace: str, number: int = 0) -> None:
    await kube.create(CONFIG_MAPS, {"metadata": {"name": f"map-{number}"}}, namespace)


async def test_slow_writes_of_one_namespace_leave_half_of_the_connections_to_the_others() -> None:
    async with slow_admission(Patience(turn=60)) as (server, kube), asyncio.TaskGroup() as group:
        for number in range(WRITE_CONNECTIONS * 2):
            group.create_task(create(kube, "slow", number))
        await until(lambda: server.waiting == WRITE_CONNECTIONS // 2)
        async with asyncio.timeout(30):
            await create(kube, "quick")
            await kube.get(CONFIG_MAPS, ObjectKey("slow", "a"))
        assert server.waiting == WRITE_CONNECTIONS // 2
        server.may_end.set()


async def test_a_write_that_finds_no_connection_says_who_has_them_and_was_not_done() -> None:
    async with slow_admission(Patience(turn=0.2)) as (server, kube), asyncio.TaskGroup() as group:
        for number in range(WRITE_CONNECTIONS // 2):
            group.create_task(create(kube, "slow", number))
        await until(lambda: server.waiting == WRITE_CONNECTIONS // 2)
        with pytest.raises(NotDone, match="all 32 connections for writes that namespace slow may use were in use") as e:
            await create(kube, "slow", 99)
        assert "create configmaps slow/map-0 has waited for its answer" in str(e.value)
        server.may_end.set()


async def test_a_lease_is_kept_while_every_connection_waits_for_a_webhook() -> None:
    async with slow_admission(Patience(turn=60)) as (server, kube), asyncio.TaskGroup() as group:
        registry = CollectorRegistry()
        key, metrics = ObjectKey("default", "ray-operator-leader"), KubeMetrics(registry)
        elector = LeaderElector(kube, key, "me", clock=SystemClock(), metrics=metrics, settings=QUICK)

        async def lead() -> None:
            async with asyncio.TaskGroup() as creates:
                for number in range(WRITE_CONNECTIONS * 2):
                    creates.create_task(create(kube, "slow", number))

        work = group.create_task(elector.run(lead))
        await until(lambda: server.waiting == WRITE_CONNECTIONS // 2)
        _, running = await asyncio.wait({work}, timeout=QUICK.renew_deadline + 1)
        assert running, "the lease was lost"
        server.may_end.set()


async def test_ray_heads_that_never_answer_leave_reads_and_other_namespaces_heads_alone() -> None:
    async with slow_admission(Patience(turn=60)) as (server, kube), asyncio.TaskGroup() as group:
        dead, alive = (Backend("services", ObjectKey(namespace, "head"), 8265) for namespace in ("slow", "quick"))
        for _ in range(RELAY_CONNECTIONS * 4):
            group.create_task(ask(kube, dead, "/api/version"))
        await until(lambda: server.waiting == RELAY_CONNECTIONS // 2)
        async with asyncio.timeout(30):
            await kube.get(CONFIG_MAPS, ObjectKey("slow", "a"))
            await ask(kube, alive, "/api/version")
        server.may_end.set()


async def test_who_gives_up_waiting_gives_the_turn_to_the_next() -> None:
    slots = Slots("writes", 1, 1, ManualClock())
    first = await slots.take("a", "first", 1)
    second = asyncio.create_task(slots.take("a", "second", 10))
    third = asyncio.create_task(slots.take("b", "third", 10))
    await asyncio.sleep(0)
    slots.release(first)
    second.cancel()
    assert (await third).about == "third"


async def test_a_turn_that_is_free_while_somebody_gives_up_goes_to_the_next() -> None:
    slots = Slots("writes", 1, 1, ManualClock())
    first = await slots.take("a", "first", 1)
    second = asyncio.create_task(slots.take("a", "second", 10))
    third = asyncio.create_task(slots.take("b", "third", 10))
    await asyncio.sleep(0)
    second.cancel()  # it has not run since, so it still stands in the queue
    slots.release(first)
    assert (await third).about == "third"
    assert second.cancelled()


async def test_who_gives_up_while_everything_becomes_free_is_told_so() -> None:
    slots = Slots("writes", 1, 1, ManualClock())
    first = await slots.take("a", "first", 1)
    late = asyncio.create_task(slots.take("a", "late", 0.01))
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_later(0.01, lambda: slots.release(first))
    time.sleep(0.05)  # noqa: ASYNC251 - a busy event loop, in which both come at the same moment
    with contextlib.suppress(NotDone):
        slots.release(await late)
    assert (await slots.take("a", "next", 0.1)).about == "next"


async def test_a_namespace_at_its_share_is_overtaken_by_another() -> None:
    slots = Slots("writes", 4, 2, ManualClock())
    held = [await slots.take("a", f"{number}", 1) for number in range(2)]
    waiting = asyncio.create_task(slots.take("a", "third", 10))
    await asyncio.sleep(0)
    assert (await slots.take("b", "other", 0.1)).namespace == "b"
    assert not waiting.done()
    slots.release(held[0])
    assert (await waiting).about == "third"


@given(limit=st.integers(2, 100), hanging=st.lists(st.sampled_from("abcde"), max_size=500))
def test_namespaces_whose_requests_never_end_leave_turns_to_whoever_comes(limit: int, hanging: list[str]) -> None:
    slots = Slots("writes", limit, limit // 2, ManualClock())
    for namespace in hanging:
        if slots._is_free(namespace):
            slots._grant(Slot(namespace, "hangs"))
    taken = slots._taken_by
    assert sum(taken.values()) < limit or limit < 2 ** len(taken)
    assert max(taken.values(), default=0) <= limit // 2


async def test_where_one_namespace_may_have_all_turns_it_gets_them() -> None:
    slots = Slots("reads", 4, 4, ManualClock())
    assert len([await slots.take("a", "read", 0.1) for _ in range(4)]) == 4


async def test_who_finds_no_turn_hears_whether_others_have_them() -> None:
    slots = Slots("writes", 4, 2, ManualClock())
    for namespace in ("a", "a", "b"):
        await slots.take(namespace, f"a write of {namespace}", 0.1)
    with pytest.raises(NotDone, match="all 2 connections for writes that namespace a may use"):
        await slots.take("a", "one more", 0.01)
    with pytest.raises(NotDone, match="all 1 connections for writes that namespace b may use"):
        await slots.take("b", "one more", 0.01)
    await slots.take("c", "the last", 0.1)
    with pytest.raises(NotDone, match="all 4 connections for writes there are were in use"):
        await slots.take("d", "none left", 0.01)


async def test_a_namespace_that_waits_does_not_stand_behind_the_crowd_of_another() -> None:
    slots = Slots("writes", 1, 1, ManualClock())
    held = await slots.take("a", "first", 1)
    crowd = [asyncio.create_task(slots.take("a", f"{number}", 10)) for number in range(20)]
    await asyncio.sleep(0)
    other = asyncio.create_task(slots.take("b", "other", 10))
    await asyncio.sleep(0)
    slots.release(held)
    slots.release(await crowd[0])
    assert (await other).about == "other"
    for task in crowd:
        task.cancel()


async def test_a_turn_that_ends_may_let_two_begin() -> None:
    slots = Slots("writes", 8, 4, ManualClock())
    held = [await slots.take(namespace, "held", 1) for namespace in "aabbcc"]
    waiting = [asyncio.create_task(slots.take(namespace, "waits", 10)) for namespace in "ba"]
    await asyncio.sleep(0)
    assert not any(task.done() for task in waiting)
    slots.release(held[0])
    assert [(await task).namespace for task in waiting] == ["b", "a"]


def test_a_webhook_that_cannot_be_asked_has_let_nothing_pass() -> None:
    message = 'Internal error occurred: failed calling webhook "pods.example.com": connection refused'
    assert isinstance(api_error("create pods a/b", 500, "InternalError", message), NotDone)
    assert type(api_error("create pods a/b", 500, "InternalError", "etcd is away")) is Unavailable
