"""Which Kubernetes resources mean GPUs, and which Ray knows under a name of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from raykeeper.api.quantity import InvalidQuantity, Quantity, parse_quantity

_NVIDIA_MIG: Final = re.compile(r"nvidia\.com/mig-\d+g\.\d+gb")

RAY_NAMES: Final = {"aws.amazon.com/neuroncore": "neuron_cores", "google.com/tpu": "TPU"}
"""Resource of Kubernetes to custom resource of Ray."""


def is_gpu(resource: str) -> bool:
    """Whether Ray should count this resource as GPUs: `nvidia.com/gpu`, `amd.com/gpu`, slices of an NVIDIA GPU."""
    return resource.endswith("gpu") or _NVIDIA_MIG.fullmatch(resource) is not None


def amount(resources: Mapping[str, str | int | float] | None, name: str) -> Quantity:
    """How much of a resource is asked for; what is missing, or no quantity, is nothing. The API server refuses pods
    with the latter by name, so it need not be told here.
    """
    try:
        return parse_quantity((resources or {}).get(name, 0))
    except InvalidQuantity:
        return Quantity()


def gpu_count(limits: Mapping[str, str | int | float]) -> int:
    """The first kind of GPU by name of which there are any; Ray has one number for all."""
    counts = (amount(limits, name).value() for name in sorted(limits) if is_gpu(name))
    return next((count for count in counts if count), 0)


def named_by_ray(limits: Mapping[str, str | int | float]) -> dict[str, int]:
    """The first accelerator by name that Ray knows as a custom resource, under Ray's name; at most one."""
    for name in sorted(RAY_NAMES):
        if count := amount(limits, name).value():
            return {RAY_NAMES[name]: count}
    return {}
