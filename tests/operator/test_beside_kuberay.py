"""KubeRay's own operator and ours side by side, each in its namespace: of the same spec they make the same children."""

from __future__ import annotations

import re
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Final

import pytest

from bed.control_plane import ControlPlane
from bed.fixtures import make_namespace
from bed.kuberay import VERSION as KUBERAYS_VERSION
from bed.kuberay import kuberay_on, sample_objects
from rayclusters.compared_children import comparable, differences
from rayclusters.reviewed_differences import Review
from rayclusters.stored_children import stored_children
from rayclusters.whole_clusters import HISTORY, OPERATORS, whole_cluster
from raykeeper.api import labels
from raykeeper.api.meta import JSON
from raykeeper.kube.client import Kube
from raykeeper.kube.resources import SERVICE_ACCOUNTS
from raykeeper.operator.settings import OperatorSettings
from support.conditions import eventually
from support.golden import to_yaml
from support.kube_clients import connected
from support.operating import operating
from support.raycluster_scene import CLUSTERS, POD_OBJECTS

pytestmark = pytest.mark.interop
REVIEWED: Final = Path(__file__).parent / "kuberay_differences.yaml"
OUR_VERSION: Final = f"raykeeper-{version('raykeeper')}"
USERS_SERVICE_ACCOUNT: Final[JSON] = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "mine"}}

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


SETTLE_SECONDS: Final = 120.0


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

    async def apply(self, clusters: Sequence[JSON]) -> None:
        for namespace in (self.theirs, self.ours):
            await self.kube.create(SERVICE_ACCOUNTS, USERS_SERVICE_ACCOUNT, namespace)
            for cluster in clusters:
                metadata = cluster["metadata"] | {"namespace": namespace}
                await self.kube.create(CLUSTERS, cluster | {"metadata": metadata}, namespace)

    async def settle(self) -> None:
        """Return once ours has made all pods that it says there should be, and KubeRay as many where it can."""
        left: dict[str, JSON] = {}

        async def look() -> bool:
            left.clear()
            left.update(await self._unsettled())
            return not left

        try:
            await eventually(look, seconds=SETTLE_SECONDS)
        except TimeoutError:
            pytest.fail(f"pods are missing:\n{to_yaml(left)}", pytrace=False)

    async def _unsettled(self) -> dict[str, JSON]:
        """Clusters that lack pods: how many there are on both sides, and what ours says about it."""
        ours, theirs = await self._pods(self.ours), await self._pods(self.theirs)
        left: dict[str, JSON] = {}
        for cluster in await self.kube.list(CLUSTERS, self.ours):
            name = cluster["metadata"]["name"]
            possible = 0 if name in WITHOUT_PODS_THERE else ours[name]
            if ours[name] != wanted_pods(cluster) or theirs[name] != possible:
                conditions = cluster.get("status", {}).get("conditions", [])
                told = [one["message"] for one in conditions if one["type"] == "ReplicaFailure"]
                left[name] = {"ours": ours[name], "wanted": wanted_pods(cluster), "theirs": theirs[name], "told": told}
        return left

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


async def compare(
    plane: ControlPlane, sides: Sides, clusters: Sequence[JSON], way: KubeRaysWay, settings: OperatorSettings
) -> Review:
    """Let both work on all clusters, and look at what differs."""
    await sides.apply(clusters)
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
    clusters = [whole_cluster(name, sides.ours) for name in cases_of(operator)]
    review = await compare(ray_crds, sides, clusters, WAYS[operator], OPERATORS[operator][0])
    assert not review.unexplained, "\n".join(map(str, review.unexplained))
    if operator == "as it comes":  # the others look at a few clusters only
        assert review.unused() == []


def sample_clusters() -> Iterator[JSON]:
    """The cluster of every sample of KubeRay, also of those that are jobs and services, named after its file."""
    for path, sample in sample_objects().items():
        spec = sample["spec"] if sample["kind"] == "RayCluster" else cluster_spec_of(sample["spec"])
        if spec is not None:
            name = "sample-" + re.sub("[^a-z0-9]+", "-", path.removesuffix(".yaml").lower())[-40:].strip("-")
            metadata = {field: sample["metadata"].get(field, {}) for field in ("labels", "annotations")}
            head = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": name, **metadata}}
            yield {**head, "spec": fit_for_one_namespace(spec, name)}


def fit_for_one_namespace(spec: JSON, cluster: str) -> JSON:
    """Two samples have a head service of the same name; service accounts that samples name do not exist here."""
    head_service = spec["headGroupSpec"].get("headService", {}).get("metadata", {})
    if "name" in head_service:
        head_service["name"] = f"{cluster}-mine"
    for group in (spec["headGroupSpec"], *spec.get("workerGroupSpecs", ())):
        if "serviceAccountName" in group["template"]["spec"]:
            group["template"]["spec"]["serviceAccountName"] = USERS_SERVICE_ACCOUNT["metadata"]["name"]
    return spec


def cluster_spec_of(spec: JSON) -> JSON | None:
    """Of a RayJob, a RayService or a RayCronJob; None where it uses a cluster that there is."""
    template = spec.get("jobTemplate", spec)
    found: JSON | None = template.get("rayClusterSpec") or template.get("rayClusterConfig")
    return found


async def test_children_of_kuberays_own_samples_differ_only_where_it_was_reviewed(
    ray_crds: ControlPlane, sides: Sides
) -> None:
    clusters = [*sample_clusters()]
    assert len({cluster["metadata"]["name"] for cluster in clusters}) == len(clusters) >= 70
    review = await compare(ray_crds, sides, clusters, KubeRaysWay(), OperatorSettings())
    assert not review.unexplained, "\n".join(map(str, review.unexplained))
