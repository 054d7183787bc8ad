"""`ClusterBuilder` and `Director` with the methods and defaults of KubeRay's. Every group that is built stays; with
KubeRay's only the last one does."""

from __future__ import annotations

import copy
import logging
import math
from abc import ABC, abstractmethod
from typing import Any, Self

from raykeeper.client.python_client.utils import kuberay_cluster_utils

log = logging.getLogger(__name__)

RAY_VERSION = "2.46.0"
RAY_IMAGE = f"rayproject/ray:{RAY_VERSION}"
_SIZES = {
    "small": (1, 2, "1", "1G", "2", "2G"),
    "medium": (3, 6, "2", "2G", "4", "4G"),
    "large": (6, 12, "3", "4G", "6", "8G"),
}
"""Replicas, most replicas, and amounts of CPU and memory: requests, then limits."""


class IClusterBuilder(ABC):
    """What a builder can do."""

    @abstractmethod
    def build_meta(self, name: str) -> Self: ...

    @abstractmethod
    def build_head(self) -> Self: ...

    @abstractmethod
    def build_worker(self, group_name: str) -> Self: ...

    @abstractmethod
    def get_cluster(self) -> dict[str, Any]: ...


class ClusterBuilder(IClusterBuilder):
    """A RayCluster step by step; `succeeded` says whether the last step worked."""

    def __init__(self) -> None:
        self.cluster: dict[str, Any] = {}
        self.succeeded: bool = False
        self.cluster_utils = kuberay_cluster_utils.ClusterUtils()

    def build_meta(
        self,
        name: str,
        k8s_namespace: str = "default",
        labels: dict[str, str] | None = None,
        ray_version: str = RAY_VERSION,
    ) -> Self:
        self.cluster = self.cluster_utils.populate_meta(self.cluster, name, k8s_namespace, labels, ray_version)
        return self

    def build_head(
        self,
        ray_image: str = RAY_IMAGE,
        service_type: str = "ClusterIP",
        cpu_requests: str = "2",
        memory_requests: str = "3G",
        cpu_limits: str = "2",
        memory_limits: str = "3G",
        ray_start_params: dict[str, str] | None = None,
    ) -> Self:
        if ray_start_params is None:
            ray_start_params = {"dashboard-host": "0.0.0.0"}  # noqa: S104 - inside of its pod
        self.cluster, self.succeeded = self.cluster_utils.populate_ray_head(
            self.cluster,
            ray_image,
            service_type,
            cpu_requests,
            memory_requests,
            cpu_limits,
            memory_limits,
            ray_start_params,
        )
        return self

    def build_worker(
        self,
        group_name: str,
        ray_image: str = RAY_IMAGE,
        ray_command: Any = ("/bin/bash", "-lc"),
        init_image: str = "busybox:1.28",
        cpu_requests: str = "1",
        memory_requests: str = "1G",
        cpu_limits: str = "2",
        memory_limits: str = "2G",
        replicas: int = 1,
        min_replicas: int = -1,
        max_replicas: int = -1,
        ray_start_params: dict[str, str] | None = None,
    ) -> Self:
        """Bounds that are not given are half and three times the replicas."""
        if "headGroupSpec" not in self.cluster.get("spec", {}):
            log.error("error creating custom resource: the spec section is missing, did you run build_head()?")
            self.succeeded = False
            return self
        group, self.succeeded = self.cluster_utils.populate_worker_group(
            group_name,
            ray_image,
            list(ray_command) if isinstance(ray_command, tuple) else ray_command,
            init_image,
            cpu_requests,
            memory_requests,
            cpu_limits,
            memory_limits,
            replicas,
            math.ceil(replicas / 2) if min_replicas < 0 else min_replicas,
            replicas * 3 if max_replicas < 0 else max_replicas,
            ray_start_params or {},
        )
        if self.succeeded:
            self.cluster["spec"].setdefault("workerGroupSpecs", []).append(group)
        return self

    def get_cluster(self) -> dict[str, Any]:
        return copy.deepcopy(self.cluster)


class Director:
    """Clusters of usual sizes."""

    def __init__(self) -> None:
        self.cluster_builder = ClusterBuilder()

    def build_basic_cluster(
        self, name: str, k8s_namespace: str = "default", labels: dict[str, str] | None = None
    ) -> dict[str, Any] | None:
        """A head alone."""
        return self._finished(self.cluster_builder.build_meta(name, k8s_namespace, labels).build_head())

    def build_small_cluster(
        self, name: str, k8s_namespace: str = "default", labels: dict[str, str] | None = None
    ) -> dict[str, Any] | None:
        """One worker with 2 CPUs and 2G at most."""
        return self._sized("small", name, k8s_namespace, labels)

    def build_medium_cluster(
        self, name: str, k8s_namespace: str = "default", labels: dict[str, str] | None = None
    ) -> dict[str, Any] | None:
        """Three workers with 4 CPUs and 4G each at most."""
        return self._sized("medium", name, k8s_namespace, labels)

    def build_large_cluster(
        self, name: str, k8s_namespace: str = "default", labels: dict[str, str] | None = None
    ) -> dict[str, Any] | None:
        """Six workers with 6 CPUs and 8G each at most."""
        return self._sized("large", name, k8s_namespace, labels)

    def _sized(self, size: str, name: str, k8s_namespace: str, labels: dict[str, str] | None) -> dict[str, Any] | None:
        replicas, most, cpu_requests, memory_requests, cpu_limits, memory_limits = _SIZES[size]
        builder = self.cluster_builder.build_meta(name, k8s_namespace, labels).build_head()
        return self._finished(
            builder.build_worker(
                group_name=f"{name}-workers",
                replicas=replicas,
                min_replicas=0,
                max_replicas=most,
                cpu_requests=cpu_requests,
                memory_requests=memory_requests,
                cpu_limits=cpu_limits,
                memory_limits=memory_limits,
            )
        )

    def _finished(self, builder: ClusterBuilder) -> dict[str, Any] | None:
        return builder.get_cluster() if builder.succeeded else None
