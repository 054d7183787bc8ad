"""KubeRay's operator and ours on one control plane, one after the other, and RayClusters of many kinds for them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from prometheus_client.parser import text_string_to_metric_families

from bed.control_plane import ControlPlane
from bed.kuberay import KubeRay, KubeRayOperator
from rayclusters.golden_pods import PLAIN, with_redis
from rayclusters.manifests import ClusterBuilder
from rayclusters.stored_children import LOOKED_AT
from raykeeper.api import labels
from raykeeper.api.meta import JSON, ObjectKey
from raykeeper.kube.client import Kube
from support.chronicle import Chronicle
from support.conditions import eventually
from support.operator_processes import OperatorProcess, Operators
from support.raycluster_scene import CLUSTERS, POD_OBJECTS, Scene

WORKING = PLAIN.with_workers("small", replicas=1, maxReplicas=5)

KINDS: Final[Mapping[str, ClusterBuilder]] = {
    "plain": WORKING,
    "groups": WORKING.with_workers("large", replicas=2).with_workers("none", replicas=0),
    "hosts": PLAIN.with_workers("tpu", replicas=2, numOfHosts=2),
    "autoscaled": WORKING.autoscaled(),
    "redis": with_redis().with_workers("small", replicas=1),
    "annotated": WORKING.annotated({labels.FT_ENABLED: "true"}).with_head_env("RAY_REDIS_ADDRESS", "redis:6379"),
    "served": WORKING.annotated({labels.ENABLE_SERVE_SERVICE: "true"}),
    "shown": WORKING.with_head(enableIngress=True),
    "guarded": WORKING.with_spec(authOptions={"mode": "token"}),
    "renewed": WORKING.with_spec(upgradeStrategy={"type": "Recreate"}),
    "resting": WORKING.with_spec(suspend=True),
}
"""One cluster of each kind whose take-over could go wrong, by name."""


def final_state(name: str) -> str:
    return "suspended" if KINDS[name].manifest["spec"].get("suspend") else "ready"


@dataclass(frozen=True)
class Stage:
    """A namespace of RayClusters that one operator works on after the other."""

    plane: ControlPlane
    kube: Kube
    namespace: str
    kuberay: KubeRay
    operators: Operators

    def scene(self, name: str) -> Scene:
        return Scene(self.kube, self.namespace, name)

    async def apply(self, names: Iterable[str] = KINDS) -> None:
        for name in names:
            await self.scene(name).apply(KINDS[name].named(name, self.namespace).manifest)

    async def settled(self, names: Iterable[str] = KINDS) -> None:
        """Return once every cluster is as its spec wants it, and says so."""
        for name in names:
            await self.scene(name).becomes(final_state(name))
            await eventually(partial(self._is_at_rest, name))

    async def _is_at_rest(self, name: str) -> bool:
        """Whether the conditions say what `state` says: KubeRay writes `suspended` a moment before them."""
        status = (await self.scene(name).cluster())["status"]
        said = {one["type"]: one["status"] for one in status["conditions"]}
        is_suspended = said.get("RayClusterSuspended") == "True" and said.get("RayClusterSuspending") != "True"
        return status["state"] != "suspended" or is_suspended

    async def start_ours(self, *flags: str, elected: bool = False) -> OperatorProcess:
        """Ours, once it is ready; where it is elected, it may have to wait for the lease."""
        operator = self.operators.start(*flags, f"--enable-leader-election={'true' if elected else 'false'}")
        await asyncio.to_thread(operator.wait_ready)
        return operator

    async def start_kuberay(self, *flags: str, elected: bool = False) -> KubeRayOperator:
        return await asyncio.to_thread(self.kuberay.start, *flags, elected=elected)

    async def has_looked(self, operator: OperatorProcess | KubeRayOperator) -> None:
        """Return once an operator, just started, has looked at every cluster and has nothing left to do."""
        clusters = len(await self.kube.list(CLUSTERS, self.namespace))

        async def look() -> bool:
            values = _metrics(await asyncio.to_thread(_told_by, operator))
            is_idle = values["workqueue_depth"] + values["controller_runtime_active_workers"] == 0
            return is_idle and values["controller_runtime_reconcile_total"] >= clusters

        await eventually(look)

    def chronicle(self) -> Chronicle:
        return Chronicle(self.plane, self.namespace, LOOKED_AT)

    async def statuses(self) -> dict[str, JSON]:
        """What is said about each cluster, but for the wording and the time it was written."""
        return {one["metadata"]["name"]: _said(one["status"]) for one in await self.kube.list(CLUSTERS, self.namespace)}

    def groups(self, name: str, **changed: Any) -> list[JSON]:
        """The worker groups of a cluster, the first with other fields."""
        first, *others = KINDS[name].manifest["spec"]["workerGroupSpecs"]
        return [first | changed, *others]

    async def head(self, name: str) -> str:
        """The name of a cluster's head pod."""
        (head,) = await self.scene(name).names(labels.HEAD_GROUP)
        return head

    async def pods(self) -> list[JSON]:
        return await self.kube.list(POD_OBJECTS, self.namespace)


