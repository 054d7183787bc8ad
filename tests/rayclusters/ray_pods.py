"""The pods of a test's cluster, and what tests ask about them."""

from __future__ import annotations

from typing import Any

from rayclusters.manifests import ClusterBuilder
from raykeeper.api.meta import JSON
from raykeeper.operator.raycluster.actions import Slot
from raykeeper.operator.raycluster.pods.defaults import PodDefaults
from raykeeper.operator.raycluster.pods.desired import desired_head_pod, desired_worker_pod
from raykeeper.operator.settings import PodSettings

VERSION = "raykeeper-1.2.3"
RANDOM_END = "x7b2k"
FIRST_SLOT = Slot(0)


def pod_defaults(*, native_sidecars: bool = True, **settings: Any) -> PodDefaults:
    """An operator of `VERSION` with these fields of its `PodSettings`."""
    return PodDefaults(VERSION, PodSettings(**settings), native_sidecars)


def head_pod(cluster: ClusterBuilder, defaults: PodDefaults | None = None) -> JSON:
    return desired_head_pod(cluster.build(), defaults or pod_defaults(), RANDOM_END)


def worker_pod(cluster: ClusterBuilder, defaults: PodDefaults | None = None, slot: Slot | None = FIRST_SLOT) -> JSON:
    """A pod of the cluster's last group; of one without options where it has none."""
    built = (cluster if cluster.manifest["spec"].get("workerGroupSpecs") else cluster.with_workers()).build()
    return desired_worker_pod(built, built.spec.worker_group_specs[-1], defaults or pod_defaults(), slot, RANDOM_END)


def ray(pod: JSON) -> JSON:
    """The Ray container."""
    container: JSON = pod["spec"]["containers"][0]
    return container


def named(pod: JSON, name: str) -> JSON:
    """The container or init container of that name."""
    spec = pod["spec"]
    return next(one for one in [*spec["containers"], *spec.get("initContainers", ())] if one["name"] == name)


def container_names(pod: JSON) -> list[str]:
    return [container["name"] for container in pod["spec"]["containers"]]


def init_container_names(pod: JSON) -> list[str]:
    return [container["name"] for container in pod["spec"].get("initContainers", ())]


def env_names(container: JSON) -> list[str]:
    return [entry["name"] for entry in container.get("env", ())]


def env(container: JSON) -> dict[str, Any]:
    """Variables as the process sees them: of several with one name, the last. Field paths and secrets in short."""
    return {entry["name"]: _meaning(entry) for entry in container.get("env", ())}


def _meaning(entry: JSON) -> Any:
    source = entry.get("valueFrom")
    if source is None:
        return entry.get("value")
    if "fieldRef" in source:
        return source["fieldRef"]["fieldPath"]
    return source


def mounts(container: JSON) -> dict[str, str]:
    """Path to volume."""
    return {mount["mountPath"]: mount["name"] for mount in container.get("volumeMounts", ())}


def volumes(pod: JSON) -> dict[str, JSON]:
    """Name to the rest of each volume."""
    return {
        volume["name"]: {key: value for key, value in volume.items() if key != "name"}
        for volume in pod["spec"].get("volumes", ())
    }
