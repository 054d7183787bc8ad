"""Carries out what was decided about children that are not pods."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from raykeeper.api.meta import JSON, ObjectKey, Resource
from raykeeper.api.raycluster import RayCluster
from raykeeper.errors import Unavailable
from raykeeper.kube.client import Kube
from raykeeper.kube.errors import AlreadyExists, ApiError, Forbidden, NotFound
from raykeeper.kube.events.series import ObjectRef
from raykeeper.kube.events.writer import EventRecorder
from raykeeper.logs import Log
from raykeeper.operator.raycluster.children.adoption import SUPPLIED_BY_USERS, Standing, standing, taking_patch
from raykeeper.operator.raycluster.children.desired import ChildKey, child_key
from raykeeper.operator.raycluster.children.plan import (
    ChildAction,
    CreateChild,
    DeleteChild,
    PatchChild,
    ReplaceChild,
)
from raykeeper.operator.raycluster.children.requirements import requirements
from raykeeper.operator.raycluster.observe import CHILD_RESOURCES

SPOKEN = {"PersistentVolumeClaim": "PVC"}
"""Kinds that KubeRay's events call by another name."""

DOORS = frozenset({"Ingress", "Route"})
"""Ways in from outside, without which a cluster works."""

Refusal = ApiError | Unavailable
Verb = Literal["Create", "Update", "Delete"]
log = Log("raykeeper.operator.raycluster")


@dataclass
class ChildLedger:
    """What a pass made of children, and what was refused."""

    made: dict[ChildKey, JSON] = field(default_factory=dict)
    """Those that the cache may not show yet."""
    refusals: list[Refusal] = field(default_factory=list)


class ForeignChild(ApiError):
    """An object of the child's name belongs to somebody else."""


class ChildWriter:
    """Applies child actions and tells what came of them."""

    def __init__(self, kube: Kube, recorder: EventRecorder) -> None:
        self._kube = kube
        self._recorder = recorder

    async def apply(self, cluster: RayCluster, regarding: ObjectRef, actions: Sequence[ChildAction]) -> ChildLedger:
        """Do all of it at once; what was refused is told and noted, and keeps nothing else from being done."""
        ledger = ChildLedger()
        await asyncio.gather(*(self._apply(cluster, regarding, action, ledger) for action in actions))
        return ledger

    async def look_for(self, cluster: RayCluster, regarding: ObjectRef, ledger: ChildLedger) -> None:
        """Tell what the user should have supplied and has not; what is vital is noted as refused."""
        for needed in requirements(cluster):
            try:
                await self._kube.get(needed.resource, ObjectKey(cluster.metadata.namespace, needed.name))
            except NotFound as error:
                self._recorder.warning(regarding, needed.reason, needed.message, action="Reconcile")
                if needed.is_vital:
                    ledger.refusals.append(error)
            except (ApiError, Unavailable) as error:
                log.warning("cannot look for what a cluster needs", cluster=cluster.key, error=str(error))

    async def _apply(self, cluster: RayCluster, regarding: ObjectRef, action: ChildAction, ledger: ChildLedger) -> None:
        verb, key = describe(action)
        kind = SPOKEN.get(key.kind, key.kind)
        try:
            done = await self._write(cluster, action, ledger)
        except (ApiError, Unavailable) as error:
            self._recorder.warning(regarding, f"FailedTo{verb}{kind}", str(error), action=verb)
            if not _is_bearable(action, error):
                ledger.refusals.append(error)
            return
        if done:
            self._recorder.normal(regarding, f"{done}d{kind}", f"{done}d {key.kind} {key.name}", action=done)

    async def _write(self, cluster: RayCluster, action: ChildAction, ledger: ChildLedger) -> Verb | None:
        """What was done in the end; None where it turned out that nothing had to be."""
        match action:
            case CreateChild(body):
                return await self._create(cluster, body, ledger)
            case PatchChild(key, patch):
                await self._kube.merge_patch(CHILD_RESOURCES[key.kind], _object_key(cluster, key), patch)
                return "Update"
            case ReplaceChild(key, uid, body):
                await self._delete(cluster, key, uid)
                await self._create(cluster, body, ledger)
                return "Update"
            case DeleteChild(key, uid):
                await self._delete(cluster, key, uid)
                return "Delete"

    async def _create(self, cluster: RayCluster, body: JSON, ledger: ChildLedger) -> Verb | None:
        key = child_key(body)
        resource: Resource[JSON] = CHILD_RESOURCES[key.kind].read_as(dict)
        try:
            ledger.made[key] = await self._kube.create(resource, body, cluster.metadata.namespace)
        except AlreadyExists as error:
            # Not in our cache: it lost the label we watch by, the cache lags, or it is not ours.
            ledger.made[key] = found = await self._kube.get(resource, _object_key(cluster, key))
            return await self._take(cluster, body, found, error)
        return "Create"

    async def _take(self, cluster: RayCluster, body: JSON, found: JSON, error: AlreadyExists) -> Verb | None:
        key = child_key(body)
        match standing(cluster, body, found):
            case Standing.SUPPLIED:
                return None
            case Standing.FOREIGN:
                message = f"{key.kind} {key.name} is there already and does not belong to this RayCluster"
                raise ForeignChild(error.request, 409, "Conflict", message) from error
            case Standing.CHILD:
                pass
        patch = taking_patch(cluster, body, found)
        return await self._take_over(cluster, key, patch) if patch else None

    async def _take_over(self, cluster: RayCluster, key: ChildKey, patch: JSON) -> Verb | None:
        try:
            await self._kube.merge_patch(CHILD_RESOURCES[key.kind], _object_key(cluster, key), patch)
        except Forbidden as error:
            # KubeRay's own ClusterRole does not allow to change these kinds, and they do as they are.
            if key.kind not in SUPPLIED_BY_USERS:
                raise
            log.warning("left without an owner", cluster=cluster.key, child=key, error=str(error))
            return None
        return "Update"

    async def _delete(self, cluster: RayCluster, key: ChildKey, uid: str) -> None:
        try:
            await self._kube.delete(CHILD_RESOURCES[key.kind], _object_key(cluster, key), uid=uid)
        except NotFound:
            return


def _is_bearable(action: ChildAction, error: Refusal) -> bool:
    """Whether the cluster can do without: pods are made all the same, and it is no failure."""
    if isinstance(error, ForeignChild):
        return describe(action)[1].kind in DOORS
    # Existing installations grant KubeRay's rights, which do not allow every repair.
    return isinstance(error, Forbidden) and isinstance(action, PatchChild)


def describe(action: ChildAction) -> tuple[Verb, ChildKey]:
    """The verb of an action, as events spell it, and what it is done to."""
    match action:
        case CreateChild(body):
            return "Create", child_key(body)
        case PatchChild(key, _) | ReplaceChild(key, _, _):
            return "Update", key
        case DeleteChild(key, _):
            return "Delete", key


def _object_key(cluster: RayCluster, key: ChildKey) -> ObjectKey:
    return ObjectKey(cluster.metadata.namespace, key.name)
