"""The hash by which a changed spec is recognised: for the strategy Recreate, and for a RayService's new cluster.

It is not KubeRay's, which hangs on Go's encoding; the version stored beside it says whose it is.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Any, Final

import msgspec

from raykeeper.api.meta import JSON
from raykeeper.api.quantity import InvalidQuantity, parse_quantity
from raykeeper.api.raycluster import RayClusterSpec

SPEC_FIELDS_WITHOUT_EFFECT: Final = ("upgradeStrategy", "suspend")
GROUP_FIELDS_WITHOUT_EFFECT: Final = ("replicas", "minReplicas", "maxReplicas", "scaleStrategy")
"""The number of pods says nothing about a pod."""
POD_FIELDS_WITHOUT_EFFECT: Final = ("tolerations", "schedulingGates")
"""Queues such as Kueue change them on their own account."""

_QUANTITIES: Final = frozenset({"limits", "requests"})
# Clients written in Go send these back as empty objects when they change anything else.
_EMPTY_WITHOUT_MEANING: Final = frozenset({"metadata", "resources", "spec", "status", "loadBalancer"})


def spec_hash(cluster_spec: RayClusterSpec, groups: int | None = None) -> str:
    """A hash of all that makes a difference to a pod: the same for the same meaning, in every process.

    Of the worker groups only the first `groups` count, where a number is given: so it is seen that some were appended.
    """
    spec: JSON = msgspec.to_builtins(cluster_spec)
    workers = list(spec.get("workerGroupSpecs", ()))[:groups]
    relevant = _without(spec, SPEC_FIELDS_WITHOUT_EFFECT) | {
        "headGroupSpec": _without_pod_fields(spec["headGroupSpec"]),
        "workerGroupSpecs": [_without_pod_fields(_without(group, GROUP_FIELDS_WITHOUT_EFFECT)) for group in workers],
    }
    text = msgspec.json.encode(_canonical(relevant), order="sorted")
    # SHA-1 as in KubeRay: it tells specs apart and protects nothing.
    return base64.b32hexencode(hashlib.sha1(text, usedforsecurity=False).digest()).decode()


def _without(values: JSON, names: tuple[str, ...]) -> JSON:
    return {name: value for name, value in values.items() if name not in names}


def _without_pod_fields(group: JSON) -> JSON:
    template = group["template"]
    pod_spec = _without(template.get("spec") or {}, POD_FIELDS_WITHOUT_EFFECT)
    return group | {"template": template | {"spec": pod_spec}}


def _canonical(value: Any) -> Any:
    """The same value for everything that Kubernetes takes for the same."""
    if isinstance(value, list | tuple):
        return [_canonical(item) for item in value]
    if not isinstance(value, dict):
        return value
    parts = {name: _quantities(part) if name in _QUANTITIES else _canonical(part) for name, part in value.items()}
    return {name: part for name, part in parts.items() if not _means_nothing(name, part)}


def _means_nothing(name: str, part: Any) -> bool:
    return part is None or (part == {} and name in _EMPTY_WITHOUT_MEANING)


def _quantities(resources: Any) -> Any:
    """`1024Mi` as `1Gi`: clients written in Go rewrite one into the other."""
    try:
        return {name: str(parse_quantity(text)) for name, text in resources.items()}
    except (AttributeError, InvalidQuantity):
        return resources
