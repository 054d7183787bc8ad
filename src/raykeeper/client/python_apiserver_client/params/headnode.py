"""The head of a cluster."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final

from raykeeper.client.python_apiserver_client.params.environmentvariables import (
    EnvironmentVariables,
    any_environment_variables,
)
from raykeeper.client.python_apiserver_client.params.securitycontext import SecurityContext, security_context_decoder
from raykeeper.client.python_apiserver_client.params.volumes import BaseVolume, volume_decoder
from raykeeper.client.python_apiserver_client.params.wire import Parameters, listed, wire

DEFAULT_HEAD_START_PARAMS: Final[dict[str, str]] = {
    "dashboard-host": "0.0.0.0",  # noqa: S104 - a pod's; its service must reach it
    "metrics-export-port": "8080",
    "num-cpus": "0",
}
"""Flags of `ray start` of every head that does not set them itself."""


class ServiceType(enum.Enum):
    ClusterIP = "ClusterIP"
    NodePort = "NodePort"
    LoadBalancer = "LoadBalancer"


@dataclass
class HeadNodeSpec(Parameters):
    """The head: what it gets is said by a compute template."""

    compute_template: str = wire("computeTemplate")
    image: str | None = wire("image")
    ray_start_params: dict[str, str] | None = wire("rayStartParams", default=None)
    service_type: ServiceType | None = wire("serviceType", ServiceType, default=ServiceType.ClusterIP)
    enable_ingress: bool = wire("enableIngress", default=False, absent=False, is_sent=bool)
    volumes: list[BaseVolume] | None = wire("volumes", listed(volume_decoder), default=None)
    service_account: str | None = wire("serviceAccount", default=None)
    image_pull_secret: str | None = wire("imagePullSecret", default=None)
    environment: EnvironmentVariables | None = wire("environment", any_environment_variables, default=None)
    annotations: dict[str, str] | None = wire("annotations", default=None)
    labels: dict[str, str] | None = wire("labels", default=None)
    image_pull_policy: str | None = wire("imagePullPolicy", default=None)
    security_context: SecurityContext | None = wire("securityContext", security_context_decoder, default=None)

    def __post_init__(self) -> None:
        self.ray_start_params = DEFAULT_HEAD_START_PARAMS | (self.ray_start_params or {})


head_node_spec_decoder = HeadNodeSpec.from_dict
