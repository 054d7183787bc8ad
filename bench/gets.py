"""What one request costs the client."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Awaitable, Callable, Iterator

import aiohttp

from bed.control_plane import ControlPlane
from bed.keys import client_tls
from bench.figures import Figure
from bench.ray_pods import ray_pod
from bench.servers import a_client, a_control_plane, in_parallel
from raykeeper.api.meta import ObjectKey
from raykeeper.kube.resources import PODS

GETS = 10_000
WARM_UP = 500
CONCURRENCY = 16
NAMESPACE = "default"


def run() -> Iterator[Figure]:
    """GETs of one Ray pod at concurrency 16, beside the same GETs by aiohttp alone."""
    with a_control_plane() as plane:
        body = ray_pod(0)
        ours = asyncio.run(_with_kube(plane, body))
        bare = asyncio.run(_with_aiohttp(plane, PODS.path(NAMESPACE, body["metadata"]["name"])))
    baseline = f"aiohttp alone {GETS / bare[1]:,.0f} per second of CPU, {GETS / bare[0]:,.0f} GET/s by the clock"
    yield Figure("GET per second of one client core", GETS / ours[1], "GET/s", 1500, "more", baseline)
    # The API server needs more of the two cores than the client does, so this says as much about it.
    yield Figure("GET by the clock, server on the same two cores", GETS / ours[0], "GET/s", None, "more", baseline)


async def _with_kube(plane: ControlPlane, body: dict[str, object]) -> tuple[float, float]:
    async with a_client(plane.admin_kubeconfig) as kube:
        created = await kube.create(PODS, body, NAMESPACE)
        key: ObjectKey = created.key
        return await _timed(lambda: kube.get(PODS, key))


async def _with_aiohttp(plane: ControlPlane, path: str) -> tuple[float, float]:
    tls: ssl.SSLContext = client_tls(plane.keys, plane.keys.admin)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls), trust_env=False) as session:

        async def get() -> bytes:
            async with session.get(plane.server + path) as response:
                return await response.read()

        return await _timed(get)


async def _timed(get: Callable[[], Awaitable[object]]) -> tuple[float, float]:
    """Wall and processor seconds of all the GETs, once connections are open."""

    async def once(_: int) -> None:
        await get()

    await in_parallel(range(WARM_UP), once, CONCURRENCY)
    wall, cpu = time.monotonic(), time.process_time()
    await in_parallel(range(GETS), once, CONCURRENCY)
    return time.monotonic() - wall, time.process_time() - cpu
