"""`ClusterUtils` with the methods and answers of KubeRay's: dictionaries that are changed in place, and whether it
worked."""

from __future__ import annotations

import copy
import logging
import re
from collections.abc import Iterator
from typing import Any

from raykeeper.client.python_client import constants

log = logging.getLogger(__name__)

_NAME = re.compile(r"[a-z0-9]([-.]*[a-z0-9])+\Z")
_LABEL = re.compile(r"[a-z0-9]([-._]*[a-z0-9])+\Z")
_LONGEST = 63
_PORTS = ((6379, "gcs-server"), (8265, "dashboard"), (10001, "client"))


class ClusterUtils:
    """Parts of RayClusters."""

    def __init__(self) -> None:
        constants.say_as_kuberay_does()

    def populate_meta(
        self, cluster: dict[str, Any], name: str, k8s_namespace: str, labels: dict[str, str] | None, ray_version: str
    ) -> dict[str, Any]:
        """The cluster with metadata and Ray's version. Raises AssertionError for a name that is none."""
        _demand(self.is_valid_name(name), f"{name!r} is no name")
        cluster["apiVersion"] = f"{constants.GROUP}/{constants.CLUSTER_VERSION}"
        cluster["kind"] = constants.CLUSTER_KIND
        cluster["metadata"] = {"name": name, "namespace": k8s_namespace, "labels": labels}
        cluster["spec"] = {"rayVersion": ray_version}
        return cluster

    def populate_ray_head(
        self,
        cluster: dict[str, Any],
        ray_image: str,
        service_type: str,
        cpu_requests: str,
        memory_requests: str,
        cpu_limits: str,
        memory_limits: str,
        ray_start_params: dict[str, str],
    ) -> tuple[dict[str, Any], bool]:
        """The cluster with its head; not without metadata, nor with an argument that is empty."""
        needed = {
            "cluster": cluster,
            "ray_image": ray_image,
            "service_type": service_type,
            "cpu_requests": cpu_requests,
            "memory_requests": memory_requests,
            "cpu_limits": cpu_limits,
            "memory_limits": memory_limits,
            "ray_start_params": ray_start_params,
        }
        if _lacks("ray head", needed):
            return cluster, False
        if "spec" not in cluster:
            log.error("error creating ray head, the spec and/or metadata is not defined")
            return cluster, False
        ports = [{"containerPort": number, "name": name, "protocol": "TCP"} for number, name in _PORTS]
        container = {
            "name": "ray-head",
            "image": ray_image,
            "ports": ports,
            **_body(cpu_requests, memory_requests, cpu_limits, memory_limits),
        }
        cluster["spec"]["headGroupSpec"] = {
            "serviceType": service_type,
            "rayStartParams": ray_start_params,
            "template": _template(container),
        }
        return cluster, True

    def populate_worker_group(
        self,
        group_name: str,
        ray_image: str,
        ray_command: Any,
        init_image: str,
        cpu_requests: str,
        memory_requests: str,
        cpu_limits: str,
        memory_limits: str,
        replicas: int,
        min_replicas: int,
        max_replicas: int,
        ray_start_params: dict[str, str],
    ) -> tuple[dict[str, Any] | None, bool]:
        """A worker group. Raises AssertionError for a name that is none, and for bounds that contradict each other."""
        needed = {
            "group_name": group_name,
            "ray_image": ray_image,
            "ray_command": ray_command,
            "init_image": init_image,
            "cpu_requests": cpu_requests,
            "memory_requests": memory_requests,
            "cpu_limits": cpu_limits,
            "memory_limits": memory_limits,
            "replicas": replicas,
            "max_replicas": max_replicas,
        }
        if _lacks("worker group", needed):
            return None, False
        _demand(self.is_valid_name(group_name), f"{group_name!r} is no name")
        _demand(max_replicas >= min_replicas, "max_replicas is less than min_replicas")
        container = {
            "name": "ray-worker",
            "image": ray_image,
            "command": ray_command,
            "lifecycle": {"preStop": {"exec": {"command": ["/bin/sh", "-c", "ray stop"]}}},
            **_body(cpu_requests, memory_requests, cpu_limits, memory_limits),
        }
        group = {
            "groupName": group_name,
            "maxReplicas": max_replicas,
            "minReplicas": min_replicas,
            "rayStartParams": ray_start_params,
            "replicas": replicas,
            "template": _template(container),
        }
        return group, True

    def update_worker_group_replicas(
        self, cluster: dict[str, Any], group_name: str, max_replicas: int, min_replicas: int, replicas: int
    ) -> tuple[dict[str, Any], bool]:
        needed = {"cluster": cluster, "group_name": group_name, "max_replicas": max_replicas, "replicas": replicas}
        if _lacks("worker group", needed):
            return cluster, False
        _demand(max_replicas >= min_replicas, "max_replicas is less than min_replicas")
        for group in _groups(cluster, group_name):
            group.update(maxReplicas=max_replicas, minReplicas=min_replicas, replicas=replicas)
            return cluster, True
        return cluster, False

    def update_worker_group_resources(
        self,
        cluster: dict[str, Any],
        group_name: str,
        cpu_requests: str,
        memory_requests: str,
        cpu_limits: str,
        memory_limits: str,
        container_name: str = "unspecified",
    ) -> tuple[dict[str, Any], bool]:
        """Of the first container, of the one that is named, or of `all_containers`."""
        needed = {
            "cluster": cluster,
            "group_name": group_name,
            "cpu_requests": cpu_requests,
            "memory_requests": memory_requests,
            "cpu_limits": cpu_limits,
            "memory_limits": memory_limits,
            "container_name": container_name,
        }
        if _lacks("worker group", needed):
            return cluster, False
        for group in _groups(cluster, group_name):
            chosen = _chosen(group["template"]["spec"]["containers"], container_name)
            if not chosen:
                log.error("error updating container resources, %s has no container %s", group_name, container_name)
                return cluster, False
            for container in chosen:
                resources = container.setdefault("resources", {})
                resources.setdefault("requests", {}).update(cpu=cpu_requests, memory=memory_requests)
                resources.setdefault("limits", {}).update(cpu=cpu_limits, memory=memory_limits)
            return cluster, True
        return cluster, False

    def duplicate_worker_group(
        self, cluster: dict[str, Any], group_name: str, new_group_name: str
    ) -> tuple[dict[str, Any], bool]:
        if _lacks("worker group", {"cluster": cluster, "group_name": group_name, "new_group_name": new_group_name}):
            return cluster, False
        _demand(self.is_valid_name(new_group_name), f"{new_group_name!r} is no name")
        for group in _groups(cluster, group_name):
            cluster["spec"]["workerGroupSpecs"].append({**copy.deepcopy(group), "groupName": new_group_name})
            return cluster, True
        log.error("error duplicating worker group, no match was found for %s", group_name)
        return cluster, False

    def delete_worker_group(self, cluster: dict[str, Any], group_name: str) -> tuple[dict[str, Any], bool]:
        if _lacks("worker group", {"cluster": cluster, "group_name": group_name}):
            return cluster, False
        for group in _groups(cluster, group_name):
            cluster["spec"]["workerGroupSpecs"].remove(group)
            return cluster, True
        log.error("error removing worker group, no match was found for %s", group_name)
        return cluster, False

    def is_valid_name(self, name: str) -> bool:
        """Of an object: small letters, digits, dashes and dots, 63 of them at most."""
        return _is_valid(name, _NAME, "name")

    def is_valid_label(self, name: str) -> bool:
        """Of a label: underscores, too."""
        return _is_valid(name, _LABEL, "label")


