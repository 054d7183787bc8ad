"""KubeRay's own operator and ours side by side, each in its namespace: of the same spec they make the same children."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Final

import pytest

from bed.control_plane import ControlPlane
from bed.fixtures import make_namespace
from bed.kuberay import VERSION as KUBERAYS_VERSION
from bed.kuberay import kuberay_on
from conditions import eventually
from kube_clients import connected
from operating import operating
from raycluster_scene import CLUSTERS, POD_OBJECTS
from rayclusters.compared_children import comparable, differences
from rayclusters.reviewed_differences import Review
from rayclusters.stored_children import stored_children
from rayclusters.whole_clusters import HISTORY, OPERATORS, whole_cluster
from raykeeper.api import labels
from raykeeper.api.meta import JSON
from raykeeper.kube.client import Kube
from raykeeper.kube.resources import SERVICE_ACCOUNTS

REVIEWED: Final = Path(__file__).parent / "kuberay_differences.yaml"
OUR_VERSION: Final = f"raykeeper-{version('raykeeper')}"
USERS_SERVICE_ACCOUNT: Final = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "mine"}}

SINCE_KUBERAY_1_7: Final = frozenset({*HISTORY, "customised-and-collected"})
"""Clusters with a collector. Those with RocksDB are told by their name."""

WITHOUT_PODS_THERE: Final = frozenset(
    {
        "head-port-has-the-number-of-metrics",
        "head-service-of-the-user",
        "head-service-of-the-user-with-workers",
        "ingress-to-a-service-of-the-user",
    }
)
"""Clusters whose head service KubeRay cannot make, so that nothing follows it."""


@dataclass(frozen=True)
class KubeRaysWay:
    """How KubeRay's operator is told what ours has in its settings."""

    flags: Sequence[str] = ()
    variables: Mapping[str, str] = field(default_factory=dict)


WAYS: Final[Mapping[str, KubeRaysWay]] = {
    "as it comes": KubeRaysWay(),
    "with addresses for heads": KubeRaysWay(variables={"ENABLE_RAY_HEAD_CLUSTER_IP_SERVICE": "true"}),
    "without probes and init containers": KubeRaysWay(
        variables={"ENABLE_PROBES_INJECTION": "false", "ENABLE_INIT_CONTAINER_INJECTION": "false"}
    ),
    "without indexes of replicas": KubeRaysWay(flags=["--feature-gates=RayMultiHostIndexing=false"]),
}


@dataclass(frozen=True)
class Sides:
    """Two namespaces with the same clusters in them."""

    kube: Kube
    theirs: str
    ours: str

    async def apply(self, cases: Sequence[str]) -> None:
        for namespace in (self.theirs, self.ours):
            await self.kube.create(SERVICE_ACCOUNTS, USERS_SERVICE_ACCOUNT, namespace)
            for name in cases:
                await self.kube.create(CLUSTERS, whole_cluster(name, namespace), namespace)

    async def settle(self) -> None:
        """Return once ours has made all pods that it says there should be, and KubeRay as many where it can."""

        async def look() -> bool:
            ours, theirs = await self._pods(self.ours), await self._pods(self.theirs)
            clusters = await self.kube.list(CLUSTERS, self.ours)
            possible = Counter({name: count for name, count in ours.items() if name not in WITHOUT_PODS_THERE})
            return all(ours[one["metadata"]["name"]] == wanted_pods(one) for one in clusters) and theirs == possible

        await eventually(look, seconds=90)

    async def _pods(self, namespace: str) -> Counter[str]:
        pods = await self.kube.list(POD_OBJECTS, namespace)
        return Counter(pod["metadata"]["labels"][labels.CLUSTER] for pod in pods)

    async def children(self, namespace: str, operator_version: str) -> dict[str, list[JSON]]:
        clusters = {cluster["metadata"]["name"]: cluster for cluster in await self.kube.list(CLUSTERS, namespace)}
        found = await stored_children(self.kube, namespace)
        return {name: comparable(one, found.get(name, []), operator_version) for name, one in clusters.items()}


@pytest.fixture
async def sides(ray_crds: ControlPlane) -> AsyncIterator[Sides]:
    theirs, ours = (f"{side}-{uuid.uuid4().hex[:6]}" for side in ("theirs", "ours"))
    for namespace in (theirs, ours):
        make_namespace(ray_crds, namespace)
    async with connected(ray_crds.admin_kubeconfig) as kube:
        yield Sides(kube, theirs, ours)
    for namespace in (theirs, ours):
        ray_crds.admin.delete(f"/api/v1/namespaces/{namespace}")


def wanted_pods(cluster: JSON) -> int | None:
    """How many pods there should be by its status; None while that says nothing."""
    status = cluster.get("status", {})
    if cluster["spec"].get("managedBy", labels.MANAGED_BY_KUBERAY) != labels.MANAGED_BY_KUBERAY:
        return 0
    if status.get("observedGeneration") is None:
        return None
    return 0 if status.get("state") == "suspended" else status.get("desiredWorkerReplicas", 0) + 1


def cases_of(operator: str) -> list[str]:
    """Those of its clusters that KubeRay 1.6 knows how to make."""
    _, clusters = OPERATORS[operator]
    return [name for name in clusters if name not in SINCE_KUBERAY_1_7 and "rocksdb" not in name]


async def compare(operator: str, plane: ControlPlane, sides: Sides) -> Review:
    """Let both work on all clusters, and look at what differs."""
    way, (settings, _) = WAYS[operator], OPERATORS[operator]
    cases = cases_of(operator)
    await sides.apply(cases)
    with kuberay_on(plane) as kuberay:
        flags = (f"--watch-namespace={sides.theirs}", "--reconcile-concurrency=8", *way.flags)
        kuberay.start(*flags, elected=False, **way.variables)
        async with operating(plane.admin_kubeconfig, sides.ours, settings=settings):
            await sides.settle()
    theirs = await sides.children(sides.theirs, KUBERAYS_VERSION)
    ours = await sides.children(sides.ours, OUR_VERSION)
    review = Review.read(REVIEWED)
    for name in ours:
        review.look_at(differences(name, theirs[name], ours[name]))
    return review


@pytest.mark.parametrize("operator", WAYS)
async def test_children_differ_only_where_it_was_reviewed(operator: str, ray_crds: ControlPlane, sides: Sides) -> None:
    review = await compare(operator, ray_crds, sides)
    assert not review.unexplained, "\n".join(map(str, review.unexplained))
    if operator == "as it comes":  # the others look at a few clusters only
        assert review.unused() == []
