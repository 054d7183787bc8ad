"""Heads that the API server asks for its callers: only those who may, and only the head that is meant."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from raykeeper.apiserver.errors import CallFailed, Code
from raykeeper.apiserver.services.heads import CheckedHead, Heads
from raykeeper.errors import Unavailable
from raykeeper.kube.client import Kube
from raykeeper.kube.errors import Forbidden
from raykeeper.kube.http.requests import Request
from raykeeper.ray.dashboard import Answer
from support.kube_clients import anonymous, connected
from support.scripted_server import served

JOBS = "/api/v1/namespaces/team/services/a-head-svc:dashboard/proxy/api/jobs/"


def a_cluster(head_service: str = "") -> dict[str, Any]:
    head: dict[str, Any] = {"rayStartParams": {}, "template": {}}
    if head_service:
        head["headService"] = {"metadata": {"name": head_service}}
    return {"metadata": {"name": "a", "namespace": "team"}, "spec": {"headGroupSpec": head}}


class Kubernetes:
    """Says of everybody that they may read and nothing else, and notes who was asked about."""

    def __init__(self) -> None:
        self.asked: list[tuple[str | None, dict[str, str]]] = []

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        assert request.path == "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        attributes = (await request.json())["spec"]["resourceAttributes"]
        self.asked.append((request.headers.get("Impersonate-User"), attributes))
        is_allowed = attributes["verb"] == "get"
        return web.json_response({"metadata": {}, "status": {"allowed": is_allowed}}, status=201)


class Silent:
    """A head that answers everything with nothing."""

    service = "the head"

    async def get(self, path: str) -> Answer:
        return Answer(200, path.encode(), "")

    async def send(self, method: str, path: str, body: bytes = b"") -> Answer:
        raise AssertionError(f"{method} {path} {body!r}")


@pytest.fixture
def kubernetes() -> Kubernetes:
    return Kubernetes()


@pytest.fixture
async def kube(kubernetes: Kubernetes) -> AsyncIterator[Kube]:
    async with served(kubernetes.handle) as url, connected(anonymous(url)) as kube:
        yield kube


@pytest.mark.parametrize("is_proxied", [True, False])
@pytest.mark.parametrize(
    "name",
    [
        "victim-head-svc.team-b.svc.cluster.local:8265/?",
        "https://x@169.254.169.254:1/p#",
        "x.team-b",
        "x/../../y",
        "x:80",
        "-x",
        "x\n",
        "x" * 64,
    ],
)
async def test_a_head_service_cannot_be_named_so_that_it_leads_elsewhere(
    name: str, is_proxied: bool, kube: Kube
) -> None:
    with pytest.raises(CallFailed, match="cannot name a Service") as failure:
        await Heads("cluster.local", is_proxied).of(kube, a_cluster(name))
    assert failure.value.code is Code.FailedPrecondition


async def test_a_name_of_the_users_own_is_fine(kube: Kube) -> None:
    head = await Heads("cluster.local", False).of(kube, a_cluster("my-head"))
    assert head.service == "Ray dashboard my-head.team.svc.cluster.local:8265"


async def test_a_head_that_we_reach_ourselves_needs_the_rights_of_the_proxy(kube: Kube) -> None:
    """Who may read RayClusters may not run programs in them for that."""
    asked: list[str] = []

    async def guard(request: Request) -> None:
        asked.append(f"{request.method} {request.path}")
        raise Forbidden(request.about, 403, "Forbidden", "no")

    head = await Heads("cluster.local", False).of(kube.with_guard(guard), a_cluster())
    with pytest.raises(Forbidden):
        await head.send("POST", "/api/jobs/", b"{}")
    with pytest.raises(Forbidden):
        await head.get("/api/jobs/?x=1")
    assert asked == [f"POST {JOBS}", f"GET {JOBS}"]


@pytest.mark.parametrize("user", [None, "jane"])
async def test_where_kubernetes_sees_the_caller_it_is_asked_itself(
    user: str | None, kube: Kube, kubernetes: Kubernetes
) -> None:
    callers = kube.impersonating(user) if user else kube.as_caller("a token")
    head = await Heads("cluster.local", False).of(callers, a_cluster())
    assert isinstance(head, CheckedHead)
    head._head = Silent()
    assert (await head.get("/api/jobs/")).body == b"/api/jobs/"
    with pytest.raises(Forbidden, match='the caller cannot create resource "services/proxy"'):
        await head.send("POST", "/api/jobs/", b"{}")
    place = {"version": "v1", "resource": "services", "subresource": "proxy", "namespace": "team"}
    place |= {"name": "a-head-svc:dashboard"}
    assert kubernetes.asked == [(user, {"verb": verb, **place}) for verb in ("get", "create")]


async def test_our_own_rights_need_no_question(kubernetes: Kubernetes, kube: Kube) -> None:
    head = await Heads("invalid", False).of(kube, a_cluster())
    with pytest.raises(Unavailable):
        await head.get("/api/jobs/")
    assert kubernetes.asked == []
