"""Kubernetes' own workload API: a Workload and its PodGroup for each RayCluster that asks for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from raykeeper.api import labels
from raykeeper.api.meta import JSON, Object, Resource
from raykeeper.api.podtemplates import pod_spec
from raykeeper.api.raycluster import RAY_CLUSTERS
from raykeeper.operator.schedulers.gang import Gang
from raykeeper.operator.schedulers.interface import Wait
from raykeeper.operator.schedulers.none import NoScheduler
from raykeeper.operator.schedulers.pod_groups import KUBERNETES_GROUP
from raykeeper.operator.shared.children.metadata import child_metadata

VERSION: Final = "v1alpha2"
"""What Kubernetes 1.36 serves; later ones have other fields."""
WORKLOADS: Final[Resource[Object]] = Resource(KUBERNETES_GROUP, VERSION, "workloads", "Workload", Object)
POD_GROUPS: Final[Resource[Object]] = Resource(KUBERNETES_GROUP, VERSION, "podgroups", "PodGroup", Object)
TEMPLATE: Final = "cluster"
"""What the Workload calls its only template: all pods of the cluster are one gang."""
SCHEDULED: Final = "PodGroupScheduled"


class KubernetesWas(NoScheduler):
    """A RayJob has no objects of its own: the RayCluster it makes has them, and its submitter starts alone.

    Pods keep the `schedulerName` that their template has: every profile of kube-scheduler knows PodGroups.
    """

    name = "kubernetes-was"
    kinds: tuple[Resource[Any], ...] = (WORKLOADS, POD_GROUPS)

    def objects(self, gang: Gang) -> Sequence[JSON]:
        if not _is_gang(gang):
            return ()
        policy = {"gang": {"minCount": gang.size}}
        cluster = {"apiGroup": RAY_CLUSTERS.group, "kind": gang.owner.kind, "name": gang.owner.key.name}
        templates = [{"name": TEMPLATE, "schedulingPolicy": policy}]
        template = {"workloadName": gang.owner.key.name, "podGroupTemplateName": TEMPLATE}
        spec = {"podGroupTemplateRef": {"workload": template}, "schedulingPolicy": policy}
        return (
            _object(WORKLOADS, gang, gang.owner.key.name, {"controllerRef": cluster, "podGroupTemplates": templates}),
            _object(POD_GROUPS, gang, pod_group_name(gang), spec),
        )

    def waits(self, found: Iterable[JSON]) -> Wait | None:
        for group in found:
            for condition in (group.get("status") or {}).get("conditions") or []:
                if condition.get("type") == SCHEDULED and condition.get("status") == "False":
                    reason = condition.get("reason") or "Unschedulable"
                    return Wait(reason, f"PodGroup {group['metadata']['name']}: {condition.get('message') or reason}")
        return None

    def dress(self, gang: Gang, item: JSON, group: str) -> JSON:  # noqa: ARG002 - the interface
        if not _is_gang(gang):
            return item
        return {**item, "spec": {**pod_spec(item), "schedulingGroup": {"podGroupName": pod_group_name(gang)}}}


def pod_group_name(gang: Gang) -> str:
    return f"{gang.owner.key.name}-{TEMPLATE}"


def _is_gang(gang: Gang) -> bool:
    """Whether its owner asks for it; any other value of the label than true is a no, as in KubeRay."""
    asked = gang.owner.labels.get(labels.GANG_SCHEDULING_ENABLED, "")
    return gang.is_of_cluster and gang.spec is not None and asked.lower() == "true"


def _object(resource: Resource[Any], gang: Gang, name: str, spec: JSON) -> JSON:
    metadata = child_metadata(gang.owner, name, {labels.CLUSTER: gang.owner.key.name})
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": spec}
