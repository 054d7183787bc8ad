"""The controllers of the operator, one row each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from raykeeper.api.meta import ObjectKey, Resource
from raykeeper.api.raycluster import RAY_CLUSTERS
from raykeeper.api.raycronjob import RAY_CRON_JOBS
from raykeeper.api.rayjob import RAY_JOBS
from raykeeper.api.rayservice import RAY_SERVICES
from raykeeper.kube.controllers.controller import Reconcile
from raykeeper.operator.api_server_facts import ApiServerFacts
from raykeeper.operator.context import Context
from raykeeper.operator.gates import Gate
from raykeeper.operator.kinds import (
    WATCHED_BY_SCHEDULERS,
    WATCHED_GATEWAYS,
    WATCHED_HTTP_ROUTES,
    WATCHED_JOBS,
    WATCHED_ORIGINATED_SERVICES,
    WATCHED_PODS,
    WATCHED_RAYCLUSTERS,
    WATCHED_RAYCRONJOBS,
    WATCHED_RAYJOBS,
    WATCHED_RAYSERVICES,
    WATCHED_SERVE_ENDPOINTS,
    WATCHED_SUBMITTER_PODS,
)
from raykeeper.operator.raycluster import reconcile as raycluster
from raykeeper.operator.raycluster.observe import CHILD_KINDS
from raykeeper.operator.raycronjob import reconcile as raycronjob
from raykeeper.operator.rayjob import reconcile as rayjob
from raykeeper.operator.rayservice import reconcile as rayservice
from raykeeper.operator.rayservice.upgrade.routes import carried_services
from raykeeper.operator.settings import OperatorSettings
from raykeeper.operator.watches import Watch, WatchedKind, controlled_by, itself, more_than_status, originated_from


def always(_settings: OperatorSettings, _api_server: ApiServerFacts) -> bool:
    """Not bound to a gate or to what the API server has."""
    return True


def runs_raycronjobs(settings: OperatorSettings, api_server: ApiServerFacts) -> bool:
    """The gate is on, and the API server has the kind."""
    return settings.gates.is_on(Gate.RAYCRONJOB) and api_server.has_raycronjobs


@dataclass(frozen=True)
class ControllerRow:
    """One controller: what it reconciles, what it reacts to, and how it is made."""

    name: str
    """As controller-runtime calls it in metrics: the kind in lower case, unless it has a name of its own.

    Events are reported in another name, such as `raycluster-controller`, which the reconciler gives its recorder.
    """
    reconciles: Resource[Any]
    watches: tuple[Watch[Any], ...]
    """The reconciled kind itself is one of them."""
    make: Callable[[Context], Reconcile[ObjectKey]]
    """Called once, before the caches are filled."""
    is_wanted: Callable[[OperatorSettings, ApiServerFacts], bool] = always

    def watches_in(self, api_server: ApiServerFacts) -> list[Watch[Any]]:
        """The watches of kinds that this API server has."""
        return [watch for watch in self.watches if watch.kind.is_served(api_server)]


POD_SETTLE_SECONDS = 0.5
"""Nobody notices so small a delay, and a cluster of a hundred pods is not looked at a hundred times."""


def _of_clusters(*watched: WatchedKind[Any]) -> tuple[Watch[Any], ...]:
    return tuple(Watch(kind, controlled_by(RAY_CLUSTERS)) for kind in watched)


CONTROLLERS: tuple[ControllerRow, ...] = (
    ControllerRow(
        name="raycluster",
        reconciles=RAY_CLUSTERS,
        watches=(
            Watch(WATCHED_RAYCLUSTERS, itself, more_than_status),
            Watch(WATCHED_PODS, controlled_by(RAY_CLUSTERS), settle_seconds=POD_SETTLE_SECONDS),
            *_of_clusters(WATCHED_JOBS, *CHILD_KINDS),
        ),
        make=raycluster.RayClusterReconciler,
    ),
    ControllerRow(
        name="rayjob",
        reconciles=RAY_JOBS,
        watches=(
            Watch(WATCHED_RAYJOBS, itself, more_than_status),
            Watch(WATCHED_RAYCLUSTERS, controlled_by(RAY_JOBS)),
            Watch(WATCHED_JOBS, controlled_by(RAY_JOBS)),
            Watch(WATCHED_SUBMITTER_PODS, originated_from(RAY_JOBS)),
            Watch(WATCHED_ORIGINATED_SERVICES, controlled_by(RAY_JOBS)),
            *(Watch(kind, controlled_by(RAY_JOBS)) for kind in WATCHED_BY_SCHEDULERS),
        ),
        make=rayjob.RayJobReconciler,
    ),
    ControllerRow(
        name="rayservice",
        reconciles=RAY_SERVICES,
        watches=(
            Watch(WATCHED_RAYSERVICES, itself, more_than_status),
            Watch(WATCHED_RAYCLUSTERS, controlled_by(RAY_SERVICES)),
            Watch(WATCHED_ORIGINATED_SERVICES, controlled_by(RAY_SERVICES)),
            Watch(WATCHED_SERVE_ENDPOINTS, originated_from(RAY_SERVICES)),
            Watch(WATCHED_GATEWAYS, controlled_by(RAY_SERVICES)),
            Watch(WATCHED_HTTP_ROUTES, carried_services),
        ),
        make=rayservice.RayServiceReconciler,
    ),
    ControllerRow(
        name="raycronjob",
        reconciles=RAY_CRON_JOBS,
        watches=(
            Watch(WATCHED_RAYCRONJOBS, itself, more_than_status),
            Watch(WATCHED_RAYJOBS, controlled_by(RAY_CRON_JOBS)),
        ),
        make=raycronjob.RayCronJobReconciler,
        is_wanted=runs_raycronjobs,
    ),
)

RAY_KINDS = (RAY_CLUSTERS, RAY_JOBS, RAY_SERVICES)
"""What users of KubeRay's operator expect to be reconciled with its default gates."""


def unattended(rows: Sequence[ControllerRow]) -> list[str]:
    """The kinds whose objects nobody here reconciles."""
    attended = {row.reconciles for row in rows}
    return [kind.kind for kind in RAY_KINDS if kind not in attended]
