"""The fair floor under many RayClusters: a bare client that makes an operator's writes and decides nothing.

For each cluster it writes what our operator writes: a Service, Ray's pods as we shape them, a first status, and a
second one when the pods are ready. All bodies but the owner's uid are made before the clock starts.
"""

from __future__ import annotations

import asyncio
import copy
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from bed.counted import DEADLINE_SECONDS, a_registry
from bench.servers import in_parallel
from raykeeper.api import labels
from raykeeper.api.meta import JSON, Object, ObjectKey
from raykeeper.api.raycluster import RAY_CLUSTERS, RayCluster
from raykeeper.kube.client import Kube
from raykeeper.kube.informers.informer import Informer
from raykeeper.kube.resources import PODS, SERVICES
from raykeeper.operator.raycluster.actions import Slot
from raykeeper.operator.raycluster.pods.defaults import PodDefaults
from raykeeper.operator.raycluster.pods.desired import desired_head_pod, desired_worker_pod
from raykeeper.operator.shared.services import desired_head_service

_CLUSTERS = RAY_CLUSTERS.read_as(Object)


@dataclass(frozen=True)
class Writes:
    """What is written for one cluster."""

    cluster: JSON
    service: JSON
    pods: Sequence[JSON]

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(self.cluster["metadata"]["namespace"], self.cluster["metadata"]["name"])


def writes_for(manifest: JSON, namespace: str) -> Writes:
    """The bodies, all with an owner whose uid is still missing."""
    stored = copy.deepcopy(manifest)
    stored["metadata"] |= {"namespace": namespace, "uid": "unknown"}
    cluster = msgspec.convert(stored, RayCluster)
    defaults = PodDefaults("bench")
    pods = [desired_head_pod(cluster, defaults, "00000")]
    for group in cluster.spec.worker_group_specs:
        numbers = range(group.replicas or 0)
        pods += [desired_worker_pod(cluster, group, defaults, Slot(number), f"{number:05}") for number in numbers]
    body = copy.deepcopy(manifest)
    body["metadata"]["namespace"] = namespace
    return Writes(body, desired_head_service(cluster), pods)


async def measure_writes(kube: Kube, all_writes: Sequence[Writes]) -> float:
    """Seconds until every second status is written. Leaves the clusters in their namespaces."""
    by_key = {writes.key: writes for writes in all_writes}
    ready: asyncio.Queue[ObjectKey] = asyncio.Queue()
    pods = Informer(kube, PODS, a_registry(), labels=f"{labels.IS_RAY_NODE}=yes")
    pods.on_change(_Readiness(by_key, ready).note)
    following = asyncio.create_task(pods.run())
    try:
        await pods.wait_synced()
        started = time.monotonic()
        async with asyncio.timeout(DEADLINE_SECONDS), asyncio.TaskGroup() as group:
            group.create_task(in_parallel(range(len(all_writes)), lambda number: _create(kube, all_writes[number])))
            group.create_task(in_parallel(range(len(all_writes)), lambda _: _finish(kube, ready, by_key)))
        return time.monotonic() - started
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


class _Readiness:
    """Tells of a cluster once all its pods are ready."""

    def __init__(self, wanted: dict[ObjectKey, Writes], ready: asyncio.Queue[ObjectKey]) -> None:
        self._wanted = wanted
        self._ready = ready
        self._seen: set[ObjectKey] = set()
        self._counts: Counter[ObjectKey] = Counter()

    def note(self, _: Object | None, pod: Object | None) -> None:
        if pod is None or pod.key in self._seen or not _is_ready(pod):
            return
        self._seen.add(pod.key)
        cluster = ObjectKey(pod.key.namespace, pod.metadata.labels[labels.CLUSTER])
        self._counts[cluster] += 1
        if cluster in self._wanted and self._counts[cluster] == len(self._wanted[cluster].pods):
            self._ready.put_nowait(cluster)


class _Condition(msgspec.Struct):
    type: str
    status: str


class _Status(msgspec.Struct):
    conditions: list[_Condition] = []


def _is_ready(pod: Object) -> bool:
    status = msgspec.json.decode(pod.status or b"{}", type=_Status)
    return any((one.type, one.status) == ("Ready", "True") for one in status.conditions)


async def _create(kube: Kube, writes: Writes) -> None:
    made = await kube.create(_CLUSTERS, writes.cluster, writes.key.namespace)
    for body in (writes.service, *writes.pods):
        body["metadata"]["ownerReferences"][0]["uid"] = made.metadata.uid
    await kube.create(SERVICES, writes.service, writes.key.namespace)
    await asyncio.gather(*(kube.create(PODS, pod, writes.key.namespace) for pod in writes.pods))
    await _write_status(kube, writes.key, _status(writes, is_ready=False))


async def _finish(kube: Kube, ready: asyncio.Queue[ObjectKey], by_key: dict[ObjectKey, Writes]) -> None:
    key = await ready.get()
    await _write_status(kube, key, _status(by_key[key], is_ready=True))


async def _write_status(kube: Kube, key: ObjectKey, status: JSON) -> None:
    await kube.merge_patch(_CLUSTERS, key, {"status": status}, subresource="status")


def _status(writes: Writes, *, is_ready: bool) -> JSON:
    """As long as ours: counts, the head, endpoints and five conditions."""
    workers = len(writes.pods) - 1
    counts: dict[str, Any] = {
        "desiredWorkerReplicas": workers,
        "minWorkerReplicas": 0,
        "maxWorkerReplicas": workers,
        "readyWorkerReplicas": workers if is_ready else 0,
        "availableWorkerReplicas": workers if is_ready else 0,
        "desiredCPU": "0",
        "desiredMemory": "0",
        "desiredGPU": "0",
        "desiredTPU": "0",
        "observedGeneration": 1,
        "lastUpdateTime": "2026-01-01T00:00:00Z",
        "head": {"serviceName": writes.service["metadata"]["name"], "podName": writes.pods[0]["metadata"]["name"]},
        "endpoints": {"client": "10001", "dashboard": "8265", "gcs-server": "6379", "metrics": "8080", "serve": "8000"},
        "conditions": list(_conditions(is_ready)),
    }
    return counts | ({"state": "ready", "stateTransitionTimes": {"ready": "2026-01-01T00:00:00Z"}} if is_ready else {})


def _conditions(is_ready: bool) -> Iterable[JSON]:
    for kind in ("HeadPodReady", "RayClusterProvisioned", "Ready", "Reconciling", "Stalled"):
        yield {
            "type": kind,
            "status": "True" if is_ready else "False",
            "reason": "AllPodsRunningAndReady" if is_ready else "RayClusterPodsProvisioning",
            "message": "All Ray Pods are ready" if is_ready else "RayCluster Pods are being provisioned for first time",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
            "observedGeneration": 1,
        }