def _is_valid(name: str, pattern: re.Pattern[str], what: str) -> bool:
    if len(name) <= _LONGEST and pattern.match(name):
        return True
    log.error("%r is no %s: at most %d small letters, digits and what may stand between them", name, what, _LONGEST)
    return False


def _demand(is_so: bool, otherwise: str) -> None:
    """KubeRay's client asserts, and scripts catch that."""
    if not is_so:
        raise AssertionError(otherwise)


def _lacks(what: str, needed: dict[str, Any]) -> bool:
    """Whether an argument is empty, which is logged."""
    for name, value in needed.items():
        if not value:
            log.error("error creating %s, the parameters are not fully defined. %s = %s", what, name, value)
            return True
    return False


def _groups(cluster: dict[str, Any], name: str) -> Iterator[dict[str, Any]]:
    """Those of this name. Raises AssertionError for a cluster without groups."""
    groups = cluster["spec"]["workerGroupSpecs"]
    _demand(bool(groups), "the cluster has no worker groups")
    return iter([group for group in groups if group["groupName"] == name])


def _chosen(containers: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    if name == "unspecified":
        return containers[:1]
    return [container for container in containers if name in ("all_containers", container["name"])]


def _body(cpu_requests: str, memory_requests: str, cpu_limits: str, memory_limits: str) -> dict[str, Any]:
    return {
        "resources": {
            "requests": {"cpu": cpu_requests, "memory": memory_requests},
            "limits": {"cpu": cpu_limits, "memory": memory_limits},
        },
        "volumeMounts": [{"mountPath": "/tmp/ray", "name": "ray-logs"}],  # noqa: S108 - where Ray writes in its pod
    }


def _template(container: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"containers": [container], "volumes": [{"name": "ray-logs", "emptyDir": {}}]}}
