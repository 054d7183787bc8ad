"""The whole pods: the user's template, completed with what makes it a node of this Ray cluster."""

from __future__ import annotations

import msgspec

from raykeeper.api import names
from raykeeper.api.containers import METRICS_PORT, METRICS_PORT_NAME
from raykeeper.api.meta import JSON
from raykeeper.api.podtemplates import pod_spec
from raykeeper.api.raycluster import RayCluster, WorkerGroupSpec
from raykeeper.operator.raycluster.actions import Slot
from raykeeper.operator.raycluster.pods.autoscaler import autoscaler_container
from raykeeper.operator.raycluster.pods.collector import (
    GRACE_SECONDS,
    add_spool,
    add_store_access,
    chosen_collector,
    collector_container,
    has_collector,
    is_annotated,
    last_poll_hook,
)
from raykeeper.operator.raycluster.pods.defaults import PodDefaults
from raykeeper.operator.raycluster.pods.environment import head_location, ray_environment
from raykeeper.operator.raycluster.pods.fault_tolerance import add_gcs_storage
from raykeeper.operator.raycluster.pods.init_containers import wait_for_gcs
from raykeeper.operator.raycluster.pods.metadata import head_metadata, worker_metadata
from raykeeper.operator.raycluster.pods.node_id_hook import with_node_id_hook
from raykeeper.operator.raycluster.pods.probes import missing_probes
from raykeeper.operator.raycluster.pods.ray_node import RayNode
from raykeeper.operator.raycluster.pods.ray_start import container_command, ray_start_command
from raykeeper.operator.raycluster.pods.ray_start_params import PLASMA_DIRECTORY, ray_start_params
from raykeeper.operator.raycluster.pods.volumes import add_shared_memory, share_session_folder
from raykeeper.operator.shared.credentials import add_credentials
from raykeeper.operator.shared.env import env_of


def desired_head_pod(cluster: RayCluster, defaults: PodDefaults, random_end: str) -> JSON:
    """The head pod. Its name ends in `random_end`, five characters of Kubernetes' safe alphabet."""
    node = RayNode(cluster, cluster.spec.head_group_spec, defaults)
    return _pod(head_metadata(node, random_end), _ray_pod_spec(node))


def desired_worker_pod(
    cluster: RayCluster, group: WorkerGroupSpec, defaults: PodDefaults, slot: Slot | None, random_end: str
) -> JSON:
    """One pod of a worker group. `slot` is its place in the group, None where pods carry no index."""
    node = RayNode(cluster, group, defaults)
    return _pod(worker_metadata(node, slot, random_end), _ray_pod_spec(node))


def _pod(metadata: JSON, spec: JSON) -> JSON:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _ray_pod_spec(node: RayNode) -> JSON:
    """The template's pod spec, completed. Built on a copy: the template belongs to a cache."""
    spec = _copy(pod_spec(node.template))
    _complete_ray_container(node, spec)
    _add_init_containers(node, spec)
    _add_sidecars(node, spec)
    if node.has_autoscaler:
        spec["serviceAccountName"] = names.autoscaler_service_account_name(node.cluster)
    if account := node.defaults.history.account_name(node.cluster):
        spec["serviceAccountName"] = account
    if node.must_not_restart:
        spec["restartPolicy"] = "Never"
    if has_collector(node):
        spec.setdefault("terminationGracePeriodSeconds", GRACE_SECONDS)
    return _copy(spec)  # of parts that belong to the settings as well


def _copy(value: JSON) -> JSON:
    """A copy that shares nothing. By way of text it takes a tenth of `copy.deepcopy`'s time."""
    copied: JSON = msgspec.json.decode(msgspec.json.encode(value))
    return copied


def _complete_ray_container(node: RayNode, spec: JSON) -> None:
    ray = spec["containers"][0]
    params = ray_start_params(node)
    command = ray_start_command(node, params)
    ray.update(container_command(node, command))
    ray["env"] = ray_environment(node, command)
    ray["ports"] = _with_metrics_port(ray)
    if node.defaults.settings.injects_probes:
        ray.update(missing_probes(node, params))
    if hook := last_poll_hook(node):
        ray["lifecycle"] = {"preStop": hook, **(ray.get("lifecycle") or {})}
    if is_annotated(node):
        ray["lifecycle"] = with_node_id_hook(ray.get("lifecycle"))
    add_gcs_storage(node, spec, ray)
    add_credentials(node.cluster, spec, ray)
    if PLASMA_DIRECTORY not in params:
        add_shared_memory(spec, ray)


def _with_metrics_port(container: JSON) -> list[JSON]:
    ports = list(container.get("ports") or ())
    if all(port.get("name") != METRICS_PORT_NAME for port in ports):
        ports.append({"name": METRICS_PORT_NAME, "containerPort": METRICS_PORT})
    return ports


def _add_init_containers(node: RayNode, spec: JSON) -> None:
    containers = list(spec.get("initContainers") or ())
    if not node.is_head and node.defaults.settings.injects_init_container:
        waiting = wait_for_gcs(node)
        add_credentials(node.cluster, spec, waiting)
        containers.append(waiting)
    for container in containers:
        container["env"] = [*env_of(container), *head_location(node)]
    if containers:
        spec["initContainers"] = containers


def _add_sidecars(node: RayNode, spec: JSON) -> None:
    """The autoscaler, the collector and the operator's own; the first two need to see Ray's files."""
    autoscalers = [autoscaler_container(node)] if node.has_autoscaler else []
    chosen = chosen_collector(node)
    collectors = [collector_container(node, chosen)] if chosen else []
    for sidecar in autoscalers + collectors:
        add_credentials(node.cluster, spec, sidecar)
    if autoscalers or collectors:
        share_session_folder(spec, spec["containers"][0], autoscalers + collectors)
    for collector in collectors:
        add_spool(spec, spec["containers"][0], collector)
        add_store_access(node, spec, collector)
    if node.defaults.has_native_sidecars:
        _start_before_waiting(node, spec, collectors)
        collectors = []
    settings = node.defaults.settings
    own = settings.head_sidecars if node.is_head else settings.worker_sidecars
    spec["containers"] += [*autoscalers, *collectors, *own]


def _start_before_waiting(node: RayNode, spec: JSON, sidecars: list[JSON]) -> None:
    """Put native sidecars between the user's init containers and ours: what brings them credentials or a network runs
    before them and, sidecars being ended in reverse, is ended after them.
    """
    users = len(pod_spec(node.template).get("initContainers") or ())
    if sidecars:
        containers = spec.get("initContainers") or []
        spec["initContainers"] = [*containers[:users], *sidecars, *containers[users:]]
