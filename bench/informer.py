"""How fast and how large a cache of ten thousand Ray pods is, and how fast it catches up."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from bed.control_plane import ControlPlane
from bench.figures import Figure
from bench.ray_pods import ray_pod
from bench.servers import a_client, a_control_plane, in_parallel
from raykeeper.api.meta import ObjectKey
from raykeeper.kube.resources import PODS

PODS_MADE = 10_000
CHANGES = 20_000
NAMESPACE = "default"


def run() -> Iterator[Figure]:
    """Fill the API server with pods, let a process of its own cache them, then change each of them twice."""
    with a_control_plane() as plane:
        asyncio.run(_create_pods(plane))
        with _caching(plane) as process:
            cached, pages = _report(process), _report(process)
            asyncio.run(_change_pods(plane))
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
            followed, stream = _report(process), _report(process)
    complete = "" if cached["count"] == PODS_MADE else f" INCOMPLETE: {cached['count']} pods"
    bare = f"pages alone {pages['seconds']:.2f} s, {pages['cpu_seconds']:.2f} s CPU{complete}"
    yield Figure("cache of 10,000 Ray pods complete", cached["seconds"], "s", 5.0, "less", bare)
    yield Figure("process with 10,000 Ray pods cached", cached["rss_mb"], "MB RSS", 140, "less")
    rate, bare_rate = (facts["count"] / facts["seconds"] for facts in (followed, stream))
    yield Figure("watch events applied", rate, "events/s", 5000, "more", f"received alone {bare_rate:,.0f} events/s")
    per_cpu = followed["count"] / followed["cpu_seconds"]
    yield Figure("watch events applied per second of CPU", per_cpu, "events/s", None, "more")


def _caching(plane: ControlPlane) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "bench.programs.cache", str(plane.admin_kubeconfig), str(CHANGES)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _report(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    facts: dict[str, Any] = json.loads(process.stdout.readline())
    return facts


async def _create_pods(plane: ControlPlane) -> None:
    print(f"creating {PODS_MADE:,} pods", file=sys.stderr)
    async with a_client(plane.admin_kubeconfig) as kube:
        await in_parallel(range(PODS_MADE), lambda number: kube.create(PODS, ray_pod(number), NAMESPACE))


async def _change_pods(plane: ControlPlane) -> None:
    print(f"changing them {CHANGES:,} times", file=sys.stderr)
    async with a_client(plane.admin_kubeconfig) as kube:

        async def change(number: int) -> None:
            name = ray_pod(number % PODS_MADE)["metadata"]["name"]
            patch = {"metadata": {"annotations": {"change": str(number)}}}
            await kube.merge_patch(PODS, ObjectKey(NAMESPACE, name), patch)

        await in_parallel(range(CHANGES), change)
