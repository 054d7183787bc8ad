"""How often a cluster on its way says how far it is: pods become ready one by one, and each would be a write."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from raykeeper.api.conditions import is_true
from raykeeper.api.meta import ObjectKey
from raykeeper.api.raycluster import HEAD_POD_READY, READY, HeadInfo, RayCluster, RayClusterStatus
from raykeeper.clock import Clock

HOLD_SECONDS = 1.5
"""With the half second for which pods are waited for, numbers are two seconds late at most."""


@dataclass
class Progress:
    """Holds progress back for a moment; whatever else there is to say is said at once, and the progress with it."""

    clock: Clock
    _due: dict[ObjectKey, float] = field(default_factory=dict)

    def seconds_to_wait(self, cluster: RayCluster, status: RayClusterStatus) -> float:
        """How long this status may wait for the next; 0 says: write it now."""
        if not is_progress(cluster.status, status):
            self._due.pop(cluster.key, None)
            return 0.0
        now = self.clock.steady()
        wait = self._due.setdefault(cluster.key, now + HOLD_SECONDS) - now
        if wait <= 0:
            del self._due[cluster.key]
        return max(0.0, wait)

    def forget(self, key: ObjectKey) -> None:
        """The cluster is gone."""
        self._due.pop(key, None)


def is_progress(known: RayClusterStatus, new: RayClusterStatus) -> bool:
    """Whether more pods run than before, the cluster is not ready yet, and that is all."""
    if new == known or new.state != known.state or _has_fewer(new, known):
        return False
    # Why a head is not ready is no progress; that it is ready now, is. How far the whole cluster is, is always.
    told = {HEAD_POD_READY} if is_true(new.conditions, HEAD_POD_READY) else set()
    if is_true(new.conditions, READY) == is_true(known.conditions, READY):
        told.add(READY)
    return _without_progress(known, told) == _without_progress(new, told)


def _has_fewer(new: RayClusterStatus, known: RayClusterStatus) -> bool:
    return (
        new.ready_worker_replicas < known.ready_worker_replicas
        or new.available_worker_replicas < known.available_worker_replicas
    )


def _without_progress(status: RayClusterStatus, conditions: set[str]) -> RayClusterStatus:
    """All that does not change when a pod becomes ready."""
    return msgspec.structs.replace(
        status,
        conditions=tuple(one for one in status.conditions if one.type not in conditions),
        head=HeadInfo(),
        ready_worker_replicas=0,
        available_worker_replicas=0,
        last_update_time=None,
    )
