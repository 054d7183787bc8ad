"""Manifests of the `ray.io` kinds for tests of what the API server makes of them."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from raykeeper.api.meta import JSON

EVERY_FIELD: list[JSON] = list(yaml.safe_load_all(Path(__file__).with_name("every_field.yaml").read_text()))

_TEMPLATE = {"spec": {"containers": [{"name": "ray", "image": "rayproject/ray:2.60.0"}]}}
_CLUSTER = {
    "headGroupSpec": {"template": _TEMPLATE},
    "workerGroupSpecs": [{"groupName": "workers", "template": _TEMPLATE}],
}

PLURALS = {
    "RayCluster": "rayclusters",
    "RayJob": "rayjobs",
    "RayService": "rayservices",
    "RayCronJob": "raycronjobs",
}
LEAST_SPECS: dict[str, JSON] = {
    "RayCluster": _CLUSTER,
    "RayJob": {"entrypoint": "ls", "rayClusterSpec": _CLUSTER},
    "RayService": {"rayClusterConfig": _CLUSTER},
    "RayCronJob": {"schedule": "@daily", "jobTemplate": {"entrypoint": "ls", "rayClusterSpec": _CLUSTER}},
}

MISSING: Any = object()
"""Stands for a field that is to be taken out."""


def collection(kind: str, namespace: str, version: str = "v1") -> str:
    """The path of the kind's objects."""
    return f"/apis/ray.io/{version}/namespaces/{namespace}/{PLURALS[kind]}"


def manifest(kind: str, changes: dict[str, Any] | None = None, name: str = "thing") -> JSON:
    """The least manifest of a kind, with its spec changed at paths such as `workerGroupSpecs.0.replicas`."""
    spec = copy.deepcopy(LEAST_SPECS[kind])
    for path, value in (changes or {}).items():
        change(spec, path, value)
    return {"apiVersion": "ray.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def change(spec: Any, path: str, value: Any) -> None:
    """Set the field at a path, making the objects on the way, or take it out."""
    *steps, last = path.split(".")
    for step in steps:
        spec = spec[int(step)] if step.isdigit() else spec.setdefault(step, {})
    if value is MISSING:
        spec.pop(last, None)
    else:
        spec[last] = copy.deepcopy(value)


def fields_given(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """All fields of a manifest with their values; the paths are written as in the tables of fields."""
    yield path, value
    if isinstance(value, dict):
        for name, part in value.items():
            yield from fields_given(part, f"{path}.{name}")
    if isinstance(value, list):
        for part in value:
            yield from fields_given(part, f"{path}[]")
