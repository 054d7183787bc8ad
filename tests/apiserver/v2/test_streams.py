"""Streams through V2: watches, logs, websockets and large files, as they come and in little memory."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import psutil
import pytest
from aiohttp import web

from bed.binaries import binary
from bed.control_plane import ControlPlane
from bed.fixtures import make_namespace, remove_namespace
from bed.waiting import PATIENCE_SECONDS
from support.api_processes import ApiProcess, api_server_on
from support.conditions import until
from support.head_scenarios import own_address
from support.scripted_server import served

MIB = 1 << 20
CLUSTER: dict[str, Any] = {
    "apiVersion": "ray.io/v1",
    "kind": "RayCluster",
    "metadata": {"name": "watched"},
    "spec": {
        "headGroupSpec": {"rayStartParams": {}, "template": {"spec": {"containers": [{"name": "h", "image": "i"}]}}}
    },
}


class Dashboard:
    """A server in the place of a Ray dashboard."""

    def __init__(self) -> None:
        self.released = asyncio.Event()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/websocket":
            return await self._echo(request)
        if request.path == "/upload":
            size = 0
            async for piece in request.content.iter_any():
                size += len(piece)
            return web.json_response({"bytes": size})
        if request.path == "/large":
            return await self._large(request)
        if request.path == "/follow":
            return await self._follow(request)
        body = await request.content.read()
        seen = {"method": request.method, "path": request.raw_path, "body": body.decode()}
        return web.json_response({**seen, "headers": dict(request.headers)}, status=201)

    async def _follow(self, request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b"data: one\n\n")
        await self.released.wait()
        await response.write(b"data: two\n\n")
        return response

    async def _large(self, request: web.BaseRequest) -> web.StreamResponse:
        count = int(request.query_string)
        response = web.StreamResponse(headers={"Content-Length": str(count * MIB)})
        await response.prepare(request)
        for _ in range(count):
            await response.write(bytes(MIB))
        return response

    async def _echo(self, request: web.BaseRequest) -> web.StreamResponse:
        channel = web.WebSocketResponse(max_msg_size=0)
        await channel.prepare(request)
        async for message in channel:
            await channel.send_str(f"heard {message.data}")
        return channel


@dataclass(frozen=True)
class Scene:
    server: ApiProcess
    plane: ControlPlane
    namespace: str
    dashboard: Dashboard

    @property
    def url(self) -> str:
        return self.server.rest.server

    @property
    def proxy(self) -> str:
        return f"{self.url}/api/v1/namespaces/{self.namespace}/services/head:dashboard/proxy"

    @property
    def clusters(self) -> str:
        return f"{self.url}/apis/ray.io/v1/namespaces/{self.namespace}/rayclusters"


@pytest.fixture
async def scene(ray_crds: ControlPlane, tmp_path: Path) -> AsyncIterator[Scene]:
    namespace, dashboard, host = f"v2s-{uuid.uuid4().hex[:6]}", Dashboard(), own_address()
    async with served(dashboard.handle, host=host) as url:
        port = int(url.rpartition(":")[2])
        await asyncio.to_thread(_make_head, ray_crds, namespace, host, port)
        with api_server_on(ray_crds, tmp_path, "--auth=none", "--cors-allow-origin=https://example.com") as server:
            yield Scene(server, ray_crds, namespace, dashboard)
    await asyncio.to_thread(_remove_head, ray_crds, namespace)


def _make_head(plane: ControlPlane, namespace: str, host: str, port: int) -> None:
    make_namespace(plane, namespace)
    admin, place = plane.admin, f"/api/v1/namespaces/{namespace}"
    admin.post("/api/v1/nodes", {"metadata": {"name": namespace}})
    pod = {"nodeName": namespace, "containers": [{"name": "ray", "image": "ray"}]}
    admin.post(f"{place}/pods", {"metadata": {"name": "head"}, "spec": pod})
    admin.patch(f"{place}/pods/head/status", {"status": {"phase": "Running", "podIP": host, "podIPs": [{"ip": host}]}})
    labels = {"app.kubernetes.io/name": "kuberay"}
    ports = [{"name": "dashboard", "port": 8265}]
    admin.post(f"{place}/services", {"metadata": {"name": "head", "labels": labels}, "spec": {"ports": ports}})
    target = {"kind": "Pod", "namespace": namespace, "name": "head"}
    subset = {"addresses": [{"ip": host, "targetRef": target}], "ports": [{"name": "dashboard", "port": port}]}
    admin.post(f"{place}/endpoints", {"metadata": {"name": "head"}, "subsets": [subset]})


def _remove_head(plane: ControlPlane, namespace: str) -> None:
    plane.admin.delete(f"/api/v1/nodes/{namespace}")
    remove_namespace(plane, namespace)


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


async def test_a_watch_tells_changes_as_they_happen(scene: Scene, session: aiohttp.ClientSession) -> None:
    async with session.get(f"{scene.clusters}?watch=true") as watch:
        assert watch.status == 200
        async with session.post(scene.clusters, json=CLUSTER) as made:
            assert made.status == 201
        first = json.loads(await asyncio.wait_for(watch.content.readline(), 60))
        assert (first["type"], first["object"]["metadata"]["name"]) == ("ADDED", "watched")
        patch = {"metadata": {"labels": {"a": "b"}}}
        merge = {"Content-Type": "application/merge-patch+json"}
        async with session.patch(f"{scene.clusters}/watched", json=patch, headers=merge) as patched:
            assert patched.status == 200
        second = json.loads(await asyncio.wait_for(watch.content.readline(), 60))
        assert second["type"] == "MODIFIED"
        async with session.delete(f"{scene.clusters}/watched") as deleted:
            assert deleted.status == 200
        third = json.loads(await asyncio.wait_for(watch.content.readline(), 60))
        assert third["type"] == "DELETED"


async def test_a_watch_that_nobody_reads_any_more_is_ended(scene: Scene, session: aiohttp.ClientSession) -> None:
    process = psutil.Process(scene.server.process.pid)
    before = len(process.net_connections())
    for _ in range(20):
        async with session.get(f"{scene.clusters}?watch=true", timeout=aiohttp.ClientTimeout(60)) as watch:
            assert watch.status == 200
            watch.close()
    await until(lambda: len(process.net_connections()) <= before + 10)


async def test_jobs_can_be_submitted_through_a_service(scene: Scene, session: aiohttp.ClientSession) -> None:
    headers = {"X-Ray-Authorization": "Bearer ray", "Origin": "https://example.com"}
    async with session.post(f"{scene.proxy}/api/jobs/", json={"entrypoint": "x"}, headers=headers) as answer:
        seen = await answer.json()
        assert answer.status == 201
        assert answer.headers["Access-Control-Allow-Origin"] == "https://example.com"
    assert (seen["method"], seen["path"], seen["body"]) == ("POST", "/api/jobs/", '{"entrypoint": "x"}')
    assert seen["headers"]["X-Ray-Authorization"] == "Bearer ray"
    for method in ("GET", "PUT", "DELETE", "PATCH"):
        async with session.request(method, f"{scene.proxy}/a%20b?c=d") as answer:
            assert answer.status == 201
            assert (await answer.json())["method"] == method


async def test_a_log_that_is_followed_arrives_as_it_is_written(scene: Scene, session: aiohttp.ClientSession) -> None:
    async with session.get(f"{scene.proxy}/follow") as answer:
        assert await asyncio.wait_for(answer.content.readline(), 60) == b"data: one\n"
        scene.dashboard.released.set()
        await answer.content.readline()
        assert await asyncio.wait_for(answer.content.readline(), 60) == b"data: two\n"


async def test_websockets_pass(scene: Scene, session: aiohttp.ClientSession) -> None:
    async with session.ws_connect(f"{scene.proxy}/websocket", max_msg_size=0) as channel:
        for text in ("one", "x" * (2 * MIB)):
            await channel.send_str(text)
            assert await asyncio.wait_for(channel.receive_str(), 60) == f"heard {text}"


async def test_no_command_runs_in_a_pod_whatever_the_protocol(
    scene: Scene, session: aiohttp.ClientSession, tmp_path: Path
) -> None:
    """Pods are no part of V2: neither for kubectl, nor for requests such as it would send."""
    parts = ("exec?command=true&stdout=true", "attach?stdout=true", "portforward?ports=8265", "log")
    for method, protocol, part in itertools.product(("GET", "POST"), ("websocket", "SPDY/3.1"), parts):
        headers = {"Connection": "Upgrade", "Upgrade": protocol, "X-Stream-Protocol-Version": "v4.channel.k8s.io"}
        url = f"{scene.url}/api/v1/namespaces/{scene.namespace}/pods/head/{part}"
        async with session.request(method, url, headers=headers) as answer:
            assert answer.status == 404, part
    commands = (("exec", "head", "--", "true"), ("port-forward", "pod/head", "0:8265"))
    where = (f"--server={scene.url}", "--kubeconfig=/dev/null", f"--namespace={scene.namespace}")
    for words, is_websocket in itertools.product(commands, ("true", "false")):
        names = ("KUBECTL_REMOTE_COMMAND_WEBSOCKETS", "KUBECTL_PORT_FORWARD_WEBSOCKETS")
        protocols = dict.fromkeys(names, is_websocket)
        process = await asyncio.create_subprocess_exec(
            binary("kubectl"),
            *where,
            *words,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, **protocols, "HOME": str(tmp_path)},
        )
        _, errors = await asyncio.wait_for(process.communicate(), PATIENCE_SECONDS)
        assert (process.returncode, b"could not find the requested resource" in errors) == (1, True), errors


async def test_a_wish_for_another_protocol_than_websockets_is_dropped(
    scene: Scene, session: aiohttp.ClientSession
) -> None:
    """The service answers a plain request: its bytes are never taken for anything else."""
    for method in ("GET", "POST"):
        headers = {"Connection": "Upgrade", "Upgrade": "SPDY/3.1"}
        async with session.request(method, f"{scene.proxy}/plain", headers=headers) as answer:
            seen = await answer.json()
        assert (answer.status, seen["method"], seen["path"]) == (201, method, "/plain")
        assert "Upgrade" not in seen["headers"]


async def test_a_gigabyte_passes_both_ways_in_little_memory(scene: Scene, session: aiohttp.ClientSession) -> None:
    memory = psutil.Process(scene.server.process.pid).memory_info

    async def download(count: int) -> None:
        async with session.get(f"{scene.proxy}/large?{count}", timeout=aiohttp.ClientTimeout(500)) as answer:
            assert answer.status == 200
            assert sum([len(piece) async for piece in answer.content.iter_any()]) == count * MIB

    async def upload(count: int) -> None:
        async def pieces() -> AsyncIterator[bytes]:
            for _ in range(count):
                yield bytes(MIB)

        timeout = aiohttp.ClientTimeout(500)
        async with session.post(f"{scene.proxy}/upload", data=pieces(), timeout=timeout) as answer:
            assert (await answer.json())["bytes"] == count * MIB

    await download(16)
    await upload(16)
    before = memory().rss
    await download(1024)
    await upload(128)
    assert memory().rss - before < 32 * MIB
