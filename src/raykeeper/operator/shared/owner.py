"""The object that others belong to, whichever of the four kinds it is of. Everything shared takes one of these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from raykeeper.api.meta import JSON, ObjectKey, ObjectMeta, Resource
from raykeeper.api.raycluster import RAY_CLUSTERS, RayCluster
from raykeeper.api.raycronjob import RAY_CRON_JOBS, RayCronJob
from raykeeper.api.rayjob import RAY_JOBS, RayJob
from raykeeper.api.rayservice import RAY_SERVICES, RayService
from raykeeper.api.structs import RayObject
from raykeeper.kube.events.series import ObjectRef

RESOURCES: Final[Mapping[type[RayObject], Resource[Any]]] = {
    RayCluster: RAY_CLUSTERS,
    RayJob: RAY_JOBS,
    RayService: RAY_SERVICES,
    RayCronJob: RAY_CRON_JOBS,
}


@dataclass(frozen=True)
class Owner:
    """Who children belong to, and whom Events are about."""

    api_version: str
    kind: str
    key: ObjectKey
    uid: str
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, item: RayObject) -> Owner:
        """The owner that a RayCluster, RayJob, RayService or RayCronJob is."""
        return cls.at(RESOURCES[type(item)], item.metadata)

    @classmethod
    def at(cls, resource: Resource[Any], metadata: ObjectMeta) -> Owner:
        """The owner that an object of any kind is."""
        key = ObjectKey(metadata.namespace, metadata.name)
        return cls(resource.api_version, resource.kind, key, metadata.uid, metadata.labels, metadata.annotations)

    def reference(self) -> JSON:
        """Makes it the one controller of an object: for `metadata.ownerReferences`."""
        return {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "name": self.key.name,
            "uid": self.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }

    def ref(self) -> ObjectRef:
        """What an Event says that it is about."""
        return ObjectRef(self.api_version, self.kind, self.key.namespace, self.key.name, self.uid)

    def __str__(self) -> str:
        return f"{self.kind} {self.key}"
