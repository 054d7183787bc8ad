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
from raykeeper.operator.settings import OperatorSettings
from raykeeper.operator.surroundings import Surroundings
from raykeeper.operator.watches import Watch


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


CONTROLLERS: tuple[ControllerRow, ...] = ()

RAY_KINDS = (RAY_CLUSTERS, RAY_JOBS, RAY_SERVICES)
"""What users of KubeRay's operator expect to be reconciled with its default gates."""


def unattended(rows: Sequence[ControllerRow]) -> list[str]:
    """The kinds whose objects nobody here reconciles."""
    attended = {row.reconciles for row in rows}
    return [kind.kind for kind in RAY_KINDS if kind not in attended]
