"""V2 asks a busy Kubernetes again, as KubeRay's does, but never does a thing twice that may have been done."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry, Counter

from raykeeper.apiserver.auth.callers import Everybody
from raykeeper.apiserver.v2 import proxy as v2
from raykeeper.kube.client import Kube
from raykeeper.kube.metrics import KubeMetrics
from raykeeper.web.listener import BoundedServer
from raykeeper.web.targets import Target
from support.kube_clients import anonymous
from support.scripted_server import served

PATH = "/apis/ray.io/v1/namespaces/team/rayclusters"


class Busy:
    """An API server that answers with these statuses, one after the other, and then with 200."""

    def __init__(self) -> None:
        self.statuses: list[int] = []
        self.asked: list[tuple[str, bytes]] = []

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.asked.append((request.method, await request.content.read()))
        status = self.statuses.pop(0) if self.statuses else 200
        return web.json_response({"kind": "Status", "code": status}, status=status)


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> Busy:
    monkeypatch.setattr(v2, "FIRST_PAUSE_SECONDS", 0.01)
    return Busy()


@pytest.fixture
async def url(busy: Busy) -> AsyncIterator[str]:
    registry = CollectorRegistry()
    async with (
        served(busy.handle) as kubernetes,
        Kube(anonymous(kubernetes), metrics=KubeMetrics(registry)) as kube,
    ):
        proxy = v2.V2Proxy(kube, Everybody(kube), Counter("requests", "x", ("method", "code"), registry=registry))

        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            response = await proxy.answer(request, Target.parse(request.raw_path), {})
            assert response is not None
            return response

        server = BoundedServer(handle)
        listener = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
        yield f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
        listener.close()
        await server.shutdown(0)


async def ask(url: str, method: str, body: bytes | None = None) -> int:
    async with aiohttp.ClientSession() as session, session.request(method, f"{url}{PATH}", data=body) as answer:
        await answer.read()
        return answer.status


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
async def test_reads_are_tried_again(status: int, busy: Busy, url: str) -> None:
    busy.statuses = [status, status, status]
    assert await ask(url, "GET") == 200
    assert len(busy.asked) == 4


async def test_the_fourth_answer_is_passed_on_whatever_it_is(busy: Busy, url: str) -> None:
    busy.statuses = [503] * 10
    assert await ask(url, "GET") == 503
    assert len(busy.asked) == 4


@pytest.mark.parametrize("status", [200, 201, 301, 400, 401, 403, 404, 409, 422])
async def test_other_answers_are_passed_on_at_once(status: int, busy: Busy, url: str) -> None:
    busy.statuses = [status]
    assert await ask(url, "GET") == status
    assert len(busy.asked) == 1


async def test_a_body_is_sent_again_whole(busy: Busy, url: str) -> None:
    busy.statuses = [503, 503]
    assert await ask(url, "PUT", b'{"a": 1}') == 200
    assert busy.asked == [("PUT", b'{"a": 1}')] * 3


@pytest.mark.parametrize("method", ["POST", "PATCH"])
@pytest.mark.parametrize("status", [500, 502, 504])
async def test_what_may_have_been_done_is_not_done_again(method: str, status: int, busy: Busy, url: str) -> None:
    """KubeRay's server sends a create again, and then says that the object is there already."""
    busy.statuses = [status]
    assert await ask(url, method, b"{}") == status
    assert len(busy.asked) == 1


@pytest.mark.parametrize("status", [429, 503])
async def test_what_was_certainly_not_done_is_sent_again(status: int, busy: Busy, url: str) -> None:
    busy.statuses = [status]
    assert await ask(url, "POST", b"{}") == 200
    assert len(busy.asked) == 2


async def test_all_tries_end_within_a_bound(busy: Busy, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(v2, "RETRY_SECONDS", 0.0)
    busy.statuses = [503] * 10
    assert await ask(url, "GET") == 503
    assert len(busy.asked) == 1
