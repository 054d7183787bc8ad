"""A process that fills an informer with the pods of a cluster and later catches up with what changed meanwhile.

Arguments: kubeconfig, number of pods, number of changes. Prints one JSON line per step. After `cached` it waits for a
line on standard input before it follows again, so that the changes are there at once and its own speed is what counts.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from pathlib import Path

from prometheus_client import CollectorRegistry

from bench.ray_pods import LABEL
from bench.resources import peak_mb, rss_mb
from raykeeper.api.meta import Object
from raykeeper.kube.client import Kube
from raykeeper.kube.connect.connection import load_connection
from raykeeper.kube.http.requests import Query, read_page
from raykeeper.kube.informers.cache import by_controller, by_label
from raykeeper.kube.informers.informer import Informer
from raykeeper.kube.metrics import KubeMetrics
from raykeeper.kube.resources import PODS


class Stopwatch:
    """Wall and processor time since it was made."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.monotonic(), time.process_time()

    def report(self, what: str, count: int) -> None:
        facts = {
            "what": what,
            "count": count,
            "seconds": time.monotonic() - self._wall,
            "cpu_seconds": time.process_time() - self._cpu,
            "rss_mb": rss_mb(),
            "peak_mb": peak_mb(),
        }
        print(json.dumps(facts), flush=True)


async def main(kubeconfig: Path, changes: int) -> None:
    metrics = KubeMetrics(CollectorRegistry())
    async with Kube(await load_connection(kubeconfig), metrics=metrics) as kube:
        indexes = {"cluster": by_label("ray.io/cluster"), "owner": by_controller}
        informer = Informer(kube, PODS, metrics, labels=LABEL, indexes=indexes)
        await fill(informer)
        version = await read_pages(kube)
        await asyncio.to_thread(sys.stdin.readline)
        await follow(informer, changes)
        await read_stream(kube, version, changes)


async def fill(informer: Informer[Object]) -> None:
    watch = Stopwatch()
    task = asyncio.create_task(informer.run())
    await informer.wait_synced()
    watch.report("cached", len(informer.cache))
    await ended(task)


async def follow(informer: Informer[Object], changes: int) -> None:
    """Run the informer again, from where it was, until so many changes were applied."""
    heard, enough = 0, asyncio.Event()

    def count(*_: Object | None) -> None:
        nonlocal heard
        heard += 1
        if heard >= changes:
            enough.set()

    informer.on_change(count)
    watch = Stopwatch()
    task = asyncio.create_task(informer.run())
    await enough.wait()
    watch.report("followed", heard)
    await ended(task)


async def ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def read_pages(kube: Kube) -> str:
    """Baseline: the same pages, fetched and thrown away. Returns the resource version of the list."""
    watch, token, size, version = Stopwatch(), None, 0, ""
    while token != "":
        request = read_page(PODS, None, labels=LABEL, fields=None, limit=500, token=token, resource_version=None)
        body = (await kube.send(request)).body
        size += len(body)
        meta = json.loads(body[body.index(b'"metadata":') + 11 : body.index(b'},"items"') + 1])
        token, version = meta.get("continue", ""), meta["resourceVersion"]
    watch.report("pages", size)
    return version


async def read_stream(kube: Kube, version: str, changes: int) -> None:
    """Baseline: the same changes, received and thrown away."""
    watch, lines = Stopwatch(), 0
    query: Query = {"watch": True, "resourceVersion": version, "labelSelector": LABEL}
    async with contextlib.aclosing(kube.stream(PODS.path(), query, silence=60)) as chunks:
        async for chunk in chunks:
            lines += chunk.count(b"\n")
            if lines >= changes:
                break
    watch.report("stream", lines)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
