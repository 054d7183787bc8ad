"""On OpenShift: the Route that leads from outside to the head's dashboard."""

from __future__ import annotations

from raykeeper.api.meta import JSON
from raykeeper.api.names import head_route_name, head_service_name
from raykeeper.api.raycluster import RayCluster
from raykeeper.operator.raycluster.children.ingress import head_door_labels
from raykeeper.operator.shared.children.drift import Drift, drift, overlay
from raykeeper.operator.shared.children.metadata import annotations_for_children, child_metadata
from raykeeper.operator.shared.owner import Owner
from raykeeper.operator.shared.service_ports import dashboard_port


def desired_route(cluster: RayCluster) -> JSON:
    """The whole of a host that OpenShift chooses, to the dashboard."""
    annotations = annotations_for_children(Owner.of(cluster))
    return {
        "apiVersion": "route.openshift.io/v1",
        "kind": "Route",
        "metadata": child_metadata(Owner.of(cluster), head_route_name(cluster), head_door_labels(cluster), annotations),
        "spec": {
            "to": {"kind": "Service", "name": head_service_name(cluster), "weight": 100},
            "port": {"targetPort": dashboard_port(cluster)},
            "wildcardPolicy": "None",
        },
    }


def route_drift(desired: JSON, actual: JSON) -> Drift:
    """Where it leads is ours; host, TLS and what OpenShift fills in are not."""
    spec = overlay(desired["spec"], actual["spec"])
    return drift(desired, actual, {"spec": spec} if spec else {})