async def groups_grow_and_shrink(stage: Stage) -> None:
    """By a user's edit, and by what Ray's autoscaler writes."""
    plain, hosts, scaled = (stage.scene(name) for name in ("plain", "hosts", "autoscaled"))
    (first,) = await plain.names("small")
    await plain.patch(workerGroupSpecs=stage.groups("plain", replicas=3))
    assert first in await plain.has_pods("small", 3)
    await plain.patch(workerGroupSpecs=stage.groups("plain", replicas=1))
    await plain.has_pods("small", 1)
    await hosts.patch(workerGroupSpecs=stage.groups("hosts", replicas=1))
    left = await hosts.has_pods("tpu", 2)
    assert len({_replica_of(pod) for pod in await hosts.pods() if pod["metadata"]["name"] in left}) == 1
    (idle,) = await scaled.names("small")
    named = {"workersToDelete": [idle]}  # as Ray's autoscaler does it
    await scaled.patch(workerGroupSpecs=stage.groups("autoscaled", replicas=0, scaleStrategy=named))
    await scaled.is_gone(idle, "small")
    for scene in (plain, hosts, scaled):
        await scene.becomes("ready")


def _replica_of(pod: JSON) -> str:
    return str(pod["metadata"]["labels"][labels.REPLICA_NAME])


async def clusters_rest_and_wake(stage: Stage) -> None:
    """One that works is suspended and resumed, one that rests is woken and suspended."""
    awake, asleep = stage.scene("groups"), stage.scene("resting")
    await awake.patch(suspend=True)
    await asleep.patch(suspend=False)
    await awake.becomes("suspended")
    await asleep.becomes("ready")
    assert await awake.pods() == []
    await awake.patch(suspend=False)
    await asleep.patch(suspend=True)
    await awake.becomes("ready")
    await asleep.becomes("suspended")


async def clusters_end(stage: Stage) -> None:
    """All go, and those that left something in Redis once a Job has cleaned it."""
    chronicle = stage.chronicle()
    for name in KINDS:
        await stage.kube.delete(CLUSTERS, ObjectKey(stage.namespace, name))

    async def look() -> bool:
        return not await stage.kube.list(CLUSTERS, stage.namespace) and not await stage.pods()

    await eventually(look)
    jobs = {change.name for change in chronicle.changes() if change[:2] == ("ADDED", "Job")}
    assert jobs == {"redis-redis-cleanup", "annotated-redis-cleanup"}


def _said(status: JSON) -> JSON:
    conditions = {
        one["type"]: (one["status"], one["reason"], one["lastTransitionTime"])
        for one in status["conditions"]
        if one["type"] != "Ready"  # which only we write
    }
    return {**status, "conditions": conditions, "lastUpdateTime": None}


def _told_by(operator: OperatorProcess | KubeRayOperator) -> str:
    return operator.metrics() if isinstance(operator, KubeRayOperator) else operator.ask("/metrics")[1]


def _metrics(text: str) -> dict[str, float]:
    """What is told about the controller of RayClusters, summed up by name."""
    sums = dict.fromkeys(
        ("workqueue_depth", "controller_runtime_active_workers", "controller_runtime_reconcile_total"), 0.0
    )
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            subject = sample.labels.get("controller") or sample.labels.get("name") or ""
            if sample.name in sums and "raycluster" in subject:
                sums[sample.name] += sample.value
    return sums
