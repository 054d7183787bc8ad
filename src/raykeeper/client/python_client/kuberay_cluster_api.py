"""`RayClusterApi` with the methods, arguments and answers of KubeRay's: errors are logged, and become None or False."""

from __future__ import annotations

import time
from typing import Any

from raykeeper.client.kinds import CLUSTERS
from raykeeper.client.python_client.custom_objects import CustomObjects
from raykeeper.errors import RaykeeperError
from raykeeper.kube.errors import AlreadyExists, NotFound


class RayClusterApi:
    """RayClusters for scripts. Where the cluster is, kubeconfig or the pod's service account says."""

    def __init__(self) -> None:
        self._objects = CustomObjects(CLUSTERS, __name__)
        self._log = self._objects.log

    def __del__(self) -> None:
        if hasattr(self, "_objects"):
            self._objects.close()

    def list_ray_clusters(
        self,
        k8s_namespace: str = "default",
        label_selector: str = "",
        async_req: bool = False,  # noqa: ARG002 - KubeRay's signature; the answer is there when this returns
    ) -> Any:
        """The list as Kubernetes has it, with `items`; None after an error."""
        try:
            return self._objects.list(k8s_namespace, label_selector)
        except RaykeeperError as exc:
            self._log.error("rayclusters cannot be listed. error = %s", exc)
            return None

    def get_ray_cluster(self, name: str, k8s_namespace: str = "default") -> Any:
        """The object; None where there is none, or after an error."""
        try:
            return self._objects.get(k8s_namespace, name)
        except NotFound as exc:
            self._log.error("raycluster resource is not found. error = %s", exc)
        except RaykeeperError as exc:
            self._log.error("error fetching custom resource: %s", exc)
        return None

    def get_ray_cluster_status(
        self, name: str, k8s_namespace: str = "default", timeout: int = 60, delay_between_attempts: int = 5
    ) -> Any:
        """Its status once there is one; None where there is no such cluster, or too late."""
        while timeout > 0:
            try:
                status = self._objects.get(k8s_namespace, name, "status").get("status")
            except NotFound as exc:
                self._log.error("raycluster resource is not found. error = %s", exc)
                return None
            except RaykeeperError as exc:
                self._log.error("error fetching custom resource: %s", exc)
                return None
            if status:
                return status
            self._log.info("raycluster %s has no status yet, waiting...", name)
            time.sleep(delay_between_attempts)
            timeout -= delay_between_attempts
        self._log.info("raycluster %s had no status in time", name)
        return None

    def wait_until_ray_cluster_running(
        self, name: str, k8s_namespace: str = "default", timeout: int = 60, delay_between_attempts: int = 5
    ) -> bool:
        """Whether its state became `ready` in time."""
        while timeout > 0:
            status = self.get_ray_cluster_status(name, k8s_namespace, timeout, delay_between_attempts)
            if status and status.get("state") == "ready":
                self._log.info("raycluster %s is ready!", name)
                return True
            state = (status or {}).get("state") or "not known"
            self._log.info("raycluster %s is not ready yet, its state is %s", name, state)
            time.sleep(delay_between_attempts)
            timeout -= delay_between_attempts
        self._log.info("raycluster %s was not ready in time", name)
        return False

    def create_ray_cluster(self, body: Any, k8s_namespace: str = "default") -> Any:
        """The object as Kubernetes made it; None where it is there already, or after an error."""
        try:
            return self._objects.create(k8s_namespace, body)
        except AlreadyExists as exc:
            self._log.error("raycluster resource already exists. error = %s", exc.reason)
        except RaykeeperError as exc:
            self._log.error("error creating custom resource: %s", exc)
        return None

    def delete_ray_cluster(self, name: str, k8s_namespace: str = "default") -> Any:
        """What Kubernetes answered; None where there was none, or after an error."""
        try:
            return self._objects.delete(k8s_namespace, name)
        except NotFound as exc:
            self._log.error("raycluster custom resource already deleted. error = %s", exc.reason)
        except RaykeeperError as exc:
            self._log.error("error deleting the raycluster custom resource: %s", exc)
        return None

    def patch_ray_cluster(self, name: str, ray_patch: Any, k8s_namespace: str = "default") -> Any:
        """Whether the patch was taken."""
        try:
            self._objects.patch(k8s_namespace, name, ray_patch)
        except RaykeeperError as exc:
            self._log.error("raycluster `%s` failed to patch, with error: %s", name, exc)
            return False
        self._log.info("raycluster `%s` is patched successfully", name)
        return True
