"""Whether a cluster is on its way to having no pods, or there. Pure."""

from __future__ import annotations

from enum import Enum, auto

from raykeeper.api.conditions import Condition, is_true
from raykeeper.api.raycluster import SUSPENDED, SUSPENDING, RayCluster


class Suspension(Enum):
    """Where a cluster stands between running and suspended."""

    NONE = auto()
    SUSPENDING = auto()
    """Pods go; this is brought to its end also when `suspend` is taken back meanwhile."""
    SUSPENDED = auto()


def is_contradictory(conditions: tuple[Condition, ...]) -> bool:
    """Whether the status says both, which nobody who writes one at a time does: then it commits to nothing."""
    return is_true(conditions, SUSPENDING) and is_true(conditions, SUSPENDED)


def suspension_of(cluster: RayCluster) -> Suspension:
    """Where the cluster stands, by its spec and what its status committed to.

    Taking `suspend` out of the spec resumes as `false` does; in KubeRay only `false` does (B8).
    """
    conditions = cluster.status.conditions
    if is_contradictory(conditions):
        return Suspension.SUSPENDING if cluster.spec.suspend else Suspension.NONE
    if is_true(conditions, SUSPENDING):
        return Suspension.SUSPENDING
    if not cluster.spec.suspend:
        return Suspension.NONE
    return Suspension.SUSPENDED if is_true(conditions, SUSPENDED) else Suspension.SUSPENDING
