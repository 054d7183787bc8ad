"""Requests to servers behind the API server, whose own refusals are not the API server's."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from raykeeper.api.meta import JSON, ObjectKey, Resource
from raykeeper.errors import Unavailable
from raykeeper.kube.client import Kube
from raykeeper.kube.errors import NotFound
from raykeeper.kube.proxied import Backend, ask
from raykeeper.kube.resources import PODS, SERVICES
from support.scripted_server import served

# What the API server's own proxy still looks up, deprecated or not; endpoint slices alone do not count for it.
ENDPOINTS: Resource[JSON] = Resource("", "v1", "endpoints", "Endpoints", dict)


def own_address() -> str | None:
    """An address of this machine that is not loopback, which the API server refuses to pass requests on to."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing; only asks which address would be used
        except OSError:
            return None
        return str(probe.getsockname()[0])


async def dashboard(request: web.BaseRequest) -> web.StreamResponse:
    """A server like Ray's dashboard: echoes what it got, or refuses in its own words."""
    if request.path == "/api/jobs/none":
        return web.json_response({"detail": "no such job"}, status=404)
    if request.path == "/busy":
        return web.Response(status=429, text="slow down", headers={"Retry-After": "1"})
    seen = {"method": request.method, "path": request.path_qs, "body": await request.text()}
    return web.json_response(seen, headers={"X-Served-By": "dashboard"})


@pytest.fixture
async def address() -> AsyncIterator[tuple[str, int]]:
    """Where the dashboard listens."""
    host = own_address()
    if host is None:
        pytest.skip("this machine has no address but loopback, to which the API server passes nothing on")
    async with served(dashboard, host=host) as url:
        yield host, int(url.rpartition(":")[2])


@pytest.fixture
async def pod(kube: Kube, namespace: str, address: tuple[str, int]) -> Backend:
    """A pod that a kubelet would have given this machine's address."""
    key = ObjectKey(namespace, "head")
    spec = {"containers": [{"name": "ray", "image": "ray"}], "nodeName": "none"}
    await kube.create(PODS, {"metadata": {"name": key.name, "namespace": namespace}, "spec": spec})
    status = {"phase": "Running", "podIP": address[0], "podIPs": [{"ip": address[0]}]}
    await kube.merge_patch(PODS, key, {"status": status}, subresource="status")
    return Backend("pods", key, address[1])


@pytest.fixture
async def service(kube: Kube, namespace: str, address: tuple[str, int], pod: Backend) -> Backend:
    """A Service whose endpoint is the pod; requests are passed on to no address that is not a pod's."""
    port = {"name": "dashboard", "port": 8265, "targetPort": address[1]}
    metadata = {"name": "head", "namespace": namespace}
    await kube.create(SERVICES, {"metadata": metadata, "spec": {"ports": [port]}})
    target = {"kind": "Pod", "namespace": namespace, "name": pod.key.name}
    subset = {
        "addresses": [{"ip": address[0], "targetRef": target}],
        "ports": [{"name": "dashboard", "port": address[1]}],
    }
    await kube.create(ENDPOINTS, {"metadata": metadata, "subsets": [subset]})
    return Backend("services", ObjectKey(namespace, "head"), "dashboard")


async def test_a_pod_is_asked_with_path_and_query(kube: Kube, pod: Backend) -> None:
    answer = await ask(kube, pod, "/api/a b", query={"job": "1&2"})
    assert answer.status == 200
    assert answer.headers["X-Served-By"] == "dashboard"
    assert b'"path": "/api/a%20b?job=1%262"' in answer.body


async def test_a_service_is_sent_a_body(kube: Kube, service: Backend) -> None:
    answer = await ask(kube, service, "/api/jobs/", method="POST", body=b"run it", content_type="text/plain")
    assert b'"method": "POST"' in answer.body
    assert b'"body": "run it"' in answer.body


async def test_the_backends_own_refusals_are_answers(kube: Kube, pod: Backend) -> None:
    missing = await ask(kube, pod, "/api/jobs/none")
    assert (missing.status, missing.body) == (404, b'{"detail": "no such job"}')
    busy = await ask(kube, pod, "/busy")
    assert (busy.status, busy.body) == (429, b"slow down")


@pytest.mark.parametrize("kind", ["pods", "services"])
async def test_a_missing_backend_is_not_found(kube: Kube, namespace: str, kind: str) -> None:
    backend = Backend("pods" if kind == "pods" else "services", ObjectKey(namespace, "none"), 8265)
    with pytest.raises(NotFound, match=f'GET / of {kind} {namespace}/none:8265: 404 NotFound: {kind} "none" not found'):
        await ask(kube, backend, "/")


async def test_a_service_that_lost_its_endpoints_is_unavailable(kube: Kube, service: Backend) -> None:
    await kube.merge_patch(ENDPOINTS, service.key, {"subsets": None})
    with pytest.raises(Unavailable, match='503 ServiceUnavailable: no endpoints available for service "head"'):
        await ask(kube, service, "/")


async def test_a_backend_that_does_not_listen_is_unavailable(kube: Kube, pod: Backend) -> None:
    with pytest.raises(Unavailable, match="connection refused"):
        await ask(kube, Backend("pods", pod.key, 1), "/")
