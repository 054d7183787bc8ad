"""The observer beside the server: begins with it, ends with it, and never stops it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from prometheus_client import CollectorRegistry

from raykeeper.api.meta import ObjectKey
from raykeeper.clock import SystemClock
from raykeeper.history.observer.leading import Leading, lease_name
from raykeeper.history.observer.metrics import ObserverMetrics
from raykeeper.history.observer.watching import Surroundings
from raykeeper.history.settings import KubernetesSettings
from raykeeper.kube.client import Kube
from raykeeper.kube.connect.connection import Connection, load_connection
from raykeeper.kube.metrics import KubeMetrics
from raykeeper.logs import Log
from raykeeper.storage.opening import open_store
from raykeeper.storage.settings.storesettings import StoreSettings

END_SECONDS = 9.0  # for the last facts (4), the election's own (5); Kubernetes gives a pod 30 in all

log = Log("raykeeper.history.observer")


@asynccontextmanager
async def observing(
    settings: KubernetesSettings, store: StoreSettings, environment: Mapping[str, str], registry: CollectorRegistry
) -> AsyncIterator[None]:
    """An observer that runs while this is entered. Raises `Misconfigured` where the API server cannot be found."""
    connection = await load_connection(settings.kubeconfig, environment=environment)
    task = asyncio.create_task(_observe(settings, store, connection, registry), name="observer of kubernetes")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task}, timeout=END_SECONDS)


async def _observe(
    settings: KubernetesSettings, store: StoreSettings, connection: Connection, registry: CollectorRegistry
) -> None:
    kube_metrics, clock = KubeMetrics(registry), SystemClock()
    lease = ObjectKey(settings.lease_namespace or connection.namespace, lease_name(store, settings.namespaces))
    log.info("kubernetes is observed", server=connection.server, source=connection.source, lease=str(lease))
    async with Kube(connection, metrics=kube_metrics) as kube:
        around = Surroundings(
            kube, open_store(store), clock, kube_metrics, ObserverMetrics(registry), settings.namespaces
        )
        await Leading(around, lease).run()
