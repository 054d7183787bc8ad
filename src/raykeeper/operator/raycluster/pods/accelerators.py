"""Which Kubernetes resources mean GPUs, and which Ray knows under a name of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from raykeeper.operator.shared.totals import amount

NVIDIA_MIG: Final = "nvidia.com/mig-"
"""Begins the names of slices of an NVIDIA GPU, such as `nvidia.com/mig-1g.10gb` and `nvidia.com/mig-1g.10gb.me`."""
ASCEND: Final = "huawei.com/Ascend"
"""Begins the names of Huawei's NPUs, such as `huawei.com/Ascend910`."""

_RAY_NAMES: Final = {"aws.amazon.com/neuroncore": "neuron_cores", "google.com/tpu": "TPU", "habana.ai/gaudi": "HPU"}
NPU: Final = "NPU"
NAMES_OF_RAY: Final = frozenset({*_RAY_NAMES.values(), NPU})
"""Custom resources under which Ray itself knows accelerators."""


def is_gpu(resource: str) -> bool:
    """Whether Ray should count this resource as GPUs: `nvidia.com/gpu`, `amd.com/gpu`, slices of an NVIDIA GPU."""
    return resource.endswith("gpu") or resource.startswith(NVIDIA_MIG)


def gpu_count(limits: Mapping[str, str | int | float]) -> int:
    """The first kind of GPU by name of which there are any; Ray has one number for all."""
    counts = (amount(limits, name).value() for name in sorted(limits) if is_gpu(name))
    return next((count for count in counts if count), 0)


def named_by_ray(limits: Mapping[str, str | int | float]) -> dict[str, int]:
    """The first accelerator by name that Ray knows as a custom resource, under Ray's name; at most one."""
    for name in sorted(limits):
        ray_name = NPU if name.startswith(ASCEND) else _RAY_NAMES.get(name)
        if ray_name and (count := amount(limits, name).value()):
            return {ray_name: count}
    return {}
