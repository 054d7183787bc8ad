"""The controllers of the operator, one row each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from raykeeper.api.meta import ObjectKey, Resource
from raykeeper.api.raycluster import RAY_CLUSTERS
from raykeeper.api.rayjob import RAY_JOBS
from raykeeper.api.rayservice import RAY_SERVICES
from raykeeper.kube.controllers.controller import Reconcile
from raykeeper.operator.context import Context
from raykeeper.operator.kinds import WATCHED_JOBS, WATCHED_PODS, WATCHED_RAYCLUSTERS
from raykeeper.operator.raycluster import reconcile as raycluster
from raykeeper.operator.raycluster.observe import CHILD_KINDS
from raykeeper.operator.settings import OperatorSettings
from raykeeper.operator.surroundings import Surroundings
from raykeeper.operator.watches import Watch, WatchedKind, controlled_by, itself, more_than_status


def always(_settings: OperatorSettings, _surroundings: Surroundings) -> bool:
    """Not bound to a gate or to what the API server has."""
    return True


@dataclass(frozen=True)
class ControllerRow:
    """One controller: what it reconciles, what it reacts to, and how it is made."""

    name: str
    """As KubeRay calls it in metrics and Events, such as `raycluster-controller`."""
    reconciles: Resource[Any]
    watches: tuple[Watch[Any], ...]
    """The reconciled kind itself is one of them."""
    make: Callable[[Context], Reconcile[ObjectKey]]
    """Called once, before the caches are filled."""
    is_wanted: Callable[[OperatorSettings, Surroundings], bool] = always

    def watches_in(self, surroundings: Surroundings) -> list[Watch[Any]]:
        """The watches of kinds that this API server has."""
        return [watch for watch in self.watches if watch.kind.is_served(surroundings)]


POD_SETTLE_SECONDS = 0.5
"""Nobody notices so small a delay, and a cluster of a hundred pods is not looked at a hundred times."""


def _of_clusters(*watched: WatchedKind[Any]) -> tuple[Watch[Any], ...]:
    return tuple(Watch(kind, controlled_by(RAY_CLUSTERS)) for kind in watched)


CONTROLLERS: tuple[ControllerRow, ...] = (
    ControllerRow(
        name=raycluster.NAME,
        reconciles=RAY_CLUSTERS,
        watches=(
            Watch(WATCHED_RAYCLUSTERS, itself, more_than_status),
            Watch(WATCHED_PODS, controlled_by(RAY_CLUSTERS), settle_seconds=POD_SETTLE_SECONDS),
            *_of_clusters(WATCHED_JOBS, *CHILD_KINDS),
        ),
        make=raycluster.RayClusterReconciler,
    ),
)

RAY_KINDS = (RAY_CLUSTERS, RAY_JOBS, RAY_SERVICES)
"""What users of KubeRay's operator expect to be reconciled with its default gates."""


def unattended(rows: Sequence[ControllerRow]) -> list[str]:
    """The kinds whose objects nobody here reconciles."""
    attended = {row.reconciles for row in rows}
    return [kind.kind for kind in RAY_KINDS if kind not in attended]
