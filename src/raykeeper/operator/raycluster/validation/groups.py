"""Rules that hold for the head group and the worker groups alike, and for the numbers of a worker group."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from raykeeper.api.podtemplates import containers
from raykeeper.api.quantity import InvalidQuantity, parse_quantity
from raykeeper.api.syntax import is_label_value, is_qualified_name
from raykeeper.operator.gates import Gate
from raykeeper.operator.raycluster.validation.candidate import Candidate, NodeGroup
from raykeeper.operator.shared.features import is_autoscaled
from raykeeper.operator.shared.replicas import desired_replicas
from raykeeper.operator.shared.violations import Violation, has_value, is_set

MOST_GROUPS: Final = 1000
"""Worker groups of a cluster. Every pass looks at each of them, so their number is what it costs."""
MOST_PODS: Final = 100_000
"""Worker pods of a cluster. Kubernetes itself ends at 150,000 pods for all."""

RESOURCE_PARAMS: Final = ("num-cpus", "num-gpus", "memory", "resources")
"""Parameters of `ray start` that say what the field `resources` says."""


def worker_groups_are_few(candidate: Candidate) -> Iterator[Violation]:
    count = len(candidate.spec.worker_group_specs)
    if count > MOST_GROUPS:
        cure = f"use at most {MOST_GROUPS}, or several clusters"
        yield Violation(f"{candidate.path}.workerGroupSpecs", f"has {count} groups", cure)


def worker_pods_can_be_counted(candidate: Candidate) -> Iterator[Violation]:
    """More than any Kubernetes can hold is a slip of the keyboard, and would be made for days."""
    total = 0
    for path, group in candidate.workers:
        pods = desired_replicas(group) * max(1, group.num_of_hosts)
        total += pods
        if total > MOST_PODS:
            found = f"asks for {pods} pods (replicas times numOfHosts), which makes {total} in all"
            yield Violation(f"{path}.replicas", found, f"use at most {MOST_PODS} in all groups together")
            return


def amounts_can_be_read(candidate: Candidate) -> Iterator[Violation]:
    """The schema of `v1` lets no others pass, but that of `v1alpha1` does."""
    for group in candidate.groups:
        for index, container in enumerate(containers(group.spec.template)):
            asked = container.get("resources") or {}
            for part in ("limits", "requests"):
                for name, text in (asked.get(part) or {}).items():
                    if not _is_quantity(text):
                        field = f"{group.pod_path}.containers[{index}].resources.{part}[{name}]"
                        yield has_value(field, text, "use a quantity such as 500m, 2 or 4Gi")


def _is_quantity(text: object) -> bool:
    try:
        parse_quantity(text if isinstance(text, str | int | float) else "")
    except InvalidQuantity:
        return False
    return True


def every_group_has_a_container(candidate: Candidate) -> Iterator[Violation]:
    for group in candidate.groups:
        if not containers(group.spec.template):
            yield Violation(f"{group.pod_path}.containers", "is empty", "name the container that runs Ray")


def resources_are_given_once(candidate: Candidate) -> Iterator[Violation]:
    for group in candidate.groups:
        if group.spec.resources:
            for param in RESOURCE_PARAMS:
                yield from group.forbid_ray_start_param(param, f"use either it or {group.path}.resources, not both")


def labels_are_given_by_their_field(candidate: Candidate) -> Iterator[Violation]:
    for group in candidate.groups:
        if "labels" in group.spec.ray_start_params:
            yield is_set(f"{group.path}.rayStartParams[labels]", f"use {group.path}.labels instead")
        yield from _invalid_labels(group)


def _invalid_labels(group: NodeGroup) -> Iterator[Violation]:
    for key, value in group.spec.labels.items():
        field = f"{group.path}.labels[{key}]"
        if not is_qualified_name(key):
            yield Violation(
                field, "has no valid key", 'use a Kubernetes label key, such as "zone" or "example.com/zone"'
            )
        if not is_label_value(value):
            cure = "use at most 63 letters, digits, dashes, underscores and dots, alphanumeric at both ends"
            yield has_value(field, value, cure)


def worker_groups_differ_in_name(candidate: Candidate) -> Iterator[Violation]:
    """KubeRay leaves it to its webhook; unnoticed, two such groups delete each other's pods for ever."""
    seen: set[str] = set()
    for path, group in candidate.workers:
        if group.group_name in seen:
            yield has_value(
                f"{path}.groupName", group.group_name, "another group has the same name; choose a different one"
            )
        seen.add(group.group_name)


def replicas_are_in_order(candidate: Candidate) -> Iterator[Violation]:
    """`replicas` itself may lie outside: it is held within the limits."""
    for path, group in candidate.workers:
        if group.min_replicas < 0:
            yield has_value(f"{path}.minReplicas", group.min_replicas, "use 0 or more")
        if group.max_replicas < 0:
            yield has_value(f"{path}.maxReplicas", group.max_replicas, "use 0 or more")
        elif group.min_replicas > group.max_replicas:
            cure = f"use at most {path}.maxReplicas, which is {group.max_replicas}"
            yield has_value(f"{path}.minReplicas", group.min_replicas, cure)


def suspended_groups_are_possible(candidate: Candidate) -> Iterator[Violation]:
    for path, group in candidate.workers:
        if not group.suspend:
            continue
        if not candidate.gates.is_on(Gate.RAYJOB_DELETION_POLICY):
            gate = Gate.RAYJOB_DELETION_POLICY.value.name
            yield has_value(f"{path}.suspend", True, f"it needs the feature gate {gate}, which is off")
        if is_autoscaled(candidate.spec):
            cure = f"an autoscaled cluster cannot suspend a group; turn {candidate.path}.enableInTreeAutoscaling off"
            yield has_value(f"{path}.suspend", True, cure)
