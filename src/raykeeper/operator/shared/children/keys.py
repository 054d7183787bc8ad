"""How the children of one owner are told apart, and where each kind is written to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from raykeeper.api.meta import JSON, Resource
from raykeeper.api.raycluster import RAY_CLUSTERS
from raykeeper.api.rayjob import RAY_JOBS
from raykeeper.kube.resources import (
    INGRESSES,
    JOBS,
    PERSISTENT_VOLUME_CLAIMS,
    ROLE_BINDINGS,
    ROLES,
    ROUTES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
)


class ChildKey(NamedTuple):
    """Tells the children of one owner apart."""

    kind: str
    name: str


def child_key(child: JSON) -> ChildKey:
    return ChildKey(child["kind"], child["metadata"]["name"])


CHILD_RESOURCES: Final[Mapping[str, Resource[Any]]] = {
    resource.kind: resource
    for resource in (
        RAY_CLUSTERS,
        RAY_JOBS,
        SERVICE_ACCOUNTS,
        ROLES,
        ROLE_BINDINGS,
        INGRESSES,
        ROUTES,
        SECRETS,
        SERVICES,
        PERSISTENT_VOLUME_CLAIMS,
        JOBS,
    )
}
"""Where a child of each kind is written to."""
