"""The services of a cluster: in front of the head, between multi-host workers, and in front of Ray Serve."""

from __future__ import annotations

import copy

from raykeeper.api import labels, names
from raykeeper.api.meta import JSON
from raykeeper.api.raycluster import RAY_CLUSTERS, RayCluster
from raykeeper.errors import InvalidSpec
from raykeeper.operator.raycluster.children.metadata import child_metadata
from raykeeper.operator.raycluster.children.service_ports import head_service_ports, serve_ports, with_users_ports

HEADLESS = "None"
CLUSTER_IP = "ClusterIP"


def desired_head_service(cluster: RayCluster, *, headless: bool = True) -> JSON:
    """The service under whose name all nodes and clients find the head: the user's own, completed, or a plain one.

    A plain one of type ClusterIP is headless, unless the operator is told otherwise: there is one head to be found,
    and it must be found before it is ready.
    """
    if cluster.spec.head_group_spec.head_service is not None:
        return _users_head_service(cluster, cluster.spec.head_group_spec.head_service)
    selector = head_selector(cluster)
    spec: JSON = {"selector": selector, "ports": head_service_ports(cluster)} | _type(cluster)
    if headless and spec.get("type", CLUSTER_IP) == CLUSTER_IP:
        spec |= {"clusterIP": HEADLESS, "publishNotReadyAddresses": True}
    metadata = child_metadata(
        cluster, names.head_service_name(cluster), selector, cluster.spec.head_service_annotations
    )
    return _service(metadata, spec)


def head_selector(cluster: RayCluster) -> dict[str, str]:
    """Exactly the five labels that every head pod has; the head template may say another application name."""
    template = cluster.spec.head_group_spec.template
    template_labels = (template.get("metadata") or {}).get("labels") or {}
    return {
        labels.CLUSTER: cluster.metadata.name,
        labels.NODE_TYPE: labels.HEAD,
        labels.IDENTIFIER: names.identifier(cluster, labels.HEAD),
        labels.APP_NAME: template_labels.get(labels.APP_NAME, labels.APP_NAME_KUBERAY),
        labels.CREATED_BY: labels.CREATED_BY_KUBERAY_OPERATOR,
    }


def _users_head_service(cluster: RayCluster, users: JSON) -> JSON:
    """The user decides about everything but selector, namespace, and the ports and labels that Ray needs."""
    selector = head_selector(cluster)
    users_metadata, users_spec = users.get("metadata") or {}, copy.deepcopy(users.get("spec") or {})
    ports = with_users_ports(users_spec.get("ports") or [], head_service_ports(cluster))
    metadata = child_metadata(
        cluster,
        names.head_service_name(cluster),
        (users_metadata.get("labels") or {}) | selector,
        (users_metadata.get("annotations") or {}) | cluster.spec.head_service_annotations,
    )
    return _service(metadata, _type(cluster) | users_spec | {"selector": selector, "ports": ports})


def desired_headless_worker_service(cluster: RayCluster) -> JSON:
    """Gives the pods of a multi-host replica names by which they find each other."""
    name = names.headless_worker_service_name(cluster)
    metadata = child_metadata(cluster, name, {labels.HEADLESS_WORKER_SERVICE: cluster.metadata.name})
    spec = {
        "type": CLUSTER_IP,
        "clusterIP": HEADLESS,
        "publishNotReadyAddresses": True,
        "selector": {labels.CLUSTER: cluster.metadata.name, labels.NODE_TYPE: labels.WORKER},
    }
    return _service(metadata, spec)


def desired_serve_service(cluster: RayCluster) -> JSON:
    """The service in front of Ray Serve where no RayService makes one. Raises `InvalidSpec` without a port."""
    ports = serve_ports(cluster)
    if not ports:
        raise InvalidSpec(
            "FailedToCreateService",
            f"metadata.annotations[{labels.ENABLE_SERVE_SERVICE}] asks for a service in front of Ray Serve: "
            "name a port of the head's Ray container serve",
        )
    service_labels = {
        labels.ORIGINATED_FROM_CR_NAME: cluster.metadata.name,
        labels.ORIGINATED_FROM_CRD: RAY_CLUSTERS.kind,
        labels.SERVE: names.serve_label_value(cluster),
    }
    metadata = child_metadata(cluster, names.serve_service_name(cluster), service_labels)
    return _service(metadata, {"selector": {labels.CLUSTER: cluster.metadata.name}, "ports": ports} | _type(cluster))


def _type(cluster: RayCluster) -> JSON:
    service_type = cluster.spec.head_group_spec.service_type
    return {"type": service_type} if service_type else {}


def _service(metadata: JSON, spec: JSON) -> JSON:
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}
