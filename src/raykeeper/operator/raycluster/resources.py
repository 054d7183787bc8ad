"""How much a cluster asks for in all: the head and every desired worker. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from raykeeper.api.quantity import Quantity
from raykeeper.api.raycluster import RayCluster
from raykeeper.operator.raycluster.pods.accelerators import is_gpu
from raykeeper.operator.shared.replicas import desired_replicas
from raykeeper.operator.shared.totals import requested

ZERO = Quantity()
TPU = "google.com/tpu"


@dataclass(frozen=True)
class Totals:
    """The sums that the status shows."""

    cpu: Quantity
    memory: Quantity
    gpu: Quantity
    tpu: Quantity


def desired_totals(cluster: RayCluster) -> Totals:
    """What all pods that should be ask for, the number of each group held within its limits."""
    pods = [(cluster.spec.head_group_spec.template, 1)]
    pods += [
        (group.template, desired_replicas(group) * group.num_of_hosts) for group in cluster.spec.worker_group_specs
    ]
    sums = requested(pods)
    gpu = sum((total for name, total in sums.items() if is_gpu(name)), ZERO)
    return Totals(sums.get("cpu", ZERO), sums.get("memory", ZERO), gpu, sums.get(TPU, ZERO))
