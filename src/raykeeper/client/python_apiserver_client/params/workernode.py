"""Groups of workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from raykeeper.client.python_apiserver_client.params.environmentvariables import (
    EnvironmentVariables,
    any_environment_variables,
)
from raykeeper.client.python_apiserver_client.params.securitycontext import SecurityContext, security_context_decoder
from raykeeper.client.python_apiserver_client.params.volumes import BaseVolume, volume_decoder
from raykeeper.client.python_apiserver_client.params.wire import Parameters, listed, wire

DEFAULT_WORKER_START_PARAMS: Final[dict[str, str]] = {"node-ip-address": "$MY_POD_IP"}
"""Flags of `ray start` of every worker that does not set them itself."""


@dataclass
class WorkerNodeSpec(Parameters):
    """A group of equal workers. Raises RuntimeError for numbers of workers that contradict each other."""

    group_name: str = wire("groupName")
    compute_template: str = wire("computeTemplate")
    image: str | None = wire("image")
    max_replicas: int = wire("maxReplicas", int, absent=0)
    replicas: int = wire("replicas", int, default=1, absent=0)
    min_replicas: int = wire("minReplicas", int, default=0, absent=0)
    ray_start_params: dict[str, str] | None = wire("rayStartParams", default=None)
    volumes: list[BaseVolume] | None = wire("volumes", listed(volume_decoder), default=None)
    service_account: str | None = wire("serviceAccount", default=None)
    image_pull_secret: str | None = wire("imagePullSecret", default=None)
    environment: EnvironmentVariables | None = wire("environment", any_environment_variables, default=None)
    annotations: dict[str, str] | None = wire("annotations", default=None)
    labels: dict[str, str] | None = wire("labels", default=None)
    image_pull_policy: str | None = wire("imagePullPolicy", default=None)
    security_context: SecurityContext | None = wire("securityContext", security_context_decoder, default=None)

    def __post_init__(self) -> None:
        if not self.min_replicas <= self.replicas <= self.max_replicas:
            bounds = f"{self.min_replicas} and {self.max_replicas}"
            raise RuntimeError(f"group {self.group_name}: replicas must be between {bounds}, not {self.replicas}")
        self.ray_start_params = DEFAULT_WORKER_START_PARAMS | (self.ray_start_params or {})


worker_node_spec_decoder = WorkerNodeSpec.from_dict
