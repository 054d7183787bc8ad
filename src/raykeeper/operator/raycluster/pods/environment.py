"""The environment of the Ray container, in KubeRay's order: where a name comes twice, the last one counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from raykeeper.api import labels
from raykeeper.api.meta import JSON
from raykeeper.operator.raycluster.pods.collector import event_export_env, has_collector
from raykeeper.operator.raycluster.pods.fault_tolerance import fault_tolerance_env
from raykeeper.operator.raycluster.pods.ray_node import RayNode
from raykeeper.operator.shared.credentials import auth_env
from raykeeper.operator.shared.env import env_of, from_field, from_label, literal, missing
from raykeeper.operator.shared.features import AUTOSCALER_V2_ENV, chosen_autoscaler

# Serve's replicas must notice a lost head at once instead of waiting for its GCS to answer.
SERVICE_ENV: Final[Mapping[str, str]] = {
    "RAY_timeout_ms_task_wait_for_death_info": "0",
    "RAY_gcs_server_request_timeout_seconds": "5",
    "RAY_SERVE_KV_TIMEOUT_S": "5",
}


def ray_environment(node: RayNode, command: str) -> list[JSON]:
    """All variables of the Ray container."""
    env = [*env_of(node.users_container), *_autoscaler_version(node), *fault_tolerance_env(node)]
    env += missing(env, auth_env(node.cluster))
    env += missing(env, node.defaults.settings.default_env)
    env += [*([] if node.is_head else head_location(node)), *_identity(command)]
    env += missing(env, _addresses(node))
    env += missing(env, [literal("RAY_USAGE_STATS_KUBERAY_IN_USE", "1")])
    env += _usage_tags(node)
    env += missing(env, [literal("RAY_DASHBOARD_ENABLE_K8S_DISK_USAGE", "1")])
    if has_collector(node):
        env += missing(env, event_export_env())
    return env


def head_location(node: RayNode) -> list[JSON]:
    """Where the head is, for workers and for every init container."""
    return [literal("FQ_RAY_IP", node.head_host), literal("RAY_IP", node.head_host.partition(".")[0])]


def _autoscaler_version(node: RayNode) -> list[JSON]:
    version = chosen_autoscaler(node.spec)
    if not node.has_autoscaler or version is None:
        return []
    return [literal(AUTOSCALER_V2_ENV, "true" if version == "v2" else "false")]


def _identity(command: str) -> list[JSON]:
    """Who this node is: the autoscaler knows it by its pod's name and its group."""
    return [
        from_label("RAY_CLUSTER_NAME", labels.CLUSTER),
        from_field("RAY_CLUSTER_NAMESPACE", "metadata.namespace"),
        from_field("RAY_CLOUD_INSTANCE_ID", "metadata.name"),
        from_label("RAY_NODE_TYPE_NAME", labels.GROUP),
        literal("KUBERAY_GEN_RAY_START_CMD", command),
    ]


def _addresses(node: RayNode) -> list[JSON]:
    service = [literal(name, value) for name, value in SERVICE_ENV.items()] if node.is_for_service else []
    address = f"127.0.0.1:{node.head_port}" if node.is_head else node.head_address
    return [literal("RAY_PORT", node.head_port), *service, literal("RAY_ADDRESS", address)]


def _usage_tags(node: RayNode) -> list[JSON]:
    if not node.is_head:
        return []
    tags = f"kuberay_version={node.defaults.operator_version};kuberay_crd={node.origin}"
    return [literal("RAY_USAGE_STATS_EXTRA_TAGS", tags)]
