"""Our security proxy beside KubeRay's own, in front of the same API server."""

from __future__ import annotations

import asyncio
import http.client
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from bed.control_plane import ControlPlane
from bed.daemons import LOOPBACK
from bed.kuberay_apiserver import ServerPorts, kuberay_apiserver_on, kuberay_security_proxy_on
from support.security_proxies import TOKEN, ProxyProcess, a_proxy_process

pytestmark = pytest.mark.interop

LIST = "/apis/v1/namespaces/default/compute_templates"
TEMPLATE = '{"name": "a", "namespace": "another", "cpu": 1, "memory": 1}'
REQUESTS: list[tuple[str, str, str | None, str | None]] = [
    ("GET", LIST, TOKEN, None),
    ("GET", f"{LIST}/missing", TOKEN, None),
    ("GET", f"{LIST}/", TOKEN, None),
    ("GET", "/nowhere", TOKEN, None),
    ("GET", "/apis/v1/namespaces//clusters", TOKEN, None),
    ("GET", "/apis/v1/namespaces/default/clusters?limit=abc", TOKEN, None),
    ("POST", LIST, TOKEN, TEMPLATE),
    ("POST", LIST, TOKEN, ""),
    ("DELETE", f"{LIST}/missing", TOKEN, None),
    ("PATCH", LIST, TOKEN, "{}"),
    ("GET", LIST, None, None),
    ("GET", LIST, "wrong", None),
    ("GET", LIST, TOKEN[:-1], None),
    ("POST", LIST, None, TEMPLATE),
    ("GET", "/metrics", None, None),
    ("GET", "/healthz", TOKEN, None),
]


@pytest.fixture(scope="module")
def behind(ray_crds: ControlPlane) -> Iterator[ServerPorts]:
    with kuberay_apiserver_on(ray_crds) as ports:
        yield ports


@pytest.fixture(scope="module")
def theirs(ray_crds: ControlPlane, behind: ServerPorts) -> Iterator[int]:
    with kuberay_security_proxy_on(ray_crds, behind, TOKEN, "/") as port:
        yield port


@pytest.fixture
async def ours(behind: ServerPorts, tmp_path: Path) -> AsyncIterator[ProxyProcess]:
    async with a_proxy_process(tmp_path, behind.http, behind.grpc) as proxy:
        yield proxy


def answer(port: int, method: str, path: str, token: str | None, body: str | None) -> tuple[int, str, str | None]:
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=60)
    try:
        connection.request(method, path, body, {"Authorization": token} if token else {})
        response = connection.getresponse()
        return response.status, response.read().decode(), response.headers.get("Location")
    finally:
        connection.close()


async def test_every_answer_is_kuberays(theirs: int, ours: ProxyProcess) -> None:
    for request in REQUESTS:
        expected = await asyncio.to_thread(answer, theirs, *request)
        assert await asyncio.to_thread(answer, ours.http, *request) == expected, request


async def test_a_path_in_another_spelling_gets_past_kuberays_and_not_past_ours(
    ray_crds: ControlPlane, behind: ServerPorts, tmp_path: Path
) -> None:
    spelled = "//apis/v1/namespaces/default/compute_templates"
    with kuberay_security_proxy_on(ray_crds, behind, TOKEN, "/apis") as port:
        assert (await asyncio.to_thread(answer, port, "GET", spelled, None, None))[0] != 401
    async with a_proxy_process(tmp_path, behind.http, SECURITY_PREFIX="/apis") as ours:
        assert (await asyncio.to_thread(answer, ours.http, "GET", spelled, None, None))[0] == 401


async def test_probes_need_no_token_of_ours(theirs: int, ours: ProxyProcess) -> None:
    assert (await asyncio.to_thread(answer, theirs, "GET", "/healthz", None, None))[0] == 401
    assert (await asyncio.to_thread(answer, ours.http, "GET", "/healthz", None, None))[0] == 200
