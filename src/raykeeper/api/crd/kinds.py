"""The kinds of `ray.io`: their columns in `kubectl get`, and what is left of their first version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from raykeeper.api.meta import JSON, Object, Resource
from raykeeper.api.raycluster import RAY_CLUSTERS, RayCluster
from raykeeper.api.raycronjob import RAY_CRON_JOBS, RayCronJob
from raykeeper.api.rayjob import RAY_JOBS, RayJob
from raykeeper.api.rayservice import RAY_SERVICES, RayService
from raykeeper.api.structs import RayObject


@dataclass(frozen=True)
class Column:
    """A column of `kubectl get`; one of priority 1 is shown with `-o wide` only."""

    name: str
    path: str
    type: Literal["string", "integer", "boolean", "date"] = "string"
    priority: int = 0


@dataclass(frozen=True)
class Kind:
    """One kind, and what its CustomResourceDefinition says beside the schema."""

    resource: Resource[Object]
    struct: type[RayObject]
    columns: tuple[Column, ...]
    alpha_spec: JSON | None = None
    """Schema of the spec in v1alpha1, for the kinds that have it. It only says what that version required: whatever
    is written there is stored as v1 and pruned by v1's schema when it is read."""

    @property
    def crd_name(self) -> str:
        return f"{self.resource.plural}.{self.resource.group}"

    @property
    def file_name(self) -> str:
        """Name of the file in the Helm chart, as KubeRay's users know it."""
        return f"{self.resource.group}_{self.resource.plural}.yaml"


def _open(*required: str, **properties: JSON) -> JSON:
    """An object of which some properties are known, and any other is allowed."""
    schema: JSON = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    if required:
        schema["required"] = list(required)
    if properties:
        schema["properties"] = properties
    return schema


_AGE = Column("age", ".metadata.creationTimestamp", "date")

_ALPHA_CLUSTER: Final = _open(
    "headGroupSpec",
    headGroupSpec=_open("rayStartParams", "template"),
    workerGroupSpecs={"type": "array", "items": _open("groupName", "rayStartParams", "template")},
)

KINDS: Final = (
    Kind(
        RAY_CLUSTERS,
        RayCluster,
        (
            Column("desired workers", ".status.desiredWorkerReplicas", "integer"),
            Column("available workers", ".status.availableWorkerReplicas", "integer"),
            Column("cpus", ".status.desiredCPU"),
            Column("memory", ".status.desiredMemory"),
            Column("gpus", ".status.desiredGPU"),
            Column("tpus", ".status.desiredTPU", priority=1),
            Column("status", ".status.state"),
            _AGE,
            Column("head pod IP", ".status.head.podIP", priority=1),
            Column("head service IP", ".status.head.serviceIP", priority=1),
        ),
        _ALPHA_CLUSTER,
    ),
    Kind(
        RAY_JOBS,
        RayJob,
        (
            Column("job status", ".status.jobStatus"),
            Column("deployment status", ".status.jobDeploymentStatus"),
            Column("ray cluster name", ".status.rayClusterName"),
            Column("start time", ".status.startTime"),
            Column("end time", ".status.endTime"),
            _AGE,
        ),
        _open("entrypoint", rayClusterSpec=_ALPHA_CLUSTER),
    ),
    Kind(
        RAY_SERVICES,
        RayService,
        (
            Column("service status", ".status.serviceStatus"),
            Column("num serve endpoints", ".status.numServeEndpoints"),
        ),
        _open(rayClusterConfig=_ALPHA_CLUSTER),
    ),
    Kind(
        RAY_CRON_JOBS,
        RayCronJob,
        (
            Column("schedule", ".spec.schedule"),
            Column("timezone", ".spec.timeZone"),
            Column("last schedule", ".status.lastScheduleTime"),
            _AGE,
            Column("suspend", ".spec.suspend", "boolean"),
        ),
    ),
)
