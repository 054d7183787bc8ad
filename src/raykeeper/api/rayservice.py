"""RayService: Ray Serve applications on Ray clusters that are replaced without an interruption."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from raykeeper.api.conditions import Condition
from raykeeper.api.fields import Int32, Int64, ManagedBy, Service, Time
from raykeeper.api.markers import MapList, Rule, ServerDefault
from raykeeper.api.meta import Object, Resource
from raykeeper.api.raycluster import RayClusterSpec, RayClusterStatus
from raykeeper.api.structs import ApiStruct, RayObject, parse_part


class ClusterUpgradeOptions(ApiStruct, frozen=True):
    """How traffic moves from the old Ray cluster to the new one, step by step, through the Gateway API."""

    step_size_percent: Int32
    """Traffic that moves in one step."""
    interval_seconds: Int32
    """Seconds between two steps."""
    gateway_class_name: str = ""
    """Class of the Gateway that splits the traffic. Needed unless `httpRouteName` is set."""
    max_surge_percent: Annotated[Int32, ServerDefault()] = 100
    """Capacity that the new cluster gets at a time."""
    http_route_name: str | None = None
    """An HTTPRoute of your own, in which only the weights of the clusters are kept. No Gateway is made then."""


class RayServiceUpgradeStrategy(ApiStruct, frozen=True):
    """What happens when the spec of the Ray cluster changes."""

    type: str | None = None
    """`NewCluster`, which is also meant when unset, `NewClusterWithIncrementalUpgrade`, or `None`."""
    cluster_upgrade_options: (
        Annotated[
            ClusterUpgradeOptions,
            Rule(
                "has(self.gatewayClassName) || has(self.httpRouteName)",
                "gatewayClassName or httpRouteName must be set",
            ),
        ]
        | None
    ) = None
    """How `NewClusterWithIncrementalUpgrade` moves the traffic."""


class RayServiceSpec(ApiStruct, frozen=True):
    """The service that should be."""

    ray_cluster_config: RayClusterSpec
    """The Ray cluster that serves."""
    serve_config_v2: str = ""
    """The Serve applications, as YAML."""
    serve_service: Service | None = None
    """The service in front of them, to be completed by the operator."""
    upgrade_strategy: RayServiceUpgradeStrategy | None = None
    """What happens when `rayClusterConfig` changes."""
    ray_cluster_deletion_delay_seconds: Annotated[Int32, msgspec.Meta(ge=0)] | None = None
    """Seconds a cluster that was replaced lives on; 60 when unset."""
    exclude_head_pod_from_serve_svc: bool = False
    """Whether no traffic goes to the head pod."""
    managed_by: ManagedBy | None = None
    """Who looks after this object: `ray.io/kuberay-operator`, which is also meant when unset, or
    `kueue.x-k8s.io/multikueue`. It cannot be changed."""
    suspend: bool = False
    """Whether there is no Ray cluster for now; back to `false`, the service starts anew."""
    service_unhealthy_second_threshold: Int32 | None = None
    """Not used. Deprecated."""
    deployment_unhealthy_second_threshold: Int32 | None = None
    """Not used. Deprecated."""


class ServeDeploymentStatus(ApiStruct, frozen=True):
    """One deployment of an application, as Ray Serve sees it."""

    status: str = ""
    """`UPDATING`, `HEALTHY`, `UNHEALTHY` or another of Serve's words."""
    message: str = ""
    """What Serve says about it."""


class AppStatus(ApiStruct, frozen=True):
    """One application, as Ray Serve sees it."""

    status: str = ""
    """`DEPLOYING`, `RUNNING`, `UNHEALTHY` or another of Serve's words."""
    message: str = ""
    """What Serve says about it."""
    serve_deployment_statuses: dict[str, ServeDeploymentStatus] = msgspec.field(default_factory=dict)
    """Its deployments by name."""


class RayServiceStatus(ApiStruct, frozen=True):
    """One of the Ray clusters of a service."""

    ray_cluster_name: str = ""
    """Its name."""
    ray_cluster_status: RayClusterStatus = RayClusterStatus()
    """Its status."""
    application_statuses: dict[str, AppStatus] = msgspec.field(default_factory=dict)
    """The applications on it by name."""
    target_capacity: Int32 | None = None
    """Percentage of the full capacity that it should have."""
    traffic_routed_percent: Int32 | None = None
    """Percentage of the traffic that goes to it."""
    last_traffic_migrated_time: Time | None = None
    """When that percentage last changed."""
    unhealthy_since: Time | None = None
    """Since when Serve calls an application on it `UNHEALTHY` or `DEPLOY_FAILED`. Raykeeper only."""
    history_url: str = ""
    """Where its history can be opened. Raykeeper only."""


class RayServiceStatuses(ApiStruct, frozen=True):
    """The service that is."""

    conditions: Annotated[tuple[Condition, ...], MapList("type")] = ()
    """What is the case, and since when."""
    last_update_time: Time | None = None
    """When this status was last written."""
    service_status: str = ""
    """`Running` or empty; the conditions say more."""
    num_serve_endpoints: Int32 = 0
    """Pods that take traffic."""
    observed_generation: Int64 = 0
    """The generation of the spec that this status is about."""
    active_service_status: RayServiceStatus = RayServiceStatus()
    """The Ray cluster that serves."""
    pending_service_status: RayServiceStatus = RayServiceStatus()
    """The Ray cluster that is about to take over."""


class RayService(RayObject, frozen=True):
    """Ray Serve applications, and the Ray clusters they run on."""

    spec: RayServiceSpec
    """The service that should be."""
    status: RayServiceStatuses = RayServiceStatuses()
    """The service that is."""

    @classmethod
    def from_object(cls, item: Object) -> RayService:
        """A cached object as a struct, made anew by each call; raises `msgspec.ValidationError` for a wrong spec."""
        return cls(item.metadata, parse_part(item.spec, RayServiceSpec), parse_part(item.status, RayServiceStatuses))


RAY_SERVICES: Final[Resource[Object]] = Resource("ray.io", "v1", "rayservices", "RayService", Object)
"""Cached as bytes; read with `RayService.from_object`."""
