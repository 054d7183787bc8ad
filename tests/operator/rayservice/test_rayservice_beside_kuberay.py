"""KubeRay's own operator and ours on RayServices: side by side they make the same children, and one goes on where the
other stopped without restarting a pod.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from bed.control_plane import ControlPlane
from bed.kuberay import KubeRay, KubeRayOperator, kuberay_on, sample_objects
from rayclusters.compared_children import differences, without_choices
from rayclusters.reviewed_differences import Review
from raykeeper.api import labels
from raykeeper.api.meta import JSON, ObjectKey, ObjectMeta
from raykeeper.api.rayservice import RayService, RayServiceSpec
from raykeeper.kube.resources import PODS
from raykeeper.operator.gates import FeatureGates
from raykeeper.operator.rayservice.validation import violations
from support.chronicle import Chronicle
from support.conditions import eventually
from support.ray_serve_head import MOST_CLUSTERS
from support.raycluster_scene import CLUSTERS, SERVICE_OBJECTS
from support.rayservice_scene import (
    PATIENCE,
    RAY_SERVICE_OBJECTS,
    ServiceScene,
    a_cluster_config,
    a_rayservice,
    a_serve_config,
    a_service_scene,
)
from support.scripted_server import served

pytestmark = pytest.mark.interop
REVIEWED: Final = Path(__file__).parent / "kuberay_differences.yaml"
LATER_IMAGE: Final = a_cluster_config(image="rayproject/ray:2.61.0")
OWN_SERVICE: Final = {
    "metadata": {"name": "own", "labels": {"team": "a"}, "annotations": {"lb": "internal"}},
    "spec": {"type": "NodePort", "ports": [{"name": "serve", "port": 80, "targetPort": 8000}]},
}
INCREMENTAL: Final = "ray-service.incremental-upgrade.yaml"


def named(body: JSON, name: str) -> JSON:
    metadata = {"name": name, "labels": {"of": name}, "annotations": {"note": "kept"}}
    return {**body, "metadata": metadata}


SAMPLES: Final[dict[str, JSON]] = {
    "plain": a_rayservice(),
    "owned": a_rayservice(serveService=OWN_SERVICE),
    "headless": a_rayservice(excludeHeadPodFromServeSvc=True),
    "guarded": a_rayservice(rayClusterConfig=a_cluster_config(authOptions={"mode": "token"})),
}


@pytest.fixture
async def theirs(ray_crds: ControlPlane) -> AsyncIterator[ServiceScene]:
    async with a_service_scene(ray_crds) as scene:
        yield scene


@pytest.fixture
async def ours(ray_crds: ControlPlane) -> AsyncIterator[ServiceScene]:
    async with a_service_scene(ray_crds) as scene:
        yield scene


@pytest.fixture
def kuberay(ray_crds: ControlPlane) -> Iterator[KubeRay]:
    with kuberay_on(ray_crds) as kuberay:
        yield kuberay


@contextlib.asynccontextmanager
async def their_operator(kuberay: KubeRay, scene: ServiceScene) -> AsyncIterator[KubeRayOperator]:
    """KubeRay's operator, which asks the scripted heads by way of a proxy."""
    flags = (f"--watch-namespace={scene.namespace}", "--reconcile-concurrency=8")
    async with served(scene.heads.handle_proxied) as url:
        operator = await asyncio.to_thread(kuberay.start, *flags, elected=False, HTTP_PROXY=url)
        yield operator
        await asyncio.to_thread(operator.process.kill)


def test_all_of_kuberays_own_samples_but_the_incremental_one_are_valid() -> None:
    samples = {name: one for name, one in sample_objects().items() if one["kind"] == "RayService"}
    assert len(samples) >= 14
    refused = {name for name, one in samples.items() if violations(parsed(one), FeatureGates())}
    assert refused == {INCREMENTAL}


def parsed(sample: JSON) -> RayService:
    spec = msgspec.convert(json.loads(json.dumps(sample["spec"])), RayServiceSpec)
    metadata = sample["metadata"]
    return RayService(ObjectMeta(name=metadata["name"], annotations=metadata.get("annotations") or {}), spec)


@pytest.mark.usefixtures("kwok")
async def test_of_the_same_rayservices_both_make_the_same_children(
    theirs: ServiceScene, ours: ServiceScene, kuberay: KubeRay
) -> None:
    assert len(SAMPLES) <= MOST_CLUSTERS
    for scene in (theirs, ours):
        for name, body in SAMPLES.items():
            await scene.apply(named(body, name))
    async with their_operator(kuberay, theirs), ours.operating():
        found = [await asyncio.gather(*(children(scene, name) for name in SAMPLES)) for scene in (theirs, ours)]
    review = Review.read(REVIEWED)
    for name, their_children, our_children in zip(SAMPLES, *found, strict=True):
        review.look_at(differences(name, their_children, our_children))
    assert not review.unexplained, "\n".join(map(str, review.unexplained))
    assert review.unused() == []


