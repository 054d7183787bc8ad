"""Compute templates in objects that are passed on: a group that names one gets what it says. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from raykeeper.api.meta import JSON
from raykeeper.apiserver.protos.config_pb2 import ComputeTemplate
from raykeeper.apiserver.translate.metadata import COMPUTE_TEMPLATE
from raykeeper.apiserver.translate.structs import to_plain
from raykeeper.apiserver.translate.templates import to_resources, to_tolerations

KEY = "computeTemplate"
"""Beside a group's own fields; no part of the CRDs."""


def _groups(body: Any) -> Iterator[tuple[str, JSON]]:
    """The groups of an object of any kind, with the container that runs Ray in each."""
    for spec in _cluster_specs(body):
        if isinstance(head := spec.get("headGroupSpec"), dict):
            yield "ray-head", head
        workers = spec.get("workerGroupSpecs")
        for group in workers if isinstance(workers, list) else ():
            if isinstance(group, dict):
                yield "ray-worker", group


def _cluster_specs(body: Any) -> Iterator[JSON]:
    spec = body.get("spec") if isinstance(body, dict) else None
    if not isinstance(spec, dict):
        return
    job = spec.get("jobTemplate")  # of a RayCronJob
    inner = [spec.get("rayClusterSpec"), spec.get("rayClusterConfig")]
    inner += [job.get("rayClusterSpec")] if isinstance(job, dict) else []
    found = [part for part in inner if isinstance(part, dict)]
    yield from found or [spec]


def named_templates(body: Any) -> list[str]:
    """The templates that an object names, each once."""
    names = [group[KEY] for _, group in _groups(body) if isinstance(group.get(KEY), str)]
    return list(dict.fromkeys(names))


def apply_templates(body: JSON, templates: Mapping[str, ComputeTemplate]) -> None:
    """Fill the groups of an object by the templates that they name."""
    for container, group in _groups(body):
        name = group.pop(KEY, None)
        if isinstance(name, str):
            _apply(group, templates[name], container)


def _apply(group: JSON, template: ComputeTemplate, ray_container: str) -> None:
    pod = group.get("template")
    if not isinstance(pod, dict):
        return
    annotations = _inner(_inner(pod, "metadata"), "annotations")
    annotations[COMPUTE_TEMPLATE] = template.name
    spec = pod.get("spec")
    if not isinstance(spec, dict):
        return
    whole = to_resources(template)
    plain = {
        part: {name: amounts[name] for name in ("cpu", "memory") if name in amounts} for part, amounts in whole.items()
    }
    containers = spec.get("containers")
    for container in containers if isinstance(containers, list) else ():
        if isinstance(container, dict):
            _give(container, whole if container.get("name") == ray_container else plain)
    _place(spec, template)


def _give(container: JSON, amounts: Mapping[str, Mapping[str, str]]) -> None:
    resources = _inner(container, "resources")
    for part in ("limits", "requests"):
        _inner(resources, part).update(amounts[part])


def _place(spec: JSON, template: ComputeTemplate) -> None:
    """Where the pods may run."""
    if template.tolerations:
        given = spec.get("tolerations")
        spec["tolerations"] = [*(given if isinstance(given, list) else []), *to_tolerations(template.tolerations)]
    if template.node_selector:
        selector = _inner(spec, "nodeSelector")
        spec["nodeSelector"] = {**dict(template.node_selector), **selector}
    if template.HasField("affinity") and "affinity" not in spec:
        spec["affinity"] = to_plain(template.affinity)


def _inner(owner: JSON, name: str) -> JSON:
    """An object inside another, made where there is none."""
    found = owner.get(name)
    if not isinstance(found, dict):
        found = owner[name] = {}
    return found
