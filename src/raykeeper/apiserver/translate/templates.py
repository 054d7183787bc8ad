"""Compute templates: ConfigMaps whose data are numbers and JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from raykeeper.api.meta import JSON
from raykeeper.apiserver.protos.config_pb2 import ComputeTemplate, PodToleration
from raykeeper.apiserver.translate.metadata import COMPUTE_TEMPLATE, COMPUTE_TEMPLATE_TYPE, CONFIG_TYPE
from raykeeper.apiserver.translate.quantities import canonical, check_amount
from raykeeper.apiserver.translate.structs import to_plain, to_struct

DEFAULT_MEMORY_UNIT = "Gi"
_MOST = 2**32 - 1


def to_config_map(template: ComputeTemplate) -> JSON:
    """The ConfigMap of a template. Raises `Untranslatable` for an amount that is none."""
    unit = template.memory_unit or DEFAULT_MEMORY_UNIT
    _check(f"{template.memory}{unit}", "memory")
    data = {
        "name": template.name,
        "namespace": template.namespace,
        "cpu": str(template.cpu),
        "memory": str(template.memory),
        "memory_unit": unit,
        "gpu": str(template.gpu),
        "gpu_accelerator": template.gpu_accelerator,
        "extended_resources": _json(dict(sorted(template.extended_resources.items())) or None),
    }
    if template.tolerations:
        data["tolerations"] = _json([_toleration_data(toleration) for toleration in template.tolerations])
    labels = {CONFIG_TYPE: COMPUTE_TEMPLATE_TYPE, COMPUTE_TEMPLATE: template.name}
    return {
        "metadata": {"name": template.name, "namespace": template.namespace, "labels": labels},
        "data": {**data, **_additions(template)},
    }


def _additions(template: ComputeTemplate) -> dict[str, str]:
    """What KubeRay's templates do not have, under keys that it does not read."""
    data: dict[str, str] = {}
    for name, amounts in (("requests", template.requests), ("limits", template.limits)):
        for resource, amount in amounts.items():
            _check(amount, f"{name} {resource}")
        if amounts:
            data[name] = _json(dict(sorted(amounts.items())))
    if template.node_selector:
        data["node_selector"] = _json(dict(sorted(template.node_selector.items())))
    if template.HasField("affinity"):
        data["affinity"] = _json(to_plain(template.affinity))
    return data


def _check(amount: str, what: str) -> None:
    check_amount(amount, f'invalid {what} quantity "{amount}"')


def _toleration_data(toleration: PodToleration) -> dict[str, str]:
    """As Go writes it: without what is empty."""
    data = {
        "key": toleration.key,
        "operator": toleration.operator,
        "value": toleration.value,
        "effect": toleration.effect,
    }
    return {name: text for name, text in data.items() if text}


def from_config_map(config_map: JSON) -> ComputeTemplate:
    """The template in a ConfigMap; what cannot be read counts as not there, as in KubeRay."""
    metadata, data = config_map.get("metadata") or {}, config_map.get("data") or {}
    template = ComputeTemplate(
        name=metadata.get("name", ""),
        namespace=metadata.get("namespace", ""),
        cpu=_number(data.get("cpu")),
        memory=_number(data.get("memory")),
        memory_unit=data.get("memory_unit", ""),
        gpu=_number(data.get("gpu")),
        gpu_accelerator=data.get("gpu_accelerator", ""),
    )
    extended = _read(data.get("extended_resources"), dict[str, int]) or {}
    template.extended_resources.update({name: number for name, number in extended.items() if 0 <= number <= _MOST})
    for toleration in _read(data.get("tolerations"), list[dict[str, str]]) or ():
        template.tolerations.append(PodToleration(**{name: toleration.get(name, "") for name in _TOLERATION_FIELDS}))
    template.requests.update(_read(data.get("requests"), dict[str, str]) or {})
    template.limits.update(_read(data.get("limits"), dict[str, str]) or {})
    template.node_selector.update(_read(data.get("node_selector"), dict[str, str]) or {})
    if (affinity := _read(data.get("affinity"), dict[str, Any])) is not None:
        template.affinity.CopyFrom(to_struct(affinity))
    return template


_TOLERATION_FIELDS = ("key", "operator", "value", "effect")


def _number(text: str | None) -> int:
    """A number as Go reads an unsigned one of 32 bits: 0 for what is none, the largest for what is larger."""
    if not text or not text.isascii() or not text.isdecimal():
        return 0
    return min(int(text[:20]), _MOST)


def _read(text: str | None, kind: Any) -> Any:
    if not text:
        return None
    try:
        return msgspec.json.decode(text, type=kind | None)
    except (msgspec.DecodeError, RecursionError):
        return None


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def to_tolerations(tolerations: Iterable[PodToleration]) -> list[JSON]:
    """Those of a template. What is no operator counts as Equal, and what is no effect as PreferNoSchedule."""
    return [
        {
            **({"key": toleration.key} if toleration.key else {}),
            "operator": toleration.operator if toleration.operator == "Exists" else "Equal",
            **({"value": toleration.value} if toleration.value else {}),
            "effect": toleration.effect if toleration.effect in ("NoExecute", "NoSchedule") else "PreferNoSchedule",
        }
        for toleration in tolerations
    ]


def to_resources(template: ComputeTemplate) -> JSON:
    """Requests and limits of a container. Raises `Untranslatable` for an amount that is none."""
    amounts = {"cpu": str(template.cpu), "memory": f"{template.memory}{template.memory_unit}"}
    _check(amounts["memory"], "memory")
    amounts["memory"] = canonical(amounts["memory"])  # 1024Mi is 1Gi to Kubernetes, and in KubeRay's objects
    for name, number in (("cpu", template.cpu), ("memory", template.memory)):
        if not number and (name in template.limits or name in template.requests):
            del amounts[name]
    if template.gpu:
        amounts[template.gpu_accelerator or "nvidia.com/gpu"] = str(template.gpu)
    amounts |= {name: str(number) for name, number in sorted(template.extended_resources.items()) if number}
    limits = {**amounts, **dict(template.limits)}
    # A request that nobody gave follows the limit, as in Kubernetes itself.
    return {"limits": limits, "requests": {**limits, **dict(template.requests)}}
