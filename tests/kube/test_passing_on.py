"""Requests that are passed on for somebody: credentials are ours or the caller's, and answers are not waited for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry

from raykeeper.errors import Unavailable
from raykeeper.kube.client import Kube
from raykeeper.kube.connect.connection import Connection
from raykeeper.kube.connect.credentials import Identity
from raykeeper.kube.errors import Forbidden
from raykeeper.kube.http.requests import Request
from raykeeper.kube.metrics import KubeMetrics
from support.scripted_server import served

CLAIMED = {
    "Authorization": "Bearer of-the-client",
    "Impersonate-User": "system:admin",
    "Impersonate-Group": "system:masters",
}


class Kubernetes:
    """Answers as the path says, and notes the headers it saw."""

    def __init__(self) -> None:
        self.seen: list[dict[str, list[str]]] = []
        self.released = asyncio.Event()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.seen.append({name: request.headers.getall(name) for name in request.headers})
        if request.path == "/silent":
            await self.released.wait()
        response = web.StreamResponse(status=418, headers={"Content-Length": "6"})
        await response.prepare(request)
        await response.write(b"one")
        if request.path == "/broken":
            request.protocol.force_close()
        else:
            await self.released.wait()
            await response.write(b"two")
        return response


class Own:
    """A token of ours."""

    async def current(self) -> Identity:
        return Identity({"Authorization": "Bearer ours"}, None, "the token")

    async def renew(self, refused: Identity) -> Identity:
        return refused


@pytest.fixture
def kubernetes() -> Kubernetes:
    return Kubernetes()


@pytest.fixture
async def kube(kubernetes: Kubernetes) -> AsyncIterator[Kube]:
    async with served(kubernetes.handle) as url:
        connection = Connection(url, "a test", Own())
        async with Kube(connection, metrics=KubeMetrics(CollectorRegistry())) as kube:
            yield kube
        kubernetes.released.set()


def ask(path: str) -> Request:
    return Request("GET", path, "a test")


async def test_an_answer_is_there_before_its_body_whatever_its_status(kube: Kube, kubernetes: Kubernetes) -> None:
    async with kube.pass_on(ask("/slow"), {}) as answer:
        assert answer.status == 418
        assert await anext(answer.pieces) == b"one"
        kubernetes.released.set()
        assert await anext(answer.pieces) == b"two"


async def test_a_client_names_nobody_else(kube: Kube, kubernetes: Kubernetes) -> None:
    async with kube.pass_on(ask("/"), {"Authorization": "Bearer of-the-client", "X-Kept": "1"}):
        pass
    async with kube.impersonating("jane", ("blue", "green")).pass_on(ask("/"), CLAIMED):
        pass
    ours, impersonated = kubernetes.seen
    assert (ours["Authorization"], ours["X-Kept"]) == (["Bearer ours"], ["1"])
    assert impersonated["Authorization"] == ["Bearer ours"]
    assert impersonated["Impersonate-User"] == ["jane"]
    assert impersonated["Impersonate-Group"] == ["blue", "green"]


async def test_who_does_not_begin_in_time_is_unavailable(kube: Kube) -> None:
    with pytest.raises(Unavailable, match=r"no answer in 0.05 s"):
        async with kube.pass_on(ask("/silent"), {}, silence=0.05):
            pass


async def test_an_answer_that_breaks_off_is_unavailable(kube: Kube) -> None:
    async with kube.pass_on(ask("/broken"), {}) as answer:
        with pytest.raises(Unavailable):
            _ = [piece async for piece in answer.pieces]


async def test_a_guard_is_asked_before_anything_is_sent(kube: Kube, kubernetes: Kubernetes) -> None:
    async def guard(request: Request) -> None:
        raise Forbidden(request.about, 403, "Forbidden", "not there")

    guarded = kube.with_guard(guard)
    with pytest.raises(Forbidden):
        await guarded.check(ask("/"))
    with pytest.raises(Forbidden):
        async with guarded.pass_on(ask("/"), {}):
            pass
    with pytest.raises(Forbidden):
        await guarded.connect(ask("/"))
    assert kubernetes.seen == []
