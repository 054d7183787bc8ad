"""RayClusters for tests, written as a sentence: `a_cluster().with_workers("gpu", replicas=3).annotated(...)`.

Every step returns a new builder, so that a test may branch off another's cluster. The manifest is what a user would
apply; `build()` is what the operator reads back.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import msgspec

from raykeeper.api.meta import JSON
from raykeeper.api.raycluster import RayCluster

UID = "11111111-2222-3333-4444-555555555555"
RAY_IMAGE = "rayproject/ray:2.60.0"


@dataclass(frozen=True)
class ClusterBuilder:
    """A RayCluster's manifest in the making."""

    manifest: JSON

    def build(self) -> RayCluster:
        """The cluster as the operator reads it, with the uid that the API server would have given."""
        stored = self._copy()
        stored["metadata"].setdefault("uid", UID)
        return msgspec.convert(stored, RayCluster)

    def named(self, name: str, namespace: str = "default") -> ClusterBuilder:
        return self._with_metadata(name=name, namespace=namespace)

    def annotated(self, annotations: dict[str, str]) -> ClusterBuilder:
        return self._with_metadata(annotations=annotations)

    def labelled(self, labels: dict[str, str]) -> ClusterBuilder:
        return self._with_metadata(labels=labels)

    def with_spec(self, **fields: Any) -> ClusterBuilder:
        """Fields of the spec, by their names in JSON."""
        changed = self._copy()
        changed["spec"] |= fields
        return ClusterBuilder(changed)

    def with_head(self, **fields: Any) -> ClusterBuilder:
        """Fields of the head group, by their names in JSON."""
        changed = self._copy()
        changed["spec"]["headGroupSpec"] |= fields
        return ClusterBuilder(changed)

    def with_head_pod(self, **fields: Any) -> ClusterBuilder:
        """Fields of the head pod's spec."""
        changed = self._copy()
        changed["spec"]["headGroupSpec"]["template"]["spec"] |= fields
        return ClusterBuilder(changed)

    def with_head_container(self, **fields: Any) -> ClusterBuilder:
        """Fields of the head pod's Ray container."""
        changed = self._copy()
        changed["spec"]["headGroupSpec"]["template"]["spec"]["containers"][0] |= fields
        return ClusterBuilder(changed)

    def with_head_env(self, name: str, value: str = "x") -> ClusterBuilder:
        return self.with_head_container(env=[{"name": name, "value": value}])

    def with_workers(
        self, group_name: str = "workers", *, pod: JSON | None = None, container: JSON | None = None, **fields: Any
    ) -> ClusterBuilder:
        """One more worker group: fields of the group, and of its pod and Ray container."""
        changed = self._copy()
        group = {"groupName": group_name, "template": _template(group_name, pod, container)} | fields
        changed["spec"].setdefault("workerGroupSpecs", []).append(group)
        return ClusterBuilder(changed)

    def autoscaled(self, **options: Any) -> ClusterBuilder:
        return self.with_spec(enableInTreeAutoscaling=True, **({"autoscalerOptions": options} if options else {}))

    def _with_metadata(self, **fields: Any) -> ClusterBuilder:
        changed = self._copy()
        changed["metadata"] |= fields
        return ClusterBuilder(changed)

    def _copy(self) -> JSON:
        return copy.deepcopy(self.manifest)


def a_cluster() -> ClusterBuilder:
    """The least RayCluster: a head pod of one container."""
    return ClusterBuilder(
        {
            "apiVersion": "ray.io/v1",
            "kind": "RayCluster",
            "metadata": {"name": "rc", "namespace": "default"},
            "spec": {"headGroupSpec": {"template": _template("ray-head", None, None)}},
        }
    )


def _template(container_name: str, pod: JSON | None, container: JSON | None) -> JSON:
    ray_container = {"name": container_name, "image": RAY_IMAGE} | (container or {})
    return {"spec": {"containers": [ray_container]} | (pod or {})}
