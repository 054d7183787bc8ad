"""One replica leads and observes: begins and ends with the server, and never stops it."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from prometheus_client import CollectorRegistry

from raykeeper.api.meta import ObjectKey
from raykeeper.backoff import Backoff
from raykeeper.clock import SystemClock
from raykeeper.errors import Unavailable
from raykeeper.history.observer.metrics import ObserverMetrics
from raykeeper.history.observer.observer import Observer, ObserverServices
from raykeeper.history.settings import KubernetesSettings
from raykeeper.kube.client import Kube
from raykeeper.kube.connect.connection import Connection, load_connection
from raykeeper.kube.errors import ApiError, Forbidden
from raykeeper.kube.leader.election import LeaderElector
from raykeeper.kube.leader.lease import ElectionSettings, new_identity
from raykeeper.kube.leader.leaseclient import LeadershipLost
from raykeeper.kube.metrics import KubeMetrics
from raykeeper.kube.resources import LEASES
from raykeeper.logs import Log
from raykeeper.storage.backends.backend import StoreSettings
from raykeeper.storage.opening import open_store

log = Log("raykeeper.history.observer")

FORBIDDEN_SECONDS: Final = 300.0
"""Between two looks whether somebody gave us the right to observe."""
_AGAIN = Backoff(base=1.0, limit=60.0, jitter=0.3)


def lease_name(store: StoreSettings, namespaces: Iterable[str]) -> str:
    """The same for all who would write the same facts to the same place, and for nobody else."""
    place = "\n".join([store.backend.name, store.bucket, store.root, store.endpoint, *sorted(namespaces)])
    return f"raykeeper-history-{hashlib.blake2b(place.encode(), digest_size=5).hexdigest()}"


WhileLeading = Callable[[Callable[[], bool]], Coroutine[Any, Any, None]]
"""Other work of whoever leads; it is given whether that still holds, runs until it is cancelled and never fails."""


class Leading:
    """A candidate for the observers' Lease, for as long as the program runs."""

    def __init__(
        self,
        services: ObserverServices,
        lease: ObjectKey,
        election: ElectionSettings | None = None,
        also: WhileLeading | None = None,
    ) -> None:
        self._services = services
        self._lease = lease
        self._election = election or ElectionSettings()
        self._also = also
        self._failures = 0

    async def run(self) -> None:
        """Observe whenever it is our turn, until cancelled. Nothing that goes wrong here ends the program."""
        while True:
            try:
                await self._wait_for_rights()
                await self._observe()
            except LeadershipLost as exc:
                log.warning("not the observer any more", cause=str(exc))
            except (ApiError, Unavailable) as exc:
                log.warning("cannot observe kubernetes", cause=str(exc))
            except Exception:
                log.exception("observer failed by a bug, it starts anew")
            self._failures += 1
            await asyncio.sleep(_AGAIN.delay(self._failures))

    async def _wait_for_rights(self) -> None:
        """Return once the Lease may be read: a service account without any rights is no reason to ask all the time."""
        is_told = False
        while True:
            try:
                await self._services.kube.find(LEASES, self._lease)
            except Forbidden as exc:
                if not is_told:
                    log.warning("kubernetes facts are not recorded: rights are missing", cause=str(exc))
                is_told = True
                await asyncio.sleep(FORBIDDEN_SECONDS)
            else:
                return

    async def _observe(self) -> None:
        services = self._services
        elector = LeaderElector(
            services.kube,
            self._lease,
            new_identity(),
            clock=services.clock,
            metrics=services.kube_metrics,
            settings=self._election,
        )

        async def lead() -> None:
            lease = await services.kube.get(LEASES, self._lease)
            self._failures = 0
            async with _beside(self._also, lambda: elector.fence.is_open):
                await Observer(services, lease["metadata"]["uid"], lambda: elector.fence.is_open).run()

        await elector.run(lead)


@asynccontextmanager
async def _beside(work: WhileLeading | None, may_write: Callable[[], bool]) -> AsyncIterator[None]:
    """Have the work done while this is entered."""
    if work is None:
        yield
        return
    task = asyncio.create_task(work(may_write), name="beside the observer")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task}, timeout=_BESIDE_SECONDS)


_BESIDE_SECONDS = 2.0  # of the eight that the election gives the work to end; writes of its own are harmless later
END_SECONDS = 9.0  # for the last facts (4), the election's own (5); Kubernetes gives a pod 30 in all


@asynccontextmanager
async def observing(
    settings: KubernetesSettings,
    store: StoreSettings,
    environment: Mapping[str, str],
    registry: CollectorRegistry,
    also: WhileLeading | None = None,
) -> AsyncIterator[None]:
    """An observer that runs while this is entered. Raises `Misconfigured` where the API server cannot be found."""
    connection = await load_connection(settings.kubeconfig, environment=environment)
    task = asyncio.create_task(_observe(settings, store, connection, registry, also), name="observer of kubernetes")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task}, timeout=END_SECONDS)


async def _observe(
    settings: KubernetesSettings,
    store: StoreSettings,
    connection: Connection,
    registry: CollectorRegistry,
    also: WhileLeading | None,
) -> None:
    kube_metrics, clock = KubeMetrics(registry), SystemClock()
    lease = ObjectKey(settings.lease_namespace or connection.namespace, lease_name(store, settings.namespaces))
    log.info("kubernetes is observed", server=connection.server, source=connection.source, lease=str(lease))
    async with Kube(connection, metrics=kube_metrics) as kube:
        services = ObserverServices(
            kube, open_store(store), clock, kube_metrics, ObserverMetrics(registry), settings.namespaces
        )
        await Leading(services, lease, also=also).run()
