"""The command that starts Ray in a container."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from raykeeper.api import labels
from raykeeper.api.meta import JSON
from raykeeper.operator.raycluster.pods.defaults import PodDefaults
from raykeeper.operator.raycluster.pods.ray_node import RayNode

# A raylet keeps a file descriptor per worker process and connection; the usual 1024 are gone in no time.
RAISE_FILE_LIMIT: Final = "ulimit -n ${RAY_START_ULIMIT_OPEN_FILES:-65536}; "
OPTIONS_WITH_BOOLEAN: Final = frozenset({"log-color", "include-dashboard", "include-log-monitor"})
"""Options of `ray start` that take `true` or `false` as a value; all others are switches."""


def shell(defaults: PodDefaults) -> list[str]:
    """The command of a container whose one argument is a line of bash."""
    return ["/bin/bash", "-cl" if defaults.settings.uses_login_shell else "-c", "--"]


def ray_start_command(node: RayNode, params: Mapping[str, str]) -> str:
    """`ray start` with its options by name. The blanks are KubeRay's: users compare this text."""
    start = "ray start --head " if node.is_head else "ray start "
    return start + "".join(_option(name, value) for name, value in sorted(params.items()))


def _option(name: str, value: str) -> str:
    if value.lower() not in ("true", "false") or name in OPTIONS_WITH_BOOLEAN:
        return f" --{name}={value} "
    return f" --{name} " if value.lower() == "true" else ""


def container_command(node: RayNode, command: str) -> JSON:
    """`command` and `args` of the Ray container; nothing where the user starts Ray in a way of their own."""
    container = node.users_container
    own = [*(container.get("command") or ()), *(container.get("args") or ())]
    if overwrites_command(node) or "ray start" in " ".join(own):
        return {}
    before = "".join(f" {part} " for part in own) + " && " if own else ""
    return {"command": shell(node.defaults), "args": [before + RAISE_FILE_LIMIT + command]}


def overwrites_command(node: RayNode) -> bool:
    """Whether the user's command stays as it is; ours is then found in KUBERAY_GEN_RAY_START_CMD."""
    said = (node.cluster.metadata.annotations, node.template_metadata.get("annotations") or {})
    return any(annotations.get(labels.OVERWRITE_CONTAINER_CMD, "").lower() == "true" for annotations in said)
