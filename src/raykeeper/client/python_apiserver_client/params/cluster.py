"""Clusters."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from raykeeper.client.python_apiserver_client.params.environmentvariables import (
    EnvironmentVariables,
    environment_variables_decoder,
)
from raykeeper.client.python_apiserver_client.params.headnode import HeadNodeSpec, head_node_spec_decoder
from raykeeper.client.python_apiserver_client.params.volumes import BaseVolume, volume_decoder
from raykeeper.client.python_apiserver_client.params.wire import (
    Parameters,
    either,
    listed,
    numbered,
    other_name,
    output,
    values_to_string,
    wire,
)
from raykeeper.client.python_apiserver_client.params.workernode import WorkerNodeSpec, worker_node_spec_decoder


class Environment(enum.Enum):
    """What a cluster is for."""

    DEV = 0
    TESTING = 1
    STAGING = 2
    PRODUCTION = 3


class UpscalingMode(enum.Enum):
    """How fast the autoscaler adds workers."""

    Conservative = "Conservative"
    Default = "Default"
    Aggressive = "Aggressive"


@dataclass
class AutoscalerOptions(Parameters):
    """The autoscaler beside the head; `idle_tmout` is in seconds."""

    upscaling_mode: UpscalingMode = wire(
        "upscalingMode", UpscalingMode, default=UpscalingMode.Default, absent=UpscalingMode.Default
    )
    idle_tmout: int | None = wire("idleTimeoutSeconds", int, default=None)
    image: str | None = wire("image", default=None)
    image_pull_policy: str | None = wire("imagePullPolicy", default=None)
    cpus: str | None = wire("cpu", default=None)
    memory: str | None = wire("memory", default=None)
    environment: EnvironmentVariables | None = wire("envs", environment_variables_decoder, default=None)
    volumes: list[BaseVolume] | None = wire("volumes", listed(volume_decoder), default=None)


autoscaling_decoder = AutoscalerOptions.from_dict


@dataclass
class ClusterSpec(Parameters):
    """Head and workers. With options of the autoscaler, it is on."""

    head_node: HeadNodeSpec = wire("headGroupSpec", head_node_spec_decoder)
    worker_groups: list[WorkerNodeSpec] | None = wire("workerGroupSpec", listed(worker_node_spec_decoder), default=None)
    autoscaling_options: AutoscalerOptions | None = wire("autoscalerOptions", autoscaling_decoder, default=None)

    def to_dict(self) -> dict[str, Any]:
        switch = {"enableInTreeAutoscaling": True} if self.autoscaling_options is not None else {}
        return super().to_dict() | switch


def cluster_spec_decoder(dct: Mapping[str, Any]) -> ClusterSpec:
    """The spec of an answer; options of an autoscaler that is off are left out."""
    is_on = bool(either(dct, "enableInTreeAutoscaling"))
    return ClusterSpec.from_dict({"autoscalerOptions": {}, **dct} if is_on else {**dct, "autoscalerOptions": None})


class ClusterEvent:
    """Something that Kubernetes reported about a cluster, as a server answered it."""

    def __init__(self, dst: Mapping[str, Any]) -> None:
        self.id = either(dst, "id", "")
        self.name = either(dst, "name", "")
        self.created_at = either(dst, "createdAt", "")
        self.first_timestamp = either(dst, "firstTimestamp", "")
        self.last_timestamp = either(dst, "lastTimestamp", "")
        self.reason = either(dst, "reason", "")
        self.message = either(dst, "message", "")
        self.type = either(dst, "type", "")
        self.count = either(dst, "count", 0)

    def to_string(self) -> str:
        return values_to_string(vars(self))


@dataclass
class Cluster(Parameters):
    """A cluster; from `created_at` on, what a server says about it."""

    name: str = wire("name", absent="")
    namespace: str = wire("namespace", absent="")
    user: str = wire("user", absent="")
    version: str = wire("version", absent="")
    cluster_spec: ClusterSpec = wire("clusterSpec", cluster_spec_decoder)
    deployment_environment: Environment | None = wire("environment", numbered(Environment), default=None)
    annotations: dict[str, str] | None = wire("annotations", default=None)
    cluster_environment: EnvironmentVariables | None = wire("envs", environment_variables_decoder, default=None)
    created_at: str | None = output("createdAt")
    deleted_at: str | None = output("deletedAt")
    cluster_status: str | None = output("clusterState")
    events: list[ClusterEvent] | None = output("events", listed(ClusterEvent))
    service_endpoint: dict[str, str] | None = output("serviceEndpoint")

    environment = other_name("deployment_environment")
    envs = other_name("cluster_environment")


cluster_decoder = Cluster.from_dict


def clusters_decoder(dct: Mapping[str, Any]) -> list[Cluster]:
    """Those of a list; an answer without clusters has no list in it."""
    return [cluster_decoder(one) for one in either(dct, "clusters", [])]
