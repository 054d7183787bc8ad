"""How many replicas a worker group should have. Pure."""

from __future__ import annotations

from raykeeper.api.raycluster import WorkerGroupSpec


def desired_replicas(group: WorkerGroupSpec) -> int:
    """How many replicas there should be: within the limits, none while suspended."""
    if group.suspend:
        return 0
    return max(group.min_replicas, min(group.replicas, group.max_replicas))


def least_replicas(group: WorkerGroupSpec) -> int:
    """Below this number the autoscaler never goes; none while suspended."""
    return 0 if group.suspend else group.min_replicas
