"""Carries out what was decided about children that are not pods."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from raykeeper.api.meta import JSON, ObjectKey, Resource
from raykeeper.api.raycluster import RayCluster
from raykeeper.errors import Unavailable
from raykeeper.kube.client import Kube
from raykeeper.kube.errors import AlreadyExists, ApiError, Forbidden, NotFound
from raykeeper.kube.events.series import ObjectRef
from raykeeper.kube.events.writer import EventRecorder
from raykeeper.operator.raycluster.children.desired import ChildKey, child_drift, child_key
from raykeeper.operator.raycluster.children.drift import Patch
from raykeeper.operator.raycluster.children.metadata import Ownership, ownership
from raykeeper.operator.raycluster.children.plan import (
    ChildAction,
    CreateChild,
    DeleteChild,
    PatchChild,
    ReplaceChild,
)
from raykeeper.operator.raycluster.observe import CHILD_RESOURCES

SPOKEN = {"PersistentVolumeClaim": "PVC"}
"""Kinds that KubeRay's events call by another name."""

Refusal = ApiError | Unavailable


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

    async def _apply(self, cluster: RayCluster, regarding: ObjectRef, action: ChildAction, ledger: ChildLedger) -> None:
        verb, key = describe(action)
        kind = SPOKEN.get(key.kind, key.kind)
        try:
            await self._write(cluster, action, ledger)
        except (ApiError, Unavailable) as error:
            self._recorder.warning(regarding, f"FailedTo{verb}{kind}", str(error), action=verb)
            # Existing installations grant KubeRay's rights, which do not allow every repair: that is no failure.
            if not (isinstance(error, Forbidden) and isinstance(action, PatchChild)):
                ledger.refusals.append(error)
            return
        self._recorder.normal(regarding, f"{verb}d{kind}", f"{verb}d {key.kind} {key.name}", action=verb)

    async def _write(self, cluster: RayCluster, action: ChildAction, ledger: ChildLedger) -> None:
        match action:
            case CreateChild(body):
                ledger.made[child_key(body)] = await self._create(cluster, body)
            case PatchChild(key, patch):
                await self._kube.merge_patch(CHILD_RESOURCES[key.kind], _object_key(cluster, key), patch)
            case ReplaceChild(key, uid, body):
                await self._delete(cluster, key, uid)
                await self._create(cluster, body)
            case DeleteChild(key, uid):
                await self._delete(cluster, key, uid)

    async def _create(self, cluster: RayCluster, body: JSON) -> JSON:
        """The child as the server made it, or has it."""
        key = child_key(body)
        resource: Resource[JSON] = CHILD_RESOURCES[key.kind].read_as(dict)
        try:
            return await self._kube.create(resource, body, cluster.metadata.namespace)
        except AlreadyExists as error:
            # Not in our cache: it lost the label we watch by, the cache lags, or it is somebody else's.
            found = await self._kube.get(resource, _object_key(cluster, key))
            await self._adopt(cluster, body, found, error)
            return found

    async def _adopt(self, cluster: RayCluster, body: JSON, found: JSON, error: AlreadyExists) -> None:
        key = child_key(body)
        if ownership(cluster, found) is not Ownership.OURS and key.kind != "PersistentVolumeClaim":
            message = f"{key.kind} {key.name} is there already and does not belong to this RayCluster"
            raise ForeignChild(error.request, 409, "Conflict", message) from error
        drift = child_drift(cluster, body, found)
        if isinstance(drift, Patch):
            await self._kube.merge_patch(CHILD_RESOURCES[key.kind], _object_key(cluster, key), drift.body)

    async def _delete(self, cluster: RayCluster, key: ChildKey, uid: str) -> None:
        try:
            await self._kube.delete(CHILD_RESOURCES[key.kind], _object_key(cluster, key), uid=uid)
        except NotFound:
            return


def describe(action: ChildAction) -> tuple[str, ChildKey]:
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
