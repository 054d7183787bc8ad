"""Ray's autoscaler beside the head. What it relies on is Ray's contract with KubeRay."""

from __future__ import annotations

from typing import Final

from raykeeper.api import labels
from raykeeper.api.containers import AUTOSCALER
from raykeeper.api.meta import JSON
from raykeeper.api.raycluster import RAY_CLUSTERS
from raykeeper.api.rayclusteroptions import AutoscalerOptions
from raykeeper.operator.raycluster.pods.ray_node import RayNode
from raykeeper.operator.raycluster.pods.ray_start import shell
from raykeeper.operator.shared.credentials import auth_env
from raykeeper.operator.shared.env import from_field, from_label, literal
from raykeeper.operator.shared.sidecars import autoscaler_resources

# $(...) is filled in by the kubelet from the container's own variables.
START: Final = "ray kuberay-autoscaler --cluster-name $(RAY_CLUSTER_NAME) --cluster-namespace $(RAY_CLUSTER_NAMESPACE)"


def autoscaler_container(node: RayNode) -> JSON:
    """The sidecar, with what the user wants differently."""
    options = node.spec.autoscaler_options or AutoscalerOptions()
    container: JSON = {
        "name": AUTOSCALER,
        "image": options.image or node.users_container.get("image", ""),
        "imagePullPolicy": options.image_pull_policy or "IfNotPresent",
        "command": list(options.command) or shell(node.defaults),
        "args": list(options.args) or [START],
        "env": [*_env(), *auth_env(node.cluster), *options.env],
        "resources": autoscaler_resources(options),
    }
    added: JSON = {
        "envFrom": list(options.env_from),
        "volumeMounts": list(options.volume_mounts),
        "securityContext": options.security_context,
    }
    return container | {name: value for name, value in added.items() if value not in (None, [])}


def _env() -> list[JSON]:
    return [
        from_label("RAY_CLUSTER_NAME", labels.CLUSTER),
        from_field("RAY_CLUSTER_NAMESPACE", "metadata.namespace"),
        from_field("RAY_HEAD_POD_NAME", "metadata.name"),
        literal("KUBERAY_CRD_VER", RAY_CLUSTERS.version),
        literal("KUBERAY_GEN_AUTOSCALER_START_CMD", START),
    ]
