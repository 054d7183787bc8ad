"""Volcano: one PodGroup for a RayCluster, or for a RayJob and the RayCluster it makes; or one for each group in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from raykeeper.api import labels
from raykeeper.api.meta import JSON, Object, Resource
from raykeeper.operator.schedulers.gang import Gang, Group
from raykeeper.operator.schedulers.interface import SUBMITTER_GROUP, THE_CLUSTER, Wait, dressed
from raykeeper.operator.schedulers.none import NoScheduler
from raykeeper.operator.schedulers.pod_groups import desired_pod_group
from raykeeper.operator.shared.children.metadata import annotations_for_children
from raykeeper.operator.shared.owner import Owner
from raykeeper.operator.shared.totals import requested
from raykeeper.operator.shared.violations import Violation, has_value

POD_GROUPS: Final[Resource[Object]] = Resource("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup", Object)

QUEUE: Final = "volcano.sh/queue-name"
TOPOLOGY_MODE: Final = "volcano.sh/network-topology-mode"
HIGHEST_TIER: Final = "volcano.sh/network-topology-highest-tier-allowed"
TOPOLOGY_MODES: Final = ("hard", "soft")
GANGS: Final = "raykeeper.io/volcano-gangs"
WHOLE, SUBGROUPS, GROUPS = "cluster", "subgroups", "groups"
"""What starts together: all pods; all pods, with a topology for each group; each group for itself."""
GROUP_NAME: Final = "scheduling.k8s.io/group-name"
TASK: Final = "volcano.sh/task-spec"
WAITING_PHASES: Final = {"Pending": "Queued", "Inqueue": "Unschedulable", "Unknown": "Unschedulable"}
"""Phases of a PodGroup that does not run, and what it waits for: its queue, or nodes."""
_PASSED_ON: Final = {QUEUE: QUEUE, labels.PRIORITY_CLASS_NAME: labels.PRIORITY_CLASS_NAME}


class Volcano(NoScheduler):
    """Every RayCluster is a gang, whether it asks for it or not."""

    name = "volcano"
    kinds: tuple[Resource[Any], ...] = (POD_GROUPS,)

    def violations(self, owner: Owner) -> Sequence[Violation]:
        mode, tier, gangs = (owner.labels.get(name) for name in (TOPOLOGY_MODE, HIGHEST_TIER, GANGS))
        found: list[Violation] = []
        if mode is not None and mode not in TOPOLOGY_MODES:
            cure = f"Volcano knows {' and '.join(TOPOLOGY_MODES)}"
            found.append(has_value(f"metadata.labels[{TOPOLOGY_MODE}]", mode, cure, "Metadata"))
        if mode is not None and tier is not None and not _is_number(tier):
            cure = "give it the number of a tier, such as 1"
            found.append(has_value(f"metadata.labels[{HIGHEST_TIER}]", tier, cure, "Metadata"))
        if gangs is not None and gangs not in (WHOLE, SUBGROUPS, GROUPS):
            cure = f"use {WHOLE}, {SUBGROUPS} or {GROUPS}"
            found.append(has_value(f"metadata.labels[{GANGS}]", gangs, cure, "Metadata"))
        return found

    def objects(self, gang: Gang) -> Sequence[JSON]:
        if gang.is_of_jobs_cluster or gang.spec is None:
            return ()
        return tuple(_pod_groups(gang))

    def at_rest(self, gang: Gang) -> Sequence[JSON]:
        return () if gang.is_of_jobs_cluster else tuple(_pod_groups(gang))

    def emptied(self, found: JSON) -> JSON | None:
        # A PodGroup that waits holds its queue's quota, so it must not ask for what nobody starts.
        kind = {"apiVersion": POD_GROUPS.api_version, "kind": POD_GROUPS.kind}
        return kind | {"metadata": found["metadata"], "spec": {"minMember": 0, "minResources": {}}}

    def waits(self, found: Iterable[JSON]) -> Wait | None:
        for group in found:
            status, name, queue = group.get("status") or {}, group["metadata"]["name"], _queue(group)
            phase = status.get("phase") or "Pending"
            if phase in WAITING_PHASES and (group.get("spec") or {}).get("minMember") != 0:
                said = _last_word(status)
                return Wait(WAITING_PHASES[phase], f"PodGroup {name} is {phase} in queue {queue}{said}")
        return None

    def dress(self, gang: Gang, item: JSON, group: str) -> JSON:
        # Volcano makes a PodGroup of its own for a pod that names none, such as one that submits to another's cluster.
        annotations = {GROUP_NAME: pod_group_name(gang, group), TASK: group} if gang.spec else {}
        return dressed(item, gang.labels(_PASSED_ON), annotations, "" if group == THE_CLUSTER else self.name)


def _queue(group: JSON) -> str:
    return str(group.get("spec", {}).get("queue") or "default")


def _last_word(status: JSON) -> str:
    """Why it is not scheduled, by the latest of its conditions."""
    conditions = [one for one in status.get("conditions") or [] if one.get("message") and one.get("status") == "True"]
    latest = max(conditions, key=lambda one: one.get("lastTransitionTime") or "", default=None)
    return f": {latest['message']}" if latest and latest.get("type") == "Unschedulable" else ""


def pod_group_name(gang: Gang, group: str = labels.HEAD_GROUP) -> str:
    """Of the whole gang, which is also that of the head and the submitter; or of a worker group that is its own."""
    whole = f"ray-{gang.app_name}-pg"
    is_of_head = group in (labels.HEAD_GROUP, SUBMITTER_GROUP, THE_CLUSTER)
    # No RayCluster has a dot in its name, so that no other one can come to the same.
    return whole if is_of_head or _gangs(gang) != GROUPS else f"{whole}.{group}"


def _gangs(gang: Gang) -> str:
    return gang.owner.labels.get(GANGS) or WHOLE


def _pod_groups(gang: Gang) -> Iterator[JSON]:
    if _gangs(gang) == GROUPS and gang.groups:
        for group in gang.groups:
            yield _pod_group(gang, pod_group_name(gang, group.name), *_share(gang, group))
    else:
        yield _pod_group(gang, pod_group_name(gang), gang.size, gang.resources)


def _share(gang: Gang, group: Group) -> tuple[int, dict[str, str]]:
    """How many pods of one group start together, and what they ask for. The submitter goes with the head."""
    pods = [(group.template, group.members)] if group.members else []
    if gang.submitter is not None and group.name == labels.HEAD_GROUP:
        pods.append((gang.submitter, 1))
    return group.members, {name: str(total) for name, total in requested(pods).items()}


def _pod_group(gang: Gang, name: str, members: int, resources: dict[str, str]) -> JSON:
    spec: JSON = {"minMember": members, "minResources": resources}
    spec |= gang.labels({QUEUE: "queue", labels.PRIORITY_CLASS_NAME: "priorityClassName"})
    topology = {"networkTopology": _topology(gang.owner)} if TOPOLOGY_MODE in gang.owner.labels else {}
    if _gangs(gang) == SUBGROUPS:
        spec["subGroupPolicy"] = [_subgroups(group) | topology for group in gang.groups if group.members]
    else:
        spec |= topology
    # Volcano reads some of its settings in annotations of the PodGroup, and users write them on the owner.
    return desired_pod_group(POD_GROUPS, gang, name, spec, annotations_for_children(gang.owner))


def _subgroups(group: Group) -> JSON:
    """All pods of the group, or the hosts of each of its replicas, which are useless without each other."""
    has_hosts = group.hosts > 1
    return {
        "name": group.name,
        "labelSelector": {"matchLabels": {labels.GROUP: group.name}},
        # Volcano 1.14 counts no pod as part of a subgroup that is not told apart by some label.
        "matchLabelKeys": [labels.REPLICA_NAME if has_hosts else labels.GROUP],
        "subGroupSize": group.hosts if has_hosts else group.members,
        "minSubGroups": group.members // group.hosts if has_hosts else 1,
    }


def _topology(owner: Owner) -> JSON:
    tier = owner.labels.get(HIGHEST_TIER)
    return {"mode": owner.labels[TOPOLOGY_MODE]} | ({} if tier is None else {"highestTierAllowed": int(tier)})


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10
