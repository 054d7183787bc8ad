"""How much a cluster asks for in all: the head and every desired worker. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from raykeeper.api.meta import JSON
from raykeeper.api.podtemplates import containers
from raykeeper.api.quantity import Quantity, parse_quantity
from raykeeper.api.raycluster import RayCluster
from raykeeper.operator.raycluster.plan_workers import desired_replicas

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
    """The requests (else the limits) of all pods that should be, held within the limits of each group."""
    pods = [(cluster.spec.head_group_spec.template, 1)]
    pods += [
        (group.template, desired_replicas(group) * group.num_of_hosts) for group in cluster.spec.worker_group_specs
    ]
    sums: dict[str, Quantity] = {}
    for template, count in pods:
        for name, amount in _pod_resources(template):
            sums[name] = sums.get(name, ZERO) + amount * count
    gpu = sum((amount for name, amount in sums.items() if name.endswith("gpu")), ZERO)
    return Totals(sums.get("cpu", ZERO), sums.get("memory", ZERO), gpu, sums.get(TPU, ZERO))


def _pod_resources(template: JSON) -> Iterator[tuple[str, Quantity]]:
    for container in containers(template):
        asked = container.get("resources") or {}
        for name, text in {**(asked.get("limits") or {}), **(asked.get("requests") or {})}.items():
            yield name, parse_quantity(text)
