"""`kubectl raykeeper logs --follow` of a pod that lives: lines come as they are written, until it ends or Ctrl-C."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import ssl
import sys
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from bed.control_plane import ControlPlane
from bed.daemons import LOOPBACK
from bed.waiting import PATIENCE_SECONDS
from support.scripted_server import served
from support.sick_objects import put_cluster

COMMAND = Path(sys.executable).parent / "kubectl-raykeeper"


class Kubelet:
    """In the place of a node's kubelet, for its logs alone: one line, and after a sign another."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.released = asyncio.Event()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.asked.append(request.raw_path)
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        await response.write("first line, ünïcode\n".encode())
        await self.released.wait()
        with contextlib.suppress(ConnectionError):  # nobody follows any more
            await response.write(b"second line\n")
        return response


@pytest.fixture
async def kubelet(ray_crds: ControlPlane, namespace: str) -> AsyncIterator[Kubelet]:
    """Of a node that has the head of the cluster `demo`."""
    kubelet = Kubelet()
    # The key that the API server serves with: it takes a kubelet for real if the same authority has signed it.
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(ray_crds.keys.apiserver.certificate, ray_crds.keys.apiserver.key)
    node = f"logs-{uuid.uuid4().hex[:6]}"
    async with served(kubelet.handle, tls) as url:
        await asyncio.to_thread(_put_head, ray_crds, namespace, node, int(url.rpartition(":")[2]))
        try:
            yield kubelet
        finally:
            kubelet.released.set()
            await asyncio.to_thread(ray_crds.admin.delete, f"/api/v1/nodes/{node}")


def _put_head(plane: ControlPlane, namespace: str, node: str, port: int) -> None:
    plane.admin.post("/api/v1/nodes", {"metadata": {"name": node}})
    status = {
        "addresses": [{"type": "InternalIP", "address": LOOPBACK}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
    }
    plane.admin.patch(f"/api/v1/nodes/{node}/status", {"status": status})
    put_cluster(plane, namespace)
    pods = f"/api/v1/namespaces/{namespace}/pods"
    labels = {"ray.io/cluster": "demo", "ray.io/node-type": "head"}
    spec = {"nodeName": node, "containers": [{"name": "ray-head", "image": "ray"}]}
    plane.admin.post(pods, {"metadata": {"name": "demo-head", "labels": labels}, "spec": spec})
    plane.admin.patch(f"{pods}/demo-head/status", {"status": {"phase": "Running"}})


@contextlib.asynccontextmanager
async def following(plane: ControlPlane, namespace: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """The command, once the first line was printed."""
    arguments = ("logs", "raycluster/demo", "--follow", "--tail=10", "--namespace", namespace)
    environment = {**os.environ, "KUBECONFIG": str(plane.admin_kubeconfig), "RAYKEEPER_HISTORY_URL": ""}
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(COMMAND, *arguments, stdout=pipe, stderr=pipe, env=environment)
    try:
        assert process.stdout is not None
        line = await asyncio.wait_for(process.stdout.readline(), PATIENCE_SECONDS)
        assert line.decode() == "first line, ünïcode\n"
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_lines_are_printed_as_they_are_written(ray_crds: ControlPlane, namespace: str, kubelet: Kubelet) -> None:
    async with following(ray_crds, namespace) as process:
        assert process.returncode is None
        kubelet.released.set()
        output, errors = await asyncio.wait_for(process.communicate(), PATIENCE_SECONDS)
        assert (output, errors, await process.wait()) == (b"second line\n", b"", 0)
    assert kubelet.asked == [f"/containerLogs/{namespace}/demo-head/ray-head?follow=true&tailLines=10"]


async def test_ctrl_c_ends_it_without_a_traceback(ray_crds: ControlPlane, namespace: str, kubelet: Kubelet) -> None:
    async with following(ray_crds, namespace) as process:
        process.send_signal(signal.SIGINT)
        output, errors = await asyncio.wait_for(process.communicate(), PATIENCE_SECONDS)
    assert (output, b"Traceback" in errors, process.returncode) == (b"", False, 130)


async def test_a_reader_that_goes_away_ends_it(ray_crds: ControlPlane, namespace: str, kubelet: Kubelet) -> None:
    """As in `kubectl raykeeper logs … --follow | head -1`."""
    async with following(ray_crds, namespace) as process:
        process._transport.get_pipe_transport(1).close()  # type: ignore[attr-defined]  # asyncio has no other way
        kubelet.released.set()
        assert process.stderr is not None
        errors = await asyncio.wait_for(process.stderr.read(), PATIENCE_SECONDS)
        await asyncio.wait_for(process.wait(), PATIENCE_SECONDS)
    assert b"Traceback" not in errors
