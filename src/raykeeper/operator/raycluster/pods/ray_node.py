"""The Ray node that runs in a pod: what all parts of the pod must know about it."""

from __future__ import annotations

from dataclasses import dataclass

from raykeeper.api import labels, names
from raykeeper.api.containers import GCS_SERVER_PORT
from raykeeper.api.meta import JSON
from raykeeper.api.podtemplates import ray_container
from raykeeper.api.raycluster import HeadGroupSpec, RayCluster, RayClusterSpec, WorkerGroupSpec
from raykeeper.operator.raycluster.pods.defaults import PodDefaults
from raykeeper.operator.shared.features import chosen_autoscaler, is_autoscaled

RAY_SERVICE = "RayService"
RAY_CLUSTER = "RayCluster"


@dataclass(frozen=True)
class RayNode:
    """The head, or any worker of one group."""

    cluster: RayCluster
    group: HeadGroupSpec | WorkerGroupSpec
    defaults: PodDefaults

    @property
    def is_head(self) -> bool:
        return isinstance(self.group, HeadGroupSpec)

    @property
    def node_type(self) -> str:
        return labels.HEAD if self.is_head else labels.WORKER

    @property
    def group_name(self) -> str:
        return self.group.group_name if isinstance(self.group, WorkerGroupSpec) else labels.HEAD_GROUP

    @property
    def spec(self) -> RayClusterSpec:
        return self.cluster.spec

    @property
    def template(self) -> JSON:
        """The user's pod template, never changed."""
        return self.group.template

    @property
    def template_metadata(self) -> JSON:
        return self.template.get("metadata") or {}

    @property
    def users_container(self) -> JSON:
        """The Ray container as the user wrote it."""
        return ray_container(self.template)

    @property
    def head_host(self) -> str:
        """The DNS name of the head."""
        return names.head_service_fqdn(self.cluster, self.defaults.settings.cluster_domain)

    @property
    def head_port(self) -> str:
        """The port of the GCS, which the head's parameters decide for all nodes."""
        return self.spec.head_group_spec.ray_start_params.get("port", str(GCS_SERVER_PORT))

    @property
    def head_address(self) -> str:
        return f"{self.head_host}:{self.head_port}"

    @property
    def origin(self) -> str:
        """The kind of object that the cluster was made for: RayJob, RayService, or RayCluster when it stands alone."""
        return self.cluster.metadata.labels.get(labels.ORIGINATED_FROM_CRD) or RAY_CLUSTER

    @property
    def is_for_service(self) -> bool:
        return self.origin == RAY_SERVICE

    @property
    def has_autoscaler(self) -> bool:
        """Whether Ray's autoscaler runs beside this node, which it does beside the head."""
        return self.is_head and is_autoscaled(self.spec)

    @property
    def must_not_restart(self) -> bool:
        """Whether a container that ended stays so: autoscaler v2 takes each start of Ray for an instance of its own."""
        return is_autoscaled(self.spec) and chosen_autoscaler(self.spec) == "v2"
