"""Validation as users meet it, on the real API server: what keeps a rule gets pods, what breaks it is told why."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from bed.control_plane import ControlPlane
from rayclusters.manifests import ClusterBuilder
from rayclusters.validation_cases import (
    CASES,
    DEFAULT_GATES,
    HISTORY,
    METADATA,
    MTLS,
    NETWORK_POLICY,
    NO_DELETION_POLICY,
    ROCKSDB,
    WITH_CERT_MANAGER,
    Case,
)
from raykeeper.api import labels
from raykeeper.api.meta import JSON
from raykeeper.api.raycluster import INVALID
from raykeeper.kube.client import Kube
from raykeeper.operator.settings import OperatorSettings
from support.conditions import eventually
from support.golden import to_yaml
from support.kube_clients import connected
from support.operating import operating
from support.raycluster_scene import CLUSTERS, POD_OBJECTS

OPERATORS = {
    "as it comes": DEFAULT_GATES,
    "with a history server": HISTORY,
    "with GCS storage on volumes": ROCKSDB,
    "without a deletion policy": NO_DELETION_POLICY,
}
NO_SUCH_OPERATOR = (NETWORK_POLICY, MTLS)
"""Gates that cannot be turned on yet: no operator runs with them, and their cases are judged by pure tests alone."""


@dataclass(frozen=True)
class Applied:
    """One half of a case as an object of its own."""

    sentence: str
    manifest: JSON
    broken_field: str | None

    @property
    def name(self) -> str:
        name: str = self.manifest["metadata"]["name"]
        return name


def applied(cases: list[Case], namespace: str) -> list[Applied]:
    """Both halves of each case, under names that let them be in one namespace."""
    halves = []
    for number, case in enumerate(cases):
        for half, builder, field in (("kept", case.accepted, None), ("broken", case.refused, case.field)):
            name = _own_name(builder) if case in METADATA else f"rule-{number}-{half}"
            halves.append(Applied(case.sentence, builder.named(name, namespace).manifest, field))
    return halves


def _own_name(builder: ClusterBuilder) -> str:
    name: str = builder.manifest["metadata"]["name"]
    return name


async def unjudged(kube: Kube, namespace: str, halves: list[Applied]) -> dict[str, JSON]:
    """The status of those that neither have a head pod nor are said to be invalid, as the case may be."""
    clusters = {item["metadata"]["name"]: item.get("status", {}) for item in await kube.list(CLUSTERS, namespace)}
    with_head = await clusters_with(kube, namespace, {labels.NODE_TYPE: labels.HEAD})
    return {
        half.sentence: clusters[half.name]
        for half in halves
        if not (half.name in with_head if half.broken_field is None else half.broken_field in _invalid(clusters, half))
    }


def _invalid(clusters: dict[str, JSON], half: Applied) -> str:
    """What the condition says that is wrong."""
    conditions = clusters[half.name].get("conditions", ())
    return next((one["message"] for one in conditions if (one["type"], one["status"]) == (INVALID, "True")), "")


async def clusters_with(kube: Kube, namespace: str, selector: dict[str, str]) -> set[str]:
    """Names of clusters that have such pods."""
    pods = await kube.list(POD_OBJECTS, namespace, labels=selector)
    return {pod["metadata"]["labels"][labels.CLUSTER] for pod in pods}


@pytest.mark.parametrize("operator", OPERATORS)
async def test_what_keeps_a_rule_gets_pods_and_what_breaks_it_a_condition(
    operator: str, ray_crds: ControlPlane, namespace: str
) -> None:
    gates = OPERATORS[operator]
    halves = applied([case for case in CASES if case.gates == gates], namespace)
    left: dict[str, JSON] = {}
    async with connected(ray_crds.admin_kubeconfig) as kube:
        for half in halves:
            await kube.create(CLUSTERS, half.manifest, namespace)

        async def are_judged() -> bool:
            nonlocal left
            left = await unjudged(kube, namespace, halves)
            return not left

        settings = OperatorSettings(gates=gates)
        async with operating(ray_crds.admin_kubeconfig, namespace, settings=settings, api_server=WITH_CERT_MANAGER):
            try:
                await eventually(are_judged)
            except TimeoutError:
                pytest.fail(to_yaml(left), pytrace=False)
        with_pods = await clusters_with(kube, namespace, {labels.IS_RAY_NODE: "yes"})
    assert with_pods & {half.name for half in halves if half.broken_field} == set()


def test_every_case_is_judged_or_known_to_have_no_operator() -> None:
    known = [*OPERATORS.values(), *NO_SUCH_OPERATOR]
    assert [case.sentence for case in CASES if case.gates not in known] == []
