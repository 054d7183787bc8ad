"""The coscheduling plugin of kubernetes-sigs/scheduler-plugins: a PodGroup for each RayCluster that asks for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from raykeeper.api.meta import JSON, Object, Resource
from raykeeper.operator.schedulers.gang import Gang
from raykeeper.operator.schedulers.interface import THE_CLUSTER, Wait, dressed, wants_gang
from raykeeper.operator.schedulers.none import NoScheduler
from raykeeper.operator.schedulers.pod_groups import desired_pod_group

POD_GROUPS: Final[Resource[Object]] = Resource("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup", Object)
POD_GROUP: Final = "scheduling.x-k8s.io/pod-group"
INSTANCE: Final = "scheduler-plugins-scheduler"
"""What the project's own chart calls the scheduler."""


WAITING_PHASES: Final = frozenset({"Pending", "PreScheduling", "Scheduling", "Unknown"})


class SchedulerPlugins(NoScheduler):
    """A RayJob has no PodGroup: the RayCluster it makes has one, and its submitter starts alone."""

    name = "scheduler-plugins"
    kinds: tuple[Resource[Any], ...] = (POD_GROUPS,)

    def objects(self, gang: Gang) -> Sequence[JSON]:
        if not _is_gang(gang):
            return ()
        spec = {"minMember": gang.size, "minResources": gang.resources}
        return (desired_pod_group(POD_GROUPS, gang, gang.owner.key.name, spec),)

    def waits(self, found: Iterable[JSON]) -> Wait | None:
        for group in found:
            phase = (group.get("status") or {}).get("phase") or "Pending"
            if phase in WAITING_PHASES:
                members = group.get("spec", {}).get("minMember")
                return Wait("Unschedulable", f"PodGroup {group['metadata']['name']} is {phase}, with {members} members")
        return None

    def dress(self, gang: Gang, item: JSON, group: str) -> JSON:
        if group == THE_CLUSTER:
            return item
        return dressed(item, {POD_GROUP: gang.owner.key.name} if _is_gang(gang) else {}, {}, INSTANCE)


def _is_gang(gang: Gang) -> bool:
    return gang.is_of_cluster and wants_gang(gang.owner)
