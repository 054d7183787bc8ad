"""The two services of a RayService: to the head, and to Ray Serve. Both lead to the cluster that serves. Pure."""

from __future__ import annotations

import copy

from raykeeper.api import labels, names
from raykeeper.api.meta import JSON
from raykeeper.api.raycluster import RayCluster
from raykeeper.api.rayservice import RAY_SERVICES, RayService
from raykeeper.operator.shared.owner import Owner
from raykeeper.operator.shared.service_ports import with_users_ports
from raykeeper.operator.shared.services import ServiceIdentity, desired_head_service, desired_serve_service


def head_service_name(service: RayService) -> str:
    return f"{service.metadata.name}-head-svc"


def serve_service_name(service: RayService) -> str:
    """The name that the user gave it, else `<rayservice>-serve-svc`."""
    users = (service.spec.serve_service or {}).get("metadata") or {}
    return users.get("name") or f"{service.metadata.name}-serve-svc"


def desired_head(service: RayService, cluster: RayCluster, *, headless: bool) -> JSON:
    """The service that always leads to the head of the cluster that serves."""
    service_labels = {
        **_origin(service),
        labels.NODE_TYPE: labels.HEAD,
        labels.IDENTIFIER: names.clip_label(f"{service.metadata.name}-head"),
    }
    identity = ServiceIdentity(Owner.of(service), head_service_name(service), service_labels)
    return desired_head_service(cluster, identity, headless=headless)


def desired_serve(service: RayService, cluster: RayCluster) -> JSON:
    """The service that requests come through: the user's own, completed, or a plain one.

    The user decides about everything but the selector. Ports of Serve that he does not name are added to his.
    """
    service_labels = {**_origin(service), labels.SERVE: names.clip_label(f"{service.metadata.name}-serve")}
    identity = ServiceIdentity(Owner.of(service), serve_service_name(service), service_labels)
    desired = desired_serve_service(cluster, identity, {labels.SERVE: "true"})
    users = copy.deepcopy(service.spec.serve_service)
    if users is None:
        return desired
    users_spec, ours = users.get("spec") or {}, desired["spec"]
    spec = ours | users_spec | {"selector": ours["selector"]}
    spec["ports"] = with_users_ports(users_spec.get("ports") or [], ours.get("ports") or [])
    return desired | {"metadata": identity.metadata(users.get("metadata")), "spec": spec}


def desired_cluster_serve(service: RayService, cluster: RayCluster) -> JSON:
    """The service that leads to Ray Serve on one cluster, and goes with it: a backend of the HTTPRoute."""
    name = cluster.metadata.name
    service_labels = {**_origin(service), labels.SERVE: names.clip_label(f"{name}-serve")}
    identity = ServiceIdentity(Owner.of(cluster), f"{name}-serve-svc", service_labels)
    return desired_serve_service(cluster, identity, {labels.SERVE: "true"})


def _origin(service: RayService) -> dict[str, str]:
    return {
        labels.ORIGINATED_FROM_CR_NAME: service.metadata.name,
        labels.ORIGINATED_FROM_CRD: RAY_SERVICES.kind,
    }
