"""The real servers that benchmarks run against."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from bed.control_plane import ControlPlane
from bed.runs import end_run, new_run
from raykeeper.kube.client import Kube
from raykeeper.kube.connect.connection import load_connection
from raykeeper.kube.metrics import KubeMetrics


@contextlib.contextmanager
def a_control_plane() -> Iterator[ControlPlane]:
    """A control plane of this benchmark alone."""
    run = new_run()
    try:
        plane = ControlPlane.create(run / "bench")
        plane.up()
        yield plane
    finally:
        end_run(run)


@contextlib.asynccontextmanager
async def a_client(kubeconfig: Path, **limits: Any) -> AsyncIterator[Kube]:
    """A client whose own rate limit does not get in the way, unless one is given."""
    settings = {"qps": 1e6, "burst": 1_000_000, **limits}
    async with Kube(await load_connection(kubeconfig), metrics=KubeMetrics(CollectorRegistry()), **settings) as kube:
        yield kube


async def in_parallel(items: range, work: Callable[[int], Coroutine[Any, Any, object]], width: int = 16) -> None:
    """Do the work for each number, `width` at a time."""
    numbers = iter(items)

    async def worker() -> None:
        for number in numbers:
            await work(number)

    async with asyncio.TaskGroup() as group:
        for _ in range(width):
            group.create_task(worker())
