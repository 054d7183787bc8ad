"""Asks Kubernetes whether a RayCluster is still there, so that a deleted one is not called live while its pods end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from prometheus_client import CollectorRegistry

from raykeeper.api.meta import ObjectKey
from raykeeper.api.raycluster import RAY_CLUSTERS
from raykeeper.clock import Clock, SystemClock
from raykeeper.errors import RaykeeperError
from raykeeper.history.bounded import Bounded
from raykeeper.history.settings import KubernetesSettings
from raykeeper.kube.client import Kube
from raykeeper.kube.connect.connection import load_connection
from raykeeper.kube.metrics import KubeMetrics
from raykeeper.logs import Log

_BELIEVED_SECONDS = 2.0
_PATIENCE_SECONDS = 3.0  # then heartbeats have to do
_REMEMBERED = 1_000
_AT_ONCE = 16

log = Log("raykeeper.history.kuberayapi")


class KubernetesPresence:
    """RayClusters by name, remembered for seconds."""

    def __init__(self, kube: Kube, clock: Clock, namespaces: tuple[str, ...] = ()) -> None:
        self._kube = kube
        self._clock = clock
        self._namespaces = namespaces
        self._uids: Bounded[ObjectKey, tuple[float, str | None]] = Bounded(_REMEMBERED)
        self._asking = asyncio.Semaphore(_AT_ONCE)
        self._is_told = False

    async def is_gone(self, namespace: str, cluster: str, uid: str) -> bool:
        """Whether there is no such RayCluster, or another one of that name; False where nobody can tell."""
        if self._namespaces and namespace not in self._namespaces:
            return False
        try:
            async with self._asking, asyncio.timeout(_PATIENCE_SECONDS):
                found = await self._uid(ObjectKey(namespace, cluster))
        except (RaykeeperError, TimeoutError) as exc:
            if not self._is_told:
                log.warning(
                    "kubernetes cannot be asked which clusters are there", cause=str(exc) or "no answer in time"
                )
            self._is_told = True
            return False
        self._is_told = False
        return found is None or (uid != "" and found != uid)

    async def _uid(self, key: ObjectKey) -> str | None:
        """The uid of the RayCluster of that name now; None where there is none."""
        known = self._uids.get(key)
        if known and self._clock.steady() < known[0]:
            return known[1]
        cluster = await self._kube.find(RAY_CLUSTERS, key)
        uid = cluster.metadata.uid if cluster else None
        self._uids.put(key, (self._clock.steady() + _BELIEVED_SECONDS, uid))
        return uid


@asynccontextmanager
async def kubernetes_presence(
    settings: KubernetesSettings, environment: Mapping[str, str]
) -> AsyncIterator[KubernetesPresence]:
    """Kubernetes as the settings find it. Raises `Misconfigured` where the API server cannot be found."""
    connection = await load_connection(settings.kubeconfig, environment=environment)
    async with Kube(connection, metrics=KubeMetrics(CollectorRegistry())) as kube:
        yield KubernetesPresence(kube, SystemClock(), settings.namespaces)