async def children(scene: ServiceScene, name: str) -> list[JSON]:
    """What was made of a RayService once it serves, without names and ids that are random."""
    key = ObjectKey(scene.namespace, name)
    users = SAMPLES[name]["spec"].get("serveService", {}).get("metadata", {}).get("name")

    async def look() -> list[JSON] | None:
        service = await scene.kube.get(RAY_SERVICE_OBJECTS, key)
        status = service.get("status") or {}
        cluster = status.get("activeServiceStatus", {}).get("rayClusterName")
        if not cluster or status.get("serviceStatus") != "Running":
            return None
        kinds: list[tuple[Any, str]] = [(CLUSTERS, cluster), (SERVICE_OBJECTS, f"{name}-head-svc")]
        kinds.append((SERVICE_OBJECTS, users or f"{name}-serve-svc"))
        items = [
            {**await scene.kube.get(kind, ObjectKey(scene.namespace, one)), "kind": kind.kind} for kind, one in kinds
        ]
        return [comparable(scene, service, cluster, item) for item in items]

    return await eventually(look, seconds=PATIENCE) or []


def comparable(scene: ServiceScene, service: JSON, cluster: str, item: JSON) -> JSON:
    plain = without_choices(item)
    for mark in (labels.HASH_WITHOUT_REPLICAS, labels.KUBERAY_VERSION):
        if mark in plain["metadata"].get("annotations", {}):
            plain["metadata"]["annotations"][mark] = "OF THE OPERATOR"
    text = json.dumps(plain, sort_keys=True)
    words = {item["metadata"]["uid"]: "UID", service["metadata"]["uid"]: "OWNER", scene.namespace: "NAMESPACE"}
    for random, word in {**words, cluster: "GENERATED"}.items():
        text = text.replace(random, word)
    found: JSON = json.loads(text)
    return found


@pytest.mark.usefixtures("kwok")
async def test_what_kuberay_serves_goes_on_without_a_restart_and_is_upgraded(
    theirs: ServiceScene, kuberay: KubeRay
) -> None:
    await theirs.apply(a_rayservice(rayClusterDeletionDelaySeconds=0))
    async with their_operator(kuberay, theirs):
        old = await theirs.serves()
    chronicle = Chronicle(theirs.plane, theirs.namespace, (CLUSTERS, PODS))
    async with theirs.operating():
        await eventually(lambda: is_ours(theirs, old), seconds=PATIENCE)
        await theirs.says("ServeApplicationsHealthy", "True")
        assert made_or_gone(chronicle) == []
        await theirs.patch(rayClusterConfig=LATER_IMAGE)
        new = await theirs.serves(other_than=old)
        await theirs.has_clusters(new)


async def is_ours(scene: ServiceScene, cluster: str) -> bool:
    """Whether the cluster has the marks of our version."""
    annotations = (await scene.clusters())[cluster]["metadata"]["annotations"]
    return bool(annotations[labels.KUBERAY_VERSION].startswith("raykeeper-"))


def made_or_gone(chronicle: Chronicle) -> list[str]:
    return [f"{change.what} {change.name}" for change in chronicle.changes() if change.what != "MODIFIED"]


@pytest.mark.usefixtures("kwok")
async def test_an_upgrade_that_kuberay_began_is_brought_to_its_end_with_the_same_clusters(
    theirs: ServiceScene, kuberay: KubeRay
) -> None:
    await theirs.apply(a_rayservice())
    async with their_operator(kuberay, theirs):
        old = await theirs.serves()
        await theirs.patch(rayClusterConfig=LATER_IMAGE, serveConfigV2=a_serve_config("search"))
        new = await theirs.has_pending()
        theirs.head(new).state = "DEPLOYING"
        await theirs.head_pod(new)
        await theirs.says("UpgradeInProgress", "True")
    chronicle = Chronicle(theirs.plane, theirs.namespace, (CLUSTERS,))
    async with theirs.operating():
        await eventually(lambda: is_ours(theirs, new), seconds=PATIENCE)
        theirs.head(new).state = "RUNNING"
        assert await theirs.serves(other_than=old) == new
    assert made_or_gone(chronicle) == []


@pytest.mark.usefixtures("kwok")
async def test_a_change_made_between_the_two_operators_is_not_lost(theirs: ServiceScene, kuberay: KubeRay) -> None:
    await theirs.apply(a_rayservice())
    async with their_operator(kuberay, theirs):
        old = await theirs.serves()
    await theirs.patch(rayClusterConfig=LATER_IMAGE)
    async with theirs.operating():
        await theirs.serves(other_than=old)


@pytest.mark.usefixtures("kwok")
async def test_what_we_serve_is_left_as_it_is_by_kuberay_and_taken_back(ours: ServiceScene, kuberay: KubeRay) -> None:
    await ours.apply(a_rayservice())
    async with ours.operating():
        active = await ours.serves()
    chronicle = Chronicle(ours.plane, ours.namespace, (CLUSTERS, PODS))
    async with their_operator(kuberay, ours):

        async def is_theirs() -> bool:
            return not await is_ours(ours, active)

        await eventually(is_theirs, seconds=PATIENCE)
        assert await ours.serves() == active
    async with ours.operating():
        await eventually(lambda: is_ours(ours, active), seconds=PATIENCE)
        assert await ours.serves() == active
    assert made_or_gone(chronicle) == []
