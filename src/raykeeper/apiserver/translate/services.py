"""Services as RayServices and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from google.protobuf.timestamp_pb2 import Timestamp

from raykeeper.api.meta import JSON
from raykeeper.api.times import parse_time
from raykeeper.apiserver.errors import Untranslatable
from raykeeper.apiserver.protos.serve_pb2 import (
    RayService,
    RayServiceStatus,
    ServeApplicationStatus,
    ServeDeploymentStatus,
)
from raykeeper.apiserver.translate.events import service_events
from raykeeper.apiserver.translate.metadata import (
    CREATION_TIMESTAMP,
    UPDATE_TIMESTAMP,
    USER,
    common_labels,
    own_labels,
)
from raykeeper.apiserver.translate.moments import to_timestamp
from raykeeper.apiserver.translate.specs import Templates, from_cluster_spec, to_cluster_spec
from raykeeper.apiserver.translate.structs import merged, to_plain, to_struct

NOT_DELETED = Timestamp(seconds=-1)
"""What KubeRay says of a service whose deletion was not asked for."""
_OWN_ANNOTATIONS = frozenset({CREATION_TIMESTAMP, UPDATE_TIMESTAMP})


def to_ray_service(service: RayService, templates: Templates, stamp: Mapping[str, str]) -> JSON:
    """The RayService to create or replace; `stamp` is the annotation that says when. Raises `Untranslatable`."""
    if not service.serve_config_V2:
        raise Untranslatable("serve configuration is not defined")
    metadata: JSON = {
        "name": service.name,
        "namespace": service.namespace,
        "labels": {**dict(service.labels), **common_labels(service.user)},
        "annotations": {**dict(service.annotations), **stamp},
    }
    spec: JSON = {
        "serveConfigV2": service.serve_config_V2,
        "rayClusterConfig": to_cluster_spec(service.cluster_spec, service.version, templates, serves=True),
    }
    for name, seconds in (
        ("serviceUnhealthySecondThreshold", service.service_unhealthy_second_threshold),
        ("deploymentUnhealthySecondThreshold", service.deployment_unhealthy_second_threshold),
    ):
        if seconds > 0:
            spec[name] = seconds
    if service.HasField("suspend"):
        spec["suspend"] = service.suspend
    if service.HasField("upgrade_strategy"):
        spec["upgradeStrategy"] = to_plain(service.upgrade_strategy)
    spec = merged(spec, to_plain(service.spec))
    return {"apiVersion": "ray.io/v1", "kind": "RayService", "metadata": metadata, "spec": spec}


def from_ray_service(service: JSON, events: Sequence[JSON]) -> RayService:
    """The service in a RayService, with the Events about it and its cluster."""
    metadata, spec = service.get("metadata") or {}, service.get("spec") or {}
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    cluster_spec, deleted = spec.get("rayClusterConfig") or {}, metadata.get("deletionTimestamp")
    result = RayService(
        name=metadata.get("name"),
        namespace=metadata.get("namespace"),
        user=labels.get(USER),
        version=cluster_spec.get("rayVersion"),
        serve_config_V2=spec.get("serveConfigV2"),
        cluster_spec=from_cluster_spec(cluster_spec),
        service_unhealthy_second_threshold=spec.get("serviceUnhealthySecondThreshold"),
        deployment_unhealthy_second_threshold=spec.get("deploymentUnhealthySecondThreshold"),
        ray_service_status=_status(metadata.get("name", ""), service.get("status") or {}, events),
        created_at=to_timestamp(metadata.get("creationTimestamp")),
        delete_at=to_timestamp(deleted) if parse_time(deleted) else NOT_DELETED,
        labels=own_labels(labels),
        annotations={name: text for name, text in annotations.items() if name not in _OWN_ANNOTATIONS},
        suspend=spec.get("suspend"),
    )
    if strategy := spec.get("upgradeStrategy"):
        result.upgrade_strategy.CopyFrom(to_struct(strategy))
    return result


def active_cluster_name(service: JSON) -> str:
    """The cluster that serves; empty where none does."""
    active = (service.get("status") or {}).get("activeServiceStatus") or {}
    name: str = active.get("rayClusterName", "")
    return name


def _status(name: str, status: JSON, events: Sequence[JSON]) -> RayServiceStatus:
    active = status.get("activeServiceStatus") or {}
    cluster = active.get("rayClusterStatus") or {}
    return RayServiceStatus(
        ray_service_events=service_events(name, events),
        ray_cluster_name=active.get("rayClusterName"),
        ray_cluster_state=cluster.get("state"),
        service_endpoint=cluster.get("endpoints"),
        serve_application_status=_applications(active.get("applicationStatuses") or {}),
    )


def _applications(applications: Mapping[str, JSON]) -> list[ServeApplicationStatus]:
    return [
        ServeApplicationStatus(
            name=name,
            status=application.get("status"),
            message=application.get("message"),
            serve_deployment_status=_deployments(application.get("serveDeploymentStatuses") or {}),
        )
        for name, application in sorted(applications.items())
    ]


def _deployments(deployments: Mapping[str, JSON]) -> list[ServeDeploymentStatus]:
    return [
        ServeDeploymentStatus(deployment_name=name, status=deployment.get("status"), message=deployment.get("message"))
        for name, deployment in sorted(deployments.items())
    ]
