"""A whole controller process, as an operator will be, with nothing to do: what does it cost to stand by?

Runs as in a pod: the folder given is taken for the mounted service account. Prints `ready` once it leads.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from prometheus_client import CollectorRegistry

from raykeeper.api.meta import Object, ObjectKey
from raykeeper.clock import SystemClock
from raykeeper.kube.client import Kube
from raykeeper.kube.connect.connection import load_connection
from raykeeper.kube.controllers.controller import Controller
from raykeeper.kube.controllers.queue import WorkQueue
from raykeeper.kube.controllers.requeue import Requeue
from raykeeper.kube.events.writer import EventWriter
from raykeeper.kube.informers.cache import by_controller
from raykeeper.kube.informers.informer import Informer
from raykeeper.kube.leader.election import LeaderElector
from raykeeper.kube.leader.lease import new_identity
from raykeeper.kube.metrics import KubeMetrics
from raykeeper.kube.resources import JOBS, PODS, SERVICES
from raykeeper.kube.serving.server import Serving, ServingSettings
from raykeeper.logs import LogSettings, set_up_logs

WATCHED = (PODS, SERVICES, JOBS)


async def reconcile(_: ObjectKey) -> Requeue:
    """Nothing to do."""
    return Requeue.never()


async def main(service_account: Path) -> None:
    set_up_logs(LogSettings())
    clock, metrics = SystemClock(), KubeMetrics(CollectorRegistry())
    connection = await load_connection(service_account=service_account)
    serving = Serving(ServingSettings(metrics_address="127.0.0.1:0", probe_address="127.0.0.1:0"), metrics.registry)
    async with Kube(connection, metrics=metrics, clock=clock) as kube, serving:
        elector = LeaderElector(kube, ObjectKey("default", "idle"), new_identity(), clock=clock, metrics=metrics)

        async def lead() -> None:
            await work(kube.with_fence(elector.fence), metrics, clock)

        await elector.run(lead)


async def work(kube: Kube, metrics: KubeMetrics, clock: SystemClock) -> None:
    """Informers that feed a queue, a controller that empties it, Events on the side."""
    queue: WorkQueue[ObjectKey] = WorkQueue("idle", metrics, clock)

    def enqueue(old: Object | None, new: Object | None) -> None:
        changed = new or old
        if changed is not None:
            queue.add(changed.key)

    informers = [Informer(kube, kind, metrics, indexes={"owner": by_controller}, clock=clock) for kind in WATCHED]
    async with asyncio.TaskGroup() as group:
        for informer in informers:
            informer.on_change(enqueue)
            group.create_task(informer.run())
        group.create_task(EventWriter(kube, "idle", clock=clock, metrics=metrics).run())
        for informer in informers:
            await informer.wait_synced()
        group.create_task(Controller("idle", reconcile, queue, metrics, clock).run())
        print("ready", flush=True)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
