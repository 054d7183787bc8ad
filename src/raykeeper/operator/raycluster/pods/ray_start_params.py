"""The options of `ray start`: the user's, completed from the group's resources and labels and from the container.

The rules are KubeRay's, because what a node tells Ray about its resources decides where tasks run.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any, Final

from raykeeper.api.containers import DASHBOARD_AGENT_PORT, METRICS_PORT
from raykeeper.api.quantity import NANO, InvalidQuantity, parse_quantity
from raykeeper.operator.raycluster.pods import fault_tolerance
from raykeeper.operator.raycluster.pods.accelerators import NAMES_OF_RAY, gpu_count, is_gpu, named_by_ray
from raykeeper.operator.raycluster.pods.ray_node import RayNode
from raykeeper.operator.shared.totals import amount

Params = dict[str, str]

CPUS: Final = "num-cpus"
GPUS: Final = "num-gpus"
MEMORY: Final = "memory"
RESOURCES: Final = "resources"
AGENT_PORT: Final = "dashboard-agent-listen-port"
DASHBOARD_PORT_PARAM: Final = "dashboard-port"
PLASMA_DIRECTORY: Final = "plasma-directory"


def ray_start_params(node: RayNode) -> Params:
    """Every option that `ray start` gets in this pod. What the user set is kept, but for what makes a node work."""
    params = {**node.group.ray_start_params, **_from_group(node), **_forced(node)}
    params = {**_missing(node), **params}
    return {**_from_container(node, params), **params, **_accelerators(node, params)}


def _from_group(node: RayNode) -> Params:
    """The group's own `resources` and `labels`, which are newer than options and win over them."""
    params = _from_group_resources(node.group.resources)
    if node.group.labels:
        params["labels"] = ",".join(f"{key}={value}" for key, value in sorted(node.group.labels.items()))
    return params


def _from_group_resources(resources: Mapping[str, str]) -> Params:
    """Options that say the same; Ray takes whole CPUs, bytes and GPUs, and fractions of anything else."""
    params: Params = {}
    custom: dict[str, float] = {}
    for name, text in sorted(resources.items()):
        try:
            quantity = parse_quantity(text)
        except InvalidQuantity:
            continue
        if name.lower() in ("cpu", "memory"):
            params[CPUS if name.lower() == "cpu" else MEMORY] = str(quantity.value())
        elif is_gpu(name.lower()):
            params.setdefault(GPUS, str(quantity.value()))
        else:
            custom[name] = quantity.nano / NANO
    return params | ({RESOURCES: _quoted_json(custom)} if custom else {})


def _forced(node: RayNode) -> Params:
    # Without `block` the container would end as soon as Ray has started.
    forced = {"block": "true", **fault_tolerance.redis_params(node)}
    if node.has_autoscaler:
        forced["no-monitor"] = "true"  # the sidecar is the monitor; two would fight
    return forced


def _missing(node: RayNode) -> Params:
    """Options that are set unless the user did."""
    own = {"dashboard-host": "0.0.0.0"} if node.is_head else {"address": node.head_address}  # noqa: S104 - in the pod
    return own | {"metrics-export-port": str(METRICS_PORT), AGENT_PORT: str(DASHBOARD_AGENT_PORT)}


def _from_container(node: RayNode, params: Mapping[str, str]) -> Params:
    """CPUs, memory and GPUs as the container has them, where nothing else says so."""
    asked = node.users_container.get("resources") or {}
    limits, requests = asked.get("limits") or {}, asked.get("requests") or {}
    counts = {
        CPUS: amount(limits, "cpu").value() or amount(requests, "cpu").value(),
        MEMORY: amount(limits, "memory").value(),
        GPUS: gpu_count(limits),
    }
    return {name: str(count) for name, count in counts.items() if count and name not in params}


def _accelerators(node: RayNode, params: Mapping[str, str]) -> Params:
    """The `resources` option with the container's accelerators in it, unless the user spoke of any."""
    found = named_by_ray((node.users_container.get("resources") or {}).get("limits") or {})
    known = _read_resources(params.get(RESOURCES, ""))
    if not found or known is None or NAMES_OF_RAY & set(known):
        return {}
    return {RESOURCES: _quoted_json(known | found)}


def _read_resources(text: str) -> dict[str, Any] | None:
    """The custom resources that an option holds; None when it is not JSON, which is left to Ray to complain about.

    JSON in quotes of any kind is read, as KubeRay does; then a double-quoted string of the shell, with its backslashes.
    """
    for read in (_unquoted, _unescaped):
        try:
            value = json.loads(read(text) or "{}")
        except (ValueError, IndexError):
            continue
        return value if isinstance(value, dict) else None
    return None


def _unquoted(text: str) -> str:
    return text.strip("'\"` ")


def _unescaped(text: str) -> str:
    return shlex.split(text)[0]


def _quoted_json(resources: Mapping[str, Any]) -> str:
    """JSON that survives the shell; whole numbers without a fraction, as Go prints them."""
    whole = {name: int(value) if _is_whole(value) else value for name, value in resources.items()}
    return "'" + json.dumps(whole, sort_keys=True, separators=(",", ":")) + "'"


def _is_whole(value: Any) -> bool:
    return isinstance(value, float) and value.is_integer() and abs(value) < 1e21  # Go goes over to exponents there
