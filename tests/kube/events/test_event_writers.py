"""Events of one namespace never wait for those of another."""

from __future__ import annotations

import asyncio

from aiohttp import web
from prometheus_client import CollectorRegistry

from raykeeper.clock import SystemClock
from raykeeper.kube.events.series import ObjectRef
from raykeeper.kube.events.writer import FLUSH_SECONDS, WRITERS, EventWriter
from raykeeper.kube.metrics import KubeMetrics
from support.conditions import until
from support.kube_clients import anonymous, connected
from support.scripted_server import served


class Namespaces:
    """An API server that answers for Events in namespaces called `slow-...` only when it is let."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self.waiting = 0
        self.may_end = asyncio.Event()

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.json()
        if "/namespaces/slow-" in request.path:
            self.waiting += 1
            await self.may_end.wait()
        self.written.append(body["note"])
        return web.json_response(body, status=201)


def about(namespace: str) -> ObjectRef:
    return ObjectRef("ray.io/v1", "RayCluster", namespace, "a", f"uid-{namespace}")


async def test_a_slow_webhook_of_one_namespace_holds_up_its_own_events_alone() -> None:
    server = Namespaces()
    async with served(server) as url, connected(anonymous(url)) as kube:
        writer = EventWriter(kube, "here", clock=SystemClock(), metrics=KubeMetrics(CollectorRegistry()))
        recorder = writer.recorder("raycluster-controller")
        running = asyncio.create_task(writer.run())
        for number in range(5):
            recorder.warning(about("slow-a"), "Failed", f"slow {number}")
        await until(lambda: server.waiting == 1)
        for number in range(5):
            recorder.normal(about("quick"), "Created", f"quick {number}")
        await until(lambda: len(server.written) == 5)
        assert server.written == [f"quick {number}" for number in range(5)]
        assert server.waiting == 1, "one after the other in a namespace"
        server.may_end.set()
        await until(lambda: len(server.written) == 10)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_more_slow_namespaces_than_writers_are_cut_off_at_the_end() -> None:
    server, registry = Namespaces(), CollectorRegistry()
    async with served(server) as url, connected(anonymous(url)) as kube:
        writer = EventWriter(kube, "here", clock=SystemClock(), metrics=KubeMetrics(registry))
        running = asyncio.create_task(writer.run())
        for number in range(WRITERS + 2):
            writer.recorder("raycluster-controller").warning(about(f"slow-{number}"), "Failed", "no")
        await until(lambda: server.waiting == WRITERS)
        running.cancel()
        async with asyncio.timeout(FLUSH_SECONDS + 2):
            await asyncio.gather(running, return_exceptions=True)
        dropped = registry.get_sample_value("raykeeper_events_dropped_total", {"cause": "shutdown"})
        assert dropped == WRITERS + 2
        server.may_end.set()
