"""The floor under every scale benchmark: plain pods, created straight through the API, until all of them run.

No operator can be faster than this on the same machine, so later benchmarks give their time as a multiple of it.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

import msgspec

from bed.counted import DEADLINE_SECONDS, a_registry, counting
from raykeeper.api.meta import JSON, Object, ObjectKey
from raykeeper.kube.client import Kube
from raykeeper.kube.connect.connection import load_connection
from raykeeper.kube.informers.informer import Informer
from raykeeper.kube.metrics import KubeMetrics
from raykeeper.kube.resources import NAMESPACES, PODS, SERVICE_ACCOUNTS

PODS_PER_NODE = 200  # fake nodes take 250
CREATORS = 16  # the concurrency of our controllers


@dataclass(frozen=True)
class Floor:
    """How long so many pods took."""

    pods: int
    created_seconds: float
    running_seconds: float

    def __str__(self) -> str:
        times = f"created in {self.created_seconds:.1f} s, Running after {self.running_seconds:.1f} s"
        return f"{self.pods} plain pods: {times}"


class _Phase(msgspec.Struct):
    phase: str = ""


async def measure_floor(kubeconfig: Path, pods: int) -> Floor:
    """Create `pods` pods in a namespace of their own and wait until the API says that all of them run.

    Assumes nodes with room for them; takes the namespace away again.
    """
    metrics, namespace = a_registry(), f"floor-{uuid.uuid4().hex[:6]}"
    async with Kube(await load_connection(kubeconfig), metrics=metrics, qps=1e6, burst=pods) as kube:
        await _make_namespace(kube, namespace)
        try:
            return await _measure(kube, metrics, namespace, pods)
        finally:
            await kube.delete_collection(PODS, namespace, grace_seconds=0)
            await kube.delete(NAMESPACES, ObjectKey("", namespace))
            await _until_gone(kube, namespace)


async def _until_gone(kube: Kube, namespace: str) -> None:
    """What is still being taken away would be paid for by whatever is measured next."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        while await kube.find(NAMESPACES, ObjectKey("", namespace)) is not None:  # noqa: ASYNC110 - a server is asked
            await asyncio.sleep(0.5)


async def _measure(kube: Kube, metrics: KubeMetrics, namespace: str, pods: int) -> Floor:
    async with counting(Informer(kube, PODS, metrics, namespaces=[namespace]), pods, _runs) as all_run:
        started = time.monotonic()
        await _create_pods(kube, namespace, pods)
        created = time.monotonic() - started
        await all_run()
        return Floor(pods, created, time.monotonic() - started)


def _runs(pod: Object) -> bool:
    return msgspec.json.decode(pod.status, type=_Phase).phase == "Running"


async def _make_namespace(kube: Kube, name: str) -> None:
    """A namespace in which pods can be created, so with its service account."""
    await kube.create(NAMESPACES, {"metadata": {"name": name}})
    async with asyncio.timeout(30):
        while await kube.find(SERVICE_ACCOUNTS, ObjectKey(name, "default")) is None:  # noqa: ASYNC110 - seldom twice
            await asyncio.sleep(0.05)


async def _create_pods(kube: Kube, namespace: str, pods: int) -> None:
    numbers = iter(range(pods))

    async def create() -> None:
        for number in numbers:
            await kube.create(PODS, _plain_pod(number), namespace)

    async with asyncio.TaskGroup() as group:
        for _ in range(CREATORS):
            group.create_task(create())


def _plain_pod(number: int) -> JSON:
    container = {"name": "main", "image": "busybox:1.28", "resources": {"requests": {"cpu": "100m"}}}
    return {"metadata": {"name": f"plain-{number:05}"}, "spec": {"containers": [container]}}
