"""The Ingress that leads from outside to the head's dashboard."""

from __future__ import annotations

from raykeeper.api import labels
from raykeeper.api.meta import JSON
from raykeeper.api.names import head_ingress_name, head_service_name, identifier
from raykeeper.api.raycluster import RayCluster
from raykeeper.api.rayclusteroptions import IngressOptions
from raykeeper.operator.raycluster.children.labels import common_labels
from raykeeper.operator.shared.children.drift import Drift, differing, drift
from raykeeper.operator.shared.children.metadata import annotations_for_children, child_metadata
from raykeeper.operator.shared.owner import Owner
from raykeeper.operator.shared.service_ports import dashboard_service_port


def desired_ingress(cluster: RayCluster) -> JSON:
    """One rule with one path to the dashboard. The annotation of the ingress class becomes the field it is today."""
    options = cluster.spec.head_group_spec.ingress_options or IngressOptions()
    annotations = annotations_for_children(Owner.of(cluster))
    ingress_class = annotations.pop(labels.INGRESS_CLASS, None)
    rule: JSON = {"http": {"paths": [_path(cluster, options)]}}
    spec: JSON = {"rules": [({"host": options.host} if options.host else {}) | rule]}
    if ingress_class is not None:
        spec["ingressClassName"] = ingress_class
    if options.tls:
        spec["tls"] = list(options.tls)
    metadata = child_metadata(Owner.of(cluster), head_ingress_name(cluster), head_door_labels(cluster), annotations)
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": metadata,
        "spec": spec,
    }


def head_door_labels(cluster: RayCluster) -> dict[str, str]:
    """Labels of the Ingress and of the Route to the head."""
    return common_labels(cluster) | {labels.IDENTIFIER: identifier(cluster, labels.HEAD)}


def _path(cluster: RayCluster, options: IngressOptions) -> JSON:
    service = {"name": head_service_name(cluster), "port": {"number": dashboard_service_port(cluster)}}
    return {
        "path": options.path or "/",
        "pathType": options.path_type or "Prefix",
        "backend": {"service": service},
    }


def ingress_drift(desired: JSON, actual: JSON) -> Drift:
    """Rules and TLS are ours. A class is so only where the user names one: else it is the cluster's default."""
    spec = differing(desired["spec"], actual["spec"], "rules", "tls")
    if "ingressClassName" in desired["spec"]:
        spec |= differing(desired["spec"], actual["spec"], "ingressClassName")
    return drift(desired, actual, {"spec": spec} if spec else {})
