"""When a RayCluster is looked at again though nothing happens to it. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final

from raykeeper.api.raycluster import RayCluster
from raykeeper.kube.controllers.requeue import Requeue
from raykeeper.operator.raycluster.pod import LOST_AFTER, REPLACED_AFTER, STUCK_AFTER, Pod
from raykeeper.operator.schedulers.gang import Gang
from raykeeper.operator.schedulers.interface import Wait
from raykeeper.operator.shared.owner import Owner

SPREAD: Final = 0.2
"""Of the usual while, half before and half after it: clusters that were all looked at after a restart do not all come
back together."""
MARGIN_SECONDS: Final = 1.0  # the clocks of servers that wrote the times differ
GANG_SECONDS: Final = 30.0
"""How often a cluster looks what its gang waits for where that is its RayJob's: nothing tells it of a change there."""


def next_look(
    pods: Sequence[Pod], waits: Iterable[float | None], now: datetime, usual_seconds: float, chance: float
) -> Requeue:
    """When time alone could change the decision, else after the usual while, of which 0 is never.

    `waits` are seconds until writes in flight are given up, `chance` a random number from 0 to 1.
    """
    dues = [(moment - now).total_seconds() for moment in _moments(pods)]
    due = [wait + MARGIN_SECONDS for wait in (*waits, *dues) if wait is not None and wait > 0]
    soonest = min(due, default=math.inf)
    usual = usual_seconds * (1 + SPREAD * (chance - 0.5)) if usual_seconds else math.inf
    if usual <= soonest:
        return Requeue.routine(usual) if usual_seconds else Requeue.never()
    return Requeue.after(soonest)


def gang_look(cluster: RayCluster, wait: Wait | None) -> float | None:
    """Seconds until the word of the batch scheduler is looked at again; None where a change of it is told."""
    return GANG_SECONDS if wait is not None and Gang(Owner.of(cluster)).is_of_jobs_cluster else None


def _moments(pods: Sequence[Pod]) -> Iterator[datetime]:
    for pod in pods:
        if pod.ends is not None:
            yield pod.ends + LOST_AFTER
            yield pod.ends + STUCK_AFTER
        elif pod.has_ended:
            yield pod.created + REPLACED_AFTER
