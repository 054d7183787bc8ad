"""Children that the spec asked for once and does not any more.

Only names that this operator or KubeRay gives are looked at: others, such as OpenShift AI, let a RayCluster own objects
of theirs. Secrets, claims and Jobs are never obsolete: they hold what cannot be made again, or end by themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from raykeeper.api import labels, names
from raykeeper.api.meta import JSON
from raykeeper.api.raycluster import RayCluster
from raykeeper.api.rayservice import RAY_SERVICES
from raykeeper.operator.raycluster.children.desired import Children
from raykeeper.operator.raycluster.children.labels import common_labels
from raykeeper.operator.shared.children.keys import ChildKey
from raykeeper.operator.shared.services import head_selector

RBAC_KINDS: Final = frozenset({"RoleBinding", "Role", "ServiceAccount"})


@dataclass(frozen=True)
class Usage:
    """What the cluster's living pods still need."""

    has_pods: bool
    has_autoscaler: bool
    """Whether a head pod still runs the autoscaler, as one does that was made before autoscaling was turned off."""


def obsolete_children(
    cluster: RayCluster, children: Children, actual: Mapping[ChildKey, JSON], usage: Usage
) -> list[ChildKey]:
    """Those of the children that the cluster owns which should go now, bindings before what they bind.

    The autoscaler's rights stay while it runs: without them it would crash, and the head pod with it become unready.
    """
    named = [*_history_bindings(cluster, actual), *_possible_children(cluster)]
    possible = [key for key in named if key in actual and not _is_of_service(actual[key])]
    candidates = [key for key in possible if key not in children.keys]
    unused = [key for key in candidates if not (key.kind in RBAC_KINDS and usage.has_autoscaler)]
    return [*unused, *_former_head_services(cluster, actual, usage)]


def _is_of_service(child: JSON) -> bool:
    """Whether a RayService made it for its cluster: one in front of Serve, which a Gateway sends traffic to."""
    return (child["metadata"].get("labels") or {}).get(labels.ORIGINATED_FROM_CRD) == RAY_SERVICES.kind


def _history_bindings(cluster: RayCluster, actual: Mapping[ChildKey, JSON]) -> list[ChildKey]:
    """The autoscaler's rights for accounts of pods with history, whose names the settings of the time decided."""
    role, usual = names.autoscaler_role_name(cluster), ChildKey("RoleBinding", names.autoscaler_role_name(cluster))
    ours = common_labels(cluster).items()
    return [
        key
        for key, found in actual.items()
        if key.kind == usual.kind and key != usual and found.get("roleRef", {}).get("name") == role
        if ours <= (found["metadata"].get("labels") or {}).items()
    ]


def _possible_children(cluster: RayCluster) -> list[ChildKey]:
    autoscaler = names.autoscaler_role_name(cluster)
    return [
        ChildKey("RoleBinding", autoscaler),
        ChildKey("Role", autoscaler),
        ChildKey("ServiceAccount", autoscaler),
        ChildKey("Ingress", names.head_ingress_name(cluster)),
        ChildKey("Route", names.head_route_name(cluster)),
        ChildKey("Service", names.headless_worker_service_name(cluster)),
        ChildKey("Service", names.serve_service_name(cluster)),
    ]


def _former_head_services(cluster: RayCluster, actual: Mapping[ChildKey, JSON], usage: Usage) -> list[ChildKey]:
    """Head services from before `headService.metadata.name` changed, once no pod knows the head by them."""
    if usage.has_pods:
        return []
    selector, name = head_selector(cluster), names.head_service_name(cluster)
    services = {key: found for key, found in actual.items() if key.kind == "Service" and key.name != name}
    return [key for key, found in services.items() if (found.get("spec") or {}).get("selector") == selector]
