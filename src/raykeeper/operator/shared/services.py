"""The services of a cluster: in front of the head, between multi-host workers, and in front of Ray Serve.

They belong to the cluster itself, or to the RayJob or RayService that made it and gives them names of its own.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from raykeeper.api import labels, names
from raykeeper.api.meta import JSON
from raykeeper.api.raycluster import RAY_CLUSTERS, RayCluster
from raykeeper.operator.shared.children.metadata import child_metadata
from raykeeper.operator.shared.owner import Owner
from raykeeper.operator.shared.service_ports import head_service_ports, serve_ports

HEADLESS: Final = "None"
CLUSTER_IP: Final = "ClusterIP"

CHANGEABLE: Final = frozenset({labels.IDENTIFIER, labels.APP_NAME, labels.CREATED_BY})
"""Labels of a head pod that a template may set to other values."""


@dataclass(frozen=True)
class ServiceIdentity:
    """Whose a service is, and how it is called. It lies in its owner's namespace."""

    owner: Owner
    name: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str] = field(default_factory=dict)

    def metadata(self, users: JSON | None = None) -> JSON:
        """With the labels and annotations of a service that the user supplied, where ours do not say otherwise."""
        given = users or {}
        service_labels = {**(given.get("labels") or {}), **self.labels}
        return child_metadata(
            self.owner, self.name, service_labels, {**(given.get("annotations") or {}), **self.annotations}
        )


def desired_head_service(
    cluster: RayCluster, identity: ServiceIdentity | None = None, *, headless: bool = True
) -> JSON:
    """The service under whose name all nodes and clients find the head: the user's own, completed, or a plain one.

    Without an identity it is the cluster's own; a RayJob's or RayService's leads to whichever cluster is its latest.

    A plain one of type ClusterIP is headless, unless the operator is told otherwise: there is one head to be found,
    and it must be found before it is ready.
    """
    identity = identity or _head_identity(cluster)
    if cluster.spec.head_group_spec.head_service is not None:
        return _users_head_service(cluster, identity, cluster.spec.head_group_spec.head_service)
    spec: JSON = {"selector": head_selector(cluster), "ports": head_service_ports(cluster)} | _type(cluster)
    if headless and spec.get("type", CLUSTER_IP) == CLUSTER_IP:
        spec |= {"clusterIP": HEADLESS, "publishNotReadyAddresses": True}
    return _service(identity.metadata(), spec)


def head_selector(cluster: RayCluster) -> dict[str, str]:
    """Five labels with the values that head pods have, some of which a user may have changed."""
    group = cluster.spec.head_group_spec
    changed = _template_labels(cluster) | group.labels
    return {key: changed.get(key, value) if key in CHANGEABLE else value for key, value in _labels(cluster).items()}


def _head_identity(cluster: RayCluster) -> ServiceIdentity:
    name, annotations = names.head_service_name(cluster), cluster.spec.head_service_annotations
    return ServiceIdentity(Owner.of(cluster), name, _head_service_labels(cluster), annotations)


def _head_service_labels(cluster: RayCluster) -> dict[str, str]:
    """The same five, by which KubeRay looks for the service: of a user's changes it knows the application name only."""
    template_labels = _template_labels(cluster)
    return _labels(cluster) | {key: template_labels[key] for key in (labels.APP_NAME,) if key in template_labels}


def _labels(cluster: RayCluster) -> dict[str, str]:
    return {
        labels.CLUSTER: cluster.metadata.name,
        labels.NODE_TYPE: labels.HEAD,
        labels.IDENTIFIER: names.identifier(cluster, labels.HEAD),
        labels.APP_NAME: labels.APP_NAME_KUBERAY,
        labels.CREATED_BY: labels.CREATED_BY_KUBERAY_OPERATOR,
    }


def _template_labels(cluster: RayCluster) -> dict[str, str]:
    return (cluster.spec.head_group_spec.template.get("metadata") or {}).get("labels") or {}


def _users_head_service(cluster: RayCluster, identity: ServiceIdentity, users: JSON) -> JSON:
    """The user decides about everything but selector, namespace, and the ports and labels that Ray needs."""
    users_spec = copy.deepcopy(users.get("spec") or {})
    needed = {"selector": head_selector(cluster), "ports": head_service_ports(cluster)}
    return _service(identity.metadata(users.get("metadata")), _type(cluster) | users_spec | needed)


def desired_headless_worker_service(cluster: RayCluster) -> JSON:
    """Gives the pods of a multi-host replica names by which they find each other."""
    name = names.headless_worker_service_name(cluster)
    metadata = child_metadata(Owner.of(cluster), name, {labels.HEADLESS_WORKER_SERVICE: cluster.metadata.name})
    spec = {
        "type": CLUSTER_IP,
        "clusterIP": HEADLESS,
        "publishNotReadyAddresses": True,
        "selector": {labels.CLUSTER: cluster.metadata.name, labels.NODE_TYPE: labels.WORKER},
    }
    return _service(metadata, spec)


def desired_serve_service(
    cluster: RayCluster, identity: ServiceIdentity | None = None, selector: Mapping[str, str] | None = None
) -> JSON:
    """The service in front of Ray Serve. Assumes that the head has a port for it.

    Without an identity it is that of a cluster without a RayService, and leads to every pod. A RayService adds to the
    `selector` by which label it takes pods in and out.
    """
    selected = {labels.CLUSTER: cluster.metadata.name, **(selector or {})}
    metadata = (identity or _serve_identity(cluster)).metadata()
    return _service(metadata, {"selector": selected, "ports": serve_ports(cluster)} | _type(cluster))


def _serve_identity(cluster: RayCluster) -> ServiceIdentity:
    service_labels = {
        labels.ORIGINATED_FROM_CR_NAME: cluster.metadata.name,
        labels.ORIGINATED_FROM_CRD: RAY_CLUSTERS.kind,
        labels.SERVE: names.serve_label_value(cluster),
    }
    return ServiceIdentity(Owner.of(cluster), names.serve_service_name(cluster), service_labels)


def _type(cluster: RayCluster) -> JSON:
    service_type = cluster.spec.head_group_spec.service_type
    return {"type": service_type} if service_type else {}


def _service(metadata: JSON, spec: JSON) -> JSON:
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}
